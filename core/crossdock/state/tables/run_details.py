"""What a run's report asks: numbers by the database, and the first of each kind without the records' data."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, and_, func, select, true

from crossdock.state.db.schema import dead_letters, intents, waiting_records
from crossdock.state.tables.run_history import RunRecord

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reason:
    """How many dead letters there are for one reason.

    Attributes:
        records: Refused in the run or before it.
        own: Those of *records* that the run itself refused.
    """

    code: str
    records: int
    own: int


@dataclass(frozen=True, slots=True)
class Delivery:
    """What a run settled of one stream: from its first operation's writing to its last one's settlement."""

    stream: str
    operations: int
    began: datetime
    ended: datetime


class RunDetails:
    """Everything but `deliveries` tells of now: a dead letter whose record got through meanwhile is gone."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def reasons(self, run_id: int) -> list[Reason]:
        """Why dead letters of *run_id* and of earlier runs were dead_letters, the commonest reason first."""
        records, own = func.count(), func.count().filter(dead_letters.c.run_id == run_id)
        query = select(dead_letters.c.code, records, own).where(_refused_by(run_id)).group_by(dead_letters.c.code)
        return [Reason(*row) for row in self._connection.execute(query.order_by(records.desc(), dead_letters.c.code))]

    def refused(self, run_id: int, code: str, *, limit: int) -> list[Row]:
        """Dead letters of *run_id* and of earlier runs for one reason, at most *limit*: the run's own first."""
        order = (
            dead_letters.c.run_id.desc(),
            dead_letters.c.stream,
            dead_letters.c.source,
            dead_letters.c.line,
            dead_letters.c.key,
        )
        names = ("stream", "key", "stage", "pointer", "message", "source", "line", "run_id")
        return self._rows(dead_letters, names, and_(_refused_by(run_id), dead_letters.c.code == code), order, limit)

    def refused_later(self, run_id: int) -> int:
        """How many dead letters later runs than *run_id* have written."""
        return self._count(dead_letters, and_(dead_letters.c.run_id > run_id, dead_letters.c.status == "refused"))

    def waiting(self, *, limit: int) -> tuple[int, list[Row]]:
        """How many records wait, and at most *limit* of them, longest first."""
        names = ("stream", "key", "waits_for", "source", "line", "since")
        order = (waiting_records.c.since, waiting_records.c.stream, waiting_records.c.key)
        return self._count(waiting_records, true()), self._rows(waiting_records, names, true(), order, limit)

    def in_doubt(self, *, limit: int) -> tuple[int, list[Row]]:
        """How many operations are in doubt, and at most *limit* of them, oldest first."""
        names = ("stream", "key", "operation", "attempts", "source", "line", "first_sent_at")
        unsettled = intents.c.status == "in_doubt"
        return self._count(intents, unsettled), self._rows(intents, names, unsettled, (intents.c.id,), limit)

    def unsent(self) -> int:
        """How many operations are written down that the next run sends, or sends once more."""
        return self._count(intents, intents.c.status.in_(("pending", "sending")))

    def deliveries(self, run: RunRecord) -> list[Delivery]:
        """What *run* settled, by stream, slowest first; what was purged since is not known any more."""
        settled = and_(intents.c.run_id == run.id, intents.c.settled_at.is_not(None))
        if run.finished_at is not None:
            settled = and_(settled, intents.c.settled_at <= run.finished_at)  # else a person settled it
        times = func.min(intents.c.created_at), func.max(intents.c.settled_at)
        query = select(intents.c.stream, func.count(), *times).where(settled).group_by(intents.c.stream)
        found = [Delivery(*row) for row in self._connection.execute(query)]
        return sorted(found, key=lambda each: (each.began - each.ended, each.stream))

    def _count(self, table: Table, condition: ColumnElement[bool]) -> int:
        return int(self._connection.execute(select(func.count()).select_from(table).where(condition)).scalar_one())

    def _rows(
        self,
        table: Table,
        names: tuple[str, ...],
        condition: ColumnElement[bool],
        order: tuple[ColumnElement[Any], ...],
        limit: int,
    ) -> list[Row]:
        query = select(*(table.c[name] for name in names)).where(condition).order_by(*order).limit(limit)
        return [dict(row) for row in self._connection.execute(query).mappings()]


def _refused_by(run_id: int) -> ColumnElement[bool]:
    return and_(dead_letters.c.run_id <= run_id, dead_letters.c.status == "refused")
