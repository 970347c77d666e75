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
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from typing import Any, BinaryIO

from msgspec import Struct

from crossdock.config.project.project import WAIT_FOR_RUN
from crossdock.errors import StateError
from crossdock.printable import printable
from crossdock.state import PinnedTenant
from crossdock.values.acting_person_and_process import Actor
from crossdock.values.safe_local_files import (
    create_private_file,
    create_private_folder,
    open_or_create_private_file,
    open_regular_file,
    read_regular_file_within_limit,
    replace_file_atomically,
)
from crossdock.values.texts_of_numbers_and_times import json_time_text


class PlanFile(str):
    """Stands in the arguments for a file in the folder of the command; no text that a person has given is one."""

    __slots__ = ()


PLAN = PlanFile("PLAN")
KEPT = timedelta(days=90)
WAITS_S = 10  # for the end of a run that uses the state
MOST_OUTPUT = 1 << 20  # bytes of its end that are shown
_ID = re.compile(r"[0-9]{8}T[0-9]{6}-[0-9a-f]{8}")
_ID_BYTES = 24
_FACTS_BYTES = 1 << 20
_TRIES = 20


class StartedCommand(Struct, frozen=True):
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


class AlreadyStartedError(Exception):
    """Somebody has started a command about the same: it is running, or was not known to who starts this one."""

    def __init__(self, command: StartedCommand | None) -> None:
        super().__init__("it was started already")
        self.command = command


CommandSubject = tuple[str, ...]
"""What a command is about, whatever a person has decided: of the same, one is running at a time."""


