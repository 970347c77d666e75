"""The order of the streams of a run: parents first; those with late files after all others."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta

from crossdock.clock import Clock
from crossdock.progress import Progress
from crossdock.project.connector_instances import BoundStream
from crossdock.resources import ResourceName
from crossdock.sources.late_files import LateError

POLL = timedelta(milliseconds=200)  # how soon an interrupted pause ends
PARENTS: Mapping[ResourceName, frozenset[ResourceName]] = {
    "ledger_account": frozenset({"ledger_account"}),
    "inventory_lot": frozenset({"product", "warehouse_bin"}),
    "order": frozenset({"customer", "product"}),
    "invoice": frozenset({"customer", "product"}),
}
"""The resources that a resource may refer to."""


class StreamOrder:
    """Yields the streams of a run; one that is postponed comes again.

    Args:
        streams: Parents first.
        interrupt: Ends a pause; the stream that was waited for is yielded then, for the caller to stop at.
    """

    def __init__(
        self, streams: Sequence[BoundStream], clock: Clock, progress: Progress, interrupt: threading.Event
    ) -> None:
        self._pending, self._clock, self._progress, self._interrupt = list(streams), clock, progress, interrupt
        self._again: dict[str, timedelta] = {}  # by name of a late stream: when to ask it, by the monotonic clock

    def __iter__(self) -> Iterator[BoundStream]:
        """The first that may run; if every remaining one is late or refers to a late one, pauses first."""
        while self._pending:
            bound = next(filter(self._may_run, self._pending), None)
            if bound is None:
                bound = min((one for one in self._pending if one.name in self._again), key=self._left)
                self._pause(bound)
            self._again.pop(bound.name, None)
            yield bound
            if bound.name not in self._again:
                self._pending.remove(bound)

    def postpone(self, bound: BoundStream, late: LateError) -> None:
        """Yield *bound* again after the pause that *late* asks for."""
        self._again[bound.name] = self._now + late.pause

    @property
    def _now(self) -> timedelta:
        return timedelta(seconds=self._clock.monotonic())

    def _left(self, bound: BoundStream) -> timedelta:
        return self._again.get(bound.name, timedelta()) - self._now

    def _may_run(self, bound: BoundStream) -> bool:
        late = (one for one in self._pending if one.name in self._again and one is not bound)
        parents = PARENTS.get(bound.stream.resource, frozenset())
        return self._left(bound) <= timedelta() and not any(one.stream.resource in parents for one in late)

    def _pause(self, bound: BoundStream) -> None:
        self._progress.begin(f"waiting for files of {bound.name}", None)
        while (left := self._left(bound)) > timedelta() and not self._interrupt.is_set():
            self._clock.sleep(min(left, POLL).total_seconds())
