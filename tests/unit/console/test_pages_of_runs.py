"""The pages of runs in the console: list, calendar, one run and a month, for people of each role."""

from __future__ import annotations

import io
import re
from contextlib import AbstractContextManager, closing, redirect_stdout
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.report_page import HOSTILE, Page, dead_letter, finish, start
from tests.unit.cli.conftest import CONFIG
from tests.unit.console.visitor import Visitor, visiting
from tests.unit.state.samples import intent

from crossdock.cli.main import main
from crossdock.config.project import project
from crossdock.console.visitors_and_roles import Role
from crossdock.state import DueRun, RunResult, State
from crossdock.testing.manual_clock import ManualClock
from crossdock.values.run_progress_and_messages import RunMessage

NOW = datetime(2026, 4, 2, 12, tzinfo=UTC)
JOBS = 'jobs: {nightly: {streams: [wms], schedule: {cron: "15 2 * * *", time_zone: UTC}}}\n'


class Site:
    """A config with its state, and its pages in the console."""

    def __init__(self, folder: Path) -> None:
        self.config = folder / "c.yaml"
        personal = CONFIG.replace("resource: product", "resource: product\n        personal: [name]")
        self.config.write_text(personal + JOBS, encoding="utf-8")
        project.load(self.config).create_or_upgrade_state()

    def state(self) -> State:
        return project.load(self.config).open_state()

    def visiting(self, role: Role = Role.ADMINISTRATOR) -> AbstractContextManager[Visitor]:
        return visiting(self.config, role=role, clock=ManualClock(NOW))

    def visit(self, address: str, role: Role = Role.ADMINISTRATOR, *, status: int = 200) -> str:
        """Return the page at *address* of the tenant."""
        with self.visiting(role) as visitor:
            return visitor.html(f"/t/acme/{address}", status)

    def command(self, *arguments: str) -> str:
        with redirect_stdout(io.StringIO()) as out, pytest.raises(SystemExit) as ended:
            main(["-C", str(self.config), *arguments])
        assert ended.value.code == 0
        return out.getvalue()


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.setenv("CROSSDOCK_API_KEY", "key")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "exports").mkdir()
    return Site(tmp_path)


def links(html: str) -> set[str]:
    return {address.replace("&amp;", "&") for address in re.findall(r'href="(/t/[^"]*)"', html)}


def test_a_run_in_progress_shows_its_progress_and_can_be_stopped(site: Site) -> None:
    """Only operators are offered to stop it; the page is loaded again by itself."""
    with closing(site.state()) as state, state.hold_run_lease("test:0"):
        with state.begin() as tx:
            run = tx.runs.start(business_date="2026-04-02", at=NOW - timedelta(minutes=1), job="nightly")
            tx.runs.store_request_counts(run, requests=1200, throttled=0)
        shown = site.visit(f"runs/{run}")
        assert "In progress: 1,200 requests in 1 min 0 s, 20.0 a second; its end is unknown" in shown
        assert f"/t/acme/do/stop-run?run={run}" in links(shown)
        assert not any("/do/" in each for each in links(site.visit(f"runs/{run}", Role.VIEWER)))


def test_an_action_names_the_run_that_it_waits_for(site: Site) -> None:
    """Also if another one was refused since, which is newer."""
    with closing(site.state()) as state, state.hold_run_lease("test:0"):
        with state.begin() as tx:
            run = tx.runs.start(business_date="2026-04-02", at=NOW, job="nightly")
            tx.runs.record_failed_start(RunMessage("error", "", "busy"), business_date="2026-04-02", at=NOW, job=None)
        assert f"Run {run} is in progress since 2026-04-02 12:00:00Z" in site.visit("do/sync")
        assert "is in progress" not in site.visit("do/plan")


