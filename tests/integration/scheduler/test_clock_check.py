"""A scheduler whose clock differs from the platform's neither starts nor skips runs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from unittest import mock

import pytest
from msgspec import structs
from tests.e2e.warehouse import Site, open_site
from tests.integration.notifications.receivers import Receiver
from tests.integration.scheduler.scheduled_runs_race import BEGIN, Inline, job, project
from tests.servers import served
from tests.unit.targets.test_platform_access import Dated, profile_of

from crossdock.config.notify_config import NotifyConfig
from crossdock.config.project.project import Project
from crossdock.errors import ClockError
from crossdock.runs.run_report import Report
from crossdock.runs.session_shared_by_runs import Session
from crossdock.sandbox import SandboxServer
from crossdock.services.inbox import webhook_record_delivery
from crossdock.services.inbox.webhook_record_delivery import InboxWorker
from crossdock.services.notifications.mail_and_webhook_notifier import Notifier
from crossdock.services.observability.health_and_metrics import Metrics
from crossdock.services.scheduler.monitored_scheduler import MonitoredScheduler
from crossdock.services.scheduler.scheduler import FinishedRun, Scheduler, WorkerPool
from crossdock.state import (
    DueRun,
    NamedRecord,
    PendingNotice,
    PinnedTenant,
    RunResult,
    create_or_upgrade_state,
    parse_database_url,
)
from crossdock.testing.manual_clock import ManualClock
from crossdock.values import exact_json
from crossdock.values.run_progress_and_messages import SilentProgress

MONTH_S = 31 * 86_400.0


@pytest.fixture
def platform() -> Iterator[Dated]:
    with served(Dated()) as server:
        yield server


@pytest.fixture
def loaded(tmp_path: Path, platform: Dated, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A nightly job, and a platform with another clock."""
    monkeypatch.setenv("KEY", "k")
    profile, url = (
        profile_of(f"http://127.0.0.1:{platform.server_port}"),
        parse_database_url("sqlite:///state.db", tmp_path),
    )
    create_or_upgrade_state(url, PinnedTenant(profile.base_url, profile.tenant))
    return structs.replace(project(url, tmp_path, {"nightly": job(schedule={"catch_up": "latest"})}), platform=profile)


def test_a_wrong_clock_keeps_no_webhook_from_it(loaded: Project, platform: Dated) -> None:
    """While no run starts because the clocks differ, the records of webhooks are worked on."""
    clock = ManualClock(BEGIN)
    worker = InboxWorker(clock, SilentProgress, threading.Event(), lambda *_: None)
    made = Scheduler(loaded, clock, lambda *_: None, lambda _: None, WorkerPool(Inline()), worker)
    with mock.patch.object(webhook_record_delivery, "IDLE_S", 0.0), closing(made) as scheduler:
        scheduler.report_ended_or_start_due()
        platform.date = _date(clock)
        clock.step(MONTH_S)
        with closing(loaded.open_state()) as state, state.begin() as tx:
            tx.inbox.schedule_fetch_of_records([NamedRecord("old.orders", "1", 5)], at=clock.now())
        with pytest.raises(ClockError):
            while scheduler.report_ended_or_start_due():
                pass
        with loaded.read_state() as tx:
            (hint,) = tx.inbox.records_to_fetch(limit=5)
    assert hint.attempts == 1


def test_a_clock_a_month_ahead_skips_nothing(loaded: Project, platform: Dated) -> None:
    """No run starts and none is skipped while the clock is wrong; once it is right, each day's run starts."""
    clock, ran, ended = ManualClock(BEGIN), list[str](), list[FinishedRun]()

    def run(session: Session, due_run: DueRun) -> Report | None:
        with session.state.begin() as tx:
            tx.scheduled_runs.begin_unless_finished(due_run, at=clock.now())
            tx.scheduled_runs.finish(due_run, "done", None, None, at=clock.now())
        ran.append(due_run.business_date.isoformat())
        return None

    with closing(Scheduler(loaded, clock, run, ended.append, WorkerPool(Inline()))) as scheduler:
        scheduler.report_ended_or_start_due()
        platform.date = _date(clock)
        clock.step(MONTH_S)
        for _ in range(3):
            with pytest.raises(ClockError, match="31 days, 0:00:00 ahead"):
                scheduler.report_ended_or_start_due()
        with loaded.read_state() as tx:
            assert (ran, tx.scheduled_runs.listed(limit=100)) == ([], [])
        clock.step(-MONTH_S)
        for _ in range(3):
            clock.advance(86_400)
            platform.date = _date(clock)
            while scheduler.report_ended_or_start_due():
                pass
        assert ran == ["2025-03-02", "2025-03-03", "2025-03-04"]
    assert platform.asked <= 6, "a clock that was not set is compared once"


