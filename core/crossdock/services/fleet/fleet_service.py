"""The service behind ``crossdock schedule --fleet``: watches the configs, leads or stands by, and reports.

Its runs are reported in the log, as metrics, and as notifications, which are grouped by time.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from crossdock.config.schedules.due_times import DueTime
from crossdock.config.schedules.job_and_schedule_config import Schedule
from crossdock.errors import CrossdockError, StateBusyError, StateError
from crossdock.services.fleet.fleet_due_runs import DueCall
from crossdock.services.fleet.fleet_scheduler import FleetEventListener, FleetScheduler, PostponedCall
from crossdock.services.fleet.tenants_and_watched_configs import WatchedTenantConfigs
from crossdock.services.fleet.worker import RunFacts
from crossdock.services.notifications.mail_and_webhook_notifier import Notifier, have_all_channels_accepted
from crossdock.services.notifications.run_events_and_messages import (
    Event,
    RunOverdue,
    RunWaiting,
    ScheduledRunEnded,
    notification_kinds_of_event,
)
from crossdock.services.observability.health_and_metrics import Metrics, ServiceComponent
from crossdock.services.scheduler import run_events_and_pending_notices
from crossdock.services.scheduler.run_events_and_pending_notices import duration_of_pause_after_failures
from crossdock.services.scheduler.stderr_log import LOGGER, RunLog
from crossdock.state.fleet_leadership_and_jobs import FleetDatabase, FleetLeader, JobFacts
from crossdock.values.acting_person_and_process import own_process_name
from crossdock.values.clock import Clock
from crossdock.values.run_progress_and_messages import RunMessage, warning_and_note_texts

COLLECT_AT_LEAST, COLLECT_AT_MOST = timedelta(minutes=1), timedelta(minutes=15)
"""How long events are collected: at least, and at most while runs are in progress."""


TenantEvent = tuple[str, Event]  # by the name of the tenant


class GroupedNotices:
    """Collects events and sends them from a thread, so that a slow channel delays nothing. Repeats failed messages."""

    def __init__(self, notifier: Notifier | None) -> None:
        self._notifier = notifier
        self._events: list[TenantEvent] = []
        self._since: datetime | None = None
        self._collected: set[tuple[str, int]] = set()  # runs with their tenants, until `pop_notified_runs` returns them
        self._thread = ThreadPoolExecutor(1, "notices")
        self._sending: list[tuple[list[TenantEvent], Future[bool]]] = []  # one after the other
        self._failures, self._again = 0, datetime.min.replace(tzinfo=UTC)
        self._delivered: list[tuple[str, int]] = []

    def collect_event(self, tenant: str, event: Event, now: datetime, *, is_news: bool = True) -> None:
        """Collect *event* if it is selected. Without *is_news*, leave it out if it was collected before."""
        run_id = event.run_id if isinstance(event, ScheduledRunEnded) else None
        if self._notifier is None or (not is_news and run_id is not None and (tenant, run_id) in self._collected):
            return
        if self._notifier.is_event_selected(event):
            self._events.append((tenant, event))
            self._since = self._since or now
            if run_id is not None:
                self._collected.add((tenant, run_id))
        elif run_id is not None and (
            notification_kinds_of_event(event) or not is_news
        ):  # without kinds, the worker has removed the mark
            self._delivered.append((tenant, run_id))

    def send_if_due(self, now: datetime, *, tenants: int, is_idle: bool) -> None:
        """Send the collected events, if the first is old enough and no channel has just failed."""
        self._collect_sending_outcomes(now)
        is_time = self._since is not None and now - self._since >= (COLLECT_AT_LEAST if is_idle else COLLECT_AT_MOST)
        if is_time and now >= self._again and not self._sending:
            self.send_collected_events(tenants=tenants)

    def pop_notified_runs(self) -> dict[str, list[int]]:
        """Return the runs of each tenant of which people know, or need not know, since the last call.

        From then on the caller has to leave out such a run as long as its tenant's state tells of it.
        """
        found: dict[str, list[int]] = {}
        for tenant, run_id in self._delivered:
            found.setdefault(tenant, []).append(run_id)
        self._collected.difference_update(self._delivered)
        self._delivered = []
        return found

    def send_all_and_close(self, now: datetime, *, tenants: int) -> None:
        """Send the collected events, also those that a channel has just not accepted, and wait until they are sent.

        The notifier bounds that time.
        """
        wait(future for _, future in self._sending)
        self._collect_sending_outcomes(now)
        self.send_collected_events(tenants=tenants)
        self._thread.shutdown()

    def send_collected_events(self, *, tenants: int) -> None:
        if not self._events:
            return
        events, self._events, self._since = self._events, [], None
        self._sending.append((events, self._thread.submit(self._deliver, events, tenants)))

    def _collect_sending_outcomes(self, now: datetime) -> None:
        """Take the outcome of what was sent. Events that a channel has not accepted are collected again."""
        while self._sending and self._sending[0][1].done():
            events, future = self._sending.pop(0)
            if future.result():
                self._failures = 0
                ended = ((tenant, event) for tenant, event in events if isinstance(event, ScheduledRunEnded))
                self._delivered += [(tenant, event.run_id) for tenant, event in ended if event.run_id is not None]
            else:
                self._failures += 1
                self._events, self._since = [*events, *self._events], now - COLLECT_AT_MOST
                self._again = now + duration_of_pause_after_failures(self._failures)

    def _deliver(self, events: list[TenantEvent], tenants: int) -> bool:
        assert self._notifier is not None  # else there are no events
        problems = self._notifier.notify_of_several_events(events, tenants)
        for problem in problems:
            LOGGER.error("notification failed: %s", problem)
        return have_all_channels_accepted(problems)


ALL_JOBS = "(all jobs)"
_BUSY = "all slots of the fleet are in use"


class FleetEventReporter:
    def __init__(self, clock: Clock, metrics: Metrics, notices: GroupedNotices) -> None:
        self._clock, self._metrics, self._notices = clock, metrics, notices
        self._problems: dict[ServiceComponent, str | None] = {}
        self._late: set[DueCall] = set()  # that were reported

    def report_run_start(self, tenant: str, job: str, at: DueTime) -> None:
        _run_log(tenant, job, at).log("started")
        self._metrics.tenant_metrics(tenant).record_run_start(job)

    def report_run_end(self, tenant: str, run: RunFacts, problems: Iterable[str]) -> None:
        event = run.event
        run_log = RunLog(event.job, event.business_date, tenant=tenant)
        if event.run_id is not None:
            run_log.facts["run"] = event.run_id
        for text in warning_and_note_texts(event.messages):
            run_log.warn(text)
        run_log.log_end(event)
        self._log_notification_problems(tenant, problems)
        metrics = self._metrics.tenant_metrics(tenant)
        metrics.count_requests(event.requests, run.throttled)
        for stream, terms in run.tallies.items():
            metrics.count_records(stream, terms)
        for stream, counts in run.open.items():
            metrics.set_open_records(stream, counts)
        metrics.record_run_end(event.job, event.status, event.seconds)
        self._notices.collect_event(tenant, event, self._clock.now())

    def report_pending_notice(self, tenant: str, event: ScheduledRunEnded) -> None:
        self._notices.collect_event(tenant, event, self._clock.now(), is_news=False)

    def report_failed_start(
        self, tenant: str, job: str, at: DueTime, message: RunMessage, problems: Iterable[str]
    ) -> None:
        advice = f"{message.advice}\n  " if message.advice else ""
        event = run_events_and_pending_notices.could_not_start_event(
            job, at, replace(message, advice=f"{advice}It is tried again.")
        )
        _run_log(tenant, job, at).log_end(event)
        self._log_notification_problems(tenant, problems)
        self._metrics.tenant_metrics(tenant).record_run_end(job, "failed", 0.0)
        self._notices.collect_event(tenant, event, self._clock.now())

    def report_unusable_tenant(self, tenant: str, error: str) -> None:
        now = self._clock.now()
        LOGGER.error("%s: no job runs: %s", tenant, error)
        event = run_events_and_pending_notices.could_not_start_event(
            ALL_JOBS, DueTime(now, now.date()), RunMessage("error", "", error, "not_started")
        )
        self._notices.collect_event(tenant, event, now)

    @staticmethod
    def _log_notification_problems(tenant: str, problems: Iterable[str]) -> None:
        for problem in problems:
            LOGGER.error("%s: notification failed: %s", tenant, problem)

    def report_lost_call(self, tenant: str, reason: str) -> None:
        LOGGER.warning("%s: its call to the executor was lost and is made again: %s", tenant, reason)

    def report_postponed_call(self, tenant: str, reason: str) -> None:
        LOGGER.warning("%s: nothing starts now, and it is tried again: %s", tenant, reason)

    def report_component_status(self, part: ServiceComponent, problem: str | None) -> None:
        before, self._problems[part] = self._problems.get(part), problem
        self._metrics.report_component_status(part, problem)
        if problem is not None and problem != before:
            LOGGER.error("%s: %s", part, problem)
        elif problem is None and before is not None:
            LOGGER.info("%s: usable again", part)

    def report_late_runs(self, scheduler: FleetScheduler, now: datetime) -> None:
        """Report each run once that will end after ``done_by``, or that could not start for some time."""
        waiting = set(scheduler.waiting.values())
        postponed = {each.call: each for each in scheduler.postponed_calls}
        calls = waiting | {each.call for each in scheduler.running.values()} | postponed.keys()
        self._late &= calls
        for call in calls - self._late:
            if call.job is None or call.at is None:
                self._report_unreadable_tenant_if_late(postponed.get(call), now)
                continue
            reason = (self._problems.get("executor") or _BUSY) if call in waiting else None
            reason = postponed[call].reason if call in postponed else reason
            event = _overdue_or_waiting_event_if_late(scheduler, call, call.job, call.at, now, reason)
            if event is not None:
                self._late.add(call)
                _run_log(call.tenant, call.job, call.at).log(event.summary, logging.WARNING)
                self._notices.collect_event(call.tenant, event, now)

    def _report_unreadable_tenant_if_late(self, postponed: PostponedCall | None, now: datetime) -> None:
        """Report a tenant once whose state could not be looked at for some time, so that nothing of it is due."""
        if postponed is not None and now - postponed.since > run_events_and_pending_notices.LATE_START_AFTER:
            self._late.add(postponed.call)
            self.report_unusable_tenant(postponed.call.tenant, postponed.reason)


def _run_log(tenant: str, job: str, at: DueTime) -> RunLog:
    return RunLog(job, at.business_date, tenant=tenant)


def _overdue_or_waiting_event_if_late(
    scheduler: FleetScheduler, call: DueCall, job: str, at: DueTime, now: datetime, reason: str | None
) -> RunOverdue | RunWaiting | None:
    tenant, running = scheduler.tenants.get(call.tenant), scheduler.running.get(call.tenant)
    config = tenant.jobs.get(job) if tenant is not None else None
    expected_s = call.expected_s or 0.0
    if config is None:
        return None
    if running is None:
        return run_events_and_pending_notices.event_if_not_started_in_time(job, config, at, now, expected_s, reason)
    return run_events_and_pending_notices.overdue_event_if_late(
        job, config, at, now, running.since + timedelta(seconds=expected_s)
    )


CONFIG_CHECK_S = 5.0  # between two looks at the config files, and between attempts to lead


class FleetService:
    """Runs the jobs of all tenants. Once *interrupt* is set, no run starts, and others stop or continue elsewhere."""

    def __init__(
        self,
        files: WatchedTenantConfigs,
        database: Callable[[], FleetDatabase],
        clock: Clock,
        interrupt: threading.Event,
        metrics: Metrics,
        notices: GroupedNotices,
        make_scheduler: Callable[[FleetEventListener, Callable[[str, Iterable[JobFacts]], None]], FleetScheduler],
    ) -> None:
        self._files, self._open_database, self._clock, self._interrupt = files, database, clock, interrupt
        self._metrics, self._notices = metrics, notices
        self._reports = FleetEventReporter(clock, metrics, notices)
        self._scheduler = make_scheduler(self._reports, self._keep_job_facts_and_set_metrics)
        self._resources = ExitStack()  # of leading
        self._leader: FleetLeader | None = None
        self._stands_by = False
        self._facts: dict[str, dict[str, JobFacts]] = {}  # to be written
        self._reload = False
        self._broken: dict[str, str] = {}  # to be reported
        self.schedules: Mapping[str, Schedule] = {}
        metrics.report_component_status("config")

    @property
    def busy(self) -> bool:
        return bool(self._scheduler.running)

    @property
    def periodic_tasks(self) -> Mapping[str, tuple[Callable[[], None], float]]:
        return {"fleet": (self.report_ended_and_start_due, CONFIG_CHECK_S)}

    def request_reload(self) -> None:
        self._reload = True

    def report_ended_and_start_due(self) -> None:
        """Load what has changed, report what has ended, and start what is due. A failure is logged and reported."""
        self._metrics.record_heartbeat()
        if self._interrupt.is_set():
            self._notices.send_collected_events(
                tenants=self._usable_and_broken_tenant_count
            )  # the runs in progress may take longer than there is time
            self._scheduler.cancel_calls_and_close()
            self._store_job_facts()
            return
        self._load_changed_configs()
        if self._leader is None:
            self._try_to_lead()
        self._report_broken_configs()
        for tenant, runs in self._notices.pop_notified_runs().items():
            self._scheduler.schedule_notice_check(tenant, runs)
        while self._scheduler.collect_and_start_runs(may_start=self._leader is not None):
            self._metrics.record_heartbeat()
            self._store_job_facts()
        self._store_job_facts()
        self._report_metrics_and_late_runs()

    def close(self) -> None:
        self._scheduler.cancel_calls_and_close()
        self._store_job_facts()
        self._resources.close()
        self._notices.send_all_and_close(self._clock.now(), tenants=self._usable_and_broken_tenant_count)

    # ---- configs

    def _load_changed_configs(self) -> None:
        reload, self._reload = self._reload, False
        try:
            changes = self._files.load_changed_configs(reload=reload)
        except CrossdockError as failure:
            self._reports.report_component_status("config", str(failure))
            return
        self._reports.report_component_status("config", None)
        if not changes and self.schedules:
            return
        for name in changes.removed:
            LOGGER.info("%s: removed", name)
            self._scheduler.remove_tenant(name)
            self._metrics.remove_tenant(name)
        for tenant in changes.loaded:
            is_new = tenant.name not in self._scheduler.tenants
            LOGGER.info("%s: %s %s", tenant.name, "watching" if is_new else "changed, watching", ", ".join(tenant.jobs))
            self._scheduler.add_or_replace_tenant(tenant, self._facts.get(tenant.name, {}).values())
        self._broken |= changes.broken
        self._broken = {name: error for name, error in self._broken.items() if name in self._files.config_errors}
        if self._leader is None:
            for name, error in changes.broken.items():
                LOGGER.error("%s: its config cannot be used: %s", name, error)
        tenants = self._files.tenants.values()
        if not self._usable_and_broken_tenant_count:
            LOGGER.warning("there is no config of a tenant")
        distinct = dict.fromkeys(job.schedule for tenant in tenants for job in tenant.jobs.values())
        self.schedules = {str(number): schedule for number, schedule in enumerate(distinct)}

    def _report_broken_configs(self) -> None:
        if self._leader is not None:
            for name, error in self._broken.items():
                self._reports.report_unusable_tenant(name, f"its config cannot be used: {error}")
            self._broken = {}

    @property
    def _usable_and_broken_tenant_count(self) -> int:
        return len(self._files.tenants) + len(self._files.config_errors)

    # ---- leading

    def _try_to_lead(self) -> None:
        try:
            database = self._open_database()
            self._resources.callback(database.close)
            self._leader = self._resources.enter_context(database.hold_leadership(own_process_name()))
            self._facts = database.job_facts_by_tenant()
            gone = [tenant for tenant in self._facts if tenant not in self._files.tenants]
            self._leader.delete_job_facts_of_tenants(gone)
        except StateBusyError:
            self._resources.close()
            if not self._stands_by:
                LOGGER.info("another scheduler leads this fleet; this one stands by")
            self._stands_by = True
            self._reports.report_component_status("state", None)
        except CrossdockError as failure:
            self._resources.close()
            self._leader = None
            self._reports.report_component_status("state", str(failure))
        else:
            self._reports.report_component_status("state", None)
            self._stands_by = False
            tenants = self._files.tenants
            LOGGER.info("leading a fleet of %s tenant%s", f"{len(tenants):,}", "s" * (len(tenants) != 1))
            for name, tenant in tenants.items():
                self._set_last_success_metrics(name, self._facts.get(name, {}).values())
                self._scheduler.add_or_replace_tenant(tenant, self._facts.get(name, {}).values())
                if any(facts.has_pending_notice for facts in self._facts.get(name, {}).values()):
                    self._scheduler.schedule_notice_check(name)
            self._facts = {}

    def _store_job_facts(self) -> None:
        """Store what was learned. The write also shows whether this scheduler still leads."""
        if self._leader is None:
            return
        facts, self._facts = self._facts, {}
        try:
            self._leader.write_job_facts({name: each.values() for name, each in facts.items()})
        except StateError as lost:
            LOGGER.warning("this scheduler does not lead the fleet any more: %s", lost)
            self._leader = None
            self._resources.close()

    def _set_last_success_metrics(self, tenant: str, facts: Iterable[JobFacts]) -> None:
        """Show when each job succeeded last, also before this scheduler led the fleet."""
        for each in facts:
            if each.last_success is not None:
                self._metrics.tenant_metrics(tenant).set_last_success(each.job, each.last_success)

    def _keep_job_facts_and_set_metrics(self, tenant: str, facts: Iterable[JobFacts]) -> None:
        found = {each.job: each for each in facts}
        self._facts.setdefault(tenant, {}).update(found)
        if tenant in self._scheduler.tenants:
            self._set_last_success_metrics(tenant, found.values())
            for job, instant in self._scheduler.schedule.next_due_by_job(tenant, self._clock.now()).items():
                self._metrics.tenant_metrics(tenant).set_next_due(job, instant)

    def _report_metrics_and_late_runs(self) -> None:
        now, scheduler, tenants = self._clock.now(), self._scheduler, len(self._files.tenants)
        leads = self._leader is not None
        waiting = sum(call.job is not None for call in scheduler.waiting.values())
        self._metrics.set_fleet_counts_and_leading(
            usable=tenants, broken=len(self._files.config_errors), waiting=waiting, leads=leads
        )
        if leads:
            self._reports.report_late_runs(scheduler, now)
        self._notices.send_if_due(
            now, tenants=self._usable_and_broken_tenant_count, is_idle=not scheduler.running and not scheduler.waiting
        )
