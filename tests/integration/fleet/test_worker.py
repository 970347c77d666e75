"""What a worker does with a call, on a sandbox."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec import structs
from sqlalchemy import create_engine, text, update
from tests.chaos.fleet_stage import JOB, RECORDS, FleetStage, settings
from tests.integration.notifications.receivers import Receiver
from tests.servers import served

from crossdock.config.project import project
from crossdock.config.schedules.due_times import DueTime
from crossdock.sandbox import SandboxServer
from crossdock.services.fleet import worker
from crossdock.services.fleet.tenants_and_watched_configs import load_fleet_base, load_tenant
from crossdock.services.fleet.worker import CallResult, ScheduledCall, SharedLimit
from crossdock.services.scheduler import run_events_and_pending_notices
from crossdock.state import DueRun, SkippedRun
from crossdock.state.db import run_lease
from crossdock.state.db.schema import jobs
from crossdock.values.clock import SystemClock


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FleetStage]:
    with SandboxServer(tmp_path / "sandbox", settings()) as platform:
        made = FleetStage(tmp_path, platform, 1)
        for name, value in made.environment.items():
            monkeypatch.setenv(name, value)
        yield made


def call(stage: FleetStage, job: str | None = JOB, **changes: object) -> ScheduledCall:
    """The call for the run that is due."""
    tenant = load_tenant(stage.config("t000"), load_fleet_base(stage.base))
    day = None if job is None else stage.due.date()
    made = ScheduledCall(
        tenant="t000", files=tenant.files, digest=tenant.digest, job=job, due=day and stage.due, business_date=day
    )
    return made.model_copy(update=changes)


def executed(one: ScheduledCall) -> CallResult:
    return CallResult.model_validate_json(worker.execute(one.model_dump_json()))


def test_a_run_is_carried_out_once(stage: FleetStage) -> None:
    """A second call for it says so, and does nothing."""
    first, second = executed(call(stage)), executed(call(stage))
    assert (first.outcome, second.outcome) == ("ended", "ended_before")
    assert first.run is not None
    assert (first.run.status, first.run.event.requests, first.run.exit_code) == ("done", RECORDS, 0)
    assert first.run.tallies["wms.customers"]["created"] == 2
    (facts,) = second.jobs
    assert facts.last is not None
    assert (facts.job, facts.last.due, facts.last.status) == (JOB, stage.due, "done")
    assert stage.delivered() == stage.expected()


def test_a_look_returns_what_the_state_knows(stage: FleetStage) -> None:
    """And records what is skipped."""
    (facts,) = executed(call(stage, None)).jobs
    assert (facts.job, facts.paused, facts.last) == (JOB, False, None)
    skipped = (SkippedRun(JOB, stage.due, stage.due.date(), "skipped", "catch_up: none"),)
    result = executed(call(stage, None, skipped=skipped))
    assert result.outcome == "looked"
    assert result.jobs[0].last is not None
    assert result.jobs[0].last.note == "catch_up: none"
    assert stage.effects() == []


def test_a_look_corrects_when_a_job_was_first_seen(stage: FleetStage) -> None:
    """A time in the future was set by a clock that was ahead; it becomes that of the look."""
    engine, now = create_engine(project.load(stage.base, stage.config("t000")).state_url), SystemClock().now()
    with engine.begin() as connection:
        connection.execute(update(jobs).values(since=now + timedelta(days=31)))
    engine.dispose()
    (facts,) = executed(call(stage, None)).jobs
    assert facts.since - now < timedelta(minutes=1)


def test_another_version_is_refused(stage: FleetStage) -> None:
    """Before anything else of the call is read."""
    for sent in (json.dumps({"version": "9.9", "more": []}), "what?", call(stage, version="0.0.1").model_dump_json()):
        result = CallResult.model_validate_json(worker.execute(sent))
        assert result.outcome == "refused"
        assert "this worker has crossdock" in str(result.error)
    assert stage.effects() == []


def test_another_config_is_not_run(stage: FleetStage) -> None:
    """The scheduler and the worker must have read the same."""
    before = call(stage)
    stage.config("t000").write_text(stage.config("t000").read_text() + "\n")
    assert executed(before).outcome == "changed"
    assert executed(call(stage)).outcome == "ended"


def test_a_config_that_is_gone_is_an_error_of_its_run(stage: FleetStage) -> None:
    """With the path."""
    before = call(stage)
    stage.config("t000").unlink()
    result = executed(before)
    assert result.outcome == "failed"
    assert f"{stage.config('t000')}: the config file cannot be read: No such file" in str(result.error)


def test_a_state_in_use_is_busy(stage: FleetStage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The call is made again later."""
    monkeypatch.setattr(run_lease, "_GRACE_S", 0.0)
    with project.load(stage.base, stage.config("t000")).open_state_exclusively():
        assert executed(call(stage)).outcome == "busy"
    assert executed(call(stage)).outcome == "ended"


def test_a_paused_job_is_not_run(stage: FleetStage) -> None:
    """Even if the scheduler does not know of the pause yet; the result says so."""
    with closing(project.load(stage.base, stage.config("t000")).open_state()) as state, state.begin() as tx:
        tx.scheduled_runs.set_paused(JOB, stage.due, paused=True)
    result = executed(call(stage))
    assert (result.outcome, result.jobs[0].paused) == ("paused", True)
    assert stage.effects() == []


