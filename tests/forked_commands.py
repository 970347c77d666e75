"""The commands of an acceptance as forks of a process that has imported crossdock, instead of new interpreters.

They are processes that are killed and judged alike. The acceptances of the documentation, and in ``tests/long`` those
of new projects, start them as authors do. As a plugin of pytest, this module forks them in all tests.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self, cast

import pytest
from tests.chaos import processes

from crossdock.testing.crossdock_process import CrossdockCommands


class _Forked:
    """What `Commands` needs of a ``subprocess.Popen``."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self._place = TemporaryDirectory()
        self._written = Path(self._place.name, "out"), Path(self._place.name, "err")
        self._process = processes.start(command[1:], environment, *self._written)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._process.join()
        self._place.cleanup()

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def kill(self) -> None:
        self._process.kill()

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("crossdock", timeout or 0)
        output, errors = (path.read_text() if path.exists() else "" for path in self._written)
        return output, errors


@contextmanager
def forked_commands() -> Iterator[None]:
    """Start the commands of every `Commands` so."""

    def start(self: CrossdockCommands, *arguments: str) -> subprocess.Popen[str]:
        return cast("subprocess.Popen[str]", _Forked([*self._command, *arguments], self._environment))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CrossdockCommands, "start", start)
        yield


@pytest.fixture(autouse=True, scope="session")
def _all_are_forked() -> Iterator[None]:
    with forked_commands():
        yield
