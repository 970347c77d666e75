"""The calendar of jobs: a cell with a symbol and a text for each job and business date, also on the page of a month."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from itertools import groupby

from msgspec import Struct
from starlette.responses import Response

from crossdock.console.page_request_context import PageRequest, parse_business_date
from crossdock.console.page_tables import Cell, Link, MakePageAddress, Table, table
from crossdock.runs.job_run_calendar import CalendarDay, CalendarRow, JobCalendar, LateFile, Missed, job_calendar
from crossdock.runs.month_summary import year_month_text
from crossdock.values.run_states_and_tally import RunState, StateWord
from crossdock.values.texts_of_numbers_and_times import count_with_noun, duration_text, instant_text

BY_HAND = "started by hand"
_SYMBOLS: Mapping[StateWord, str] = {
    RunState.DONE: "✓",
    RunState.DEGRADED: "!",
    RunState.INCOMPLETE: "◐",
    RunState.FAILED: "✗",
    RunState.RUNNING: "▸",
    RunState.SKIPPED: "»",
    Missed.MISSED: "○",
}
_LATE_FILES = ("business date", "job", "run", "stream", "file", "due", "came", "late by")
_LATE_FILES_SHOWN = 200  # the last ones
_CAUGHT_UP, _LATE = "↺", "◷"


class GridCell(Struct, frozen=True):
    """What a job did for one date; all but *day* are empty if it did nothing. *kind* is a class of the style sheet."""

    day: int
    symbol: str = ""
    kind: str = ""
    text: str = ""
    address: str = ""


class Grid(Struct, frozen=True):
    """*months* are their names with their numbers of days; *days* are numbers and whether they are of a weekend."""

    months: Sequence[tuple[str, int]]
    days: Sequence[tuple[int, bool]]
    rows: Sequence[tuple[Link, Sequence[GridCell]]]
    legend: Sequence[tuple[str, str, str]]


def make_calendar_grid(calendar: JobCalendar, address: MakePageAddress) -> Grid:
    """Make the grid with its links: to the run of a date, or to the list of its runs if there are several."""
    return Grid(
        [(name, len(list(days))) for name, days in groupby(calendar.dates, year_month_text)],
        [(day.day, day.weekday() >= 5) for day in calendar.dates],
        [(_job_runs_link(row, address), [_cell(row, day, address) for day in calendar.dates]) for row in calendar.rows],
        list(_legend(calendar)),
    )


def _job_runs_link(row: CalendarRow, address: MakePageAddress) -> Link:
    chosen = {"job": row.job} if row.job else {"manual": 1}
    return Link(row.job or BY_HAND, address("runs", **chosen))


def _cell(row: CalendarRow, day: date, address: MakePageAddress) -> GridCell:
    found = row.days.get(day)
    if found is None:
        return GridCell(day.day)
    name = row.job or BY_HAND
    return GridCell(
        day.day,
        _symbols(found) if row.job else str(found.number),
        found.status,
        f"{name}, {day}: {found.text}",
        _cell_address(row, day, found, address),
    )


def _symbols(day: CalendarDay) -> str:
    return f"{_SYMBOLS[day.status]}{_CAUGHT_UP * day.is_caught_up}{_LATE * day.has_late_files}"


def _cell_address(row: CalendarRow, day: date, found: CalendarDay, address: MakePageAddress) -> str:
    if found.newest is None:
        return ""
    if found.number == 1:
        return address("runs", found.newest)
    return address("runs", date=day, job=row.job, manual=None if row.job else 1)


def _legend(calendar: JobCalendar) -> Iterator[tuple[str, str, str]]:
    """Yield symbol, class and meaning of what the grid shows."""
    days = [day for row in calendar.rows if row.job for day in row.days.values()]
    for status, symbol in _SYMBOLS.items():
        if any(day.status is status for day in days):
            yield symbol, status, f"{status.display_text}: {status.meaning}"
    if any(day.is_caught_up for day in days):
        yield _CAUGHT_UP, "", "caught up: it began more than an hour after it was due"
    if any(day.has_late_files for day in days):
        yield _LATE, "", "a file came after the run was due, or did not come"
    if any(row.job is None and row.days for row in calendar.rows):
        yield "2", "", "the number of runs that were started by hand"


def late_files_table(calendar: JobCalendar, address: MakePageAddress) -> Table:
    """Return a table of the files that came late."""
    newest = calendar.late_files[-_LATE_FILES_SHOWN:]
    return table(_LATE_FILES, (_late_file_row(each, address) for each in newest))


def late_files_left_out_note(calendar: JobCalendar) -> str:
    """Return what the table does not show."""
    more, since = len(calendar.late_files) - _LATE_FILES_SHOWN, calendar.late_files_since
    notes = [f"{count_with_noun(more, 'earlier one')} more."] if more > 0 else []
    if since is not None:
        notes.append(f"Late files are known of those that were read since {instant_text(since)}.")
    return " ".join(notes)


def _late_file_row(file: LateFile, address: MakePageAddress) -> Iterator[Cell]:
    yield from (file.business_date.isoformat(), file.job)
    yield Link(str(file.run), address("runs", file.run))
    yield from (file.stream, file.name, instant_text(file.due))
    yield "not while the run waited" if file.came is None else instant_text(file.came)
    yield "" if file.came is None else duration_text(file.came - file.due)


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
