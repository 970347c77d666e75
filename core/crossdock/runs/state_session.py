"""A session: the state while this process holds it, shared by the runs in it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from crossdock.clock import Clock
from crossdock.pacing.bucket_store import BucketStore
from crossdock.platform.platform_target import PlatformTarget
from crossdock.project.connector_instances import BoundStream
from crossdock.project.project import Project
from crossdock.state import Intent, State


class Session:
    """What concurrent runs share: the state, the token bucket, and what earlier runs left.

    Concurrent runs must not share a connection; each has its part of the requests in flight.

    Args:
        width: How many runs may be running at once.
    """

    def __init__(self, project: Project, state: State, clock: Clock, bucket: BucketStore, width: int) -> None:
        self.project, self.state, self.clock, self.bucket = project, state, clock, bucket
        self.in_flight = max(1, project.platform.in_flight // width)
        self.resuming = threading.Lock()  # a run begins its streams after what was left of them is settled
        self.resumed = False

    def left(self, streams: list[BoundStream]) -> list[Intent]:
        """What earlier runs left unsettled: for the first run of all streams, later of *streams*."""
        with self.state.look() as tx:
            if not self.resumed:
                return tx.intents.unsettled()
            own = [intent for bound in streams for intent in tx.intents.unsettled(bound.scope)]
        return sorted(own, key=lambda intent: intent.id)


@contextmanager
def open_session(project: Project, clock: Clock, *, width: int = 1) -> Iterator[Session]:
    """Take the state; runs without an end are marked as killed.

    Raises:
        StateBusyError: If another process uses it.
        CrossdockError: If the state or the bucket cannot be used.
    """
    with project.alone() as state:
        with state.begin() as tx:
            tx.runs.abandon(at=clock.now())
            earlier = tx.buckets.get(PlatformTarget.name)
        with project.bucket(clock, earlier) as bucket:
            yield Session(project, state, clock, bucket, width)
