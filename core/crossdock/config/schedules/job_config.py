"""The jobs of a config file: which streams run, when, after which other jobs, and by when."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from graphlib import CycleError, TopologicalSorter
from typing import Literal

from crossdock.config.schedules.schedule_config import Schedule
from crossdock.values.config_file import unknown_key_message
from crossdock.values.config_models import ConfigModel, TimeOfDay
from crossdock.values.time_zones import first_showing, local_time


class JobConfig(ConfigModel):
    """Some streams and their schedule. Each scheduled run runs once."""

    streams: tuple[str, ...] = ()
    """``CONNECTION`` or ``CONNECTION.STREAM``; all streams if empty."""
    schedule: Schedule
    """When the job is due: exactly one of ``at``, ``every`` and ``cron``."""
    after: tuple[str, ...] = ()
    """Jobs whose run for the same business date must have ended first."""
    overlap: Literal["queue", "skip", "forbid"] = "queue"
    """What becomes of a run that is due while the previous one is running: it is queued (``queue``), skipped
    (``skip``), or recorded as failed (``forbid``)."""
    done_by: TimeOfDay | None = None
    """Local time by which the run should end; a warning is sent at its start if it is expected to end later."""

    def deadline(self, due: datetime) -> datetime | None:
        """Return the first instant at or after *due* at which the clock shows `done_by`."""
        if self.done_by is None:
            return None
        zone, at = self.schedule.zone, time.fromisoformat(self.done_by)
        day: date = local_time(due, zone).date()
        today = first_showing(datetime.combine(day, at), zone)
        return today if today >= due else first_showing(datetime.combine(day + timedelta(days=1), at), zone)


def jobs_in_order(jobs: Mapping[str, JobConfig]) -> list[str]:
    """Return the names of *jobs*, each after the jobs in its `after`, otherwise in file order, or raise ValueError."""
    for name, job in jobs.items():
        for other in job.after:
            if other not in jobs:
                raise ValueError(
                    f"job {name!r} is set to run after {other!r}: {unknown_key_message(other, list(jobs))}"
                )
    try:
        return list(TopologicalSorter({name: job.after for name, job in jobs.items()}).static_order())
    except CycleError as error:
        raise ValueError(f"jobs wait for each other: {' -> '.join(error.args[1])}") from None
