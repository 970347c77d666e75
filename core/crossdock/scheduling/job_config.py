"""Jobs as a config file says them: which streams, when, after which others, and by when."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from graphlib import CycleError, TopologicalSorter
from typing import Literal

from crossdock.config_file import ConfigModel, unknown
from crossdock.scheduling.schedule_config import Schedule
from crossdock.scheduling.time_zones import first_showing, shown
from crossdock.scheduling.times_and_durations import TimeOfDay


class JobConfig(ConfigModel):
    """Some streams and a schedule; each night of it runs once."""

    streams: tuple[str, ...] = ()
    """``CONNECTION`` or ``CONNECTION.STREAM``; without any all streams."""
    schedule: Schedule
    after: tuple[str, ...] = ()
    """Jobs whose run for the same business date must have ended before."""
    overlap: Literal["queue", "skip", "forbid"] = "queue"
    """What becomes of a run that is due while the one before is still at work: it follows, is left out, or fails."""
    done_by: TimeOfDay | None = None
    """Local time at which it should be done; it is told early when that looks impossible."""

    def deadline(self, due: datetime) -> datetime | None:
        """The first instant at or after *due* at which the clock shows `done_by`."""
        if self.done_by is None:
            return None
        zone, at = self.schedule.zone, time.fromisoformat(self.done_by)
        day: date = shown(due, zone).date()
        today = first_showing(datetime.combine(day, at), zone)
        return today if today >= due else first_showing(datetime.combine(day + timedelta(days=1), at), zone)


def ordered(jobs: Mapping[str, JobConfig]) -> list[str]:
    """The names of *jobs*, each after those that it comes after; else in the order of the file.

    Raises:
        ValueError: If one comes after a job that is not there, or after itself.
    """
    for name, job in jobs.items():
        for other in job.after:
            if other not in jobs:
                raise ValueError(f"job {name!r} comes after {other!r}: {unknown(other, list(jobs))}")
    try:
        return list(TopologicalSorter({name: job.after for name, job in jobs.items()}).static_order())
    except CycleError as error:
        raise ValueError(f"jobs wait for each other: {' -> '.join(error.args[1])}") from None
