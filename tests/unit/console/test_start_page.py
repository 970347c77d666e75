"""The start page: each job in one condition, with one sentence about what to do next that leads to its page."""

from __future__ import annotations

import io
import re
from contextlib import closing, redirect_stdout
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from tests.report_page import dead_letter
from tests.unit.cli.conftest import CONFIG
from tests.unit.console.visitor import visiting

from crossdock import errors
from crossdock.cli.main import main
from crossdock.config.project import project
from crossdock.console import start_page_and_remedies
from crossdock.console.visitors_and_roles import Role
from crossdock.errors import CrossdockError, RecordError
from crossdock.state import DueRun, PendingApproval, RunResult, SkippedRun, State, Transaction
from crossdock.state.tables.pending_approvals_and_begun_undos import packed_key_hashes
from crossdock.state.tables.run_history import UNRECORDED
from crossdock.testing.manual_clock import ManualClock
from crossdock.values.run_progress_and_messages import RunMessage

NOW = datetime(2026, 4, 2, 6, tzinfo=UTC)
DUE = datetime(2026, 4, 2, 2, 15, tzinfo=UTC)
JOBS = """\
jobs:
  nightly: {streams: [wms], schedule: {cron: "15 2 * * *", time_zone: UTC}}
  later: {streams: [wms], schedule: {cron: "30 2 * * *", time_zone: UTC}, after: [nightly]}
"""


class Site:
    def __init__(self, folder: Path) -> None:
        self.config = folder / "c.yaml"
        self.config.write_text(CONFIG + JOBS, encoding="utf-8")
        project.load(self.config).create_or_upgrade_state()

    def state(self) -> State:
        return project.load(self.config).open_state()

    def row(self, job: str) -> list[str]:
        """The cells of *job* on the start page, without its actions."""
        with visiting(self.config, role=Role.VIEWER, clock=ManualClock(NOW)) as visitor:
            (row,) = [each for each in visitor.page("/t/acme").under("job", "status") if each[0] == job]
        return row

    def todo(self) -> list[list[str]]:
        """What needs a person: what it is, and what to do."""
        with visiting(self.config, role=Role.VIEWER, clock=ManualClock(NOW)) as visitor:
            return [each[1:] for each in visitor.page("/t/acme").under("since", "what")]

    def ran(self, job: str, day: date, *messages: RunMessage, status: str = "done", due: datetime = DUE) -> None:
        with closing(self.state()) as state, state.hold_run_lease("test:0"), state.begin() as tx:
            ran(tx, DueRun(job, due, day), *messages, status=status)


def ran(tx: Transaction, due_run: DueRun, *messages: RunMessage, status: str) -> None:
    assert tx.scheduled_runs.begin_unless_finished(due_run, at=due_run.due)
    run = tx.runs.start(business_date=due_run.business_date.isoformat(), at=due_run.due, job=due_run.job)
    tx.runs.finish(run, RunResult(status, messages=messages), at=due_run.due + timedelta(minutes=1))
    tx.scheduled_runs.finish(due_run, status, run, None, at=due_run.due + timedelta(minutes=1))  # type: ignore[arg-type]  # one of its literals


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.setenv("CROSSDOCK_API_KEY", "key")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "exports").mkdir()
    return Site(tmp_path)


def codes() -> set[str]:
    kinds = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, CrossdockError)]
    return {each.category for each in kinds if each is not RecordError}


def test_there_is_a_sentence_for_each_kind_of_error() -> None:
    """Whatever ended a run, one sentence says what to do next."""
    assert codes() | {UNRECORDED.code, "not_started"} == start_page_and_remedies.REMEDY_BY_ERROR_CATEGORY.keys()
    assert all(do.endswith(".") for do, _ in start_page_and_remedies.REMEDY_BY_ERROR_CATEGORY.values())


def test_a_failed_job_says_what_happened_what_the_command_advised_and_what_to_do(site: Site) -> None:
    """The sentence leads to the page where that is done."""
    error = RunMessage("error", "", "HTTP 401", "unauthorized", "http://erp.example", "check platform.auth")
    site.ran("nightly", DUE.date(), error, status="failed")
    assert site.row("nightly")[1] == "failed"
    [(what, do)] = site.todo()
    assert "Job nightly for 2026-04-02 did not end as it should: http://erp.example: HTTP 401 [unauthorized]" in what
    assert "check platform.auth." in what
    assert do == site.row("nightly")[-1] == start_page_and_remedies.REMEDY_BY_ERROR_CATEGORY["unauthorized"][0]