def test_codes_of_errors_and_warnings_lead_to_their_meanings(site: Site) -> None:
    """Each once; a note has no code, nor has a warning of an older version."""
    said = [
        RunMessage("error", "wms.lots", "a file is missing", "file_missing"),
        RunMessage("warning", "wms.lots", "fewer rows", "snapshot_differs"),
        RunMessage("warning", "wms.products", "fewer rows", "snapshot_differs"),
        RunMessage("warning", "wms.products", "of an older version"),
        RunMessage("note", "wms.products", "3 files were read"),
    ]
    with closing(site.state()) as state, state.begin() as tx:
        run = start(tx)
        tx.runs.finish(run, RunResult("failed", messages=said), at=NOW)
    found = re.findall(r'href="/t/acme/codes/(\w+)"', site.visit(f"runs/{run}"))
    assert found == ["file_missing", "snapshot_differs"]


def test_what_was_rejected_leads_to_its_records_and_to_a_replay(site: Site) -> None:
    """By stream and reason; the records are listed on pages of their own. Undoing is for administrators."""
    with closing(site.state()) as state, state.begin() as tx:
        run = start(tx)
        tx.dead_letters.put([dead_letter(1), dead_letter(2, code="conflict")], run_id=run, at=NOW)
        finish(tx, run, rejected=2)
    chosen = "stream=wms.invoices&reason=conflict"
    shown = links(site.visit(f"runs/{run}"))
    assert {f"/t/acme/records/rejected?{chosen}", f"/t/acme/do/replay?{chosen}", f"/t/acme/do/undo?run={run}"} <= shown
    operator = links(site.visit(f"runs/{run}", Role.OPERATOR))
    assert f"/t/acme/do/undo?run={run}" not in operator
    assert "/t/acme/do/replay" in operator
    assert not Page(site.visit(f"runs/{run}")).under("stream", "key")


def test_what_a_run_delivered_is_listed_page_by_page(site: Site) -> None:
    """The numbers of its account lead there; what it has not delivered, or the target held already, is left out."""
    streams = ("wms.products",) * 250 + ("wms.orders",) * 3
    made = [intent(n, stream=each, status="delivered") for n, each in enumerate(streams)]
    made += [intent(300, status="in_doubt"), intent(301, status="delivered", untouched=True)]
    with closing(site.state()) as state, state.begin() as tx:
        for items in (made, [intent(400, status="delivered")]):
            run = start(tx)
            tx.intents.add(items, run_id=run, fence=1, at=NOW)
            tx.intents.write_outcomes(items, at=NOW)
            finish(tx, run, created=len(items))
    run -= 1
    assert f"/t/acme/runs/{run}/delivered" in links(site.visit(f"runs/{run}"))
    with site.visiting() as visitor:
        shown, seen = visitor.html(f"/t/acme/runs/{run}/delivered"), 0
        assert "253 operations of this run were confirmed" in shown
        chosen = f"/t/acme/runs/{run}/delivered?stream=wms.products&operation=create"
        assert chosen in links(shown)
        following: str | None = chosen
        while following:
            shown = visitor.html(following)
            seen += sum("/record?" in each for each in links(shown))
            following = next((each for each in links(shown) if "after=" in each), None)
    assert seen == 250
    site.visit("runs/77/delivered", status=404)
    site.visit(f"runs/{run}/delivered?after=x", status=404)


def test_personal_members_are_shown_on_request_to_operators_alone(site: Site) -> None:
    """And that they were shown is logged."""
    changed = intent(
        1, stream="wms.products", operation="update", status="delivered", before={"name": "Amsel", "sku": "1"},
        after={"name": "Meise", "sku": "2"},
    )  # fmt: skip
    with closing(site.state()) as state, state.begin() as tx:
        run = start(tx)
        tx.intents.add([changed], run_id=run, fence=1, at=NOW)
        finish(tx, run, updated=1)
    for role, asked, is_shown in (
        (Role.VIEWER, "", False),
        (Role.OPERATOR, "", False),
        (Role.OPERATOR, "?show=data", True),
    ):
        shown = site.visit(f"runs/{run}{asked}", role)
        assert ("Amsel" in shown) is is_shown
        assert "K1: 1 -&gt; 2" in shown
        assert (f"run {run}" in site.visit("audit?action=view", Role.OPERATOR)) is is_shown
    site.visit(f"runs/{run}?show=data", Role.VIEWER, status=403)


