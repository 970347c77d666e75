"""The course of a run: which step each moment belongs to, how the allowance is sampled, and how little is kept."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.runs.run_report import MOST_STEPS, OTHERS, SLOTS, Report, Timings
from crossdock.testing.manual_clock import ManualClock
from crossdock.values import exact_json
from crossdock.values.run_progress_and_messages import SilentProgress, Unit


def s(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def timings(clock: ManualClock) -> Timings:
    made = Timings(clock)
    made.start_run(Report(7, "2026-03-29"), "nightly")
    return made


def lasted(timings: Timings) -> list[tuple[str, float]]:
    timings.end_run_and_return_duration()
    return [(step.name, step.lasted.total_seconds()) for step in timings.steps]


def test_who_looks_on_is_told_everything(clock: ManualClock) -> None:
    """A course changes nothing of what a run tells, and says whose run it is once its id is known."""
    told: list[object] = []

    class Listener(SilentProgress):
        def begin(self, stage: str, total: int | None, unit: Unit = "records") -> None:
            told.append((stage, total) if unit == "records" else (stage, total, unit))

        def advance(self, steps: int = 1) -> None:
            told.append(steps)

        def allowance(self, tokens: int | None) -> None:
            told.append(tokens)

        def warn(self, text: str) -> None:
            told.append(text)

    timings = Timings(clock, Listener(), lambda report: told.append(report.run))
    assert timings.report is None
    timings.start_run(Report(7, "2026-03-29"), None)
    timings.begin_part("sending", 2)
    timings.begin("reading", None)
    timings.advance(3)
    timings.allowance(None)
    timings.allowance(5)
    timings.warn("look")
    assert told == [7, ("sending", 2), ("reading", None), 3, None, 5, "look"]


def test_a_step_lasts_until_the_next(clock: ManualClock, timings: Timings) -> None:
    """Every moment since the run began belongs to one; what was before it belongs to none."""
    clock.advance(1)
    timings.begin("reading a", None)
    clock.advance(2)
    timings.begin("reading b", None)
    clock.advance(4)
    assert lasted(timings) == [("starting", 1), ("reading a", 2), ("reading b", 4)]
    assert [step.began for step in timings.steps] == [s(0), s(1), s(3)]
    timings.start_run(Report(8, "2026-03-30"), None)
    clock.advance(8)
    assert lasted(timings) == [("starting", 8)]


def test_a_file_is_fetched_within_the_reading_that_wants_it(clock: ManualClock, timings: Timings) -> None:
    """Once all of its bytes are there the reading goes on; a file that broke off ends where something else begins."""
    timings.begin("reading a", None)
    clock.advance(1)
    timings.begin("fetching 1", 100)
    clock.advance(2)
    timings.advance(60)
    clock.advance(2)
    timings.advance(40)
    clock.advance(8)
    timings.advance(9_999)  # rows
    timings.begin("fetching empty", 0)
    clock.advance(16)
    timings.begin("fetching 2", 100)
    clock.advance(32)
    timings.begin("fetching 3", 100)
    clock.advance(64)
    timings.begin("reading b", None)
    clock.advance(128)
    steps = [("reading a", 1), ("fetching 1", 4), ("reading a", 24), ("fetching 2", 32), ("fetching 3", 64)]
    assert lasted(timings) == [*steps, ("reading b", 128)]


def test_rows_are_not_counted_as_bytes_of_their_file(clock: ManualClock) -> None:
    """Once files are fetched, the listener is back at the reading, where it was, with the first row."""
    heard: list[object] = []

    class Listener(SilentProgress):
        def begin(self, stage: str, total: int | None, unit: Unit = "records") -> None:
            heard.append((stage, total, unit))

        def advance(self, steps: int = 1) -> None:
            heard.append(steps)

    timings = Timings(clock, Listener())
    timings.begin_part("sending a", 9)
    timings.advance(2)
    for name, size in (("a.csv", 100), ("b.csv", 50), ("empty.csv", 0)):
        timings.begin(f"fetching {name}", size, "bytes")
        timings.advance(size)
    timings.advance(7)
    fetched = [("fetching a.csv", 100, "bytes"), 100, ("fetching b.csv", 50, "bytes"), 50]
    assert [each for each in heard if each != 0] == [
        ("sending a", 9, "records"), 2, *fetched, ("sending a", 9, "records"), 2, 7,
    ]  # fmt: skip


def test_a_part_of_the_run_lasts_beyond_its_total(clock: ManualClock, timings: Timings) -> None:
    """Sending goes on when as much as expected is done, and is no part of the reading before it."""
    timings.begin("reading a", None)
    clock.advance(1)
    timings.begin_part("sending a", 1)
    clock.advance(2)
    timings.advance()
    clock.advance(4)
    timings.begin_part("remembering a", None)
    clock.advance(8)
    assert lasted(timings) == [("reading a", 1), ("sending a", 6), ("remembering a", 8)]


def test_what_a_run_is_given_is_what_it_tells(clock: ManualClock, timings: Timings) -> None:
    """Whoever gives a course to a run finds the run's own in it; any other listener gets one put before it."""
    assert Timings.reuse_or_wrap_progress(timings, clock) is timings
    assert Timings.reuse_or_wrap_progress(SilentProgress(), clock) is not timings


