"""The scheduler as a service: it logs, notifies, serves metrics and reloads its config."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta

from msgspec import Struct

from crossdock.config.project.project import Project
from crossdock.config.schedules.due_times import DueTime, due_times_between, first_instant_outside_blackouts
from crossdock.config.schedules.job_and_schedule_config import JobConfig, Schedule
from crossdock.errors import ClockError, CrossdockError, text_with_code
from crossdock.mapping.stream_declaration import PLATFORM
from crossdock.runs import run_start_and_stop_requests, sync_and_replay
from crossdock.runs.run_report import Report, Timings
from crossdock.runs.run_start_and_stop_requests import RunRequest
from crossdock.runs.session_shared_by_runs import Session
from crossdock.services.inbox.webhook_receiver_and_writer import RefusedWebhookCounts
from crossdock.services.inbox.webhook_record_delivery import (
    ConnectionAndTarget,
    InboxWorker,
    connection_and_target_by_stream,
)
from crossdock.services.notifications.mail_and_webhook_notifier import Notifier, have_all_channels_accepted
from crossdock.services.notifications.run_events_and_messages import Event, RunOverdue, ScheduledRunEnded
from crossdock.services.observability.health_and_metrics import Metrics
from crossdock.services.scheduler import run_events_and_pending_notices
from crossdock.services.scheduler.due_run_decisions_and_preview import explain_start_delay
from crossdock.services.scheduler.retention_task import RetentionTask
from crossdock.services.scheduler.scheduler import ON_TIME_BEFORE_START, FinishedRun, Scheduler, WorkerPool
from crossdock.services.scheduler.stderr_log import LOGGER, RunLog, log_slow_partners
from crossdock.state import DueRun
from crossdock.state.tables.webhooks_and_records_to_fetch import InboxCount
from crossdock.values.clock import Clock
from crossdock.values.run_progress_and_messages import RunMessage

RETENTION_S = 30.0  # between attempts to remove what is old
REPORT_S = 10.0  # refused webhooks, in the log
A_DAY = timedelta(days=1)


class WebhookReception(Struct, frozen=True):
    inbox_worker: InboxWorker
    refused: RefusedWebhookCounts


def report_refused_webhooks(refused: RefusedWebhookCounts, metrics: Metrics) -> None:
    for (connection, reason), number in refused.pop_counts().items():
        of = f" of {connection}" if connection else ""
        LOGGER.warning("webhooks%s: %s not processed (%s)", of, f"{number:,}", reason)
        metrics.count_refused_webhooks(connection, reason, number)


class MonitoredScheduler:
    """Runs the jobs of a project. Once *interrupt* is set, no run starts and those in flight stop early."""

    def __init__(
        self,
        project: Project,
        clock: Clock,
        interrupt: threading.Event,
        metrics: Metrics,
        *,
        notifier: Notifier | None,
        trace: Callable[[Timings], None],
        workers: WorkerPool,
        webhooks: WebhookReception | None = None,
    ) -> None:
        self._webhooks = webhooks
        self._clock, self._interrupt = clock, interrupt
        self._use_project(project)
        self._metrics, self._notifier, self._trace = metrics, notifier, trace
        inbox_worker = webhooks.inbox_worker if webhooks else None
        self._scheduler = Scheduler(project, clock, self._execute_run, self._report_ended_run, workers, inbox_worker)
        self._retention = RetentionTask(clock)
        self._logs: dict[str, RunLog] = {}  # by job, of runs that have started
        self._fresh: tuple[Project, Notifier | None] | None = None  # takes effect once no run is in progress
        self._started = clock.now()
        self._looked_at: datetime | None = None  # successfully
        self._late: set[tuple[str, DueTime]] = set()  # runs that did not start in time, and were reported
        self._reported_lost: set[str] = set()  # jobs whose notification about the unusable state was sent
        self._failures, self._notify_at = 0, clock.now()  # when people are notified again of what they were not told
        metrics.report_component_status("config")

    def _use_project(self, project: Project) -> None:
        self.project = project
        self._knows_successes = False
        self.schedules: Mapping[str, Schedule] = {name: job.schedule for name, job in project.jobs.items()}

    @property
    def periodic_tasks(self) -> Mapping[str, tuple[Callable[[], None], float]]:
        return {
            "retention": (self.apply_retention, RETENTION_S),
            "webhooks": (self.report_refused_and_delayed_webhooks, REPORT_S),
        }

    @property
    def busy(self) -> bool:
        return self._scheduler.busy

    def report_ended_and_start_due(self) -> None:
        """Report ended runs, and start due ones. A failure is logged and reported."""
        self._metrics.record_heartbeat()
        now = self._clock.now()
        try:
            while self._reload_then_start_runs():
                self._metrics.record_heartbeat()
                self.apply_retention()  # also between the runs of a long backlog
        except CrossdockError as error:
            self._metrics.report_component_status(
                "clock" if isinstance(error, ClockError) else "state", text_with_code(error)
            )
            LOGGER.error("cannot check which jobs are due: %s", text_with_code(error))
            self._report_runs_prevented_by_error(error, now)
        else:
            self._metrics.report_component_status("state")
            self._metrics.report_component_status("clock")
            self._looked_at, self._reported_lost = now, set()
            self._show_earlier_successes()
            self._report_runs_waiting_too_long(now)
            self._send_pending_notices(now)
        for job, instant in self._scheduler.next_due_by_job().items():
            self._metrics.set_next_due(job, instant)

    def _show_earlier_successes(self) -> None:
        """Show when each job succeeded last, once: an alert on its age finds nothing without it."""
        if not self._knows_successes:
            with suppress(CrossdockError), self.project.read_state() as tx:
                for job, at in tx.scheduled_runs.last_success_by_job().items():
                    if job in self.project.jobs:
                        self._metrics.set_last_success(job, at)
                self._knows_successes = True

    def apply_retention(self) -> None:
        if not self.busy and not self._interrupt.is_set():
            self._retention.purge_part_if_due(self.project)

    def reload_when_idle(self, project: Project, notifier: Notifier | None) -> None:
        """Use another config once `report_ended_and_start_due` finds no run in progress. None starts before."""
        self._fresh = project, notifier
        if self._scheduler.running_jobs:
            LOGGER.warning("no run starts now: %s", self._reason_of_reload)

    @property
    def _reason_of_reload(self) -> str:
        return f"the new config takes effect when what is running has ended: {', '.join(self._scheduler.running_jobs)}"

    def close(self) -> None:
        """Close the state, unless runs still write to it: they keep the lease until they end."""
        if not self.busy:
            self._scheduler.close()

    def report_refused_and_delayed_webhooks(self) -> None:
        """Log the webhooks refused since the last call and the systems that delay records, and measure the inbox."""
        if self._webhooks is None:
            return
        with (
            suppress(CrossdockError),
            self.project.read_state() as tx,
        ):  # a state that cannot be read was reported above
            counts = tx.inbox.record_counts_by_stream()
            failing = sum(map(self._failing_record_count, counts))
            self._metrics.set_inbox_record_counts(sum(each.number for each in counts) - failing, failing)
        self._metrics.report_component_status("inbox", self._scheduler.inbox_error)
        report_refused_webhooks(self._webhooks.refused, self._metrics)
        slow = self._webhooks.inbox_worker.list_and_mark_slow_partners()
        self._metrics.set_slow_partners({partners: seconds for partners, seconds, _ in slow})
        for partners, seconds, is_new in slow:
            if is_new:
                log_slow_partners(partners, seconds)

    def _failing_record_count(self, records: InboxCount) -> int:
        """Return how many *records* of a stream fail, which are all if there is no work on them."""
        partners = connection_and_target_by_stream(self.project).get(records.stream, ConnectionAndTarget())
        return records.number if partners in self._scheduler.inbox_errors else records.failing

    def _reload_then_start_runs(self) -> bool:
        """Return False if there was nothing to do."""
        if self._fresh is not None and self._webhooks is not None:
            self._webhooks.inbox_worker.end_work_soon()  # also what has begun since the last call
        if self._fresh is not None and not self.busy:
            for job in self.project.jobs:
                self._metrics.set_next_due(job, None)
            fresh, self._notifier = self._fresh
            self._use_project(fresh)
            self._fresh = None
            self._scheduler.replace_config(self.project)
        elif self._fresh is not None and not self._interrupt.is_set():
            self._scheduler.update_waiting_runs()
        return self._scheduler.report_ended_or_start_due(may_start=self._fresh is None and not self._interrupt.is_set())

    def _report_runs_prevented_by_error(self, error: CrossdockError, now: datetime) -> None:
        """Report the first due run of each job while the state cannot be used, or the clocks differ."""
        may_notify = run_events_and_pending_notices.is_pause_over(self._notify_at, now)
        for name, job in self.project.jobs.items():
            one = next(due_times_between(job.schedule, self._instant_since_runs_are_unknown(job, now), now), None)
            if one is not None and name not in self._reported_lost and may_notify:
                run_start_and_stop_requests.store_failed_start(self.project, self._clock, error, RunRequest(job=name))
                event = run_events_and_pending_notices.could_not_start_event(name, one, RunMessage.of_error("", error))
                if self._notify(event, RunLog(name, one.business_date)):
                    self._reported_lost.add(name)

    def _instant_since_runs_are_unknown(self, job: JobConfig, now: datetime) -> datetime:
        """Return the instant after which it is unknown what has run.

        Just after the start, it covers the runs that this service would start itself. Later it covers a day to catch
        up, because a database may need some minutes after a start of the machine.
        """
        if self._looked_at is not None:
            return self._looked_at
        catches_up = (
            job.schedule.catch_up != "none" and now - self._started >= run_events_and_pending_notices.LATE_START_AFTER
        )
        return self._started - (A_DAY if catches_up else ON_TIME_BEFORE_START)

    def _report_runs_waiting_too_long(self, now: datetime) -> None:
        """Report each run once that cannot start in time."""
        for name, at in self._scheduler.waiting.items():
            if (name, at) in self._late:
                continue
            reason = self._reason_for_late_start(name, at, now)
            event = run_events_and_pending_notices.event_if_not_started_in_time(
                name, self.project.jobs[name], at, now, 0.0, reason
            )
            if event is not None:
                self._late.add((name, at))
                log = RunLog(name, at.business_date)
                log.log(event.summary, logging.WARNING)
                self._notify(event, log)

    def _reason_for_late_start(self, name: str, at: DueTime, now: datetime) -> str | None:
        """Return why a run has not started; None if it may wait: for a blackout or a run of this service."""
        job = self.project.jobs[name]
        if self._fresh is not None and self._scheduler.running_jobs:
            return self._reason_of_reload
        if self._scheduler.held_back_by is not None:
            return self._scheduler.held_back_by
        if (
            now - at.instant <= run_events_and_pending_notices.LATE_START_AFTER
            or self.busy
            or name in self._scheduler.failed_starts
        ):
            return None
        if first_instant_outside_blackouts(job.schedule, now) > now:
            return None
        with suppress(CrossdockError), self.project.read_state() as tx:
            return explain_start_delay(tx, self.project.jobs, name, at.business_date, now).text
        return None

    def _execute_run(self, session: Session, due_run: DueRun) -> Report | None:
        self._metrics.report_component_status("state")
        bucket = session.bucket(session.targets[PLATFORM]).take_available(0, 0).bucket_state.bucket

        def show(tokens: int | None) -> None:
            self._metrics.set_request_allowance(tokens=tokens, rate_per_s=bucket.rate_per_s, burst=bucket.burst)

        log = self._logs[due_run.job] = RunLog(due_run.job, due_run.business_date, show)

        def tell(event: RunOverdue) -> None:
            if (due_run.job, DueTime(due_run.due, due_run.business_date)) not in self._late:
                log.log(event.summary, logging.WARNING)
                self._notify(event, log)

        self._log_notification_problems(
            run_events_and_pending_notices.send_notices_of_killed_runs(
                self.project, self._send_event_to_channels, self._clock, due_run.job
            ),
            log,
        )
        self._metrics.record_run_start(due_run.job)
        timings = log.make_logged_timings(self._clock)
        try:
            with run_events_and_pending_notices.reporting_run_if_overdue(session, due_run, self._clock, tell):
                return sync_and_replay.run_scheduled(session, due_run, progress=timings, interrupt=self._interrupt)
        finally:
            self._trace(timings)

    def _report_ended_run(self, ended: FinishedRun) -> None:
        report = ended.report
        self._late = {each for each in self._late if each[0] != ended.job}
        log = self._logs.pop(ended.job, None) or RunLog(ended.job, ended.due.business_date)
        if report is None:
            messages = () if ended.error is None else (RunMessage.of_error("", ended.error),)
            event = run_events_and_pending_notices.could_not_start_event(ended.job, ended.due, *messages)
        else:
            event = run_events_and_pending_notices.run_ended_event(ended.job, ended.due, report)
            self._metrics.count_requests(report.counters.requests, report.counters.throttled)
            for name, tally in report.tallies.items():
                self._metrics.count_records(name, {str(term): number for term, number in tally.records.items()})
            for name, counts in report.open.items():
                self._metrics.set_open_records(name, counts)
        self._metrics.record_run_end(ended.job, event.status, event.seconds)
        log.log_end(event)
        self._notify(
            run_events_and_pending_notices.event_with_previous_if_readable(self.project, event, ended.due.instant), log
        )

    def _send_pending_notices(self, now: datetime) -> None:
        if not run_events_and_pending_notices.is_pause_over(self._notify_at, now):
            return
        problems = run_events_and_pending_notices.send_pending_notices(
            self.project, self._send_event_to_channels, self._clock
        )
        self._log_notification_problems(problems)
        self._plan_next_notice_attempt(now, are_told=have_all_channels_accepted(problems))

    def _plan_next_notice_attempt(self, now: datetime, *, are_told: bool) -> None:
        self._failures = 0 if are_told else self._failures + 1
        self._notify_at = (
            now if are_told else now + run_events_and_pending_notices.duration_of_pause_after_failures(self._failures)
        )

    def _notify(self, event: Event, log: RunLog) -> bool:
        """Return whether people were notified. If not, the event of a run in the state is sent later."""
        if isinstance(event, ScheduledRunEnded):
            problems: Sequence[str] = run_events_and_pending_notices.send_pending_and_new_notice(
                self.project, self._send_event_to_channels, event, self._clock
            )
            self._plan_next_notice_attempt(self._clock.now(), are_told=have_all_channels_accepted(problems))
        else:
            problems = self._send_event_to_channels(event)
        self._log_notification_problems(problems, log)
        return have_all_channels_accepted(problems)

    def _send_event_to_channels(self, event: Event) -> Sequence[str]:
        return self._notifier.notify(event) if self._notifier else ()

    @staticmethod
    def _log_notification_problems(problems: Sequence[str], log: RunLog | None = None) -> None:
        for problem in problems:
            LOGGER.error("notification failed: %s", problem, extra=log.facts if log is not None else None)
