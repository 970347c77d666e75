"""The base class of the servers that run as a process on a free port of the loopback interface."""

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

_TRIES = 3  # another process may take the free port before the server does


class ServerProcess(ABC):
    """Runs while the context is open, in a temporary folder, `place`."""

    host = "127.0.0.1"
    name: ClassVar[str]
    end_signal: ClassVar[signal.Signals] = signal.SIGTERM
    start_s: ClassVar[float] = 30.0

    def __init__(self) -> None:
        self.port = 0
        self.place = Path()
        self.switch: dict[str, Any] = {}  # for `subprocess`, to run the server as another user
        self._process: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def prepare(self) -> None:
        """Create the server's files in `place`."""

    @abstractmethod
    def command(self) -> list[str]:
        """The command that runs the server in the foreground on `port`."""

    @abstractmethod
    def accepts_connections(self) -> bool:
        """Return whether the server accepts connections."""

    def start(self) -> None:
        """Start the server and wait until it answers.

        Raises:
            RuntimeError: If it does not start; the message contains its output.
        """
        self.place = Path(tempfile.mkdtemp(prefix=f"crossdock-{self.name}-"))
        try:
            self.prepare()
            if not any(self._launch_and_await_readiness() for _ in range(_TRIES)):
                raise RuntimeError(f"{self.name} did not start:\n{(self.place / 'log').read_text()}")
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if self._process is not None:
            self._process.send_signal(self.end_signal)
            self._process.wait()
        shutil.rmtree(self.place, ignore_errors=True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _launch_and_await_readiness(self) -> bool:
        with socket.create_server((self.host, 0)) as free:
            self.port = free.getsockname()[1]
        with (self.place / "log").open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603
                self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.place, **self.switch
            )
        deadline = time.monotonic() + self.start_s
        while self._process.poll() is None and time.monotonic() < deadline:
            if self.accepts_connections():
                return True
            time.sleep(0.01)
        return False
