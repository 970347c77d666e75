"""Dispatches due runs to the executor, one for each tenant at a time within the slots, and repeats lost calls.

The states decide what runs: a call that is repeated, late or made by two schedulers neither loses nor repeats a run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import CancelledError, Executor, Future
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from msgspec import Struct

from crossdock.config.schedules.due_times import DueTime
from crossdock.errors import CrossdockError, text_with_code
from crossdock.services.fleet import worker
from crossdock.services.fleet.executor_kinds_by_entry_point import Opened
from crossdock.services.fleet.fleet_due_runs import DueCall, FleetSchedule
from crossdock.services.fleet.tenants_and_watched_configs import Tenant
from crossdock.services.fleet.worker import CallResult, RunFacts, ScheduledCall, SharedLimit
from crossdock.services.notifications.run_events_and_messages import ScheduledRunEnded
from crossdock.services.observability.health_and_metrics import ServiceComponent
from crossdock.services.scheduler.run_events_and_pending_notices import (
    NOTIFYING_LASTS_AT_MOST,
    duration_of_pause_after_failures,
)
from crossdock.state.fleet_leadership_and_jobs import JobFacts
from crossdock.values.author_code_errors import AuthorCodeError, convert_author_errors, masked_error_text
from crossdock.values.clock import Clock
from crossdock.values.run_progress_and_messages import RunMessage

SLOW_RUN_S = 600.0
"""A run is slow if it is expected to take longer, or if its tenant's last run did not complete."""


@dataclass(frozen=True, slots=True, order=True)
class QueuedRun:
    """The place of a run in the queue: earliest due first, and among equals the shortest."""

    due: datetime
    expected_s: float
    tenant: str
    hosts: frozenset[str] = field(compare=False, default=frozenset())
    is_slow: bool = field(compare=False, default=False)


