"""The runs of the next days, as a table or as JSON."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crossdock.config.project.project import Project


def preview_rows(loaded: Project, now: datetime, days: int) -> list[dict[str, Any]]:
    from crossdock.services.scheduler.due_jobs import DueJobs

    rows = []
    with loaded.look() as tx:
        expected = {name: tx.scheduled_runs.expected_seconds_and_requests(name) for name in loaded.jobs}
    for name, due in DueJobs(loaded.jobs).preview(now, now + timedelta(days=days)):
        zone = loaded.jobs[name].schedule.zone
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


def show_preview(rows: list[dict[str, Any]], columns: tuple[str, ...], days: int, *, as_json: bool) -> None:
    from crossdock.cli import terminal_output

    if as_json:
        terminal_output.print_json(rows)
    else:
        terminal_output.print_rows(f"The next {days} day{'s' * (days > 1)}", columns, rows, numbers=("requests",))
