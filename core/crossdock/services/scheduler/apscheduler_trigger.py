"""A schedule as a trigger of APScheduler 3."""

from __future__ import annotations

from datetime import datetime, timedelta

from apscheduler.triggers.base import BaseTrigger

from crossdock.config.schedules.due_times import due
from crossdock.config.schedules.schedule_config import Schedule

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
        """Return the next instant at which the schedule is due, in UTC."""
        since = previous_fire_time or now
        coming = next(due(self.schedule, since, since + HORIZON), None)
        return None if coming is None else coming.instant