def test_a_secret_that_is_missing_here_is_an_error_of_its_run(
    stage: FleetStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Secrets are read where the run takes place. The state and the tenant's people know of it, once."""
    key = stage.environment["KEY_T000"]
    monkeypatch.delenv("KEY_T000")
    with served(Receiver()) as hook:
        config = stage.config("t000")
        config.write_text(f"{config.read_text()}\nnotify: {{webhook: {{url: '{hook.url}'}}}}\n")
        first = executed(call(stage, notify=True))
        executed(call(stage, notify=True, reported=first.error))
        assert first.outcome == "failed"
        assert "the environment variable KEY_T000 is not set" in str(first.error)
        with project.load(stage.base, config).read_state() as tx:
            (night,), (run,) = tx.scheduled_runs.listed(limit=9), tx.runs.listed(limit=9)
        assert (night.status, night.run_id, run.status, run.messages) == ("failed", run.id, "failed", (first.message,))
        monkeypatch.setenv("KEY_T000", key)
        assert executed(call(stage, notify=True)).outcome == "ended"
    sent = [json.loads(post.body)["data"] for post in hook.posts]
    assert [(data["kinds"], data["run"]) for data in sent] == [(["failed"], 1), (["recovered"], 2)]


def test_the_people_of_a_tenant_are_told_later(stage: FleetStage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A look sends what a channel did not accept after the run, and the result says whether something is left."""
    monkeypatch.setattr(
        run_events_and_pending_notices.send_pending_notices, "__kwdefaults__", {"older_than": timedelta()}
    )
    invoices = stage.folder / "out" / "t000" / "INV1.csv"
    invoices.write_text(invoices.read_text() + "9;C7;P0;1;1.5\n")
    with served(Receiver()) as hook:
        hook.statuses = [400, 204]
        config = stage.config("t000")
        config.write_text(f"{config.read_text()}\nnotify: {{webhook: {{url: '{hook.url}'}}}}\n")
        first = executed(call(stage, notify=True, is_grouped=True))
        assert (len(first.problems), first.jobs[0].has_pending_notice, first.pending_notices) == (1, True, ())
        look = executed(call(stage, None, notify=True, is_grouped=True))
        assert (look.problems, look.jobs[0].has_pending_notice, [each.run_id for each in look.pending_notices]) == (
            (),
            True,
            [1],
        )
        told = executed(call(stage, None, notify=True, is_grouped=True, notified=(1,)))
        assert (told.problems, told.jobs[0].has_pending_notice, told.pending_notices) == ((), False, ())
    assert [json.loads(post.body)["data"]["kinds"] for post in hook.posts] == [["degraded"]] * 2


def test_a_missing_state_is_an_error(stage: FleetStage) -> None:
    """With what to do."""
    (stage.folder / "t000.db").unlink()
    result = executed(call(stage))
    assert result.outcome == "failed"
    assert "create it with 'crossdock init'" in str(result.error)


def test_a_shared_limit_is_taken_from_its_database(stage: FleetStage) -> None:
    """By the name that the scheduler gives."""
    url = f"sqlite:///{stage.folder / 'fleet.db'}"
    assert executed(call(stage, shared_limit=SharedLimit(database=url, name="credential 1f"))).outcome == "ended"
    engine = create_engine(url)
    with engine.connect() as connection:
        assert connection.execute(text("SELECT name, spent FROM buckets")).all() == [("credential 1f", RECORDS)]
    engine.dispose()


def test_the_next_run_is_compared_with_the_last(stage: FleetStage) -> None:
    """A tenant that stays degraded is not reported after each run."""
    invoices = stage.folder / "out" / "t000" / "INV1.csv"
    invoices.write_text(invoices.read_text() + "9;C7;P0;1;1.5\n")
    first = executed(call(stage)).run
    assert first is not None
    assert (first.status, first.event.previous, first.event.open.waiting) == ("degraded", None, 1)
    clock = SystemClock()
    with project.load(stage.base, stage.config("t000")).read_state() as tx:
        assert tx.scheduled_runs.get(JOB, stage.due, stage.due.date()) is not None
    later = DueTime(clock.now(), stage.due.date())
    second = executed(call(stage, due=later.instant)).run
    assert second is not None
    assert (second.event.previous, second.event.repeated) == ("degraded", True)


def test_a_stop_ends_a_run_that_the_next_call_continues(stage: FleetStage) -> None:
    """It does not count as ended."""
    with worker.clear_interrupt_at_end():
        worker.ask_runs_to_stop()
        first = executed(call(stage))
    assert first.run is not None
    assert first.run.status == "incomplete"
    assert first.jobs[0].last is None
    assert executed(call(stage)).outcome == "ended"
    assert stage.delivered() == stage.expected()


def test_old_rows_are_removed_after_a_run(stage: FleetStage) -> None:
    """As a service does it once a day."""
    assert executed(call(stage)).outcome == "ended"
    with project.load(stage.base, stage.config("t000")).read_state() as tx:
        assert tx.retention.last_applied_time() is not None


def test_a_call_is_a_due_run(stage: FleetStage) -> None:
    """With all that it skips."""
    skipped = (SkippedRun(JOB, stage.due, stage.due.date(), "skipped", "why"),)
    assert call(stage, skipped=skipped).due_run == structs.replace(
        DueRun(JOB, stage.due, stage.due.date()), skipped=skipped
    )
