"""Scheduled runs begin and finish once, are skipped, forgotten and estimated from the latest."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from tests.unit.state.samples import AT

from crossdock.state import DueRun, RunResult, SkippedRun, State
from crossdock.state.tables.run_history import UNRECORDED
from crossdock.state.tables.scheduled_runs import RECENT
from crossdock.values.run_progress_and_messages import RunMessage

DAY = timedelta(days=1)


def due_run(number: int = 0, job: str = "daily") -> DueRun:
    due = AT + number * DAY
    return DueRun(job, due, due.date())


def execute(state: State, number: int, *, seconds: int, requests: int) -> None:
    due = due_run(number)
    with state.begin() as tx:
        assert tx.scheduled_runs.begin_unless_finished(due, at=due.due)
        run = tx.runs.start(business_date=due.business_date.isoformat(), job=due.job, at=due.due)
        end = due.due + timedelta(seconds=seconds)
        tx.runs.finish(run, RunResult("done", requests=requests, duration_ms=1000 * seconds), at=end)
        tx.scheduled_runs.finish(due, "done", run, None, at=end)


def test_one_that_was_killed_begins_again(state: State) -> None:
    """Its attempts are counted; once finished it does not begin again."""
    due = due_run()
    with state.begin() as tx:
        assert tx.scheduled_runs.begin_unless_finished(due, at=AT)
        assert tx.scheduled_runs.begin_unless_finished(due, at=AT + DAY)
        found = tx.scheduled_runs.get("daily", due.due, due.business_date)
        assert found is not None
        assert (found.attempts, found.started_at, found.is_finished) == (2, AT + DAY, False)
        tx.scheduled_runs.finish(due, "failed", None, "why", at=AT + DAY)
        assert not tx.scheduled_runs.begin_unless_finished(due, at=AT + 2 * DAY)
        found_again = tx.scheduled_runs.get("daily", due.due, due.business_date)
        assert found_again is not None
        assert (found_again.status, found_again.note, found_again.attempts) == ("failed", "why", 2)
        assert tx.scheduled_runs.last_finished_run("daily") == found_again
        assert tx.scheduled_runs.runs_of_business_date("daily", due.business_date) == [found_again]


def test_one_that_could_not_begin_is_tried_again(state: State) -> None:
    """It is shown as failed, with the run that says why; one that is done or in progress keeps its row."""
    due, why = due_run(), RunMessage("error", "", "no key", code="config")
    with state.begin() as tx:
        day = due.business_date.isoformat()
        refusals = [tx.runs.record_failed_start(why, business_date=day, at=AT, job=due.job) for _ in range(2)]
        assert len(set(refusals)) == 1
        assert tx.scheduled_runs.record_failed_start(due, refusals[0], at=AT, busy=False)
        assert not tx.scheduled_runs.record_failed_start(due, refusals[0], at=AT, busy=False)
        (night,) = tx.scheduled_runs.listed(limit=9)
        assert (night.status, night.run_id, night.attempts) == ("failed", refusals[0], 1)
        assert tx.scheduled_runs.last_finished_run(due.job) is None
        assert tx.scheduled_runs.begin_unless_finished(due, at=AT)
        tx.scheduled_runs.record_failed_start(due, refusals[0], at=AT, busy=True)
        (night,) = tx.scheduled_runs.listed(limit=9)
        assert (night.status, night.run_id, night.attempts) == ("incomplete", None, 2)  # no process holds the state
        tx.scheduled_runs.record_failed_start(due, refusals[0], at=AT, busy=False)
        skipped = SkippedRun(due.job, due.due, due.business_date, "skipped", "later")
        tx.scheduled_runs.skip([skipped], at=AT)
        (night,) = tx.scheduled_runs.listed(limit=9)
        assert (night.status, night.run_id, night.note) == ("skipped", refusals[0], "could not begin; later")
    execute(state, 1, seconds=1, requests=1)
    with state.begin() as tx:
        assert not tx.scheduled_runs.record_failed_start(due_run(1), refusals[0], at=AT, busy=False)
        assert tx.scheduled_runs.listed(limit=1)[0].status == "done"


def test_what_is_removed_is_as_if_its_job_had_not_run(state: State) -> None:
    """A job that was first seen later counts from then on, and no other job does."""
    later = AT + 5 * DAY
    with state.begin() as tx:
        for job in ("daily", "other"):
            tx.scheduled_runs.get_or_register_first_seen(job, later)
        assert tx.scheduled_runs.begin_unless_finished(due_run(), at=later)
        tx.scheduled_runs.remove_as_if_not_run(tx.scheduled_runs.listed(limit=9), AT + DAY)
        assert tx.scheduled_runs.listed(limit=9) == []
        assert tx.scheduled_runs.get_or_register_first_seen("daily", later) == AT + DAY
        assert tx.scheduled_runs.get_or_register_first_seen("other", later) == later


def test_skipped_runs_never_begin(state: State) -> None:
    """Neither new ones nor one that was begun and killed; a finished one keeps its result."""
    done, killed, new = (due_run(number) for number in range(3))
    skipped = [SkippedRun(each.job, each.due, each.business_date, "skipped", "later") for each in (done, killed, new)]
    with state.begin() as tx:
        for each in (done, killed):
            assert tx.scheduled_runs.begin_unless_finished(each, at=AT)
        tx.scheduled_runs.finish(done, "done", None, None, at=AT)
        last = due_run(3)
        assert tx.scheduled_runs.begin_unless_finished(DueRun(last.job, last.due, last.business_date, skipped), at=AT)
        found = {each.due: (each.status, each.note) for each in tx.scheduled_runs.listed(limit=9, job="daily")}
        assert found == {
            done.due: ("done", None),
            killed.due: ("skipped", "was killed; later"),
            new.due: ("skipped", "later"),
            last.due: ("incomplete", UNRECORDED.message),  # no process holds the state
        }
        assert not any(tx.scheduled_runs.begin_unless_finished(each, at=AT) for each in (done, killed, new))


def test_what_was_purged_is_finished(state: State) -> None:
    """A run due until then does not begin or fail, a later one does; an earlier bound does not replace a later one."""
    with state.begin() as tx:
        run = tx.runs.start(business_date=AT.date().isoformat(), at=AT)
        tx.scheduled_runs.mark_unrecorded_runs_finished_until("daily", AT + DAY)
        tx.scheduled_runs.mark_unrecorded_runs_finished_until("daily", AT)
        assert [tx.scheduled_runs.may_be_purged_already(due_run(number)) for number in range(3)] == [True, True, False]
        assert not tx.scheduled_runs.begin_unless_finished(due_run(1), at=AT)
        assert not tx.scheduled_runs.record_failed_start(due_run(1), run, at=AT, busy=False)
        assert tx.scheduled_runs.begin_unless_finished(due_run(2), at=AT)
        assert not tx.scheduled_runs.may_be_purged_already(due_run(job="other"))


@pytest.mark.parametrize("paused", [True, False])
def test_a_job_is_paused_and_counts_from_its_first_sight(state: State, *, paused: bool) -> None:
    """Pausing does not change since when it counts."""
    later: datetime = AT + DAY
    with state.begin() as tx:
        assert tx.scheduled_runs.get_or_register_first_seen("daily", AT) == AT
        tx.scheduled_runs.set_paused("daily", later, paused=True)
        tx.scheduled_runs.set_paused("daily", later, paused=paused)
        assert tx.scheduled_runs.paused_jobs() == ({"daily"} if paused else set())
        assert tx.scheduled_runs.get_or_register_first_seen("daily", later) == AT


def test_the_next_run_is_estimated_from_the_latest(state: State) -> None:
    """Medians of the latest runs that are done; None before the first."""
    with state.begin_read_only() as tx:
        assert tx.scheduled_runs.expected_seconds_and_requests("daily") is None
    execute(state, 0, seconds=9_999, requests=9_999)
    for number in range(1, RECENT + 1):
        execute(state, number, seconds=10 * number, requests=number)
    with state.begin_read_only() as tx:
        assert tx.scheduled_runs.expected_seconds_and_requests("daily") == (30.0, 3)
        assert tx.scheduled_runs.expected_seconds_and_requests("other") is None