Call = Callable[[Timings, int], None]
NAMES = st.sampled_from("abcdefgh")
TOTALS = st.one_of(st.none(), st.integers(0, 3))
CALLS = st.one_of(
    st.builds(lambda name, total: lambda timings, again: timings.begin(f"{name} {again}", total), NAMES, TOTALS),
    st.builds(lambda name, total: lambda timings, again: timings.begin(name, total), NAMES, TOTALS),
    st.builds(lambda name, total: lambda timings, again: timings.begin_part(name, total), NAMES, TOTALS),
    st.builds(lambda steps: lambda timings, again: timings.advance(steps), st.integers(1, 3)),
)
LASTING = st.integers(0, 3_600_000).map(lambda ms: ms / 1000)
TIMES = st.integers(1, 100)


@given(st.lists(st.tuples(CALLS, LASTING), max_size=30), TIMES)
def test_no_moment_is_lost_or_counted_twice(told: list[tuple[Call, float]], times: int) -> None:
    """Whatever is told, in whatever order, the steps last as long as the run, and follow each other while few."""
    clock = ManualClock()
    timings = Timings(clock)
    timings.start_run(Report(1, "2026-03-29"), None)
    begun = clock.now()
    for again in range(times):
        for call, seconds in told:
            call(timings, again)
            clock.advance(seconds)
        assert len(timings.steps) <= 2 * MOST_STEPS
    assert timings.end_run_and_return_duration() == clock.now() - begun
    assert sum((step.lasted for step in timings.steps), timedelta()) == clock.now() - begun
    assert all(step.lasted > timedelta() for step in timings.steps)
    assert [step.began for step in timings.steps] == sorted(step.began for step in timings.steps)
    if len(told) * times < MOST_STEPS:
        ends = timedelta()
        for step in timings.steps:
            assert step.began == ends
            ends += step.lasted


def test_of_too_many_steps_the_longest_stay(clock: ManualClock, timings: Timings) -> None:
    """What takes its time keeps its name; a thousand short ones become one, and those of one name too."""
    timings.begin("reading", None)
    for number in range(1_000):
        timings.begin(f"fetching {number}", 1)
        clock.advance(100 if number == 321 else 0.25)
        timings.advance()
        clock.advance(0.5)
    steps = defaultdict[str, float](float)  # quarters of seconds, which are exact
    for name, seconds in lasted(timings):
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
    timings = Timings(clock)
    timings.start_run(Report(1, "2026-03-29"), None)
    begun, all_of_them = clock.now(), []
    for seconds, tokens in told * times:
        clock.advance(seconds)
        timings.allowance(tokens)
        if tokens is not None:
            all_of_them.append((clock.now() - begun, tokens))
    samples = timings.allowance_samples
    assert len(samples) <= 2 * SLOTS
    assert samples == sorted(samples, key=lambda sample: sample[0])
    assert set(samples) <= set(all_of_them)
    if all_of_them:
        told_tokens, kept = [tokens for _, tokens in all_of_them], [tokens for _, tokens in samples]
        assert (min(kept), max(kept)) == (min(told_tokens), max(told_tokens))


def test_samples_are_spread_over_the_run(clock: ManualClock, timings: Timings) -> None:
    """A long run has as many from its end as from its begin."""
    for number in range(100_000):
        clock.advance(1)
        timings.allowance(number % 7)
    halves = [
        sum(at <= s(50_000) for at, _ in timings.allowance_samples),
        sum(at > s(50_000) for at, _ in timings.allowance_samples),
    ]
    assert min(halves) >= SLOTS / 3
    assert abs(halves[0] - halves[1]) <= 4


def test_the_state_can_keep_it(clock: ManualClock, timings: Timings) -> None:
    """Whole milliseconds, and names that are text, whatever a server calls its files."""
    timings.begin("fetching \udcff\x00" + "x" * 500, 1)
    clock.advance(1.2345)
    timings.allowance(3)
    timings.end_run_and_return_duration()
    kept = exact_json.loads(exact_json.dumps(timings.as_json()))
    ((name, began, took),) = kept["steps"]
    assert (name[:11], len(name), began, took) == ("fetching ?\x00", 200, 0, 1234)
    assert kept["samples"] == [[1234, 3]]
