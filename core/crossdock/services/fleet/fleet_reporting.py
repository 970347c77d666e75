"""Reports of a fleet about its runs: in the log, as metrics, and as notifications."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from crossdock.config.schedules.due_times import Due
from crossdock.services.fleet.fleet_due_runs import DueCall
from crossdock.services.fleet.fleet_scheduler import FleetScheduler
from crossdock.services.fleet.grouped_notices import GroupedNotices
from crossdock.services.fleet.scheduled_call import RunFacts
from crossdock.services.notifications.events import RunOverdue, RunWaiting, ScheduledRunEnded
from crossdock.services.observability.metrics import Metrics, Part
from crossdock.services.scheduler import run_notices
from crossdock.services.scheduler.stderr_log import LOGGER, RunLog
from crossdock.values.clock import Clock
from crossdock.values.run_messages import RunMessage, remarks

ALL_JOBS = "(all jobs)"
_BUSY = "all slots of the fleet are in use"


class FleetReporting:
    def __init__(self, clock: Clock, metrics: Metrics, notices: GroupedNotices) -> None:
        self._clock, self._metrics, self._notices = clock, metrics, notices
        self._problems: dict[Part, str | None] = {}
        self._late: set[DueCall] = set()  # that were reported

    def began(self, tenant: str, job: str, at: Due) -> None:
        _run_log(tenant, job, at).log("started")
        self._metrics.of_tenant(tenant).run_began(job)

    def ended(self, tenant: str, run: RunFacts, problems: Iterable[str]) -> None:
        event = run.event
        run_log = RunLog(event.job, event.business_date, tenant=tenant)
        if event.run_id is not None:
            run_log.facts["run"] = event.run_id
        for text in remarks(event.messages):
            run_log.warn(text)
        run_log.log_end(event)
        self._log_problems(tenant, problems)
        metrics = self._metrics.of_tenant(tenant)
        metrics.count_requests(event.requests, run.throttled)
        for stream, terms in run.tallies.items():
            metrics.count_records(stream, terms)
        for stream, counts in run.open.items():
            metrics.set_open_records(stream, counts)
        metrics.run_ended(event.job, event.status, event.seconds)
        self._notices.add(tenant, event, self._clock.now())

    def notice_pending(self, tenant: str, event: ScheduledRunEnded) -> None:
        self._notices.add(tenant, event, self._clock.now(), is_news=False)

    def could_not_start(self, tenant: str, job: str, at: Due, message: RunMessage, problems: Iterable[str]) -> None:
        advice = f"{message.advice}\n  " if message.advice else ""
        event = run_notices.could_not_start_event(job, at, replace(message, advice=f"{advice}It is tried again."))
        _run_log(tenant, job, at).log_end(event)
        self._log_problems(tenant, problems)
        self._metrics.of_tenant(tenant).run_ended(job, "failed", 0.0)
        self._notices.add(tenant, event, self._clock.now())

    def tenant_unusable(self, tenant: str, error: str) -> None:
        now = self._clock.now()
        LOGGER.error("%s: no job runs: %s", tenant, error)
        event = run_notices.could_not_start_event(
            ALL_JOBS, Due(now, now.date()), RunMessage("error", "", error, "not_started")
        )
        self._notices.add(tenant, event, now)

    @staticmethod
    def _log_problems(tenant: str, problems: Iterable[str]) -> None:
        for problem in problems:
            LOGGER.error("%s: notification failed: %s", tenant, problem)

    def call_lost(self, tenant: str, reason: str) -> None:
        LOGGER.warning("%s: its call to the executor was lost and is made again: %s", tenant, reason)

    def report_part_status(self, part: Part, problem: str | None) -> None:
        before, self._problems[part] = self._problems.get(part), problem
        self._metrics.report_part_status(part, problem)
        if problem is not None and problem != before:
            LOGGER.error("%s: %s", part, problem)
        elif problem is None and before is not None:
            LOGGER.info("%s: usable again", part)

    def report_late_runs(self, scheduler: FleetScheduler, now: datetime) -> None:
        """Report each run once that will end after ``done_by``, or that could not start for some time."""
        waiting = set(scheduler.waiting.values())
        calls = waiting | {each.call for each in scheduler.running.values()}
        self._late &= calls
        for call in calls - self._late:
            if call.job is None or call.at is None:
                continue
            reason = (self._problems.get("executor") or _BUSY) if call in waiting else None
            event = _late_event(scheduler, call, call.job, call.at, now, reason)
            if event is not None:
                self._late.add(call)
                _run_log(call.tenant, call.job, call.at).log(event.summary, logging.WARNING)
                self._notices.add(call.tenant, event, now)


def _run_log(tenant: str, job: str, at: Due) -> RunLog:
    return RunLog(job, at.business_date, tenant=tenant)


def _late_event(
    scheduler: FleetScheduler, call: DueCall, job: str, at: Due, now: datetime, reason: str | None
) -> RunOverdue | RunWaiting | None:
    tenant, running = scheduler.tenants.get(call.tenant), scheduler.running.get(call.tenant)
    config = tenant.jobs.get(job) if tenant is not None else None
    expected_s = call.expected_s or 0.0
    if config is None:
        return None
    if running is None:
        return run_notices.not_started_event(job, config, at, now, expected_s, reason)
    return run_notices.overdue_event(job, config, at, now, running.since + timedelta(seconds=expected_s))
