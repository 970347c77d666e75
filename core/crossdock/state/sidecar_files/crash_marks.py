"""Crash marks: what a process is reading now, in a file beside the state. A killed process leaves them to the next one.

They are not flushed to the disk, which costs some microseconds each: they must survive the process, not the machine.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from msgspec import Struct, structs

from crossdock.values.safe_local_files import open_or_create_private

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_PLACE = 4096
"""Bytes of one mark. The first place identifies the process."""


class CrashMark(Struct, frozen=True):
    """What one thread reads: *batches* batches of a file with the hash *content*. *name* is empty without a file."""

    stream: str
    name: str = ""
    content: str = ""
    batches: int = 0


class CrashMarks:
    """The marks of one state. A failed write stops nothing, and marks of another *identity* are ignored."""

    def __init__(self, path: Path, identity: str) -> None:
        self._path, self._owner = path, {"state": identity, "boot": _boot_id()}
        self._file: BinaryIO | None = None

    def marks_of_killed_process(self) -> Sequence[CrashMark]:
        """Return the marks of a killed process; none if the machine has restarted since."""
        try:
            content = self._path.read_bytes()
        except OSError:
            return ()
        owner, *marks = [_decoded(content[start : start + _PLACE]) for start in range(0, len(content) or 1, _PLACE)]
        found = marks if owner == self._owner else []
        return [CrashMark(**mark) for mark in found if isinstance(mark, dict) and mark.keys() == _FIELDS]

    def open(self) -> None:
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._file = open_or_create_private(self._path)
            self._file.truncate()
            self._write(0, self._owner)

    def write_mark(self, place: int, mark: CrashMark | None) -> None:
        """Write *mark* at *place*, counted from 1; None if nothing is read."""
        self._write(place, mark and structs.asdict(mark))

    def close_and_remove(self) -> None:
        """Remove the marks: the process ends and was not killed."""
        if self._file is not None:
            self._file.close()
            self._file = None
            self._path.unlink(missing_ok=True)

    def _write(self, place: int, content: object) -> None:
        data = json.dumps(content).encode()
        if self._file is not None and len(data) <= _PLACE:
            with suppress(OSError):
                os.pwrite(self._file.fileno(), data.ljust(_PLACE), place * _PLACE)


_FIELDS = structs.asdict(CrashMark("")).keys()


def _boot_id() -> str:
    """Return an id of the current start of the machine; empty where the system has none."""
    try:
        return _BOOT.read_text().strip()
    except OSError:
        return ""


def _decoded(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return None
