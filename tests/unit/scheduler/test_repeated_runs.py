"""People are told of a degraded job when it becomes so, when more records are open, and once a week."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.services.scheduler.run_events_and_pending_notices import REMIND_AFTER, PreviousRun, previous_run
from crossdock.state import DueRun, RunResult, State
from crossdock.state.tables.scheduled_runs import Status
from crossdock.values.run_states_and_tally import NOTHING_OPEN, OpenCounts, Tally

AT = datetime(2026, 3, 1, 2, 30, tzinfo=UTC)
DAY = timedelta(days=1)
SIX = OpenCounts(rejected=4, waiting=2)


def night(state: State, number: int, status: Status, left: OpenCounts = NOTHING_OPEN) -> None:
    """A night of the job, that number of days after the first."""
    due = DueRun("nightly", AT + number * DAY, (AT + number * DAY).date())
    with state.begin() as tx:
        assert tx.scheduled_runs.begin_unless_finished(due, at=due.due)
        run = tx.runs.start(business_date=due.business_date.isoformat(), job=due.job, at=due.due)
        tally = {"wms.products": Tally().as_json() | {"open": left.as_json()}}
        tx.runs.finish(run, RunResult(status, tally=tally, duration_ms=1), at=due.due)
        tx.scheduled_runs.finish(due, status, run, None, at=due.due)


def previous(state: State, number: int) -> PreviousRun | None:
    with state.begin_read_only() as tx:
        return previous_run(tx, "nightly", AT + number * DAY)


def test_the_previous_run_is_the_last_one_that_was_not_skipped(state: State) -> None:
    """With what it left open, and since when the job is degraded; a later run does not count."""
    assert previous(state, 0) is None
    for number, status in enumerate(("degraded", "done", "degraded", "skipped", "degraded", "skipped", "done")):
        night(state, number, status, SIX if status == "degraded" else NOTHING_OPEN)  # type: ignore[arg-type]  # Status
    assert previous(state, 6) == PreviousRun(AT + 4 * DAY, "degraded", SIX, AT + 2 * DAY)
    assert previous(state, 2) == PreviousRun(AT + DAY, "done", NOTHING_OPEN, None)


def test_a_failed_night_ends_a_series_of_degraded_ones(state: State) -> None:
    """The next degraded run is news, because people were told of a failure since."""
    for number, status in enumerate(("degraded", "incomplete")):
        night(state, number, status, SIX)  # type: ignore[arg-type]  # Status
    found = previous(state, 2)
    assert found is not None
    assert not found.is_still_degraded_without_news(AT + 2 * DAY, "degraded", SIX)


@pytest.mark.parametrize(
    ("left", "repeated"),
    [
        pytest.param(SIX, True, id="the same"),
        pytest.param(OpenCounts(rejected=1), True, id="fewer"),
        pytest.param(OpenCounts(rejected=5, waiting=2), False, id="one more"),
        pytest.param(OpenCounts(rejected=3, in_doubt=1), False, id="fewer, but one in doubt"),
    ],
)
def test_more_open_records_are_news(left: OpenCounts, repeated: bool) -> None:
    """More of any state, even if fewer records are open in all."""
    before = PreviousRun(AT, "degraded", SIX, AT)
    assert before.is_still_degraded_without_news(AT + DAY, "degraded", left) is repeated
    assert not before.is_still_degraded_without_news(AT + DAY, "done", NOTHING_OPEN)


@given(every=st.timedeltas(timedelta(minutes=1), 3 * REMIND_AFTER), runs=st.integers(2, 200))
def test_a_job_that_stays_degraded_is_remembered_once_a_week(every: timedelta, runs: int) -> None:
    """However often it runs: the first run that ends a week, counted from the first degraded one, is a reminder."""
    dues = [AT + number * every for number in range(runs)]
    told = [
        due
        for before, due in pairwise(dues)
        if not PreviousRun(before, "degraded", SIX, AT).is_still_degraded_without_news(due, "degraded", SIX)
    ]
    weeks = {(due - AT) // REMIND_AFTER for due in dues} - {0}
    assert [(due - AT) // REMIND_AFTER for due in told] == sorted(weeks)
