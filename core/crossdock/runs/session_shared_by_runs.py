"""A session: the state while this process holds it, shared by its runs, with stored rate limits.

It also recognizes inputs that kill the process: it marks what is read, and tries suspected inputs in another process.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from datetime import date
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from crossdock.config.project.connections_and_bound_streams import BoundStream
from crossdock.config.project.masked_effective_config import effective_config_of_project
from crossdock.config.project.project import Project
from crossdock.errors import ConfigError, CrossdockError, RefusedError, as_crossdock_error
from crossdock.mapping.stream_declaration import PLATFORM
from crossdock.pacing.request_allowance import BucketShare, RequestAllowance
from crossdock.pacing.token_bucket import BucketState, BucketStore
from crossdock.reading.sources.api_token_buckets import ApiBucket, SharedBuckets
from crossdock.reading.sources.run_context import PLATFORM_READS_NAME, CrashMarker
from crossdock.runs import run_start_and_stop_requests
from crossdock.runs.run_start_and_stop_requests import RunRequest
from crossdock.state import Intent, State, Transaction
from crossdock.state.tables.inputs_of_streams import CrashMark, CrashMarks
from crossdock.values import yaml_reader
from crossdock.values.author_code_errors import AuthorCodeError, author_code_error_or_none, convert_author_errors
from crossdock.values.clock import Clock
from crossdock.values.yaml_reader import escape_dollars
from crossdock.writing.delivery.delivery_context import RecordsOfConcurrentRuns
from crossdock.writing.targets.target import Target


class _ReadingSlot(Struct):
    number: int
    mark: CrashMark
    suspected: bool = False


class SessionCrashMarker(CrashMarker):
    """Marks what the runs of one session read. *kills* returns whether reading a stream kills another process."""

    def __init__(self, state: State, marks: CrashMarks, clock: Clock, kills: Callable[[str], bool]) -> None:
        self._state, self._marks, self._clock, self._kills = state, marks, clock, kills
        with state.begin_read_only() as tx:
            self._suspects = tx.crashing_inputs.has_any()
        self._own = threading.local()
        self._numbers, self._taken = threading.Lock(), set[int]()

    @contextmanager
    def mark_stream_being_read(self, stream: str) -> Iterator[None]:
        number = self._take_free_number()
        self._own.slot = _ReadingSlot(number, CrashMark(stream))
        try:
            self._put_mark(CrashMark(stream))
            yield
        finally:
            self._remove_mark()
            self._own.slot = None
            self._taken.discard(number)

    def mark_file_being_read(self, name: str, content: str) -> None:
        slot: _ReadingSlot | None = getattr(self._own, "slot", None)
        if slot is not None:
            self._remove_mark()
            self._put_mark(structs.replace(slot.mark, name=name, content=content, batches=0))

    def count_batch_of_marked_stream(self) -> None:
        slot: _ReadingSlot | None = getattr(self._own, "slot", None)
        if slot is not None:
            slot.mark = structs.replace(slot.mark, batches=slot.mark.batches + 1)
            self._marks.write_mark(slot.number, slot.mark)

    def _put_mark(self, mark: CrashMark) -> None:
        slot: _ReadingSlot = self._own.slot
        slot.mark = mark
        self._marks.write_mark(slot.number, mark)
        if self._suspects:
            slot.suspected = self._is_suspected_or_raise(mark)

    def _is_suspected_or_raise(self, mark: CrashMark) -> bool:
        """Return whether *mark* is suspected. Only another process shows that it kills: people kill processes, too."""
        with self._state.begin_read_only() as tx:
            found = tx.crashing_inputs.get(mark)
        if found is None:
            return False
        if found.set_aside_at is not None:
            raise _set_aside_error(mark, found.killed)
        if not (found.needs_trial_process and self._kills(mark.stream)):
            return True
        with self._state.begin() as tx:
            killed = tx.crashing_inputs.set_aside(mark, at=self._clock.now())
        raise _set_aside_error(mark, killed)

    def _remove_mark(self) -> None:
        slot: _ReadingSlot = self._own.slot
        self._marks.write_mark(slot.number, None)
        if slot.suspected:
            slot.suspected = False
            with self._state.begin() as tx:
                tx.crashing_inputs.forget(slot.mark)

    def _take_free_number(self) -> int:
        with self._numbers:
            number = next(number for number in range(1, len(self._taken) + 2) if number not in self._taken)
            self._taken.add(number)
        return number


@contextmanager
def open_crash_marker(state: State, clock: Clock, kills: Callable[[str], bool]) -> Iterator[CrashMarker]:
    """Take over the marks of a killed process, and mark what is read in the block. The lease must be held."""
    marks = state.crash_marks()
    if marks is None:
        yield CrashMarker()
        return
    if left := marks.marks_of_killed_process():
        with state.begin() as tx:
            for mark in left:
                tx.crashing_inputs.record_kill(mark, at=clock.now())
    marks.open()
    try:
        yield SessionCrashMarker(state, marks, clock, kills)
    finally:
        marks.close_and_remove()


def _set_aside_error(mark: CrashMark, killed: int) -> RefusedError:
    again = f"to read it once more, for example with more memory: crossdock state readmit {mark.stream}"
    if mark.name:
        message = f"is set aside, because reading it has killed the process {killed} times"
        hint = f"ask the sender for another file, which is read at once, or remove it; {again}"
        return RefusedError(message, where=mark.name, hint=hint, code="input_kills_process")
    message = f"the stream is set aside, because reading it has killed the process {killed} times"
    return RefusedError(
        message, where=mark.stream, hint=f"see what its source answers; {again}", code="input_kills_process"
    )


_FATAL = {
    -each for each in (signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGKILL, signal.SIGSEGV)
}


def planning_kills_trial_process(project: Project, stream: str) -> bool:
    """Return whether a process that plans *stream*, and so reads all that a sync would read, is killed by a signal."""
    files = [part for file in (project.path, *project.overrides) for part in ("-C", str(file))]
    command, folder, given = ["-m", "crossdock", "plan", stream, "--limit", "0", *files], None, ""
    if project.values is not None:
        command = ["-c", "import sys, yaml, crossdock; crossdock.plan(yaml.safe_load(sys.stdin), sys.argv[1:])", stream]
        folder, given = project.folder, escape_dollars(yaml_reader.dump_config_as_yaml(project.values))
    modules = {"PYTHONPATH": os.pathsep.join(sys.path)}  # the same, and with -P no others of the working directory
    process = subprocess.Popen(  # noqa: S603
        [sys.executable, "-P", *command],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | modules,
    )
    try:
        with suppress(OSError):  # where the kernel has it: without memory, it kills this process and not the run's
            Path(f"/proc/{process.pid}/oom_score_adj").write_text("1000", encoding="ascii")
        process.communicate(given.encode())
        return process.returncode in _FATAL
    finally:
        process.kill()
        process.wait()


def read_rate_limits_of_source_apis(
    tx: Transaction, connections: Iterable[str], reading_platform: Collection[str]
) -> dict[str, BucketState]:
    """Return the token buckets as the last run left them; for *reading_platform*, the platform's if that is newer."""
    found = {name: tx.buckets.get(_bucket_name(name)) for name in connections}
    for name in found.keys() & reading_platform:
        buckets = [each for each in (found[name], tx.buckets.get(PLATFORM)) if each is not None]
        found[name] = max(buckets, key=lambda each: each.as_of, default=None)
    return {name: bucket_state for name, bucket_state in found.items() if bucket_state is not None}


def write_rate_limits_of_source_apis(tx: Transaction, limits: Mapping[str, BucketState]) -> None:
    for name, bucket_state in limits.items():
        tx.buckets.put(_bucket_name(name), bucket_state)


def _bucket_name(connection: str) -> str:
    return f"api of {connection}"


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

    def author_code_errors_of_targets(self, stream_names: set[str]) -> dict[str, AuthorCodeError]:
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
            run_start_and_stop_requests.store_failed_start(self.project, self.clock, error, attempt, self.state)
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
            run_start_and_stop_requests.store_failed_start(
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
    session.source_buckets.add_bucket_in_use(PLATFORM_READS_NAME, ApiBucket(clock, allowance))
    return session
