"""``crossdock schedule --once``: runs jobs for one business date, with the notifications and log of the service."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from datetime import date, datetime, timedelta
from functools import partial
from typing import NamedTuple

from crossdock.cli import terminal_output
from crossdock.cli.scheduler_and_webhook_service import stop_event_with_logged_notice
from crossdock.cli.shared_options_messages_and_signals import print_sentences
from crossdock.config.project.project import Project
from crossdock.config.schedules.due_times import DueTime, due_times_between
from crossdock.config.schedules.job_and_schedule_config import jobs_in_order
from crossdock.errors import ConfigError, CrossdockError
from crossdock.runs import session_shared_by_runs, sync_and_replay
from crossdock.runs.run_report import Report, Timings
from crossdock.runs.run_start_and_stop_requests import RunRequest
from crossdock.services.notifications.run_events_and_messages import Event, ScheduledRunEnded
from crossdock.services.observability.optional_trace_export import open_trace_export
from crossdock.services.scheduler import run_events_and_pending_notices, stderr_log
from crossdock.services.scheduler.retention_task import apply_retention_until_done
from crossdock.services.scheduler.run_events_and_pending_notices import (
    event_sender_of_project,
    send_event_and_pending_notices,
)
from crossdock.services.scheduler.stderr_log import LogFormat, RunLog
from crossdock.state import DueRun, ScheduledRun
from crossdock.values.clock import SystemClock
from crossdock.values.run_progress_and_messages import RunMessage
from crossdock.values.texts_of_numbers_and_times import USABLE_YEARS, USABLE_YEARS_TEXT
from crossdock.writing.targets.platform_access_and_clock_checks import compare_clock_or_raise

LATEST = "latest"
_ACTION = "schedule --once"
_LOOKS_BACK = timedelta(days=40)  # a monthly job is due once in it


def run_jobs_due_for_date(loaded: Project, text: str, job: str | None, log_format: LogFormat, *, as_json: bool) -> int:
    """Run what is due for the date *text*, or what was due last if it is `LATEST`. Return the most severe exit code.

    With *as_json*, print one list of the reports, which is empty if nothing was run.
    """
    day = _parse_date_or_latest(text)
    if job is not None and job not in loaded.jobs:
        raise ConfigError(f"there is no job {job!r}", hint=f"known: {', '.join(loaded.jobs)}", code="job_unknown")
    clock = SystemClock()
    now, codes, reports = clock.now(), [0], list[Report]()
    with (
        ExitStack() as stack,
        stderr_log.logging_to_stderr(log_format),
        open_trace_export(stderr_log.log_warning) as trace,
    ):
        if as_json:  # also if a job ends the command
            stack.callback(lambda: terminal_output.print_json([each.as_json() for each in reports]))
        for name in [job] if job else jobs_in_order(loaded.jobs):
            once = _JobRuns(loaded, name, log_format, trace, reports if as_json else None)
            asked = _due_runs(loaded, name, day, now)
            if not asked:
                once.log_or_say(day or LATEST, f"nothing is due{' yet' * (day is not None and day > now.date())}")
            codes += [once.execute_report_and_notify(one) for one in asked]
    return max(codes)


def _parse_date_or_latest(text: str) -> date | None:
    if text == LATEST:
        return None
    try:
        day = date.fromisoformat(text)
    except ValueError:
        hint = f"For example: --once 2026-11-20, or --once {LATEST}"
        raise ConfigError(f"--once {text!r} is not a date", hint=hint, code="option_value_invalid") from None
    if day.year not in USABLE_YEARS:
        raise ConfigError(f"--once {text} is not in {USABLE_YEARS_TEXT}", code="option_value_invalid")
    return day


def _due_runs(loaded: Project, job: str, day: date | None, now: datetime) -> deque[DueTime]:
    schedule = loaded.jobs[job].schedule
    if day is None:
        return deque(due_times_between(schedule, now - _LOOKS_BACK, now), maxlen=1)
    around = datetime.combine(day, datetime.min.time(), now.tzinfo)
    found = due_times_between(schedule, around - timedelta(days=3), min(now, around + timedelta(days=40)))
    return deque(each for each in found if each.business_date == day)


class _JobRuns:
    """The runs of one job. Their reports are shown, or added to *reports*."""

    def __init__(
        self,
        loaded: Project,
        job: str,
        log_format: LogFormat,
        trace: Callable[[Timings], None],
        reports: list[Report] | None,
    ) -> None:
        self._loaded, self._job, self._trace, self._reports = loaded, job, trace, reports
        self._clock, self._is_logged, self._log_format = SystemClock(), log_format == "json", log_format

    def log_or_say(self, day: date | str, text: str) -> None:
        if self._is_logged:
            self._make_run_log(day).log(text)
        else:
            print_sentences(f"{self._job} for {day}: {text}", err=True)

    def execute_report_and_notify(self, at: DueTime) -> int:
        log = self._make_run_log(at.business_date)
        with ExitStack() as stack:
            if self._is_logged:
                timings = log.make_logged_timings(self._clock)
            else:
                bars = stack.enter_context(terminal_output.show_progress(wanted=self._reports is None))
                timings = Timings(self._clock, bars)
            interrupt = stack.enter_context(stop_event_with_logged_notice(self._log_format))
            send = event_sender_of_project(self._loaded, self._clock)
            self._log_failed_notifications(
                run_events_and_pending_notices.send_pending_notices(
                    self._loaded, send, self._clock, older_than=timedelta()
                ),
                log,
            )
            earlier = self._stored_scheduled_run(at)
            try:
                done = self._run(at, log, timings, interrupt, earlier)
            except CrossdockError as error:
                event = run_events_and_pending_notices.could_not_start_event(
                    self._job, at, RunMessage.of_error("", error)
                )
                if not self._is_logged:
                    terminal_output.print_errors({"": error})
                self._log_and_notify_end(
                    run_events_and_pending_notices.event_with_previous_if_readable(
                        self._loaded, event, at.instant, earlier
                    ),
                    log,
                )
                return error.exit_code
            finally:
                self._trace(timings)
            if done is None:
                return 0
            self._print_report(done.report)
            self._log_and_notify_end(done.event, log)
            apply_retention_until_done(self._loaded, self._clock, interrupt)
        return done.report.exit_code

    def _stored_scheduled_run(self, at: DueTime) -> ScheduledRun | None:
        with suppress(CrossdockError), self._loaded.read_state() as tx:
            return tx.scheduled_runs.get(self._job, at.instant, at.business_date)
        return None

    def _run(
        self, at: DueTime, log: RunLog, timings: Timings, interrupt: threading.Event, earlier: ScheduledRun | None
    ) -> _Ended | None:
        due_run = DueRun(self._job, at.instant, at.business_date)
        with session_shared_by_runs.open_session(
            self._loaded, self._clock, attempt=RunRequest(due_run, action=_ACTION)
        ) as session:
            if session.state.run_read_only(lambda tx: self._job in tx.scheduled_runs.paused_jobs()):
                self.log_or_say(
                    at.business_date, f"not run: the job is paused; 'crossdock jobs resume {self._job}' resumes it"
                )
                return None
            compare_clock_or_raise(self._loaded.platform, self._clock, self._loaded.access_test_resources[0])
            send = event_sender_of_project(self._loaded, self._clock)
            self._log_failed_notifications(
                run_events_and_pending_notices.send_notices_of_killed_runs(self._loaded, send, self._clock, self._job),
                log,
            )
            with run_events_and_pending_notices.reporting_run_if_overdue(
                session, due_run, self._clock, partial(self._notify, log=log)
            ):
                report = sync_and_replay.run_scheduled(
                    session, due_run, progress=timings, interrupt=interrupt, action=_ACTION
                )
            if report is None:
                forgotten = "not run: older than the retention period"
                self.log_or_say(at.business_date, forgotten if earlier is None else "has already been run")
                return None
            event = run_events_and_pending_notices.run_ended_event(self._job, at, report)
            return _Ended(
                report,
                run_events_and_pending_notices.event_with_previous_if_readable(
                    self._loaded, event, at.instant, earlier
                ),
            )

    def _make_run_log(self, day: date | str) -> RunLog:
        return RunLog(self._job, day)

    def _print_report(self, report: Report) -> None:
        if not self._is_logged:
            terminal_output.print_error_messages(report.messages)
        if self._reports is not None:
            self._reports.append(report)
        else:
            terminal_output.print_run_report(terminal_output.output_console(), report.as_json())

    def _log_and_notify_end(self, event: ScheduledRunEnded, log: RunLog) -> None:
        if self._is_logged:
            log.log_end(event)
        self._notify(event, log)

    def _notify(self, event: Event, log: RunLog) -> None:
        self._log_failed_notifications(send_event_and_pending_notices(self._loaded, event, self._clock), log)

    @staticmethod
    def _log_failed_notifications(problems: Iterable[str], log: RunLog) -> None:
        for problem in problems:
            stderr_log.LOGGER.error("notification failed: %s", problem, extra=log.facts)


class _Ended(NamedTuple):
    report: Report
    event: ScheduledRunEnded
