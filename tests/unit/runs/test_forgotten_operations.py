"""An undo knows how many operations of a run retention has removed."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.unit.state.samples import AT, intent

from crossdock.runs.undo.undo_plan import UndoneRuns, _forgotten_record_count
from crossdock.state import RunResult, State
from crossdock.values.run_states_and_tally import Tally

STREAM = "wms.products"


def deliver(state: State, numbers: range, *, carried_over: int = 0, settled: range = range(0)) -> int:
    """A run that creates products of *numbers*, and settles others that an earlier run has left; its id."""
    tally = Tally()
    tally.count("carried_over", carried_over)
    tally.count("read", len(numbers))
    tally.count("created", len(numbers) + carried_over)
    at = AT + timedelta(hours=1 if settled else 0)
    with state.begin() as tx:
        run = tx.runs.start(business_date="2026-03-29", at=at)
        left = [each for each in tx.intents.unsettled() if each.identity.key_hash in settled]
        own = [intent(number, status="pending") for number in numbers]
        tx.intents.add(own, run_id=run, fence=run, at=at)
        for each in (*left, *(each for each in tx.intents.unsettled() if each.identity.key_hash in numbers)):
            each.status = "delivered"
            tx.intents.write_outcomes([each], at=at)
        tx.runs.finish(run, RunResult("done", tally={STREAM: tally.as_json()}), at=at)
    return run


def forgotten(state: State, run: int) -> int:
    with state.begin_read_only() as tx:
        return _forgotten_record_count(tx, UndoneRuns(f"run {run}", frozenset({run})))


@pytest.mark.parametrize(("counted", "kept"), [(3, 3), (3, 1), (3, 0)])
def test_what_a_run_has_counted_and_the_state_has_not_is_forgotten(state: State, counted: int, kept: int) -> None:
    """The number is that of records whose operations are not kept."""
    run = deliver(state, range(1, 1 + kept), carried_over=counted - kept)
    assert forgotten(state, run) == counted - kept


def test_what_a_run_settled_for_an_earlier_one_is_not_forgotten(state: State) -> None:
    """Its operations are those of the earlier run, which is undone to undo them."""
    with state.begin() as tx:
        first = tx.runs.start(business_date="2026-03-29", at=AT)
        tx.intents.add([intent(number) for number in (7, 8)], run_id=first, fence=1, at=AT)
        tx.runs.finish(first, RunResult("incomplete", tally={STREAM: Tally().as_json()}), at=AT)
    second = deliver(state, range(1, 3), carried_over=2, settled=range(7, 9))
    assert [forgotten(state, run) for run in (first, second)] == [0, 0]