class StartedCommands:
    """The commands of the state with that *pin*. Several states may have the same *folder* for it."""

    def __init__(self, folder: Path, pin: PinnedTenant) -> None:
        self._folder = folder / _digest((pin.base_url, pin.tenant))

    def last_id_about(self, about: CommandSubject) -> str:
        """Return the id of the last command about the same; empty if there was none."""
        try:
            return read_regular_file_within_limit(self._lock_file(about), _ID_BYTES).decode()
        except OSError:
            return ""

    def start(
        self,
        config: Sequence[Path],
        arguments: Sequence[str],
        *,
        about: CommandSubject,
        last: str,
        title: str,
        who: Actor,
        at: datetime,
    ) -> StartedCommand:
        """Start ``crossdock`` with *arguments*, if none was started *about* the same since *last*.

        Raises AlreadyStartedError, or StateError if the folder cannot be written.
        """
        facts = {
            "title": title,
            "arguments": list(arguments),
            "about": about,
            "person": printable(who.name),
            "address": printable(who.address),
            "reason": printable(who.reason),
            "started_at": json_time_text(at),
        }
        try:
            for folder in (self._folder.parent, self._folder):
                create_private_folder(
                    folder, "what commands have printed is kept in it", "choose another place of the state"
                )
            with self._lock_unless_started(about, last) as lock:
                started = self._start_process(
                    lock.fileno(), config, arguments, f"{at:%Y%m%dT%H%M%S}-{token_hex(4)}", facts
                )
                lock.write(started.id.encode())
            return started
        except OSError as error:
            message = f"the command cannot be started: {error.strerror}"
            raise StateError(
                message, where=str(self._folder), hint="start it on the command line", code="command_not_started"
            ) from error

    def _start_process(
        self, lock: int, config: Sequence[Path], arguments: Sequence[str], name: str, facts: Mapping[str, Any]
    ) -> StartedCommand:
        folder = self._folder / name
        folder.mkdir(mode=0o700)
        replace_file_atomically(folder / "command.json", json.dumps(facts).encode())
        files = [part for path in config for part in ("-C", str(path))]
        given = [str(folder / "plan") if isinstance(each, PlanFile) else each for each in arguments]
        who = {f"CROSSDOCK_{each.upper()}": facts[each] for each in ("person", "address", "reason")}
        with create_private_file(folder / "output") as output:
            process = subprocess.Popen(  # noqa: S603  no shell, and the arguments are those of an action
                [
                    sys.executable,
                    "-P",
                    "-m",
                    "crossdock.console.exit_code_recorder",
                    str(folder),
                    str(lock),
                    *files,
                    *given,
                ],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=os.environ | {WAIT_FOR_RUN: str(WAITS_S)} | who,
                cwd=config[-1].parent,  # whose files are no modules: -P
                pass_fds=(lock,),  # which the command holds to its end
                start_new_session=True,
            )
        _PROCESSES.append(process)
        return self._read(folder)

    @contextmanager
    def _lock_unless_started(self, about: CommandSubject, last: str) -> Iterator[BinaryIO]:
        path = self._lock_file(about)
        for _ in range(_TRIES):
            with open_or_create_private_file(path) as lock, suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if not _is_same_file(lock, path):
                    continue  # an old one was removed in between
                if self.last_id_about(about) != last:
                    raise AlreadyStartedError(self.get(self.last_id_about(about)))
                yield lock
                return
            running = self.get(self.last_id_about(about))
            if running is not None and running.is_running:
                raise AlreadyStartedError(running)
            time.sleep(0.05)  # somebody looks whether it is running, or it is starting
        raise AlreadyStartedError(None)

    def get(self, name: str) -> StartedCommand | None:
        if _ID.fullmatch(name):
            with suppress(OSError, ValueError):  # it was removed, or its start was killed
                return self._read(self._folder / name)
        return None

    def listed(self) -> Iterator[StartedCommand]:
        """Yield the commands that are kept, newest first."""
        with suppress(OSError):
            for name in sorted((each.name for each in self._folder.iterdir()), reverse=True):
                if (found := self.get(name)) is not None:
                    yield found

    def plan_path(self, name: str) -> Path:
        return self._folder / name / "plan"

    def output(self, name: str) -> str:
        """Return the end of what the command has printed."""
        with suppress(OSError), (self._folder / name / "output").open("rb") as file:  # it may have been removed
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - MOST_OUTPUT))
            return file.read().decode(errors="replace")
        return ""

    def remove_old(self, now: datetime) -> None:
        """Remove commands that ended long ago, and the locks of what was not started since."""
        oldest = f"{now - KEPT:%Y%m%dT%H%M%S}"
        for each in list(self.listed()):
            if each.id < oldest and not each.is_running:
                folder = self._folder / each.id
                with suppress(OSError):  # another console removes it
                    for file in folder.iterdir():
                        file.unlink()
                    folder.rmdir()
        with suppress(OSError):  # nothing was started yet
            for path in self._folder.glob("*.lock"):
                self._remove_old_lock(path, oldest)

    def _remove_old_lock(self, path: Path, oldest: str) -> None:
        with suppress(OSError), path.open("rb") as lock:  # it is in use, or another console removes it
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if lock.read(_ID_BYTES).decode() < oldest and _is_same_file(lock, path):
                path.unlink()

    def _read(self, folder: Path) -> StartedCommand:
        _PROCESSES[:] = [each for each in _PROCESSES if each.poll() is None]
        facts: Mapping[str, Any] = json.loads(read_regular_file_within_limit(folder / "command.json", _FACTS_BYTES))
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
            code is None and self._is_locked(tuple(facts["about"])),
            code,
        )

    def _lock_file(self, about: CommandSubject) -> Path:
        return self._folder / f"{_digest(about)}.lock"

    def _is_locked(self, about: CommandSubject) -> bool:
        try:
            with open_regular_file(self._lock_file(about)) as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except FileNotFoundError:  # it was removed after a long time
            pass
        return False


_PROCESSES: list[subprocess.Popen[bytes]] = []  # so that those that have ended are reaped


def _is_same_file(file: BinaryIO, path: Path) -> bool:
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    return False


def _digest(texts: Sequence[str]) -> str:
    return sha256(json.dumps(texts).encode()).hexdigest()[:32]


def _exit_code(folder: Path) -> int | None:
    try:
        return int(read_regular_file_within_limit(folder / "exit_code", 10))
    except (OSError, ValueError):
        return None