def test_a_job_that_was_first_seen_when_the_clock_was_ahead_runs(
    loaded: Project, platform: Dated, caplog: pytest.LogCaptureFixture
) -> None:
    """It counts from when the clock is right, which is logged; without the platform's time nothing is corrected."""
    clock, ran = ManualClock(BEGIN), list[str]()

    def run(session: Session, due_run: DueRun) -> Report | None:
        with session.state.begin() as tx:
            tx.scheduled_runs.begin_unless_finished(due_run, at=clock.now())
            tx.scheduled_runs.finish(due_run, "done", None, None, at=clock.now())
        ran.append(due_run.business_date.isoformat())
        return None

    clock.step(MONTH_S)
    with closing(Scheduler(loaded, clock, run, lambda _: None, WorkerPool(Inline()))) as scheduler:
        scheduler.report_ended_or_start_due()
        clock.step(-MONTH_S)
        platform.date = None
        scheduler.report_ended_or_start_due()
        assert "first seen" not in caplog.text
        for _ in range(3):
            platform.date = _date(clock)
            while scheduler.report_ended_or_start_due():
                pass
            clock.advance(86_400)
    assert caplog.text.count("nightly was first seen when the clock was ahead: its runs count from now on") == 1
    assert ran == ["2025-03-02", "2025-03-03"]


def test_people_are_told_of_what_failed_while_the_clock_was_ahead(loaded: Project, platform: Dated) -> None:
    """A pause that a wrong clock has set is over, and so is a run that it has ended."""
    clock = ManualClock(BEGIN)
    platform.date = _date(clock)
    with served(Receiver()) as receiver:
        notifier = Notifier(NotifyConfig.model_validate({"webhook": {"url": receiver.url}}), clock)
        clock.step(MONTH_S)
        with closing(loaded.open_state()) as state, state.begin() as tx:
            run = tx.runs.start(business_date="2025-03-01", at=clock.now())
            tx.runs.finish(run, RunResult("failed"), at=clock.now())
            tx.scheduled_runs.add_pending_notice(PendingNotice(run, "nightly", clock.now()), ["own"])
        service = MonitoredScheduler(
            loaded,
            clock,
            threading.Event(),
            Metrics(clock),
            notifier=notifier,
            trace=lambda _: None,
            workers=WorkerPool(Inline()),
        )
        clock.step(-MONTH_S)
        with closing(service):
            service.report_ended_and_start_due()
        assert [exact_json.loads(post.body)["type"] for post in receiver.posts] == ["night.failed"]


def _date(clock: ManualClock) -> str:
    return f"{clock.now():%a, %d %b %Y %H:%M:%S} GMT"


def test_a_run_by_hand_is_refused_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``schedule --once`` ends with exit 3, says what to do, and asks the platform for nothing more."""
    with (
        SandboxServer(tmp_path / "platform") as sandbox,
        served(Dated()) as dated,
        open_site(tmp_path, sandbox, monkeypatch) as site,
    ):
        _schedule(site, f"http://127.0.0.1:{dated.server_port}", sandbox.base_url)
        result = site.run("schedule", "--once", "2026-03-01")
        assert result.code == 3, result.err
        assert "the clock of this machine is" in result.err
        assert "set the clock" in result.err
        assert dated.asked == 1
        assert site.run("jobs", "list").code == 0


def _schedule(site: Site, base_url: str, old: str) -> None:
    site.edit(old, base_url)
    site.config.write_text(site.config.read_text() + 'jobs: {nightly: {schedule: {at: "00:00", time_zone: UTC}}}\n')
    site.init()


def test_a_wrong_clock_is_reported_once(loaded: Project, caplog: pytest.LogCaptureFixture) -> None:
    """The first run that is due by the wrong clock is reported as failed."""
    clock, interrupt = ManualClock(BEGIN), threading.Event()
    metrics = Metrics(clock)
    with served(Receiver()) as receiver:
        notifier = Notifier(NotifyConfig.model_validate({"webhook": {"url": receiver.url}}), clock)
        workers = WorkerPool(Inline())
        service = MonitoredScheduler(
            loaded, clock, interrupt, metrics, notifier=notifier, trace=lambda _: None, workers=workers
        )
        with closing(service):
            service.report_ended_and_start_due()
            clock.step(MONTH_S)
            for _ in range(3):
                clock.advance(30)
                service.report_ended_and_start_due()
        notices = [exact_json.loads(post.body) for post in receiver.posts]
    assert [notice["type"] for notice in notices] == ["night.failed"]
    assert "set the clock" in notices[0]["data"]["error"]
    assert "the clock of this machine is" in caplog.text


def test_a_run_that_began_when_the_clock_was_ahead_runs_again(loaded: Project, platform: Dated) -> None:
    """While the platform could not be asked, a machine took tomorrow for today; the night of tomorrow still runs."""
    clock, ran = ManualClock(BEGIN), list[str]()

    def run(session: Session, due_run: DueRun) -> Report | None:
        with session.state.begin() as tx:
            tx.scheduled_runs.begin_unless_finished(due_run, at=clock.now())
            tx.scheduled_runs.finish(due_run, "done", None, None, at=clock.now())
        ran.append(f"{due_run.business_date} at {clock.now():%d %H}")
        return None

    def tick() -> None:
        with closing(Scheduler(loaded, clock, run, lambda _: None, WorkerPool(Inline()))) as scheduler:
            while scheduler.report_ended_or_start_due():
                pass

    platform.date = _date(clock)
    tick()
    clock.advance(86_400)
    platform.date = None
    clock.step(86_400)
    tick()
    before = list(ran)
    clock.step(-86_400)
    platform.date = _date(clock)
    tick()
    clock.advance(86_400)
    platform.date = _date(clock)
    tick()
    assert before == ["2025-03-03 at 03 12"]
    assert ran[1:] == ["2025-03-02 at 02 12", "2025-03-03 at 03 12"]
