"""Counts of open records: rejected, waiting, pending, in doubt or unverified.

The commands, the run's report and the exit code use these numbers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from sqlalchemy import Connection, func, select

from crossdock.state.db.schema import dead_letters, intents, waiting_records
from crossdock.state.tables.intents import UNSETTLED
from crossdock.state.tables.scope import Scope
from crossdock.state.tables.unverified import Unverified
from crossdock.values.tally import OpenCounts


class OpenRecords:
    def __init__(self, connection: Connection, unverified: Unverified) -> None:
        self._connection, self._unverified = connection, unverified

    def counts(self, streams: Collection[str], writers: Mapping[Scope, str] | None = None) -> dict[str, OpenCounts]:
        """Count the open records of each of *streams*, in their order.

        A record that waits for its second step while its first one is unsettled counts in both states.

        Args:
            writers: The stream that writes to each scope. Operations of a renamed stream count for it.
        """
        found: dict[str, dict[str, int]] = {name: {} for name in streams}
        for stream, state, number in self._numbers(writers or {}):
            if stream in found:
                found[stream][state] = found[stream].get(state, 0) + number
        return {name: OpenCounts(**numbers) for name, numbers in found.items()}

    def _numbers(self, writers: Mapping[Scope, str]) -> Iterator[tuple[str, str, int]]:
        rejected = select(dead_letters.c.stream, func.count()).where(dead_letters.c.status == "rejected")
        for stream, number in self._connection.execute(rejected.group_by(dead_letters.c.stream)):
            yield stream, "rejected", number
        waiting = select(waiting_records.c.stream, func.count()).group_by(waiting_records.c.stream)
        for stream, number in self._connection.execute(waiting):
            yield stream, "waiting", number
        by = intents.c.stream, intents.c.status, intents.c.target, intents.c.resource, intents.c.namespace
        unsettled = select(*by, func.count()).where(intents.c.status.in_(UNSETTLED)).group_by(*by)
        for stream, status, *scope, number in self._connection.execute(unsettled):
            yield writers.get(Scope(*scope), stream), "in_doubt" if status == "in_doubt" else "pending", number
        for each, number in self._unverified.counts():
            if each in writers:
                yield writers[each], "unverified", number
