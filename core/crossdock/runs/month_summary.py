"""One month of a tenant in numbers, by business date: what ran, was delivered and went wrong, and for how long."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from msgspec import Struct

from crossdock.config.schedules.job_and_schedule_config import JobConfig
from crossdock.runs.job_run_calendar import JobCalendar, LateFile, job_calendar
from crossdock.state import RunTally, ScheduledRun, Transaction
from crossdock.state.tables.run_history import COMPLETED
from crossdock.values.run_states_and_tally import NOTHING_OPEN, OpenCounts
from crossdock.values.texts_of_numbers_and_times import USABLE_YEARS

_OTHER = "other"  # the resource of streams that the config has not any more


class DaySums(Struct, frozen=True):
    """The runs for one business date. *open* are the open records at its end; None if they are unknown."""

    business_date: date
    runs: int
    delivered: int
    rejected: int
    requests: int
    throttled: int
    open: int | None


class JobTroubleTimes(Struct, frozen=True):
    """How long a job was in trouble in the month.

    Attributes:
        degraded: From the end of a degraded run to the end of the next one that was not.
        outages: From the end of a run that failed or was incomplete to the end of the next one that reached its end.
        longest: The longest outage, as its beginning and its end, which may be that of the month.
    """

    job: str
    degraded: timedelta
    outages: int
    longest: tuple[datetime, datetime] | None

    @property
    def longest_outage_duration(self) -> timedelta:
        return self.longest[1] - self.longest[0] if self.longest else timedelta()


class Trend(Struct, frozen=True):
    """A number of this month, and that of the month before."""

    name: str
    number: int
    before: int


class MonthSummary(Struct, frozen=True):
    """A month until *until*, its end or now. *reasons* are of records that are still rejected.

    *runs_since* is since when all runs are counted, if retention has removed earlier ones of this month or the one
    before.
    """

    first: date
    until: datetime
    calendar: JobCalendar
    days: Sequence[DaySums]
    totals: Sequence[Trend]
    delivered: Sequence[Trend]
    jobs: Sequence[JobTroubleTimes]
    reasons: Sequence[Trend]
    runs_since: datetime | None

    @property
    def late_files(self) -> Sequence[LateFile]:
        return self.calendar.late_files

    @property
    def name(self) -> str:
        return year_month_text(self.first)


def year_month_text(day: date) -> str:
    return f"{day:%Y-%m}"


def first_day_or_none(text: str) -> date | None:
    """Return the first day of a month such as ``2026-11``; None if *text* is none, or of no usable year."""
    try:
        first = date.fromisoformat(f"{text}-01") if len(text) == len("2026-11") else None
    except ValueError:
        return None
    return first if first is not None and first.year in USABLE_YEARS else None


def month_after(first: date) -> date:
    return (first + timedelta(days=31)).replace(day=1)


def month_before(first: date) -> date:
    return (first - timedelta(days=1)).replace(day=1)


def month_summary(
    tx: Transaction, jobs: Mapping[str, JobConfig], resources: Mapping[str, str], first: date, now: datetime
) -> MonthSummary:
    """Read the month that begins on *first*, and the one before for comparison. *resources* are by stream."""
    last, earlier = month_after(first) - timedelta(days=1), month_before(first)
    until = min(now, datetime.combine(month_after(first), time(), UTC))
    runs = tx.runs.tallies_of_runs_between_dates(earlier, last)
    before, this = (
        [run for run in runs if (run.business_date < first.isoformat()) is is_before] for is_before in (True, False)
    )
    reasons = tx.run_details.rejection_counts_by_month(earlier, last)
    by_reason = [
        Counter({code: n for (of, code), n in reasons.items() if of == year_month_text(each)})
        for each in (first, earlier)
    ]
    return MonthSummary(
        first,
        until,
        job_calendar(tx, jobs, first, last, now),
        list(_day_sums(runs, first, min(last, until.date()))),
        list(_total_trends(this, before)),
        _trends(_delivered_by_resource(this, resources), _delivered_by_resource(before, resources)),
        list(
            _job_trouble_times(
                tx.scheduled_runs.runs_between_dates(earlier, last), datetime.combine(first, time(), UTC), until
            )
        ),
        _trends(*by_reason),
        _counted_since(tx, earlier),
    )


def _counted_since(tx: Transaction, first: date) -> datetime | None:
    removed = tx.runs.removed_until()
    begin = datetime.combine(first, time(), UTC) - timedelta(days=1)  # a run may belong to the day after or before
    return removed if removed is not None and removed >= begin else None


def month_document(month: MonthSummary) -> dict[str, Any]:
    """Return *month* as ``--json`` prints it."""
    return {
        "month": month.name,
        "until": month.until,
        "runs_since": month.runs_since,
        "totals": {each.name: {"number": each.number, "before": each.before} for each in month.totals},
        "delivered": {each.name: {"number": each.number, "before": each.before} for each in month.delivered},
        "rejected_now": {each.name: {"number": each.number, "before": each.before} for each in month.reasons},
        "jobs": [
            {
                "job": each.job,
                "degraded_s": round(each.degraded.total_seconds()),
                "outages": each.outages,
                "longest_outage_s": round(each.longest_outage_duration.total_seconds()),
                "longest_outage_from": each.longest[0] if each.longest else None,
            }
            for each in month.jobs
        ],
        "days": [{name: getattr(each, name) for name in DaySums.__struct_fields__} for each in month.days],
        "calendar": [
            {
                "job": row.job,
                "business_date": day,
                "status": found.status,
                "runs": found.number,
                "run": found.newest,
                "remarks": list(found.remarks),
            }
            for row in month.calendar.rows
            for day, found in sorted(row.days.items())
        ],
        "late_files": [{name: getattr(each, name) for name in LateFile.__struct_fields__} for each in month.late_files],
        "late_files_since": month.calendar.late_files_since,
    }


def _day_sums(runs: Sequence[RunTally], first: date, last: date) -> Iterator[DaySums]:
    """Sum up each day. Of a stream that no run of a day has read, what was open before is still open."""
    open_of: dict[str, OpenCounts] = {}
    by_date: dict[str, list[RunTally]] = {}
    for run in runs:
        by_date.setdefault(run.business_date, []).append(run)
    for day in sorted(each for each in by_date if each < first.isoformat()):
        _update_open_counts(open_of, by_date[day])
    for number in range((last - first).days + 1):
        day_date = first + timedelta(days=number)
        of_day = by_date.get(day_date.isoformat(), [])
        _update_open_counts(open_of, of_day)
        yield DaySums(
            day_date,
            len(of_day),
            _sum_of_term(of_day, "delivered"),
            _sum_of_term(of_day, "rejected"),
            sum(run.requests for run in of_day),
            sum(run.throttled for run in of_day),
            sum(open_of.values(), NOTHING_OPEN).total if open_of else None,
        )


def _update_open_counts(open_of: dict[str, OpenCounts], runs: Iterable[RunTally]) -> None:
    for run in runs:
        for name, stream in run.streams.items():
            if stream.open is not None:
                open_of[name] = OpenCounts.of_json(stream.open)


def _sum_of_term(runs: Iterable[RunTally], term: str) -> int:
    return sum(stream.records.get(term, 0) for run in runs for stream in run.streams.values())


def _total_trends(this: Sequence[RunTally], before: Sequence[RunTally]) -> Iterator[Trend]:
    yield Trend("runs", len(this), len(before))
    for status in ("failed", "incomplete", "degraded"):
        yield Trend(f"{status} runs", *(sum(run.status == status for run in runs) for runs in (this, before)))
    for term in ("delivered", "rejected"):
        yield Trend(f"records {term}", _sum_of_term(this, term), _sum_of_term(before, term))
    yield Trend("requests", *(sum(run.requests for run in runs) for runs in (this, before)))
    yield Trend("throttled requests", *(sum(run.throttled for run in runs) for runs in (this, before)))


def _delivered_by_resource(runs: Iterable[RunTally], resources: Mapping[str, str]) -> Counter[str]:
    found: Counter[str] = Counter()
    for run in runs:
        for name, stream in run.streams.items():
            found[resources.get(name, _OTHER)] += stream.records.get("delivered", 0)
    return found


def _trends(this: Counter[str], before: Counter[str]) -> list[Trend]:
    names = sorted(this | before, key=lambda name: (-this[name], name))
    return [Trend(name, this[name], before[name]) for name in names if this[name] or before[name]]


def _job_trouble_times(
    scheduled: Sequence[ScheduledRun], begin: datetime, until: datetime
) -> Iterator[JobTroubleTimes]:
    by_job: dict[str, list[ScheduledRun]] = {}
    for run in scheduled:
        if run.finished_at is not None and run.status not in {"skipped", "running"}:
            by_job.setdefault(run.job, []).append(run)
    for job, runs in sorted(by_job.items()):
        ended = [(run.finished_at, run.status) for run in runs if run.finished_at is not None]
        states = sorted(ended, key=lambda each: each[0])
        degraded = _spans_of_matching_status(states, lambda status: status == "degraded", begin, until)
        outages = _spans_of_matching_status(states, lambda status: status not in COMPLETED, begin, until)
        lasted = sum((to - since for since, to in degraded), timedelta())
        yield JobTroubleTimes(job, lasted, len(outages), max(outages, key=lambda each: each[1] - each[0], default=None))


def _spans_of_matching_status(
    states: Sequence[tuple[datetime, str]], is_meant: Callable[[str], bool], begin: datetime, until: datetime
) -> list[tuple[datetime, datetime]]:
    """Return the spans between *begin* and *until* in which the last run that ended has a status that is meant."""
    spans: list[tuple[datetime, datetime]] = []
    since: datetime | None = None
    for at, status in states:
        if is_meant(status):
            since = since or at
        elif since is not None:
            spans.append((since, at))
            since = None
    if since is not None:
        spans.append((since, until))
    cut = [(max(since, begin), min(to, until)) for since, to in spans]
    return [(since, to) for since, to in cut if since < to]
