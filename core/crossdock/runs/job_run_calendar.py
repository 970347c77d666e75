"""Which job ran for which business date, and how it ended: one row for each job, one day for each date."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from operator import itemgetter

from msgspec import Struct

from crossdock.config.schedules.due_times import first_due_time_per_business_date
from crossdock.config.schedules.job_and_schedule_config import JobConfig
from crossdock.state import RunCountOfDate, ScheduledRun, Transaction
from crossdock.values.run_states_and_tally import RunState, StateWord
from crossdock.values.texts_of_numbers_and_times import count_with_noun, duration_text

CAUGHT_UP = timedelta(hours=1)  # a run that begins so long after it was due was missed before
_START = timedelta(minutes=5)  # a scheduler needs less to begin what is due
_FILES = 50_000  # most files that are looked at
_NO_FILE = "no new file"  # begins each message about a file that did not come


class Missed(StateWord):
    """What a run is that did not take place."""

    MISSED = "missed", "by the present schedule a run was due, and none is recorded"


_WORST_FIRST: Sequence[StateWord] = (
    RunState.FAILED,
    RunState.INCOMPLETE,
    Missed.MISSED,
    RunState.DEGRADED,
    RunState.RUNNING,
    RunState.DONE,
    RunState.SKIPPED,
)


class LateFile(Struct, frozen=True):
    """A file that came after the run that read it was due; without *came*, the run found none of *name*."""

    job: str
    business_date: date
    run: int
    stream: str
    name: str
    due: datetime
    came: datetime | None

    @property
    def text(self) -> str:
        if self.came is None:
            return f"{self.stream}: {self.name}"
        return f"{self.stream}: {self.name} came {duration_text(self.came - self.due)} late"


class CalendarDay(Struct, frozen=True):
    """The runs of one job for one business date. *status* is the worst; *newest* is the number of the last one."""

    status: StateWord
    number: int
    newest: int | None = None
    is_caught_up: bool = False
    has_late_files: bool = False
    remarks: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """Describe the day in words."""
        several = f"{count_with_noun(self.number, 'run')}, worst " if self.number > 1 else ""
        return "; ".join((f"{several}{self.status.display_text}", *self.remarks))


class CalendarRow(Struct, frozen=True):
    """The days of *job*; without one, of what people started by commands."""

    job: str | None
    days: Mapping[date, CalendarDay]


class JobCalendar(Struct, frozen=True):
    """The calendar of some dates.

    Attributes:
        late_files_since: Since when the files that were read are looked at, if they are more than 50,000.
    """

    dates: Sequence[date]
    rows: Sequence[CalendarRow]
    late_files: Sequence[LateFile]
    late_files_since: datetime | None


def job_calendar(tx: Transaction, jobs: Mapping[str, JobConfig], first: date, last: date, now: datetime) -> JobCalendar:
    """Return the calendar of the business dates from *first* to *last*. Of *jobs*, missed dates are known as well."""
    scheduled = tx.scheduled_runs.runs_between_dates(first, last)
    late, late_since = _late_files(tx, scheduled)
    days: dict[str | None, dict[date, CalendarDay]] = {name: {} for name in jobs}
    for source in (
        _missed_days(tx.scheduled_runs.start_of_recording_by_job(), jobs, first, last, now),
        _manual_days(tx.runs.counts_by_date(first, last)),
        _days_with_scheduled_runs(scheduled, late),
    ):
        for job, day, found in source:
            days.setdefault(job, {})[day] = found
    rows = [CalendarRow(job, found) for job, found in sorted(days.items(), key=lambda each: each[0] is None)]
    return JobCalendar(
        [first + timedelta(days=each) for each in range((last - first).days + 1)], rows, late, late_since
    )


_Found = tuple[str | None, date, CalendarDay]


def _missed_days(
    counting_from: Mapping[str, datetime], jobs: Mapping[str, JobConfig], first: date, last: date, now: datetime
) -> Iterator[_Found]:
    begin, end = (datetime.combine(each, time(), UTC) for each in (first, last))
    for name, job in jobs.items():
        since = counting_from.get(name)
        if since is None:  # no schedule has counted it yet, so nothing was due
            continue
        for one in first_due_time_per_business_date(
            job.schedule, max(since, begin - timedelta(days=1)), min(now - _START, end + timedelta(days=3))
        ):
            if first <= one.business_date <= last:
                yield name, one.business_date, CalendarDay(Missed.MISSED, 0, remarks=(Missed.MISSED.meaning,))


def _manual_days(found: Iterable[RunCountOfDate]) -> Iterator[_Found]:
    by_day: dict[tuple[str | None, str], list[RunCountOfDate]] = defaultdict(list)
    for each in found:
        by_day[each.job, each.business_date].append(each)
    for (job, day), alike in by_day.items():
        status = _worst_status(each.status for each in alike)
        number, newest = sum(each.number for each in alike), max(each.newest for each in alike)
        yield job, date.fromisoformat(day), CalendarDay(status, number, newest)


def _days_with_scheduled_runs(scheduled: Sequence[ScheduledRun], late: Sequence[LateFile]) -> Iterator[_Found]:
    by_day: dict[tuple[str, date], list[ScheduledRun]] = defaultdict(list)
    for run in scheduled:
        by_day[run.job, run.business_date].append(run)
    late_by_day: dict[tuple[str, date], list[str]] = defaultdict(list)
    for each in late:
        late_by_day[each.job, each.business_date].append(each.text)
    for (job, day), of_day in by_day.items():
        files = late_by_day.get((job, day), [])
        remarks = [remark for run in of_day for remark in _remarks_on_run(run)]
        yield (
            job,
            day,
            CalendarDay(
                _worst_status(run.status for run in of_day),
                len(of_day),
                max((run.run_id for run in of_day if run.run_id is not None), default=None),
                any(_is_caught_up(run) for run in of_day),
                bool(files),
                tuple(dict.fromkeys([*remarks, *files])),
            ),
        )


def _worst_status(statuses: Iterable[str]) -> StateWord:
    found = set(statuses)
    return next(each for each in _WORST_FIRST if each in found)


def _is_caught_up(run: ScheduledRun) -> bool:
    return run.attempts == 1 and run.started_at is not None and run.started_at - run.due > CAUGHT_UP


def _remarks_on_run(run: ScheduledRun) -> Iterator[str]:
    if run.started_at is not None and _is_caught_up(run):
        yield f"caught up {duration_text(run.started_at - run.due)} after it was due"
    if run.attempts > 1:
        yield f"{run.attempts:,} attempts"
    if run.note:
        yield run.note


def _late_files(tx: Transaction, scheduled: Sequence[ScheduledRun]) -> tuple[list[LateFile], datetime | None]:
    """Return the files that came after the run that has read them was due, and those that a run did not find.

    The second result is that of `JobCalendar.late_files_since`.

    After an outage the first run reads all files, most of which were in time, so those of a run that caught up are not
    judged.
    """
    found, executed = list[LateFile](), _ExecutedRuns(scheduled)
    files = tx.intake.last_accepted_between(*executed.span, limit=_FILES) if executed.span else []
    for file in files:
        run = executed.run_in_progress_at(file.accepted_at)
        if run is not None and run.run_id is not None and file.modified_at > run.due and not _is_caught_up(run):
            place = run.job, run.business_date, run.run_id
            found.append(LateFile(*place, file.stream, file.name, run.due, file.modified_at))
    by_id = {run.run_id: run for run in scheduled if run.run_id is not None}
    for run_id, message in tx.runs.messages_starting_with(_NO_FILE, list(by_id)):
        run = by_id[run_id]
        name = message.text_with_place_and_advice.split("\n")[0]
        found.append(LateFile(run.job, run.business_date, run_id, message.stream, name, run.due, None))
    found.sort(key=lambda each: (each.business_date, each.due, each.stream, each.name))
    return found, files[-1].accepted_at if len(files) == _FILES else None


class _ExecutedRuns:
    """Runs by their time: those of one state do not overlap."""

    def __init__(self, scheduled: Iterable[ScheduledRun]) -> None:
        by_start = [(run.started_at, run) for run in scheduled if run.started_at is not None]
        by_start.sort(key=itemgetter(0))
        self._starts, self._runs = [start for start, _ in by_start], [run for _, run in by_start]

    @property
    def span(self) -> tuple[datetime, datetime] | None:
        if not self._runs:
            return None
        ends = (run.finished_at for run in self._runs if run.finished_at is not None)
        return self._starts[0], max(ends, default=self._starts[-1])

    def run_in_progress_at(self, at: datetime) -> ScheduledRun | None:
        """Return the run that was in progress *at* some time."""
        place = bisect_right(self._starts, at)
        run = self._runs[place - 1] if place else None
        return None if run is None or (run.finished_at is not None and run.finished_at < at) else run
