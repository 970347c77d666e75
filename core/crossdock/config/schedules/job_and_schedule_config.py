"""The jobs of a config file, which streams run after which other jobs and by when, and their schedules."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from difflib import get_close_matches
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Annotated, Any, Literal, Self
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError
from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator

from crossdock.values.config_base_types import (
    A_TIME,
    TIME_SCHEMA,
    ConfigModel,
    TimeOfDay,
    check_time_of_day,
    duration_schema,
    is_duration,
    is_time_of_day,
    parse_duration,
)
from crossdock.values.config_file import unknown_key_message
from crossdock.values.texts_of_numbers_and_times import USABLE_YEARS, USABLE_YEARS_TEXT
from crossdock.values.time_formats_and_zones import check_zone_name, first_instant_of_local_time, naive_local_time_at

WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
DAY_NAMES = (*WEEKDAYS, "weekdays", "first_working_day", "last_working_day")
ONE_DAY = timedelta(days=1)


def is_working_day(day: date, holidays: Collection[date]) -> bool:
    return day.weekday() < 5 and day not in holidays


def all_days_of_month(day: date) -> Iterator[date]:
    return (day.replace(day=number) for number in range(1, monthrange(day.year, day.month)[1] + 1))


def is_run_day(day: date, named: Callable[[date], bool], holidays: Collection[date], *, moves: bool) -> bool:
    """Return whether a schedule runs on *day*. If it *moves*, a run on a holiday is on the next working day, once."""
    return day not in holidays and (named(day) or (moves and _is_moved_from_holiday(day, named, holidays)))


def is_one_of_named_days(day: date, days: Collection[str | int], holidays: Collection[date]) -> bool:
    """Return whether *day* is in *days*: names and 1 to 31. The last day of a month also has the numbers it lacks."""
    if WEEKDAYS[day.weekday()] in days or ("weekdays" in days and day.weekday() < 5) or day.day in days:
        return True
    if (day + ONE_DAY).day == 1 and any(isinstance(number, int) and number > day.day for number in days):
        return True
    if not is_working_day(day, holidays) or not {"first_working_day", "last_working_day"}.intersection(days):
        return False
    working = [other for other in all_days_of_month(day) if is_working_day(other, holidays)]
    return (day == working[0] and "first_working_day" in days) or (day == working[-1] and "last_working_day" in days)


def _is_moved_from_holiday(day: date, named: Callable[[date], bool], holidays: Collection[date]) -> bool:
    """Return whether *day* is the next working day after a holiday that the schedule names."""
    if not is_working_day(day, holidays):
        return False
    earlier = day - ONE_DAY
    while not is_working_day(earlier, holidays):
        if earlier in holidays and named(earlier):
            return True
        earlier -= ONE_DAY
    return False


JOBS_EXAMPLE = 'jobs: {nightly: {schedule: {time_zone: Europe/Berlin, at: "02:30"}}}'
MOST_CAUGHT_UP = 10_000  # runs; more is a mistake in the config
_MINUTES = 24 * 60
_UNITS = "smhd"


def _as_list(value: Any) -> list[Any]:
    items = list(value) if isinstance(value, list | tuple) else [value]
    if not items:
        raise ValueError("name at least one, or omit the key")
    return items


def _parse_times(value: Any) -> tuple[str, ...]:
    return tuple(sorted({check_time_of_day(item) for item in _as_list(value)}))


def _parse_days(value: Any) -> tuple[str | int, ...]:
    for item in _as_list(value):
        if item not in DAY_NAMES and not (type(item) is int and 1 <= item <= 31):
            near = get_close_matches(str(item), DAY_NAMES, n=1)
            advice = f"did you mean {near[0]}?" if near else f"known: {', '.join(DAY_NAMES)}, and numbers from 1 to 31"
            raise ValueError(f"{str(item)!r} is not a day to run on; {advice}")
    return tuple(dict.fromkeys(_as_list(value)))


def _parse_dates(value: Any) -> tuple[date, ...]:
    if not isinstance(value, list | tuple):
        raise ValueError("must be a list of dates: [2026-12-25]")  # noqa: TRY004  pydantic needs this type
    return tuple(sorted({_parse_date(item) for item in value}))


def _parse_date(value: Any) -> date:
    if type(value) is date:
        return value
    try:
        return date.fromisoformat(value)
    except (TypeError, ValueError):
        raise ValueError(f"{str(value)!r} is not a date such as 2026-12-25") from None


def _parse_duration(value: Any) -> str:
    if not is_duration(value, _UNITS):
        raise ValueError(f"{str(value)!r} is not a duration such as 90s, 15m, 6h or 2d: 1 to 99999 and a unit")
    return str(value)


def _parse_time_or_instant(value: Any) -> str:
    if is_time_of_day(value):
        return str(value)
    try:  # YAML parses an instant without quotes
        instant = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    except (TypeError, ValueError):
        instant = None
    if instant is None or instant.tzinfo is None or instant.year not in USABLE_YEARS:
        raise ValueError(
            f"{str(value)!r} is neither a {A_TIME} nor an instant with its offset, such as 2026-12-24T12:00:00+01:00, "
            f"in {USABLE_YEARS_TEXT}"
        )
    return instant.isoformat()


def _check_cron_line(text: str) -> str:
    CronLine(text)
    return text


_CRON_PATTERN = r"^\s*(@[A-Za-z]+|\S+(\s+\S+){4})\s*$"
_DAY_SCHEMA = {"anyOf": [{"enum": list(DAY_NAMES)}, {"type": "integer", "minimum": 1, "maximum": 31}]}


def _one_or_more_schema(item: dict[str, Any]) -> WithJsonSchema:
    return WithJsonSchema({"anyOf": [item, {"type": "array", "items": item, "minItems": 1}]})


Times = Annotated[tuple[str, ...], BeforeValidator(_parse_times), _one_or_more_schema(TIME_SCHEMA)]
Days = Annotated[tuple[str | int, ...], BeforeValidator(_parse_days), _one_or_more_schema(_DAY_SCHEMA)]
Duration = Annotated[str, BeforeValidator(_parse_duration), duration_schema(_UNITS)]
Moment = Annotated[str, BeforeValidator(_parse_time_or_instant), WithJsonSchema({"type": "string"})]


class Blackout(ConfigModel):
    """A window in which no run starts; its end is not part of it.

    Either two times of day, for every day, through midnight if the second is earlier. A time that the clocks show
    twice counts from its first to its last showing. Or two instants with their offsets.
    """

    from_: Annotated[Moment, Field(alias="from")]
    """A time of day in quotes, for every day, or an instant with an offset."""
    to: Moment
    """The same kind as ``from``. A time of day before ``from`` is on the next day."""

    @model_validator(mode="after")
    def _check_window(self) -> Self:
        if is_time_of_day(self.from_) != is_time_of_day(self.to):
            raise ValueError("from and to must both be times of day, or both instants")
        if self.from_ == self.to or (
            self.instants_unless_daily and self.instants_unless_daily[0] >= self.instants_unless_daily[1]
        ):
            raise ValueError("is empty: to must come after from")
        return self

    @cached_property
    def times(self) -> tuple[time, time] | None:
        return (time.fromisoformat(self.from_), time.fromisoformat(self.to)) if is_time_of_day(self.from_) else None

    @cached_property
    def instants_unless_daily(self) -> tuple[datetime, datetime] | None:
        if is_time_of_day(self.from_):
            return None
        return datetime.fromisoformat(self.from_).astimezone(UTC), datetime.fromisoformat(self.to).astimezone(UTC)


class Schedule(ConfigModel):
    """When a job is due: at times of day, at intervals, or by a crontab line.

    A time of day that the clocks skip is due right after the change; one that they repeat is due the first time.
    """

    time_zone: Annotated[str, AfterValidator(check_zone_name)]
    """IANA name. All dates and times of the schedule are local to it."""
    at: Times | None = None
    """Times of day, such as "02:30", in quotes. On a date that the zone skipped they are due right after it."""
    every: Duration | None = None
    """Interval of up to 24h, such as ``15m`` or ``6h``, counted from the first instant of each local day; the last one
    of a day may be shorter. A repeated hour has its runs twice, a skipped one has none."""
    cron: (
        Annotated[str, AfterValidator(_check_cron_line), WithJsonSchema({"type": "string", "pattern": _CRON_PATTERN})]
        | None
    ) = None
    """Crontab line of five fields, such as "30 2 * * 1-5", or @hourly, @daily, @weekly, @monthly or @yearly. As in
    Debian's cron, a line whose minute or hour begins with * follows the clocks when they change."""
    days: Days = WEEKDAYS
    """Local dates to run on: mon to sun, weekdays (Monday to Friday), first_working_day, last_working_day (of the
    month), or numbers from 1 to 31; in a month that lacks the number, its last day. Not with cron."""
    holidays: Annotated[tuple[date, ...], BeforeValidator(_parse_dates)] = ()
    """Dates that are not working days, and on which the job does not run."""
    on_holiday: Literal["skip", "next_working_day"] = "skip"
    """Whether a run on a holiday is skipped or moved to the ``next_working_day``. The day it moves to runs once, for
    its own business date."""
    business_date: Literal["same_day", "previous_day"] = "same_day"
    """The date that a run is for: its local date as planned (``same_day``), or the day before (``previous_day``)."""
    catch_up: Literal["all", "latest", "none"] = "latest"
    """Which missed runs are run later: ``all``, the ``latest``, or ``none``."""
    catch_up_within: Duration = "7d"
    """How long ago a missed run may have been due; older ones are not caught up."""
    blackouts: tuple[Blackout, ...] = ()
    """Windows in which no run starts. A run that is due inside is due at its end, for the business date that it had."""

    @model_validator(mode="after")
    def _check_keys_fit_together(self) -> Self:
        if [self.at, self.every, self.cron].count(None) != 2:
            raise ValueError("needs exactly one of at, every and cron")
        if self.step and self.step > ONE_DAY:
            raise ValueError("every can be at most 24h; for less frequent runs, use at and days")
        if self.line and self.days != WEEKDAYS:
            raise ValueError("days does not apply to cron, whose last three fields name the days")
        if self.catch_up == "all":
            _refuse_too_many_missed_runs(self.step or ONE_DAY / len(self.times), parse_duration(self.catch_up_within))
        if {"first_working_day", "last_working_day"}.intersection(self.days):
            _refuse_months_without_working_day(self.holidays)
        _refuse_blackouts_of_whole_day([blackout.times for blackout in self.blackouts if blackout.times])
        return self

    def names(self, day: date) -> bool:
        """Return whether the schedule runs on *day* unless it is a holiday."""
        return self.line.matches_day(day) if self.line else is_one_of_named_days(day, self.days, self.holidays)

    @cached_property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.time_zone)

    @cached_property
    def line(self) -> CronLine | None:
        return None if self.cron is None else CronLine(self.cron)

    @cached_property
    def times(self) -> tuple[time, ...]:
        return self.line.times if self.line else tuple(time.fromisoformat(text) for text in self.at or ())

    @cached_property
    def step(self) -> timedelta | None:
        return None if self.every is None else parse_duration(self.every)

    @cached_property
    def within(self) -> timedelta:
        return parse_duration(self.catch_up_within)


