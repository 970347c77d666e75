"""The page with the calendar of jobs: which of them ran for which of 35 business dates, and how that ended."""

from __future__ import annotations

from datetime import date, timedelta

from starlette.responses import Response

from crossdock.console.job_outcomes_by_date_grid import late_files_left_out_note, late_files_table, make_calendar_grid
from crossdock.console.page_request_context import PageRequest, parse_business_date
from crossdock.runs.job_run_calendar import job_calendar
from crossdock.runs.month_summary import year_month_text

_SHOWN = 35  # business dates: five weeks


def show_calendar(visit: PageRequest) -> Response:
    asked = visit.query.get("until")
    jobs, problem = visit.jobs_or_problem()
    with visit.read_transaction() as tx:
        newest = max([visit.now.date(), *(date.fromisoformat(run.business_date) for run in tx.runs.listed(limit=1))])
        until = newest if asked is None else parse_business_date(asked)
        found = job_calendar(tx, jobs, until - timedelta(days=_SHOWN - 1), until, visit.now)
    return visit.render_page(
        "calendar.html",
        "Calendar",
        grid=make_calendar_grid(found, visit.link),
        late_files=late_files_table(found, visit.link),
        late_files_note=late_files_left_out_note(found),
        problem=problem,
        until=until.isoformat(),
        earlier=visit.link("runs", "calendar", until=until - timedelta(days=_SHOWN)),
        later=visit.link("runs", "calendar", until=until + timedelta(days=_SHOWN)) if until < newest else "",
        months=[
            (name, visit.link("month", name)) for name in dict.fromkeys(map(year_month_text, reversed(found.dates)))
        ],
    )
