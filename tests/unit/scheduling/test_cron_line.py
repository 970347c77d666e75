"""Crontab lines, judged by a walk through every minute of days on which clocks are changed, or not."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import islice, pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.unit.scheduling import wallclock
from tests.unit.scheduling.wallclock import Span, schedule, utc

from crossdock.config.schedules.due_times import DueTime, due_times_between
from crossdock.config.schedules.job_and_schedule_config import CronLine

SPANS: list[Span] = [
    ("Europe/Berlin", date(2026, 3, 27), 5),
    ("Europe/Berlin", date(2026, 10, 23), 5),
    ("America/New_York", date(2026, 3, 6), 5),
    ("America/New_York", date(2026, 10, 30), 5),
    ("Australia/Lord_Howe", date(2026, 4, 3), 5),  # by half an hour
    ("Australia/Lord_Howe", date(2026, 10, 2), 5),
    ("Pacific/Apia", date(2011, 12, 28), 5),  # 30 December was skipped
    ("America/Havana", date(2026, 10, 30), 5),  # back to midnight
    ("UTC", date(2026, 2, 26), 6),
]
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


@dataclass(frozen=True)
class Field:
    """A field of a line, and the numbers that it stands for."""

    text: str
    numbers: frozenset[int]

    @property
    def star(self) -> bool:
        return self.text.startswith("*")


@dataclass(frozen=True)
class Line:
    """A crontab line, as the oracle understands it."""

    minute: Field
    hour: Field
    day: Field
    month: Field
    weekday: Field

    @property
    def text(self) -> str:
        return " ".join(field.text for field in (self.minute, self.hour, self.day, self.month, self.weekday))

    def on(self, day: date) -> bool:
        """As in ``man 5 crontab``: two restricted day fields mean either of them."""
        found = day.day in self.day.numbers, day.isoweekday() % 7 in {number % 7 for number in self.weekday.numbers}
        both = self.day.star or self.weekday.star
        return day.month in self.month.numbers and (all(found) if both else any(found))

    def due(self, span: Span) -> list[DueTime]:
        """By Debian's rules, from a walk through *span*."""
        steps = wallclock.walk(span)
        if self.minute.star or self.hour.star:
            runs = [
                (instant, local.date())
                for instant, local in steps[1:]
                if local.minute in self.minute.numbers and local.hour in self.hour.numbers
            ]
        else:
            times = [f"{hour:02}:{minute:02}" for hour in self.hour.numbers for minute in self.minute.numbers]
            runs = wallclock.planned(steps, times)
        return wallclock.moved(steps, [run for run in runs if self.on(run[1])], set())


def fields(low: int, high: int, names: tuple[str, ...] = (), first: int = 0) -> st.SearchStrategy[Field]:
    """Fields of all forms."""
    numbers = st.integers(low, high)
    steps = st.integers(1, high - low + 1)
    pairs = st.tuples(numbers, numbers).map(sorted)
    forms = [
        st.just(Field("*", frozenset(range(low, high + 1)))),
        steps.map(lambda step: Field(f"*/{step}", frozenset(range(low, high + 1, step)))),
        numbers.map(lambda number: Field(str(number), frozenset([number]))),
        pairs.map(lambda pair: Field(f"{pair[0]}-{pair[1]}", frozenset(range(pair[0], pair[1] + 1)))),
        st.tuples(pairs, steps).map(
            lambda said: (
                Field(f"{said[0][0]}-{said[0][1]}/{said[1]}", frozenset(range(said[0][0], said[0][1] + 1, said[1])))
                if said[0][0] < said[0][1]
                else Field(str(said[0][0]), frozenset([said[0][0]]))
            )
        ),
    ]
    if names:
        forms.append(st.sampled_from(range(len(names))).map(lambda at: Field(names[at], frozenset([at + first]))))
    one = st.one_of(forms)
    plain = one.filter(lambda field: not field.star)
    lists = st.lists(plain, min_size=2, max_size=4).map(
        lambda parts: Field(",".join(part.text for part in parts), frozenset().union(*(part.numbers for part in parts)))
    )
    return one | lists


