"""A server program of this machine, on a free port of the loopback interface."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar, Self

_START_S = 30.0
_TRIES = 3  # another process may take the free port before the server does


class ServerProcess(ABC):
    """Runs while the context lasts, in a folder of its own, `place`, that is removed afterwards."""

    host = "127.0.0.1"
    name: ClassVar[str]
    end_signal: ClassVar[signal.Signals] = signal.SIGTERM

    def __init__(self) -> None:
        self.port = 0
        self.place = Path()
        self.switch: dict[str, Any] = {}  # what `subprocess` must be told to run it as another user
        self._process: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def prepare(self) -> None:
        """Make in `place` what it needs."""

    @abstractmethod
    def command(self) -> list[str]:
        """What starts it on `port`, in the foreground."""

    @abstractmethod
    def answers(self) -> bool:
        """Whether it can be used by now."""

    def start(self) -> None:
        """Return when it answers.

        Raises:
            RuntimeError: If it does not start; the message has what it said.
        """
        self.place = Path(tempfile.mkdtemp(prefix=f"crossdock-{self.name}-"))
        try:
            self.prepare()
            if not any(self._launched() for _ in range(_TRIES)):
                raise RuntimeError(f"{self.name} did not start:\n{(self.place / 'log').read_text()}")
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Stop it and remove its folder."""
        if self._process is not None:
            self._process.send_signal(self.end_signal)
            self._process.wait()
        shutil.rmtree(self.place, ignore_errors=True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _launched(self) -> bool:
        with socket.create_server((self.host, 0)) as free:
            self.port = free.getsockname()[1]
        with (self.place / "log").open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603
                self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.place, **self.switch
            )
        deadline = time.monotonic() + _START_S
        while self._process.poll() is None and time.monotonic() < deadline:
            if self.answers():
                return True
            time.sleep(0.01)
        return False
