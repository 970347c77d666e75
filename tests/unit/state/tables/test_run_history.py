"""Runs in the state: what is kept of one, and what a list of them loads."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from crossdock.state import RunResult, State
from crossdock.state.db import run_lease
from crossdock.state.tables.run_history import UNRECORDED
from crossdock.values.acting_person_and_process import own_process_name

AT = datetime(2026, 3, 29, 1, 30, tzinfo=UTC)
COURSE = {"steps": [["reading é", 0, 1_234]], "samples": [[1_000, 2_000]]}


def test_requests_are_known_while_a_run_goes_on(state: State) -> None:
    """They stay when the next run finds that this one was killed."""
    with state.begin() as tx:
        run = tx.runs.start(business_date="2026-03-29", at=AT)
        tx.runs.store_request_counts(run, requests=7_500, throttled=20)
    with state.begin() as tx:
        tx.runs.mark_running_runs_as_killed(at=AT)
        killed = tx.runs.get(run)
    assert killed is not None
    assert (killed.status, killed.requests, killed.throttled, killed.duration) == ("incomplete", 7_500, 20, None)


def test_only_runs_of_the_present_lease_are_in_progress(state: State) -> None:
    """One whose process was killed is incomplete, whoever uses the state now and however runs are listed."""
    with state.hold_run_lease("a"), state.begin() as tx:
        killed = tx.runs.start(business_date="2026-03-29", at=AT)
    with state.hold_run_lease("b"):
        with state.begin() as tx:
            running = tx.runs.start(business_date="2026-03-29", at=AT)
        with state.begin_read_only() as tx:
            for run, status in ((killed, "incomplete"), (running, "running")):
                assert [each.id for each in tx.runs.listed(limit=9, status=status)] == [run]
            assert [each.status for each in tx.runs.tallies_of_runs_between_dates(AT.date(), AT.date())] == [
                "incomplete",
                "running",
            ]
            counted = tx.runs.counts_by_date(AT.date(), AT.date())
            assert {each.newest: each.status for each in counted} == {killed: "incomplete", running: "running"}
            ended = tx.runs.get(killed)
    assert ended is not None
    assert ended.messages == (UNRECORDED,)


def test_a_run_that_was_killed_on_another_host_has_ended_with_its_lease(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A minute after its last renewal: whether its process lives is not known before."""
    now = run_lease._shared_clock_time
    with state.hold_run_lease("elsewhere:1"):
        with state.begin() as tx:
            run = tx.runs.start(business_date="2026-03-29", at=AT)
        for seconds, status in ((0.0, "running"), (run_lease.LEASE_S, "incomplete")):
            monkeypatch.setattr(
                run_lease, "_shared_clock_time", lambda tx, later=seconds: now(tx) + timedelta(seconds=later)
            )
            with state.begin_read_only() as tx:
                assert [each.id for each in tx.runs.listed(limit=9, status=status)] == [run]
        monkeypatch.undo()


def test_the_number_of_a_process_counts_only_where_it_was_given(state: State) -> None:
    """A run in another container, or on another machine of the same name, is in progress; an ended one here is not."""
    unused = 1 << 22  # process numbers are smaller
    host, place = own_process_name().partition("#")[::2]
    here = f"{host.rpartition(':')[0]}:{unused}"
    for owner, status in ((f"{here}#elsewhere", "running"), (here, "running"), (f"{here}#{place}", "incomplete")):
        with state.hold_run_lease(owner):
            with state.begin() as tx:
                run = tx.runs.start(business_date="2026-03-29", at=AT)
            with state.begin_read_only() as tx:
                assert run in [each.id for each in tx.runs.listed(limit=9, status=status)]


def test_a_run_has_its_job_or_its_command(state: State) -> None:
    """The command of a job is that of its schedule."""
    with state.begin() as tx:
        tx.runs.start(business_date="2026-03-29", at=AT, command="sync wms")
        tx.runs.start(business_date="2026-03-29", at=AT, job="nightly", command="sync wms")
        found = [(run.job, run.command) for run in tx.runs.listed(limit=2)]
    assert found == [("nightly", None), (None, "sync wms")]


def finish(state: State) -> int:
    with state.begin() as tx:
        run = tx.runs.start(business_date="2026-03-29", at=AT)
        tx.runs.finish(
            run, RunResult("done", requests=1, tally={"s": {"n": 1}}, duration_ms=1_234, timings=COURSE), at=AT
        )
    return run


def test_the_course_of_one_run_is_loaded(state: State) -> None:
    """It comes back as it went in; a list of runs is the same without it, and a run that was killed has none."""
    run = finish(state)
    with state.begin() as tx:
        killed = tx.runs.start(business_date="2026-03-30", at=AT)
        tx.runs.mark_running_runs_as_killed(at=AT)
        found, listed = tx.runs.get(run), tx.runs.listed(limit=5)
        assert found is not None
        assert found.timings == COURSE
        assert [(each.id, each.tally, each.timings) for each in listed] == [
            (killed, None, None),
            (run, found.tally, None),
        ]
        ended = tx.runs.get(killed)
        assert ended is not None
        assert (ended.status, ended.timings) == ("incomplete", None)