def restricted(low: int, high: int) -> st.SearchStrategy[Field]:
    """Fields without ``*``, which stands for all numbers that a field may have."""
    return fields(low, high).filter(lambda field: not field.star)


lines = st.builds(
    Line,
    fields(0, 59),
    fields(0, 23) | restricted(1, 3),  # the hours in which clocks are changed
    fields(1, 31) | restricted(25, 31),
    st.just(Field("*", frozenset(range(1, 13)))) | fields(1, 12, MONTHS, 1),
    fields(0, 6, DAYS),
)


def is_possible(line: Line) -> bool:
    """False for lines that name only dates such as 30 February."""
    return any(line.on(date(2000, 1, 1) + timedelta(days=number)) for number in range(28 * 366))


@given(line=lines, span=st.sampled_from(SPANS))
@settings(max_examples=examples(200))
def test_a_line_is_due_as_the_oracle_says(line: Line, span: Span) -> None:
    """Every instant and business date, also where clocks are changed."""
    try:
        plan = schedule(time_zone=span[0], cron=line.text)
    except ValueError:
        assert not is_possible(line)
        return
    assert list(due_times_between(plan, *wallclock.bounds(span))) == line.due(span)


@given(line=lines, span=st.sampled_from(SPANS), cuts=st.lists(st.integers(0, 5 * 24 * 60), max_size=4))
@settings(max_examples=examples(40))
def test_parts_give_what_the_whole_gives(line: Line, span: Span, cuts: list[int]) -> None:
    """However a span is divided."""
    try:
        plan = schedule(time_zone=span[0], cron=line.text)
    except ValueError:
        return
    begin, end = wallclock.bounds(span)
    ends = [begin, *(begin + timedelta(minutes=minutes) for minutes in sorted(cuts)), end]
    parts = [one for since, until in pairwise(ends) for one in due_times_between(plan, since, until)]
    assert parts == list(due_times_between(plan, begin, end))


@pytest.mark.parametrize(
    ("cron", "day", "expected"),
    [
        pytest.param("30 2 * * *", 29, [(29, 1, 0)], id="a skipped time runs right after"),
        pytest.param("30 2 * * 6", 29, [], id="not on that day"),
        pytest.param("0,30 2 * * *", 29, [(29, 1, 0)], id="two skipped times meet"),
        pytest.param("*/30 2 * * *", 29, [], id="a wildcard minute is skipped"),
        pytest.param("30 * * * *", 29, [(28, 23, 30), (29, 0, 30), (29, 1, 30)], id="a wildcard hour is skipped"),
    ],
)
def test_spring(cron: str, day: int, expected: list[tuple[int, int, int]]) -> None:
    """Berlin, until 04:00 on 29 March 2026: 02:00 to 03:00 does not exist."""
    found = due_times_between(schedule(cron=cron), utc(2026, 3, day - 1, 23), utc(2026, 3, day, 2))
    assert [one.instant for one in found] == [utc(2026, 3, *parts) for parts in expected]


@pytest.mark.parametrize(
    ("cron", "expected"),
    [
        pytest.param("30 2 * * *", [(0, 30)], id="a repeated time runs once"),
        pytest.param("*/30 2 * * *", [(0, 0), (0, 30), (1, 0), (1, 30)], id="a wildcard minute runs twice"),
        pytest.param("30 * * * *", [(0, 30), (1, 30), (2, 30)], id="a wildcard hour runs twice"),
    ],
)
def test_autumn(cron: str, expected: list[tuple[int, int]]) -> None:
    """Berlin, from 02:00 to 04:00 on 25 October 2026: 02:00 to 03:00 is repeated."""
    found = due_times_between(schedule(cron=cron), utc(2026, 10, 24, 23, 59), utc(2026, 10, 25, 2, 59))
    assert [one.instant for one in found] == [utc(2026, 10, 25, *parts) for parts in expected]


