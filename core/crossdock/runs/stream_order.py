"""The order of the streams of a run: parents first; those with late files after all others."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from datetime import timedelta

from crossdock.config.project.connector_instances import BoundStream
from crossdock.reading.sources.late_files import LateError
from crossdock.values.clock import Clock
from crossdock.values.interruptible_clock import POLL
from crossdock.values.progress import Progress


class StreamOrder:
    """Yields the streams of a run. A postponed stream is yielded again.

    Args:
        streams: Parents first.
        interrupt: Ends a pause. The late stream is then yielded so that the caller can stop there.
    """

    def __init__(
        self, streams: Sequence[BoundStream], clock: Clock, progress: Progress, interrupt: threading.Event
    ) -> None:
        self._pending, self._clock, self._progress, self._interrupt = list(streams), clock, progress, interrupt
        self._waiting_for = ""
        self._again: dict[str, timedelta] = {}  # by name of a late stream: when to try it, by the monotonic clock

    def __iter__(self) -> Iterator[BoundStream | None]:
        """Yield the first stream that may run, or None after a pause if every remaining one is late or refers to a late
        one.
        """
        while self._pending:
            bound = next(filter(self._may_run, self._pending), None)
            if bound is None:
                bound = min((one for one in self._pending if one.name in self._again), key=self._left)
                self._pause(bound)
                if self._left(bound) > timedelta() and not self._interrupt.is_set():
                    yield None
                    continue
            self._again.pop(bound.name, None)
            self._waiting_for = ""
            yield bound
            if bound.name not in self._again:
                self._pending.remove(bound)

    def postpone(self, bound: BoundStream, late: LateError) -> None:
        self._again[bound.name] = self._now + late.pause

    @property
    def _now(self) -> timedelta:
        return timedelta(seconds=self._clock.monotonic())

    def _left(self, bound: BoundStream) -> timedelta:
        return self._again.get(bound.name, timedelta()) - self._now

    def _may_run(self, bound: BoundStream) -> bool:
        late = (one for one in self._pending if one.name in self._again and one is not bound)
        scopes = {(bound.scope.target, parent) for parent in bound.kind.parents}
        return self._left(bound) <= timedelta() and not any((o.scope.target, o.scope.resource) in scopes for o in late)

    def _pause(self, bound: BoundStream) -> None:
        if self._waiting_for != bound.name:
            self._progress.begin(f"waiting for files of {bound.name}", None)
            self._waiting_for = bound.name
        left = self._left(bound)
        if left > timedelta() and not self._interrupt.is_set():
            self._clock.sleep(min(left, POLL).total_seconds())
