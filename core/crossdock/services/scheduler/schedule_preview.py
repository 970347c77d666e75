"""The runs of the next days, with what their last runs let expect."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from crossdock.config.schedules.schedule_config import JobConfig
from crossdock.services.scheduler.due_jobs import DueJobs
from crossdock.state import Transaction


def preview_rows(tx: Transaction, jobs: Mapping[str, JobConfig], now: datetime, days: int) -> list[dict[str, Any]]:
    """Return the runs that are due in the next *days*, in their order. Times are in the zone of each job."""
    rows = []
    expected = {name: tx.scheduled_runs.expected_seconds_and_requests(name) for name in jobs}
    for name, due in DueJobs(jobs).due_between(now, now + timedelta(days=days)):
        zone = jobs[name].schedule.zone
        seconds, requests = expected[name] or (None, None)
        ends = None if seconds is None else (due.instant + timedelta(seconds=seconds)).astimezone(zone)
        begins = due.instant.astimezone(zone)
        rows.append(
            {
                "job": name,
                "business_date": due.business_date,
                "begins": begins,
                "expected_end": ends,
                "expected_requests": requests,
            }
        )
    return rows
