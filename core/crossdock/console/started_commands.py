"""The commands that people start from the console: each is a process of its own, which a closed browser does not end.

What they print and how they ended is kept in a private folder beside the state, so that starting and showing them
writes nothing to the state. The command itself writes to the audit log.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from typing import Any

from crossdock.errors import StateError
from crossdock.values.json_times import time_text
from crossdock.values.local_files import create_private, open_private, private_folder, read_regular, replace_file

PLAN = "PLAN"  # in the arguments: the file in the folder of the command
KEPT = timedelta(days=90)
MOST_OUTPUT = 1 << 20  # bytes of its end that are shown
_ID = re.compile(r"[0-9]{8}T[0-9]{6}-[0-9a-f]{8}")
_FACTS_BYTES = 1 << 20
_TRIES = 20


@dataclass(frozen=True, slots=True)
class StartedCommand:
    """One command.

    Attributes:
        id: Its time and a random number, so that the order of ids is that of the starts.
        arguments: Those of ``crossdock``, without the config.
        exit_code: None while it runs, and if its process was killed.
    """

    id: str
    title: str
    arguments: tuple[str, ...]
    person: str
    address: str
    reason: str
    started_at: str
    has_plan: bool
    is_running: bool
    exit_code: int | None


class AlreadyRunningError(Exception):
    """The same command was started before and has not ended."""

    def __init__(self, command: StartedCommand | None) -> None:
        super().__init__("it is running already")
        self.command = command


class StartedCommands:
    """The commands of one state, in *folder*."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def start(
        self,
        config: Sequence[Path],
        arguments: Sequence[str],
        *,
        title: str,
        person: str,
        address: str,
        reason: str,
        at: datetime,
    ) -> StartedCommand:
        """Start ``crossdock`` with *arguments*. Raises AlreadyRunningError if the same command is running.

        Raises StateError if the folder cannot be written.
        """
        try:
            private_folder(
                self._folder, "what commands have printed is kept in it", "choose another place of the state"
            )
            lock = open_private(self._folder / f"{_digest(arguments)}.lock")
            with lock:
                return self._start(lock.fileno(), config, arguments, title, person, address, reason, at)
        except OSError as error:
            message = f"the command cannot be started: {error.strerror}"
            raise StateError(message, where=str(self._folder), hint="start it on the command line") from error

    def _start(
        self,
        lock: int,
        config: Sequence[Path],
        arguments: Sequence[str],
        title: str,
        person: str,
        address: str,
        reason: str,
        at: datetime,
    ) -> StartedCommand:
        self._lock(lock, arguments)
        name = f"{at:%Y%m%dT%H%M%S}-{token_hex(4)}"
        folder = self._folder / name
        folder.mkdir(mode=0o700)
        facts = {
            "title": title,
            "arguments": list(arguments),
            "person": person,
            "address": address,
            "reason": reason,
            "started_at": time_text(at),
        }
        replace_file(folder / "command.json", json.dumps(facts).encode())
        files = [part for path in config for part in ("-C", str(path))]
        given = [str(folder / "plan") if each == PLAN else each for each in arguments]
        who = {"CROSSDOCK_PERSON": person, "CROSSDOCK_ADDRESS": address, "CROSSDOCK_REASON": reason}
        with create_private(folder / "output") as output:
            process = subprocess.Popen(  # noqa: S603  no shell, and the arguments are those of an action
                [sys.executable, "-m", "crossdock.console.started_process", str(folder), *files, *given],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=os.environ | who,
                cwd=config[-1].parent,
                pass_fds=(lock,),  # which it holds to its end
                start_new_session=True,
            )
        _PROCESSES.append(process)
        return self._read(folder)

    def _lock(self, lock: int, arguments: Sequence[str]) -> None:
        for _ in range(_TRIES):
            with suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            same = (each for each in self.listed() if each.arguments == tuple(arguments) and each.is_running)
            if (running := next(same, None)) is not None:
                raise AlreadyRunningError(running)
            time.sleep(0.05)  # somebody looks whether it is running, or it is starting
        raise AlreadyRunningError(None)

    def get(self, name: str) -> StartedCommand | None:
        folder = self._folder / name
        return self._read(folder) if _ID.fullmatch(name) and folder.is_dir() else None

    def listed(self) -> Iterator[StartedCommand]:
        """Yield the commands that are kept, newest first."""
        with suppress(OSError):
            for name in sorted(
                (each.name for each in self._folder.iterdir() if _ID.fullmatch(each.name)), reverse=True
            ):
                with suppress(OSError, ValueError):  # it was removed, or its start was killed
                    yield self._read(self._folder / name)

    def plan_of(self, name: str) -> Path:
        return self._folder / name / "plan"

    def output(self, name: str) -> str:
        """Return the end of what the command has printed."""
        path = self._folder / name / "output"
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - MOST_OUTPUT))
            return file.read().decode(errors="replace")

    def remove_old(self, now: datetime) -> None:
        oldest = f"{now - KEPT:%Y%m%dT%H%M%S}"
        for each in list(self.listed()):
            if each.id < oldest and not each.is_running:
                folder = self._folder / each.id
                for file in folder.iterdir():
                    file.unlink()
                folder.rmdir()

    def _read(self, folder: Path) -> StartedCommand:
        _PROCESSES[:] = [each for each in _PROCESSES if each.poll() is None]
        facts: Mapping[str, Any] = json.loads(read_regular(folder / "command.json", _FACTS_BYTES))
        code = _exit_code(folder)
        return StartedCommand(
            folder.name,
            facts["title"],
            tuple(facts["arguments"]),
            facts["person"],
            facts["address"],
            facts["reason"],
            facts["started_at"],
            (folder / "plan").is_file(),
            code is None and self._holds_lock(facts["arguments"]),
            code,
        )

    def _holds_lock(self, arguments: Sequence[str]) -> bool:
        with open_private(self._folder / f"{_digest(arguments)}.lock") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False


_PROCESSES: list[subprocess.Popen[bytes]] = []  # so that those that have ended are reaped


def _digest(arguments: Sequence[str]) -> str:
    return sha256(json.dumps(list(arguments)).encode()).hexdigest()[:32]


def _exit_code(folder: Path) -> int | None:
    try:
        return int(read_regular(folder / "exit_code", 10))
    except (OSError, ValueError):
        return None
