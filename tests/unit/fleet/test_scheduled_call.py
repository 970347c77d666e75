"""Calls and results as texts."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from crossdock.services.fleet.worker import (
    VERSION,
    CallResult,
    RunFacts,
    ScheduledCall,
    SharedLimit,
    sender_version,
)
from crossdock.services.notifications.run_events_and_messages import ScheduledRunEnded
from crossdock.state import DueRun, ScheduledRun, SkippedRun
from crossdock.state.fleet_leadership_and_jobs import JobFacts
from crossdock.values.run_progress_and_messages import RunMessage
from crossdock.values.run_states_and_tally import OpenCounts

DUE, DAY = datetime(2026, 11, 24, 2, 30, tzinfo=UTC), date(2026, 11, 23)


def test_a_call_arrives_as_it_was_sent() -> None:
    """With all that it skips, and the bucket that it shares."""
    skipped = (SkippedRun("a", DUE, DAY, "skipped", "catch_up: latest"),)
    limit = SharedLimit(database="postgresql://db/fleet", name="credential 1f")
    call = ScheduledCall(
        tenant="acme", files=(Path("base.yaml"), Path("acme.yaml")), digest="00", job="a", due=DUE, business_date=DAY,
        skipped=skipped, shared_limit=limit, notify=True,
    )  # fmt: skip
    assert ScheduledCall.model_validate_json(call.model_dump_json()) == call
    assert call.due_run == DueRun("a", DUE, DAY, skipped)
    assert ScheduledCall(tenant="acme", files=(), digest="00").due_run is None
    assert sender_version(call.model_dump_json()) == VERSION


def test_a_result_arrives_as_it_was_sent() -> None:
    """With the run, and what the state knows."""
    run = ScheduledRun("a", DUE, DAY, "degraded", 2, 7, DUE, DUE, "open: 1 rejected")
    event = ScheduledRunEnded(
        "a", DAY, DUE, 7, "degraded", 1.25, 8, (RunMessage("note", "wms.lots", "late"),), "done", OpenCounts(rejected=1)
    )
    facts = RunFacts(status="degraded", event=event, exit_code=1, throttled=0, tallies={}, open={"wms.a": event.open})
    jobs = (JobFacts("a", DUE, paused=False, expected_s=1.5, last=run), JobFacts("b", DUE, paused=True))
    result = CallResult(outcome="ended", run=facts, jobs=jobs, problems=("the mail server did not answer",))
    assert CallResult.model_validate_json(result.model_dump_json()) == result


@given(st.text() | st.sampled_from(["[]", "null", '{"versions":1}', '{"version":{"a":1}}', "7"]))
def test_the_version_of_any_text_is_a_text(text: str) -> None:
    """Whatever another version of crossdock sends."""
    assert isinstance(sender_version(text), str)