class RunSlots(Struct, frozen=True):
    at_once: int
    per_host: int

    @property
    def most_slow_runs_at_once(self) -> int:
        """The most slow runs at the same time: half of all, so that the others always have slots."""
        return max(1, self.at_once // 2)

    def choose_runs_to_start(self, waiting: Iterable[QueuedRun], running: Iterable[QueuedRun]) -> list[QueuedRun]:
        in_use = list(running)
        free, slow = self.at_once - len(in_use), sum(each.is_slow for each in in_use)
        hosts = Counter(host for each in in_use for host in each.hosts)
        chosen: list[QueuedRun] = []
        for each in sorted(waiting):
            if free <= len(chosen):
                break
            if any(hosts[host] >= self.per_host for host in each.hosts) or (
                each.is_slow and slow >= self.most_slow_runs_at_once
            ):
                continue
            chosen.append(each)
            slow += each.is_slow
            hosts.update(each.hosts)
        return chosen


FIRST_RETRY_PAUSE, LONGEST_RETRY_PAUSE = timedelta(seconds=2), timedelta(minutes=5)
"""The first and the longest pause before a failed call is repeated. Each pause is twice the one before."""
LOST_CALLS_TO_REPORT = 2  # lost calls of one run, after which people are notified


class FleetEventListener(Protocol):
    """Receives events, always from the thread that calls the scheduler."""

    def report_run_start(self, tenant: str, job: str, at: DueTime) -> None: ...

    def report_run_end(self, tenant: str, run: RunFacts, problems: Iterable[str]) -> None:
        """A run has ended; *problems* are about notifications that were not sent."""

    def report_failed_start(
        self, tenant: str, job: str, at: DueTime, message: RunMessage, problems: Iterable[str]
    ) -> None:
        """A run could not start and will be retried. Called once for each new error; *problems* are as in
        `report_run_end`.
        """

    def report_unusable_tenant(self, tenant: str, error: str) -> None:
        """No run of the tenant can start. Called once for each new error."""

    def report_lost_call(self, tenant: str, reason: str) -> None: ...

    def report_postponed_call(self, tenant: str, reason: str) -> None:
        """A worker has not carried out a call, which is made again. Called once for each new reason in a row."""

    def report_pending_notice(self, tenant: str, event: ScheduledRunEnded) -> None:
        """A run ended some time ago, and its notification may not have been sent."""

    def report_component_status(self, part: ServiceComponent, problem: str | None) -> None:
        """A part, such as the executor, can be used, or *problem* says why not."""


REPEAT_SLOW_CALL_AFTER = timedelta(minutes=2)
"""A call that takes longer than this, and than twice the expected time, is made a second time, because an engine may
have lost it. If the first is still executed, the second finds the state in use.
"""


class RunningCall(Struct):
    """A call given to the executor. *second_future* is of the second call, which is made at *ask_at*."""

    call: DueCall
    queued_run: QueuedRun
    call_json: str
    future: Future[str]
    since: datetime
    ask_at: datetime
    second_future: Future[str] | None = None

    @property
    def futures(self) -> list[Future[str]]:
        return [self.future] if self.second_future is None else [self.future, self.second_future]


class PostponedCall(Struct, frozen=True):
    """A call that a worker has not carried out because of *reason*, the state in use or another config, *since* then.

    It is made again after a pause.
    """

    call: DueCall
    reason: str
    since: datetime


class _CallAttempts(Struct):
    number: int = 0
    postponed: PostponedCall | None = None
    lost: int = 0
    reported: tuple[object, str] | None = None

    def error_reported_for_due_time(self, at: object) -> str | None:
        return self.reported[1] if self.reported is not None and self.reported[0] == at else None

    def next_pause(self) -> timedelta:
        self.number += 1
        return min(LONGEST_RETRY_PAUSE, FIRST_RETRY_PAUSE * (1 << min(self.number - 1, 10)))


class _PlannedNoticeCheck(Struct, frozen=True):
    """When to look at the state of a tenant because of its notifications, and of which runs people were notified."""

    at: datetime
    notified: frozenset[int] = frozenset()


class FleetScheduler:
    """Calls must not overlap.

    Args:
        open_executor: Opens the executor; called again after it was lost.
        fleet_database: Address of the database in which tenants with one credential share its bucket.
        wake: Called from any thread when a call has ended.
    """

    def __init__(
        self,
        clock: Clock,
        slots: RunSlots,
        open_executor: Callable[[], Opened],
        fleet_database: str,
        listener: FleetEventListener,
        known: Callable[[str, Iterable[JobFacts]], None],
        wake: Callable[[], None],
    ) -> None:
        self._clock, self._slots, self._open, self._database = clock, slots, open_executor, fleet_database
        self._listener, self._known, self._wake = listener, known, wake
        self._tenants: dict[str, Tenant] = {}
        self._credentials: dict[str, set[str]] = {}  # the tenants with each credential
        self.schedule = FleetSchedule()
        self.waiting: dict[str, DueCall] = {}
        self.running: dict[str, RunningCall] = {}
        self._attempts_by_tenant: dict[str, _CallAttempts] = {}
        self._planned_notice_checks: dict[str, _PlannedNoticeCheck] = {}
        self._failed_notices: dict[str, int] = {}  # by tenant, how often its people could not be told of its runs
        self._executor: Executor | None = None
        self._resources = ExitStack()
        self._executor_tries = _CallAttempts()
        self._executor_again: datetime | None = None

    @property
    def tenants(self) -> Mapping[str, Tenant]:
        return self._tenants

    @property
    def postponed_calls(self) -> list[PostponedCall]:
        return [tries.postponed for tries in self._attempts_by_tenant.values() if tries.postponed is not None]

    def add_or_replace_tenant(self, tenant: Tenant, facts: Iterable[JobFacts]) -> None:
        """Add a tenant, or use another config of it from its next run on."""
        self._forget_tenant(tenant.name)
        self._tenants[tenant.name] = tenant
        self._credentials.setdefault(tenant.credential, set()).add(tenant.name)
        self.schedule.add_or_replace_tenant(tenant.name, tenant.jobs, facts, self._clock.now())

    def remove_tenant(self, name: str) -> None:
        """Start no more runs of a tenant. A run in progress ends as usual."""
        self._forget_tenant(name)
        self.schedule.remove_tenant(name)

    def _forget_tenant(self, name: str) -> None:
        call = self.waiting.pop(name, None)
        if call is not None and call.job is None:
            self.schedule_notice_check(name, call.notified)
        self._attempts_by_tenant.pop(name, None)
        if (before := self._tenants.pop(name, None)) is not None:
            self._credentials[before.credential].discard(name)

    def schedule_notice_check(self, name: str, notified: Iterable[int] = (), *, after: timedelta = timedelta()) -> None:
        """Look at a tenant's state for runs that people may not know of. The fleet's recipients know of *notified*."""
        before = self._planned_notice_checks.get(name)
        runs = frozenset(notified) | (before.notified if before is not None else frozenset())
        at = self._clock.now() + after
        self._planned_notice_checks[name] = _PlannedNoticeCheck(at if before is None else min(at, before.at), runs)

    def collect_and_start_runs(self, *, may_start: bool = True) -> bool:
        """Report what has ended, decide what is due, and start runs. Return False if there was nothing to do."""
        did = self._collect_ended_calls()
        if not may_start:
            return did
        now = self._clock.now()
        self._repeat_slow_calls(now)
        self._queue_due_calls(now)
        return self._start_waiting_calls(now) or did

    def cancel_calls_and_close(self) -> None:
        """Start nothing more. Calls that have not begun are cancelled; others stop, or continue elsewhere."""
        for each in self.running.values():
            _cancel_futures(each.futures)
        self._close_executor()
        for name, each in self.running.items():
            for result in filter(None, map(_call_result_unless_lost, each.futures)):
                self._report_result_and_plan_retry(name, each.call, result)
        self.running.clear()
        self.waiting.clear()

    def _collect_ended_calls(self) -> bool:
        ended = [name for name, each in self.running.items() if self._has_ended(each)]
        for name in ended:
            running = self.running.pop(name)
            results = list(map(_call_result_unless_lost, running.futures))
            result = next((each for each in results if each is not None and each.outcome != "busy"), results[0])
            _cancel_futures(running.futures)
            if result is not None:
                self._report_result_and_plan_retry(name, running.call, result)
                continue
            self._retry_lost_call(name, running.call, _loss_reason(running.future))
        return bool(ended)

    def _retry_lost_call(self, name: str, call: DueCall, reason: str) -> None:
        tries = self._attempts_by_tenant.setdefault(name, _CallAttempts())
        tries.lost += 1
        self._listener.report_lost_call(name, reason)
        if tries.lost == LOST_CALLS_TO_REPORT:
            text = f"its process was killed, or its executor lost it, {tries.lost} times: {reason}"
            self._report_failed_start_or_tenant(name, call, RunMessage("error", "", text, "unrecorded"), ())
        self._retry_call_after_pause(name, call)

    @staticmethod
    def _has_ended(running: RunningCall) -> bool:
        """Return whether the call has ended, or a second call found that the first was lost or had ended."""
        if running.second_future is not None and running.second_future.done():
            result = _call_result_unless_lost(running.second_future)
            if result is not None and result.outcome != "busy":
                return True
            running.second_future = None
        return running.future.done()

    def _repeat_slow_calls(self, now: datetime) -> None:
        for running in self.running.values():
            if now < running.ask_at or running.second_future is not None or self._executor is None:
                continue
            running.ask_at = now + max(REPEAT_SLOW_CALL_AFTER, now - running.since)
            try:
                running.second_future = _ExecutorCall(self._executor, running.call_json)
            except Exception as error:  # noqa: BLE001  of any engine: the next attempt may succeed
                self._listener.report_component_status("executor", _error_class_and_masked_text(error))
            else:
                running.second_future.add_done_callback(lambda _: self._wake())

    def _report_result_and_plan_retry(self, name: str, call: DueCall, result: CallResult) -> None:
        if result.jobs:
            self._known(name, result.jobs)
            self.schedule.update_job_facts(name, result.jobs, self._clock.now())
        if result.outcome == "refused":
            self._report_executor_failure_and_pause(result.error or "")
        else:
            self._listener.report_component_status("executor", None)
        look = self._planned_notice_checks.get(name)
        for event in result.pending_notices:
            if look is None or event.run_id not in look.notified:
                self._listener.report_pending_notice(name, event)
        self._retry_failed_notices(name, is_notified=not result.problems)
        if result.run is not None:
            self._listener.report_run_end(name, result.run, result.problems)
        if result.outcome == "ended_before" and any(facts.has_pending_notice for facts in result.jobs):
            self.schedule_notice_check(
                name, after=NOTIFYING_LASTS_AT_MOST
            )  # its process may have been killed before it told people
        if result.outcome in {"ended", "ended_before", "looked", "paused"}:
            self._attempts_by_tenant.pop(name, None)
            return
        self._report_uncompleted_call_once(name, call, result)
        self._retry_call_after_pause(name, call)

    def _report_uncompleted_call_once(self, name: str, call: DueCall, result: CallResult) -> None:
        """Report why a call was not carried out, unless that was reported before."""
        tries, error = self._attempts_by_tenant.setdefault(name, _CallAttempts()), result.error or "unknown error"
        if result.outcome in {"busy", "changed"}:
            self._remember_postponed_call(name, call, tries, error)
        elif result.outcome == "failed" and tries.error_reported_for_due_time(call.at) != error:
            tries.reported = call.at, error
            message = result.message or RunMessage("error", "", error, "not_started")
            self._report_failed_start_or_tenant(name, call, message, result.problems)

    def _remember_postponed_call(self, name: str, call: DueCall, tries: _CallAttempts, reason: str) -> None:
        before = tries.postponed
        if before is None or before.reason != reason:
            self._listener.report_postponed_call(name, reason)
        is_same = before is not None and before.reason == reason and before.call.at == call.at
        tries.postponed = PostponedCall(call, reason, before.since if before and is_same else self._clock.now())

    def _report_failed_start_or_tenant(
        self, name: str, call: DueCall, message: RunMessage, problems: Iterable[str]
    ) -> None:
        if call.job is None or call.at is None:
            self._listener.report_unusable_tenant(name, message.text_with_code)
        else:
            self._listener.report_failed_start(name, call.job, call.at, message, problems)

    def _retry_failed_notices(self, name: str, *, is_notified: bool) -> None:
        """Notify the tenant's own recipients again later if a channel failed."""
        if is_notified:
            self._failed_notices.pop(name, None)
            return
        self._failed_notices[name] = self._failed_notices.get(name, 0) + 1
        self.schedule_notice_check(name, after=duration_of_pause_after_failures(self._failed_notices[name]))

    def _retry_call_after_pause(self, name: str, call: DueCall) -> None:
        pause = self._attempts_by_tenant.setdefault(name, _CallAttempts()).next_pause()
        if call.notified:
            self.schedule_notice_check(name, call.notified, after=pause)
        self.schedule.schedule_next_decision(name, self._clock.now() + pause)

    def _queue_due_calls(self, now: datetime) -> None:
        for name in self.schedule.pop_tenants_to_decide_about(now):
            if name in self.running or name in self.waiting:
                continue  # decided about again when its call has ended
            call = self.schedule.decide_due_call(name, now)
            if call is not None:
                self.waiting[name] = call
        self._planned_notice_checks = {
            name: look for name, look in self._planned_notice_checks.items() if name in self._tenants
        }
        for name in [name for name, look in self._planned_notice_checks.items() if look.at <= now]:
            if name not in self.running and name not in self.waiting:
                self.waiting[name] = DueCall(
                    name, notified=tuple(sorted(self._planned_notice_checks.pop(name).notified))
                )

    def _start_waiting_calls(self, now: datetime) -> bool:
        if not self.waiting or (self._executor_again is not None and now < self._executor_again):
            return False
        places = {name: self._queued_run_from_call(call, now) for name, call in self.waiting.items()}
        chosen = self._slots.choose_runs_to_start(places.values(), (each.queued_run for each in self.running.values()))
        for place in chosen:
            if not self._submit_call_or_pause(place, now):
                return False
        return bool(chosen)

    def _queued_run_from_call(self, call: DueCall, now: datetime) -> QueuedRun:
        tenant = self._tenants[call.tenant]
        expected_s = call.expected_s or 0.0
        due = call.at.instant if call.at is not None else now
        hosts = tenant.hosts.get(call.job, frozenset()) if call.job is not None else frozenset[str]()
        return QueuedRun(due, expected_s, call.tenant, hosts, is_slow=call.failed_before or expected_s > SLOW_RUN_S)

    def _submit_call_or_pause(self, place: QueuedRun, now: datetime) -> bool:
        call = self.waiting[place.tenant]
        text = self._scheduled_call(self._tenants[place.tenant], call).model_dump_json()
        try:
            if self._executor is None:
                self._executor = self._resources.enter_context(self._open())
            future = _ExecutorCall(self._executor, text)
        except CrossdockError as error:
            self._report_executor_failure_and_pause(text_with_code(error))
            return False
        except Exception as error:  # noqa: BLE001  of any engine: it is opened anew
            self._report_executor_failure_and_pause(_error_class_and_masked_text(error))
            return False
        self._executor_again, self._executor_tries = None, _CallAttempts()
        del self.waiting[place.tenant]
        ask_at = now + max(REPEAT_SLOW_CALL_AFTER, 2 * timedelta(seconds=place.expected_s))
        self.running[place.tenant] = RunningCall(call, place, text, future, now, ask_at)
        if call.job is not None and call.at is not None and place.tenant not in self._attempts_by_tenant:
            self._listener.report_run_start(place.tenant, call.job, call.at)
        future.add_done_callback(lambda _: self._wake())
        return True

    def _scheduled_call(self, tenant: Tenant, call: DueCall) -> ScheduledCall:
        shared = not tenant.shares_limit and len(self._credentials[tenant.credential]) > 1
        return ScheduledCall(
            tenant=tenant.name,
            files=tenant.files,
            digest=tenant.digest,
            job=call.job,
            due=call.at and call.at.instant,
            business_date=call.at and call.at.business_date,
            skipped=call.skipped,
            shared_limit=SharedLimit(database=self._database, name=f"credential {tenant.credential}")
            if shared
            else None,
            notify=tenant.has_own_notify,
            is_grouped=tenant.is_grouped,
            notified=call.notified,
            reported=self._attempts_by_tenant.get(tenant.name, _CallAttempts()).error_reported_for_due_time(call.at),
        )

    def _report_executor_failure_and_pause(self, problem: str) -> None:
        self._executor_again = self._clock.now() + self._executor_tries.next_pause()
        self._listener.report_component_status("executor", problem)
        if not self.running:
            self._close_executor()

    def _close_executor(self) -> None:
        self._executor = None
        try:
            self._resources.close()
        except CrossdockError as error:
            self._listener.report_component_status("executor", text_with_code(error))
        except Exception as error:  # noqa: BLE001  of any engine: the runs go on
            self._listener.report_component_status("executor", _error_class_and_masked_text(error))


def _call_result_unless_lost(future: Future[str]) -> CallResult | None:
    if not future.done() or future.cancelled() or future.exception() is not None:
        return None
    try:
        return CallResult.model_validate_json(future.result())
    except ValueError:
        return CallResult(outcome="refused", error="the worker's answer cannot be read: has it the same version?")


class _ExecutorCall(Future[str]):
    """A call with a future of its own: whatever the executor's future raises is the result of the call."""

    def __init__(self, executor: Executor, text: str) -> None:
        super().__init__()
        with convert_author_errors("submit", None, code=executor, only_authors=True):
            made: object = executor.submit(worker.execute, text)
            if not isinstance(made, Future):
                raise AuthorCodeError("submit", f"returned {type(made).__name__} instead of a Future")
            self._theirs = made
            made.add_done_callback(self._copy_outcome)

    def cancel(self) -> bool:
        try:
            return self._theirs.cancel()  # which ends this one
        except KeyboardInterrupt:
            raise
        except BaseException:  # noqa: BLE001  of any engine: the call goes on
            return False

    def _copy_outcome(self, theirs: Future[str]) -> None:
        try:
            self.set_result(theirs.result(0))
        except CancelledError:
            super().cancel()
        except BaseException as error:  # noqa: BLE001  of any engine: the call is lost
            self.set_exception(error)


def _cancel_futures(futures: Iterable[Future[str]]) -> None:
    for each in futures:
        each.cancel()


def _loss_reason(future: Future[str]) -> str:
    error = None if future.cancelled() else future.exception()
    return "it was cancelled" if error is None else _error_class_and_masked_text(error)


def _error_class_and_masked_text(error: BaseException) -> str:
    return f"{type(error).__name__}: {masked_error_text(error)}".rstrip(": ")