def test_a_job_that_only_waits_for_an_approval_is_one_thing_to_do(site: Site) -> None:
    """Its error says the same as the approval; once that is given, the next run makes the changes."""
    error = RunMessage("error", "wms.products", "40 of 42 known records would be updated", "refused")
    site.ran("nightly", DUE.date(), error, status="incomplete")
    held = PendingApproval("wms.products", "update product in wms", packed_key_hashes(range(40)), NOW)
    with closing(site.state()) as state, state.begin() as tx:
        tx.pending_approvals.request_approval(held)
    assert site.todo() == [
        [
            "40 changes of wms.products beyond a limit wait for a decision.",
            "Look at them, then approve them, or correct the source.",
        ]
    ]
    with closing(site.state()) as state, state.begin() as tx:
        tx.pending_approvals.approve(held, at=NOW)
    assert site.row("nightly")[-1].startswith("Start it again to make the changes that were approved")


@pytest.mark.parametrize(
    ("is_open", "do"), [(True, "then replay what was rejected"), (False, "what was open was settled since")]
)
def test_a_degraded_job_says_what_is_open_now(site: Site, do: str, *, is_open: bool) -> None:
    """What was open at its end may have been settled since."""
    site.ran("nightly", DUE.date(), status="degraded")
    if is_open:
        with closing(site.state()) as state, state.begin() as tx:
            tx.dead_letters.put([dead_letter(1)], run_id=1, at=NOW)
    assert do in site.row("nightly")[-1]


def test_a_run_that_was_skipped_does_not_hide_one_that_failed(site: Site) -> None:
    """It was due while the other one ran, or is not caught up with: nothing was delivered since."""
    site.ran(
        "nightly", date(2026, 4, 1), RunMessage("error", "", "no answer", "target_unavailable"), status="incomplete"
    )
    with closing(site.state()) as state, state.hold_run_lease("test:0"), state.begin() as tx:
        later = SkippedRun("nightly", DUE + timedelta(hours=1), date(2026, 4, 2), "skipped", "catch_up: none")
        tx.scheduled_runs.skip([later], at=later.due)
    assert "failed" in site.row("nightly")[1]


def test_a_missing_job_says_why(site: Site) -> None:
    """It waits for a job before it, for a run in progress, or nothing has started it."""
    before = DUE - timedelta(days=1)
    for job in ("nightly", "later"):
        site.ran(job, before.date(), due=before)
    assert "no scheduler has started it" in site.todo()[0][0]
    assert "it begins after nightly, which has not ended for 2026-04-02" in site.todo()[1][0]
    assert site.row("later")[-1] == "See why nightly has not ended."
    with closing(site.state()) as state, state.hold_run_lease("test:0"):
        with state.begin() as tx:
            tx.runs.start(business_date="2026-04-02", at=NOW - timedelta(hours=5), command="sync")
        assert "run 3 (sync) has been in progress since 2026-04-02 01:00:00Z" in site.todo()[0][0]
        assert site.row("nightly")[-1] == "Wait for run 3, or stop it."


def test_a_paused_job_names_who_paused_it(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the audit log."""
    monkeypatch.setenv("CROSSDOCK_PERSON", "Ada")
    with redirect_stdout(io.StringIO()), pytest.raises(SystemExit):
        main(["-C", str(site.config), "jobs", "pause", "nightly"])
    assert any("Job nightly is paused: Ada has paused it at" in what for what, _ in site.todo())


def test_a_config_that_cannot_be_loaded_needs_a_person(site: Site) -> None:
    """The start page has it first, with the place in the file, since no run can start with it."""
    site.ran("nightly", date(2026, 4, 1))
    with visiting(site.config, role=Role.VIEWER, clock=ManualClock(NOW)) as visitor:
        site.config.write_text(CONFIG + JOBS.replace("time_zone: UTC}}", "time_zone: Mars}}", 1), encoding="utf-8")
        page = visitor.page("/t/acme")
        link = re.search(r'href="([^"]*)">Correct the config', visitor.html("/t/acme"))
    ((_, what, do),) = page.under("since", "what")
    assert what.startswith("The config cannot be loaded, so no run can start with it: ")
    assert "c.yaml:" in what
    assert do == "Correct the config where the error says."
    assert link is not None
    assert link[1] == "/t/acme/settings"
    assert page.under("job", "status")[0][0] == "nightly"
