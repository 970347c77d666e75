"""Inputs at which a process was killed while it read them. An input that kills a second process is set aside."""

from __future__ import annotations

import hashlib
from datetime import datetime

from msgspec import Struct
from sqlalchemy import ColumnElement, Connection, delete, select, update

from crossdock.state.db import bulk_writes_and_key_queries
from crossdock.state.db.schema import suspected_inputs
from crossdock.state.sidecar_files.crash_marks import CrashMark

_MOST = 6
"""How often in a row processes may be killed at one place of an input that has killed no other process."""


class SuspectedInput(Struct, frozen=True):
    """An input at which *killed* processes were killed, *here* of them in a row after *batches* batches."""

    stream: str
    name: str
    killed: int
    here: int
    batches: int
    at: datetime
    set_aside_at: datetime | None

    @property
    def needs_trial_process(self) -> bool:
        """Whether another process must read it first. Reading a stream without files again may cost many requests."""
        return bool(self.name) or self.killed > 1


_FIELDS = tuple(suspected_inputs.c[name] for name in SuspectedInput.__struct_fields__)


class CrashingInputs:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get(self, mark: CrashMark) -> SuspectedInput | None:
        row = self._connection.execute(select(*_FIELDS).where(*_is_input(mark))).first()
        return None if row is None else SuspectedInput(*row)

    def has_any(self) -> bool:
        return self._connection.execute(select(suspected_inputs.c.stream).limit(1)).first() is not None

    def list_set_aside(self) -> list[SuspectedInput]:
        query = (
            select(*_FIELDS)
            .where(suspected_inputs.c.set_aside_at.is_not(None))
            .order_by(suspected_inputs.c.stream, suspected_inputs.c.name)
        )
        return [SuspectedInput(*row) for row in self._connection.execute(query)]

    def record_kill(self, mark: CrashMark, *, at: datetime) -> None:
        """Record that a process was killed at *mark*, and set it aside if that has happened too often."""
        before = self.get(mark)
        here = before.here + 1 if before and before.batches == mark.batches else 1
        killed = before.killed + 1 if before else 1
        row = {"stream": mark.stream, "digest": _digest(mark), "name": mark.name, "batches": mark.batches}
        counts = {"killed": killed, "here": here, "at": at, "set_aside_at": at if here >= _MOST else None}
        bulk_writes_and_key_queries.upsert_rows(self._connection, suspected_inputs, [row | counts])

    def set_aside(self, mark: CrashMark, *, at: datetime) -> int:
        """Set *mark* aside after it killed another process. Return how many processes it has killed."""
        killed = (
            update(suspected_inputs)
            .where(*_is_input(mark))
            .values(set_aside_at=at, killed=suspected_inputs.c.killed + 1)
        )
        return int(self._connection.execute(killed.returning(suspected_inputs.c.killed)).scalar_one())

    def forget(self, mark: CrashMark) -> None:
        self._connection.execute(delete(suspected_inputs).where(*_is_input(mark)))

    def readmit(self, stream: str) -> int:
        """Let the inputs of *stream* that are set aside be read once more, and return their number."""
        found = update(suspected_inputs).where(
            suspected_inputs.c.stream == stream, suspected_inputs.c.set_aside_at.is_not(None)
        )
        return self._connection.execute(found.values(killed=1, here=1, set_aside_at=None)).rowcount


def _is_input(mark: CrashMark) -> tuple[ColumnElement[bool], ...]:
    return suspected_inputs.c.stream == mark.stream, suspected_inputs.c.digest == _digest(mark)


def _digest(mark: CrashMark) -> str:
    return hashlib.sha256((mark.content or mark.name).encode()).hexdigest()
