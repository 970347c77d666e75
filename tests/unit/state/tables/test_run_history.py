"""Runs in the state: what is kept of one, and what a list of them loads."""

from __future__ import annotations

from datetime import UTC, datetime

from crossdock.state import RunResult, State

AT = datetime(2026, 3, 29, 1, 30, tzinfo=UTC)
COURSE = {"steps": [["reading é", 0, 1_234]], "samples": [[1_000, 2_000]]}


def test_requests_are_known_while_a_run_goes_on(state: State) -> None:
    """They stay when the next run finds that this one was killed."""
    with state.begin() as tx:
        run = tx.runs.start(business_date="2026-03-29", at=AT)
        tx.runs.store_request_counts(run, requests=7_500, throttled=20)
    with state.begin() as tx:
        tx.runs.end_killed_runs(at=AT)
        killed = tx.runs.get(run)
    assert killed is not None
    assert (killed.status, killed.requests, killed.throttled, killed.duration) == ("incomplete", 7_500, 20, None)


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
        tx.runs.end_killed_runs(at=AT)
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
