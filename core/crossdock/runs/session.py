"""The state while this process holds it, and what runs that go on side by side in it have in common."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from crossdock.clock import Clock
from crossdock.pacing.bucket_store import BucketStore
from crossdock.platform.platform_target import PlatformTarget
from crossdock.project.project import BoundStream, Project
from crossdock.state import Intent, State


class Session:
    """What runs share: the state, the token bucket, and the duty to send what earlier runs left.

    Runs side by side must have no connection in common; each has its part of the requests that may be on their way.

    Args:
        width: How many runs may go on at once.
    """

    def __init__(self, project: Project, state: State, clock: Clock, bucket: BucketStore, width: int) -> None:
        self.project, self.state, self.clock, self.bucket = project, state, clock, bucket
        self.in_flight = max(1, project.platform.in_flight // width)
        self.resuming = threading.Lock()  # whose streams are their turn waits until what was left of them is settled
        self.resumed = False

    def left(self, streams: list[BoundStream]) -> list[Intent]:
        """What earlier runs have not settled: of all streams at first, then of *streams*, which no other run has."""
        with self.state.look() as tx:
            if not self.resumed:
                return tx.intents.unsettled()
            own = [intent for bound in streams for intent in tx.intents.unsettled(bound.scope)]
        return sorted(own, key=lambda intent: intent.id)


@contextmanager
def opened(project: Project, clock: Clock, *, width: int = 1) -> Iterator[Session]:
    """Take the state over; runs that ended without a word are known to be killed then.

    Raises:
        StateBusyError: If another process is at work on it.
        CrossdockError: If state or bucket cannot be used.
    """
    with project.alone() as state:
        with state.begin() as tx:
            tx.runs.abandon(at=clock.now())
            earlier = tx.buckets.get(PlatformTarget.name)
        with project.bucket(clock, earlier) as bucket:
            yield Session(project, state, clock, bucket, width)
