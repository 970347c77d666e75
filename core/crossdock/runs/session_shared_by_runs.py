"""A session: the state while this process holds it, shared by its runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import date
from functools import cached_property, partial
from typing import Any

from crossdock.config.project.connections_and_bound_streams import BoundStream
from crossdock.config.project.effective_config import effective_config_of_project
from crossdock.config.project.project import Project
from crossdock.errors import ConfigError, CrossdockError, as_crossdock_error
from crossdock.mapping.stream_declaration import PLATFORM
from crossdock.pacing.request_allowance import BucketShare, RequestAllowance
from crossdock.pacing.token_bucket import BucketState, BucketStore
from crossdock.reading.sources.run_context import READS, CrashMarker
from crossdock.reading.sources.shared_token_buckets import ApiBucket, SharedBuckets
from crossdock.runs import run_requests_and_failed_starts
from crossdock.runs.crashing_input_detection import open_crash_marker, planning_kills_trial_process
from crossdock.runs.run_requests_and_failed_starts import RunRequest
from crossdock.state import Intent, State
from crossdock.values.author_code_errors import AuthorCodeError, author_code_error_or_none, convert_author_errors
from crossdock.values.clock import Clock
from crossdock.writing.delivery.delivery_context import RecordsOfConcurrentRuns
from crossdock.writing.targets.target import Target

MANUAL = RunRequest()


class Session:
    """The objects that concurrent runs share: the state, the token buckets, and unsettled operations of earlier runs.

    Concurrent runs that read lists must not share a connection. Each has its part of the requests in flight.

    Args:
        percent: Returns the part of each target's allowance that the runs may use, 0 to 100; called repeatedly.

    Attributes:
        resumed: The targets to which all that earlier runs had left was sent.
        begun: Whether a run has begun, or the state has the reason why it could not.
    """

    def __init__(
        self,
        project: Project,
        state: State,
        clock: Clock,
        targets: Mapping[str, Target],
        width: int,
        earlier: Mapping[str, BucketState],
        stack: ExitStack,
        percent: Callable[[], int],
    ) -> None:
        self.project, self.state, self.clock, self.targets = project, state, clock, targets
        self._width, self._earlier, self._stack = width, earlier, stack
        self.reading: CrashMarker = stack.enter_context(
            open_crash_marker(state, clock, partial(planning_kills_trial_process, project))
        )
        self._buckets: dict[str, BucketStore] = {}
        self._percent, self._reduced = percent, dict[str, BucketShare]()
        self._opening = threading.Lock()
        self.records, self.source_buckets = RecordsOfConcurrentRuns(), SharedBuckets()
        self._resuming: dict[str, threading.Lock] = {}
        self.resumed = set[str]()
        self.begun = False

    @cached_property
    def config(self) -> Mapping[str, Any] | None:
        """The effective config; None for a project that was not made from one."""
        return None if self.project.config_sections is None else effective_config_of_project(self.project)

    def unusable_targets(self, stream_names: set[str]) -> dict[str, AuthorCodeError]:
        """Return the targets of *stream_names* (the platform if there are none) that cannot make a client."""
        used = {self.project.scope_by_stream[name].target for name in stream_names} or {PLATFORM}
        defects = dict[str, AuthorCodeError]()
        for target in self.targets.values():
            try:
                if target.name in used:
                    client = target.client()
                    with convert_author_errors("close", target.name, code=client, only_authors=not target.is_of_author):
                        client.close()
            except AuthorCodeError as error:
                defects[target.name] = error
        return defects

    def in_flight_limit_per_run(self, target: Target) -> int:
        return max(1, target.in_flight // self._width)

    def bucket(self, target: Target) -> BucketStore:
        """Return the token bucket of *target*, opened once. Raises CrossdockError if it cannot be used."""
        with self._opening:
            if target.name not in self._buckets:
                opened = self.project.open_rate_limit_bucket(target, self.clock, self._earlier.get(target.name))
                self._buckets[target.name] = self._stack.enter_context(opened)
            return self._buckets[target.name]

    def bucket_share(self, target: Target) -> BucketShare:
        with self._opening:
            return self._reduced.setdefault(target.name, BucketShare(self.clock, self._percent))

    def resuming_lock(self, target: str) -> threading.Lock:
        """Return the lock that a run holds from `operations_left_by_earlier_runs` until they are settled; its streams
        begin then.
        """
        with self._opening:
            return self._resuming.setdefault(target, threading.Lock())

    def operations_left_by_earlier_runs(self, target: str, streams: Iterable[BoundStream]) -> list[Intent]:
        """Return the operations on *target* that earlier runs left: all of them once, later those of *streams*."""
        with self.state.begin_read_only() as tx:
            left = tx.intents.intents_to_send(target)
        scopes = {bound.scope for bound in streams}
        return [intent for intent in left if intent.scope in scopes] if target in self.resumed else left

    @contextmanager
    def storing_failed_start(self, attempt: RunRequest) -> Iterator[None]:
        """Store why a run that begins in the block could not begin."""
        try:
            yield
        except CrossdockError as error:
            run_requests_and_failed_starts.store_failed_start(self.project, self.clock, error, attempt, self.state)
            raise
        finally:
            self.begun = True


@contextmanager
def open_session(
    project: Project,
    clock: Clock,
    *,
    width: int = 1,
    percent: Callable[[], int] = lambda: 100,
    attempt: RunRequest | None = MANUAL,
) -> Iterator[Session]:
    """Take the state, and mark runs without an end as killed.

    An error before a run has begun, also one of the caller, is stored as a run that could not begin, unless the command
    was used incorrectly. *attempt* is None if no run is to begin.
    """
    session: Session | None = None
    try:
        with project.open_state_exclusively() as state, ExitStack() as stack:
            session = _new_session_ending_killed_runs(project, clock, state, stack, width, percent)
            yield session
    except Exception as error:
        is_usage = session is not None and isinstance(error, ConfigError)
        if attempt is not None and not is_usage and (session is None or not session.begun):
            run_requests_and_failed_starts.store_failed_start(
                project, clock, author_code_error_or_none(error) or as_crossdock_error(error), attempt
            )
        raise


def _new_session_ending_killed_runs(
    project: Project, clock: Clock, state: State, stack: ExitStack, width: int, percent: Callable[[], int]
) -> Session:
    targets = project.targets(clock)
    with state.begin() as tx:
        for run in tx.runs.mark_running_runs_as_killed(at=clock.now()):
            tx.audit_log.mark_run_of_person_as_killed(run.id)
            if run.job is not None:
                day = date.fromisoformat(run.business_date)
                tx.scheduled_runs.add_notices_of_killed_run(
                    run.id, run.job, day, project.own_notification_recipient_kinds
                )
        earlier = {name: found for name in targets if (found := tx.buckets.get(name)) is not None}
    session = Session(project, state, clock, targets, width, earlier, stack, percent)
    platform = session.targets[PLATFORM]
    allowance = RequestAllowance(clock, session.bucket(platform), reduced=session.bucket_share(platform))
    session.source_buckets.add_bucket_in_use(READS, ApiBucket(clock, allowance))
    return session
