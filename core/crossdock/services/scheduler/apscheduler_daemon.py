"""Runs the service until it is interrupted. APScheduler is its clock and its worker pool.

APScheduler decides when the service is called, never what runs: each call reads what is due from the state, whose rows,
lease and fence decide. So a late, lost or repeated wake-up neither loses nor repeats a run.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Protocol, TypeVar

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.base import JobLookupError
from apscheduler.jobstores.memory import MemoryJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.schedulers.base import STATE_STOPPED
from apscheduler.triggers.base import BaseTrigger
from apscheduler.triggers.date import DateTrigger
from apscheduler.triggers.interval import IntervalTrigger

from crossdock.config.schedules.due_times import due_times_between
from crossdock.config.schedules.job_and_schedule_config import Schedule
from crossdock.services.scheduler.scheduler import CLOCK_SET_S

T = TypeVar("T")

POLL_S = 30.0  # other schedulers and 'jobs resume' also change what is due
SIGNAL_S = 1.0  # maximum delay until a signal is handled
_DUE_AT_ONCE = DateTrigger(datetime(1970, 1, 1, tzinfo=UTC), UTC)  # due at once, even if the clock is set back
logging.getLogger("apscheduler").addHandler(logging.NullHandler())  # it warns of merged calls


class ScheduledService(Protocol):
    """The service of a daemon. All calls come from the same thread, so they never overlap."""

    @property
    def busy(self) -> bool:
        """Whether a run is in progress, or its end has not been reported."""

    @property
    def schedules(self) -> Mapping[str, Schedule]:
        """The schedules that call `report_ended_and_start_due`, besides `POLL_S`; a new object after a change."""

    @property
    def periodic_tasks(self) -> Mapping[str, tuple[Callable[[], None], float]]:
        """The other functions to call, each with its interval in seconds."""

    def report_ended_and_start_due(self) -> None: ...

    def close(self) -> None: ...


class Daemon:
    def __init__(self, at_once: int) -> None:
        self._timer = _SchedulerToleratingShutdown(
            timezone=UTC,
            executors={
                "default": ThreadPoolExecutor(1, {"thread_name_prefix": "service"}),
                "runs": ThreadPoolExecutor(at_once, {"thread_name_prefix": "run"}),
            },
            jobstores={"runs": MemoryJobStore()},
            # One call runs and one waits. The second sees all that has changed, so that a third is not needed.
            job_defaults={"misfire_grace_time": None, "coalesce": True, "max_instances": 2},
        )
        # Only the main thread and the service's thread add jobs: APScheduler's shutdown waits for its threads while it
        # holds the lock that adding a job takes.
        self._news = threading.Event()  # a run has ended, or the daemon is to stop
        self._stopped = threading.Event()
        self.executor: Executor = _RunExecutor(self._timer, self._news.set)
        self._error: BaseException | None = None

    def wake(self) -> None:
        """Call the service soon. Any thread may call this."""
        self._news.set()

    def run(
        self,
        service: ScheduledService,
        interrupt: threading.Event,
        next_requested_call: Callable[[], Callable[[], None] | None] = lambda: None,
    ) -> None:
        """Call *service* until *interrupt* is set and its runs have ended.

        *next_requested_call* returns a call to make before the next look, such as a reload of the config.
        """
        self._service, self._interrupt = service, interrupt
        offset_s = _wall_minus_monotonic_s()  # before anything is planned: the clock may be set while this starts
        self._schedule_calls()
        self._timer.start()
        try:
            # The timeout is needed: a signal that another thread receives does not end the wait.
            while True:
                has_news = self._news.wait(SIGNAL_S)
                self._news.clear()
                if self._stopped.is_set():
                    break
                call = next_requested_call()
                if call is not None:
                    self._add_call(partial(self._call_then_service, call), _DUE_AT_ONCE, "asked")
                # APScheduler computes its waits from the wall clock, but waits by the monotonic clock.
                if abs(_wall_minus_monotonic_s() - offset_s) > CLOCK_SET_S:
                    offset_s = _wall_minus_monotonic_s()
                    self._add_call(self._schedule_calls, _DUE_AT_ONCE, "schedule")
                elif has_news or interrupt.is_set():
                    self._call_service_soon()
        finally:
            self._timer.shutdown(wait=self._stopped.is_set() and self._error is None)
        service.close()
        if self._error is not None:
            raise self._error

    def _schedule_calls(self) -> None:
        self._schedules = self._service.schedules
        self._timer.remove_all_jobs("default")
        for name, schedule in self._schedules.items():
            self._add_call(self._call_service, ScheduleTrigger(schedule), f"due: {name}")
        for name, (call, seconds) in {"poll": (self._call_service, POLL_S), **self._service.periodic_tasks}.items():
            self._add_call(call, IntervalTrigger(seconds=seconds, timezone=UTC), name)
        self._call_service_soon()

    def _call_service_soon(self) -> None:
        self._add_call(self._call_service, _DUE_AT_ONCE, "wake")

    def _add_call(self, call: Callable[[], None], trigger: Any, name: str) -> None:
        self._timer.add_job(self._call_and_stop_on_error, trigger, [call], id=name, replace_existing=True)

    def _call_and_stop_on_error(self, call: Callable[[], None]) -> None:
        if self._stopped.is_set():
            return
        try:
            call()
        except BaseException as error:  # noqa: BLE001  `run` raises it in the main thread
            self._error = error
            self._ask_main_thread_to_stop()

    def _call_then_service(self, call: Callable[[], None]) -> None:
        call()
        self._call_service()

    def _call_service(self) -> None:
        self._service.report_ended_and_start_due()
        if self._service.schedules is not self._schedules:
            self._schedule_calls()
        if self._interrupt.is_set() and not self._service.busy:
            self._ask_main_thread_to_stop()

    def _ask_main_thread_to_stop(self) -> None:
        self._stopped.set()
        self._news.set()


class _SchedulerToleratingShutdown(BackgroundScheduler):  # type: ignore[misc]  # APScheduler has no types
    """A scheduler that can be shut down while its thread removes a call that it has just made."""

    def remove_job(self, job_id: str, jobstore: str | None = None) -> None:
        # APScheduler 3.11 does not look into its job stores once it is stopped, and raises in its own thread.
        try:
            super().remove_job(job_id, jobstore)
        except JobLookupError:
            if self.state != STATE_STOPPED:
                raise


class _RunExecutor(Executor):
    def __init__(self, timer: BackgroundScheduler, ended: Callable[[], None]) -> None:
        self._timer, self._ended = timer, ended

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        future: Future[T] = Future()
        future.add_done_callback(lambda _: self._ended())

        def execute() -> None:
            try:
                result = fn(*args, **kwargs)
            except BaseException as error:  # noqa: BLE001  raised where the result is read
                future.set_exception(error)
            else:
                future.set_result(result)

        self._timer.add_job(execute, _DUE_AT_ONCE, jobstore="runs", executor="runs")
        return future


def _wall_minus_monotonic_s() -> float:
    """Return the wall clock minus the monotonic clock. It changes when the clock is set and when the machine sleeps."""
    return time.time() - time.monotonic()


HORIZON = timedelta(days=3653)  # a 29 February is at most eight years away


class ScheduleTrigger(BaseTrigger):  # type: ignore[misc]  # APScheduler has no types
    """Fires whenever a schedule is due.

    Use it to start runs from an APScheduler of your own:

    >>> from apscheduler.schedulers.background import BackgroundScheduler
    >>> from crossdock.config.schedules import Schedule
    >>> schedule = Schedule.model_validate({"time_zone": "Europe/Berlin", "at": "02:30"})
    >>> scheduler = BackgroundScheduler(timezone="UTC")
    >>> job = scheduler.add_job(print, ScheduleTrigger(schedule), misfire_grace_time=None, coalesce=True)

    Times that a clock change skips or repeats fire once. A schedule that is not due within ten years never fires again.
    """

    __slots__ = ("schedule",)

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule

    def __repr__(self) -> str:
        when = self.schedule.model_dump(include={"at", "every", "cron", "time_zone"}, exclude_none=True)
        return f"ScheduleTrigger({when})"

    def get_next_fire_time(self, previous_fire_time: datetime | None, now: datetime) -> datetime | None:
        since = previous_fire_time or now
        coming = next(due_times_between(self.schedule, since, since + HORIZON), None)
        return None if coming is None else coming.instant