@pytest.mark.parametrize(
    ("cron", "same"),
    [
        ("@daily", "0 0 * * *"), ("@midnight", "0 0 * * *"), ("@hourly", "0 * * * *"), ("@weekly", "0 0 * * 0"),
        ("@monthly", "0 0 1 * *"), ("@yearly", "0 0 1 1 *"), ("@annually", "0 0 1 1 *"), (" @Daily ", "0 0 * * *"),
        ("0 6 * JAN-MAR MON-FRI", "0 6 * 1-3 1-5"), ("0 6 * * 7", "0 6 * * 0"), ("0\t6  * * *", "0 6 * * *"),
    ],
)  # fmt: skip
def test_nicknames_and_names(cron: str, same: str) -> None:
    """They mean the same as numbers."""

    def coming(text: str) -> list[DueTime]:
        return list(islice(due_times_between(schedule(cron=text), utc(2026, 1, 1), utc(2030, 1, 1)), 9))

    assert coming(cron) == coming(same) != []


@pytest.mark.parametrize(
    ("cron", "message"),
    [
        pytest.param("60 2 * * *", "'60' is not a valid minute; expected 0 to 59", id="minute"),
        pytest.param("0 24 * * *", "'24' is not a valid hour; expected 0 to 23", id="hour"),
        pytest.param("0 2 0 * *", "'0' is not a valid day-of-month", id="day"),
        pytest.param("0 2 30 2 *", "'30' is not a valid day-of-month; expected 1 to 31, in a month", id="30 February"),
        pytest.param("0 2 * 13 *", "'13' is not a valid month; expected 1 to 12 or jan to dec", id="month"),
        pytest.param("0 2 * * fry", "'fry' is not a valid day-of-week", id="day of week"),
        pytest.param("*/0 2 * * *", "'*/0' is not a valid minute", id="step 0"),
        pytest.param("5-1 2 * * *", "'5-1' is not a valid minute", id="range backwards"),
        pytest.param("1,,2 2 * * *", "'1,,2' is not a valid minute", id="empty item"),
        pytest.param("٣ 2 * * *", "'٣' is not a valid minute", id="other digits"),
        pytest.param("9" * 5000 + " 2 * * *", "is not a valid", id="a long number"),
        pytest.param("0 0 2 * * *", "has 6 fields instead of minute hour day-of-month month day-of-week", id="seconds"),
        pytest.param("0 2 * *", "has 4 fields", id="four fields"),
        pytest.param("", "has 0 fields", id="nothing"),
        pytest.param("@reboot", "has 1 fields instead of", id="reboot"),
        pytest.param("0 0 */29 2 5#5", "matches no date that exists", id="never"),
    ],
)
def test_what_is_not_a_line_is_refused(cron: str, message: str) -> None:
    """With the field that is wrong and what it may be."""
    with pytest.raises(ValueError) as refused:
        CronLine(cron)
    assert message in str(refused.value)


@given(st.text("0123456789*/,-L#@ jansu", max_size=20) | st.text(max_size=20))
def test_any_text_is_a_line_or_a_value_error(text: str) -> None:
    """Nothing else escapes from cronsim."""
    try:
        line = CronLine(text)
    except ValueError:
        return
    assert line.times


def test_what_else_a_schedule_says_applies_to_its_line() -> None:
    """Holidays, the business date and blackouts; a run on a holiday may move."""
    said: dict[str, Any] = {"cron": "30 2 * * 5", "holidays": ["2026-05-01"], "business_date": "previous_day"}

    def dates(**more: Any) -> list[date]:
        found = due_times_between(schedule(**said, **more), utc(2026, 4, 30), utc(2026, 5, 12))
        return [one.business_date for one in found]

    assert dates() == [date(2026, 5, 7)]
    assert dates(on_holiday="next_working_day") == [date(2026, 5, 3), date(2026, 5, 7)]
    blackout = {"from": "02:00", "to": "06:00"}
    found = due_times_between(schedule(**said, blackouts=[blackout]), utc(2026, 5, 8), utc(2026, 5, 9))
    assert list(found) == [DueTime(utc(2026, 5, 8, 4), date(2026, 5, 7))]


def test_a_leap_day_is_found() -> None:
    """A line that is due once in four years."""
    found = next(due_times_between(schedule(cron="0 12 29 2 *"), utc(2026, 1, 1), utc(2040, 1, 1)))
    assert found == DueTime(datetime(2028, 2, 29, 11, tzinfo=found.instant.tzinfo), date(2028, 2, 29))
