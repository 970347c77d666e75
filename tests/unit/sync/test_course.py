"""The course of a run: which step each moment belongs to, how the allowance is sampled, and how little is kept."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock import exact_json
from crossdock.progress import Silent
from crossdock.runs.run_report import Report
from crossdock.runs.timings import MOST_STEPS, OTHERS, SLOTS, Course
from crossdock.testing.manual_clock import ManualClock


def s(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def course(clock: ManualClock) -> Course:
    made = Course(clock)
    made.start(Report(7, "2026-03-29"), "nightly")
    return made


def lasted(course: Course) -> list[tuple[str, float]]:
    course.end()
    return [(step.name, step.lasted.total_seconds()) for step in course.steps]


def test_who_looks_on_is_told_everything(clock: ManualClock) -> None:
    """A course changes nothing of what a run tells, and says whose run it is once its id is known."""
    told: list[object] = []

    class Listener(Silent):
        def begin(self, stage: str, total: int | None) -> None:
            told.append((stage, total))

        def advance(self, steps: int = 1) -> None:
            told.append(steps)

        def allowance(self, tokens: int | None) -> None:
            told.append(tokens)

        def warn(self, text: str) -> None:
            told.append(text)

    course = Course(clock, Listener(), lambda report: told.append(report.run))
    assert course.report is None
    course.start(Report(7, "2026-03-29"), None)
    course.proceed("sending", 2)
    course.begin("reading", None)
    course.advance(3)
    course.allowance(None)
    course.allowance(5)
    course.warn("look")
    assert told == [7, ("sending", 2), ("reading", None), 3, None, 5, "look"]


def test_a_step_lasts_until_the_next(clock: ManualClock, course: Course) -> None:
    """Every moment since the run began belongs to one; what was before it belongs to none."""
    clock.advance(1)
    course.begin("reading a", None)
    clock.advance(2)
    course.begin("reading b", None)
    clock.advance(4)
    assert lasted(course) == [("starting", 1), ("reading a", 2), ("reading b", 4)]
    assert [step.began for step in course.steps] == [s(0), s(1), s(3)]
    course.start(Report(8, "2026-03-30"), None)
    clock.advance(8)
    assert lasted(course) == [("starting", 8)]


def test_a_file_is_fetched_within_the_reading_that_wants_it(clock: ManualClock, course: Course) -> None:
    """Once all of its bytes are there the reading goes on; a file that broke off ends where something else begins."""
    course.begin("reading a", None)
    clock.advance(1)
    course.begin("fetching 1", 100)
    clock.advance(2)
    course.advance(60)
    clock.advance(2)
    course.advance(40)
    clock.advance(8)
    course.advance(9_999)  # rows
    course.begin("fetching empty", 0)
    clock.advance(16)
    course.begin("fetching 2", 100)
    clock.advance(32)
    course.begin("fetching 3", 100)
    clock.advance(64)
    course.begin("reading b", None)
    clock.advance(128)
    steps = [("reading a", 1), ("fetching 1", 4), ("reading a", 24), ("fetching 2", 32), ("fetching 3", 64)]
    assert lasted(course) == [*steps, ("reading b", 128)]


def test_a_part_of_the_run_lasts_beyond_its_total(clock: ManualClock, course: Course) -> None:
    """Sending goes on when as much as expected is done, and is no part of the reading before it."""
    course.begin("reading a", None)
    clock.advance(1)
    course.proceed("sending a", 1)
    clock.advance(2)
    course.advance()
    clock.advance(4)
    course.proceed("remembering a", None)
    clock.advance(8)
    assert lasted(course) == [("reading a", 1), ("sending a", 6), ("remembering a", 8)]


def test_what_a_run_is_given_is_what_it_tells(clock: ManualClock, course: Course) -> None:
    """Whoever gives a course to a run finds the run's own in it; any other listener gets one put before it."""
    assert Course.over(course, clock) is course
    assert Course.over(Silent(), clock) is not course


