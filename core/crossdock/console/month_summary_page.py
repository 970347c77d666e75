"""One month of a tenant as a page for managers, served by the console or written as one self-contained file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from starlette.responses import Response

from crossdock.console import page_rendering
from crossdock.console.job_calendar_page import late_files_left_out_note, late_files_table, make_calendar_grid
from crossdock.console.page_request_context import PageError, PageRequest
from crossdock.console.page_tables import Cell, Link, MakePageAddress, Table, omit_address_in_file, table
from crossdock.console.plot_shapes import BarPlot, BarValue, bar_plot
from crossdock.runs.month_summary import (
    DaySums,
    JobTroubleTimes,
    MonthSummary,
    Trend,
    first_day_or_none,
    month_after,
    month_before,
    month_summary,
    year_month_text,
)
from crossdock.values.texts_of_numbers_and_times import duration_text, instant_text

_DAYS = ("business date", "runs", "delivered", "rejected", "requests", "throttled", "open at its end")
_JOBS = ("job", "time in degraded", "outages", "longest outage", "which began")


def show_month(visit: PageRequest) -> Response:
    """Show the month in the address."""
    first = first_day_or_none(visit.path_params["month"])
    if first is None or not 1990 <= first.year < 2200:
        raise PageError(400, f"{visit.path_params['month']} is not a month such as 2026-11.")
    jobs, problem = visit.jobs_or_problem()
    resources = {} if problem else visit.project().resource_by_stream
    with visit.read_transaction() as tx:
        month = month_summary(tx, jobs, resources, first, visit.now)
    return visit.render_page(
        "month.html",
        f"{visit.required_tenant.name} in {month.name}",
        **month_template_values(month, tenant=visit.required_tenant.name, at=visit.now, address=visit.link),
        problem=problem,
        before=visit.link("month", year_month_text(month_before(first))),
        after=visit.link("month", year_month_text(month_after(first)))
        if month_after(first) <= visit.now.date()
        else "",
    )


def render_month_file(month: MonthSummary, *, tenant: str, at: datetime) -> str:
    """Return the page as one self-contained file."""
    shown = month_template_values(month, tenant=tenant, at=at, address=omit_address_in_file)
    return page_rendering.render("month.html", layout="layout.html", problem="", before="", after="", **shown)


def month_template_values(
    month: MonthSummary, *, tenant: str, at: datetime, address: MakePageAddress
) -> dict[str, Any]:
    """Return what the template shows."""
    runs = address("runs", "calendar", until=month.calendar.dates[-1])
    return {
        "month": month.name,
        "tenant": tenant,
        "at": instant_text(at),
        "runs_note": removed_runs_note(month),
        "totals": _trends_table(month, month.totals, dict.fromkeys((each.name for each in month.totals), runs)),
        "delivered": _trends_table(
            month, month.delivered, dict.fromkeys((each.name for each in month.delivered), runs)
        ),
        "reasons": _trends_table(
            month,
            month.reasons,
            {each.name: address("records", "rejected", reason=each.name) for each in month.reasons},
        ),
        "jobs": table(_JOBS, (_job_trouble_row(each, address) for each in month.jobs), kind="numbers"),
        "grid": make_calendar_grid(month.calendar, address),
        "plots": [_daily_bar_plot(month.days, name) for name in _TITLES if month.days],
        "days": table(_DAYS, (_day_row(each, address) for each in month.days), kind="numbers"),
        "late_files": late_files_table(month.calendar, address),
        "late_files_note": late_files_left_out_note(month.calendar),
    }


def removed_runs_note(month: MonthSummary) -> str:
    """Say which runs are not counted, if there are some."""
    if month.runs_since is None:
        return ""
    since = instant_text(month.runs_since)
    return f"Retention has removed runs that began until {since}: of that time, the numbers are too small."


def _trends_table(month: MonthSummary, trends: Sequence[Trend], addresses: dict[str, str]) -> Table:
    columns = ("", month.name, year_month_text(month_before(month.first)), "change")
    rows = (
        (each.name, Link(f"{each.number:,}", addresses.get(each.name, "")), each.before, _change_text(each))
        for each in trends
    )
    return table(columns, rows, kind="numbers")


def _change_text(trend: Trend) -> str:
    if trend.number == trend.before:
        return "none"
    if not trend.before:
        return "new"
    return f"{100 * (trend.number - trend.before) / trend.before:+,.0f} %"


def _job_trouble_row(times: JobTroubleTimes, address: MakePageAddress) -> Iterator[Cell]:
    yield Link(times.job, address("runs", job=times.job))
    yield duration_text(times.degraded) if times.degraded else "none"
    yield times.outages
    yield duration_text(times.longest_outage_duration) if times.longest else "none"
    yield instant_text(times.longest[0]) if times.longest else ""


def _day_row(day: DaySums, address: MakePageAddress) -> Iterator[Cell]:
    runs = address("runs", date=day.business_date)
    yield Link(day.business_date.isoformat(), runs)
    for number in (day.runs, day.delivered, day.rejected, day.requests, day.throttled):
        yield Link(f"{number:,}", runs)
    yield "unknown" if day.open is None else day.open


_TITLES = {
    "delivered": "Records delivered",
    "open": "Open at the end of the day",
    "requests": "Requests",
    "throttled": "Throttled requests",
}


def _daily_bar_plot(days: Sequence[DaySums], name: str) -> BarPlot:
    numbers: list[tuple[str, int | None]] = [(each.business_date.isoformat(), getattr(each, name)) for each in days]
    return bar_plot(
        _TITLES[name],
        [BarValue(day, number, "unknown" if number is None else f"{number:,}") for day, number in numbers],
    )
