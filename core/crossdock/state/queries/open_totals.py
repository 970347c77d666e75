"""How many records are open in each state, and since when, for a page that shows many tenants."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, func, select

from crossdock.state.db.schema import dead_letters, hints, intents, waiting_records
from crossdock.state.tables.intents import UNSETTLED
from crossdock.values.state_words import RecordState

_STATES = {
    "pending": RecordState.PENDING,
    "sending": RecordState.PENDING,
    "in_doubt": RecordState.IN_DOUBT,
    "handed_over": RecordState.HANDED_OVER,
    "overdue": RecordState.OVERDUE,
}


@dataclass(frozen=True, slots=True)
class OpenRecordTotal:
    """The number of records in one state, of which the first has been so *since*."""

    state: RecordState
    number: int
    since: datetime


class OpenRecordTotals:
    """Counts by indexes: 100,000 rejected records take about 10 ms."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def by_state(self) -> list[OpenRecordTotal]:
        """Return the states that records are in, in the order of `RecordState`, without unverified and dropped ones."""
        found: dict[RecordState, OpenRecordTotal] = {}
        for each in self._totals_of_tables():
            known = found.get(each.state)
            number, since = (0, each.since) if known is None else (known.number, known.since)
            found[each.state] = OpenRecordTotal(each.state, number + each.number, min(since, each.since))
        return [found[state] for state in RecordState if state in found]

    def _totals_of_tables(self) -> Iterator[OpenRecordTotal]:
        rejected = dead_letters.c.status == "rejected"
        for state, table, since, condition in (
            (RecordState.REJECTED, dead_letters, dead_letters.c.refused_at, [rejected]),
            (RecordState.WAITING, waiting_records, waiting_records.c.since, []),
            (RecordState.INBOX, hints, hints.c.first_at, []),
        ):
            query = select(func.count(), func.min(since)).select_from(table).where(*condition)
            number, first = self._connection.execute(query).one()
            if number:
                yield OpenRecordTotal(state, number, first)
        counts = select(intents.c.status, func.count().label("number"), func.min(intents.c.id).label("first"))
        unsettled = counts.where(intents.c.status.in_(UNSETTLED)).group_by(intents.c.status).subquery()
        first = select(unsettled.c.status, unsettled.c.number, intents.c.created_at)
        for status, number, at in self._connection.execute(first.join(intents, intents.c.id == unsettled.c.first)):
            yield OpenRecordTotal(_STATES[status], number, at)