def test_the_calendar_leads_to_the_runs_of_a_date(site: Site) -> None:
    """To the run itself, or to the list of several; symbols have a text; earlier dates have an address of their own."""
    with closing(site.state()) as state, state.begin() as tx:
        for hour in (0, 0, 1):
            newest = tx.runs.start(business_date=f"2026-03-3{hour}", at=NOW, command="sync")
        tx.scheduled_runs.get_or_register_first_seen("nightly", NOW - timedelta(days=3))
        tx.scheduled_runs.begin_unless_finished(DueRun("nightly", NOW, NOW.date()), at=NOW)
    shown = site.visit("runs/calendar")
    assert {f"/t/acme/runs/{newest}", "/t/acme/runs?date=2026-03-30&manual=1"} <= links(shown)
    assert (
        'aria-label="nightly, 2026-03-31: missed; by the present schedule a run was due, and none is recorded"' in shown
    )
    assert "/t/acme/runs/calendar?until=2026-02-26" in links(shown)
    assert "started by hand, 2026-03-30" not in site.visit("runs/calendar?until=2026-02-26")
    listed = Page(site.visit("runs?date=2026-03-30&manual=1"))
    assert [line[0] for line in listed.under("run", "what")] == ["2", "1"]


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("runs?date=yesterday", 400), ("runs?date=0001-01-01", 400), ("runs?before=-1", 200), ("runs/x", 404),
        ("runs/999999999999999999999", 404), ("runs/calendar?until=2026-02-30", 400),
        ("runs/calendar?until=9999-12-31", 400), ("month/2026-13", 400), ("month/x", 400), ("month/0001-01", 400),
    ],
)  # fmt: skip
def test_bad_values_in_an_address_are_refused(site: Site, address: str, status: int) -> None:
    """With a page that says so."""
    site.visit(address, status=status)


def test_pages_work_while_the_config_cannot_be_loaded(site: Site) -> None:
    """They say what is unknown without it."""
    with closing(site.state()) as state, state.begin() as tx:
        finish(tx, start(tx), created=3)
    with site.visiting() as visitor:
        site.config.write_text(site.config.read_text().replace("mode: append", "mode: nonsense"))
        assert "Missed dates are not known without it." in visitor.html("/t/acme/runs/calendar")
        assert "Resources and missed dates are not known without it." in visitor.html("/t/acme/month/2026-03")
        assert "The tally balances." in visitor.html("/t/acme/runs/1")


@pytest.mark.parametrize(
    ("arguments", "address"),
    [
        (["2"], "runs/2"),
        (["--month", "2026-03"], "month/2026-03"),
        (["--month", "2099-01"], "month/2099-01"),  # which has not come
    ],
)
def test_a_report_is_the_same_page_as_a_file_without_links(
    site: Site, arguments: list[str], address: str, tmp_path: Path
) -> None:
    """Its tables have the same cells, and texts of others are text."""
    with closing(site.state()) as state, state.begin() as tx:
        for days in range(2):
            run = start(tx, days=days)
            tx.dead_letters.put([dead_letter(days, key=HOSTILE, source=HOSTILE, message=HOSTILE)], run_id=run, at=NOW)
            finish(tx, run, created=3, rejected=1, error=HOSTILE)
    file = tmp_path / "report.html"
    site.command("report", *arguments, "-o", str(file))
    served, written = Page(site.visit(address, Role.VIEWER)), Page(file.read_text(encoding="utf-8"))
    assert not written.tags & {"a", "script", "link"}
    assert "style" not in written.names | served.names
    own = [table for table in written.tables if table[0][:2] != ["stream", "key"]]
    assert own == served.tables