Call = Callable[[Course, int], None]
NAMES = st.sampled_from("abcdefgh")
TOTALS = st.one_of(st.none(), st.integers(0, 3))
CALLS = st.one_of(
    st.builds(lambda name, total: lambda course, again: course.begin(f"{name} {again}", total), NAMES, TOTALS),
    st.builds(lambda name, total: lambda course, again: course.begin(name, total), NAMES, TOTALS),
    st.builds(lambda name, total: lambda course, again: course.proceed(name, total), NAMES, TOTALS),
    st.builds(lambda steps: lambda course, again: course.advance(steps), st.integers(1, 3)),
)
LASTING = st.integers(0, 3_600_000).map(lambda ms: ms / 1000)
TIMES = st.integers(1, 100)


@given(st.lists(st.tuples(CALLS, LASTING), max_size=30), TIMES)
def test_no_moment_is_lost_or_counted_twice(told: list[tuple[Call, float]], times: int) -> None:
    """Whatever is told, in whatever order, the steps last as long as the run, and follow each other while few."""
    clock = ManualClock()
    course = Course(clock)
    course.start(Report(1, "2026-03-29"), None)
    begun = clock.now()
    for again in range(times):
        for call, seconds in told:
            call(course, again)
            clock.advance(seconds)
        assert len(course.steps) <= 2 * MOST_STEPS
    assert course.end() == clock.now() - begun
    assert sum((step.lasted for step in course.steps), timedelta()) == clock.now() - begun
    assert all(step.lasted > timedelta() for step in course.steps)
    assert [step.began for step in course.steps] == sorted(step.began for step in course.steps)
    if len(told) * times < MOST_STEPS:
        ends = timedelta()
        for step in course.steps:
            assert step.began == ends
            ends += step.lasted


def test_of_too_many_steps_the_longest_stay(clock: ManualClock, course: Course) -> None:
    """What takes its time keeps its name; a thousand short ones become one, and those of one name too."""
    course.begin("reading", None)
    for number in range(1_000):
        course.begin(f"fetching {number}", 1)
        clock.advance(100 if number == 321 else 0.25)
        course.advance()
        clock.advance(0.5)
    steps = defaultdict[str, float](float)  # quarters of seconds, which are exact
    for name, seconds in lasted(course):
        steps[name] += seconds
    assert steps["reading"] == 500
    assert steps["fetching 321"] == 100
    assert steps[OTHERS] > 200
    assert sum(steps.values()) == 1_000 * 0.75 + 99.75


ALLOWANCES = st.lists(st.tuples(LASTING, st.one_of(st.none(), st.integers(0, 10_000))), max_size=30)


@given(ALLOWANCES, TIMES)
def test_few_samples_tell_the_allowance(told: list[tuple[float, int | None]], times: int) -> None:
    """However many there were and however long it took: in order, each as it was told, with the extremes."""
    clock = ManualClock()
    course = Course(clock)
    course.start(Report(1, "2026-03-29"), None)
    begun, all_of_them = clock.now(), []
    for seconds, tokens in told * times:
        clock.advance(seconds)
        course.allowance(tokens)
        if tokens is not None:
            all_of_them.append((clock.now() - begun, tokens))
    samples = course.samples
    assert len(samples) <= 2 * SLOTS
    assert samples == sorted(samples, key=lambda sample: sample[0])
    assert set(samples) <= set(all_of_them)
    if all_of_them:
        told_tokens, kept = [tokens for _, tokens in all_of_them], [tokens for _, tokens in samples]
        assert (min(kept), max(kept)) == (min(told_tokens), max(told_tokens))


def test_samples_are_spread_over_the_run(clock: ManualClock, course: Course) -> None:
    """A long run has as many from its end as from its begin."""
    for number in range(100_000):
        clock.advance(1)
        course.allowance(number % 7)
    halves = [sum(at <= s(50_000) for at, _ in course.samples), sum(at > s(50_000) for at, _ in course.samples)]
    assert min(halves) >= SLOTS / 3
    assert abs(halves[0] - halves[1]) <= 4


def test_the_state_can_keep_it(clock: ManualClock, course: Course) -> None:
    """Whole milliseconds, and names that are text, whatever a server calls its files."""
    course.begin("fetching \udcff\x00" + "x" * 500, 1)
    clock.advance(1.2345)
    course.allowance(3)
    course.end()
    kept = exact_json.loads(exact_json.dumps(course.as_json()))
    ((name, began, took),) = kept["steps"]
    assert (name[:11], len(name), began, took) == ("fetching ?\x00", 200, 0, 1234)
    assert kept["samples"] == [[1234, 3]]