def _refuse_too_many_missed_runs(step: timedelta, within: timedelta) -> None:
    runs = within // step
    if runs > MOST_CAUGHT_UP:
        raise ValueError(
            f"catch_up: all could ask for {runs} runs, more than {MOST_CAUGHT_UP}; "
            "shorten catch_up_within, or use catch_up: latest"
        )


def _refuse_months_without_working_day(holidays: Sequence[date]) -> None:
    for first in sorted({day.replace(day=1) for day in holidays}):
        if not any(is_working_day(day, holidays) for day in all_days_of_month(first)):
            raise ValueError(f"{first:%Y-%m} has no working day: all are holidays")


def _refuse_blackouts_of_whole_day(windows: Iterable[tuple[time, time]]) -> None:
    free = set(range(_MINUTES))
    for begin, end in windows:
        first, last = begin.hour * 60 + begin.minute, end.hour * 60 + end.minute
        free -= set(range(first, last if last > first else last + _MINUTES)) | set(range(last if last < first else 0))
    if not free:
        raise ValueError("the blackouts leave no time of day at which a run could start")


_EXPECTED = {
    "minute": "0 to 59",
    "hour": "0 to 23",
    "day-of-month": "1 to 31, in a month that has the day",
    "month": "1 to 12 or jan to dec",
    "day-of-week": "0 to 7 (0 and 7 are Sunday) or sun to sat",
}
_START = datetime(2000, 1, 1)  # noqa: DTZ001  a local time
_NICKNAMES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


class CronLine:
    """A crontab line of five fields, or a nickname such as ``@daily``. A date that never exists is a ValueError.

    If the minute or the hour begins with ``*``, it follows the clocks as in Debian's cron: what they skip does not run,
    what they repeat runs twice.
    """

    def __init__(self, text: str) -> None:
        line = _NICKNAMES.get(text.strip().lower(), text)
        fields = line.split()
        if len(fields) != len(_EXPECTED):
            known = ", ".join(_NICKNAMES)
            raise ValueError(f"{text!r} has {len(fields)} fields instead of {' '.join(_EXPECTED)}; or use {known}")
        try:
            self._fields = CronSim(line, _START)
        except (CronSimError, ValueError) as error:
            name = str(error).removeprefix("Bad ")
            found = dict(zip(_EXPECTED, fields, strict=True)).get(name, text)
            expected = _EXPECTED.get(name, "")
            raise ValueError(f"{text!r}: {found!r} is not a valid {name}; expected {expected}") from None
        if next(CronSim(line, _START), None) is None:
            raise ValueError(f"{text!r} matches no date that exists")
        self.times = tuple(
            time(hour, minute) for hour in sorted(self._fields.hours) for minute in sorted(self._fields.minutes)
        )
        self.has_wildcard_time = fields[0].startswith("*") or fields[1].startswith("*")

    def matches_day(self, day: date) -> bool:
        return day.month in self._fields.months and self._fields.match_day(day)


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
        day: date = naive_local_time_at(due, zone).date()
        today = first_instant_of_local_time(datetime.combine(day, at), zone)
        return (
            today if today >= due else first_instant_of_local_time(datetime.combine(day + timedelta(days=1), at), zone)
        )


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
