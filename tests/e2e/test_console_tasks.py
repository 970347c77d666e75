"""Ten tasks of operators: each answer is at most three clicks from the start page, by links and search forms only."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.e2e import order_depot
from tests.e2e.folder_project import table
from tests.e2e.migrated_folder import STREAMS, MigratedFolder
from tests.e2e.partner_files import PartnerFiles, later
from tests.e2e.test_folder_warehouse import serve_folder
from tests.e2e.warehouse import FORWARD, PRODUCTS, Front, Reply, Seen, Site
from tests.plain_browser import Browser, Page
from tests.waiting import eventually

from crossdock.config.project import project
from crossdock.console import tenant_configs_and_states, web_server
from crossdock.runs import sync_and_replay
from crossdock.sandbox import SandboxServer
from crossdock.testing import ManualClock
from crossdock.values.clock import Clock, SystemClock
from crossdock.values.run_progress_and_messages import SilentProgress

MOST_CLICKS = 3
UNKNOWN_PRODUCT = {"SO-900": [("9999", "1", "9.50")]}


class Operator:
    """A person at the start page, whose clicks are counted: a link that is followed, or a form that is sent."""

    def __init__(self, base_url: str) -> None:
        self.browser, self.clicks = Browser(base_url), 0
        self.page = self.browser.open("/")

    def follow(self, text: str) -> Page:
        return self._clicked(self.browser.follow(self.page, text))

    def send(self, number: int = -1, /, **entered: str) -> Page:
        return self._clicked(self.browser.send(self.page, number, **entered))

    def search(self, text: str) -> Page:
        """Enter *text* into the search field that every page has."""
        return self.send(0, q=text)

    def ended(self) -> str:
        """Wait for the started command, and return what its page says."""

        return self._read_until_without("It is running")

    def follow_to_counted(self, text: str) -> str:
        """Follow a link, and return what its page says when records are counted."""
        self.follow(text)
        return self._read_until_without("being counted")

    def _read_until_without(self, text: str) -> str:
        def has_ended() -> bool:
            self.page = self.browser.open(self.page.url)
            return text not in self.page.text

        eventually(has_ended)
        return self.page.text

    def _clicked(self, page: Page) -> Page:
        self.clicks += 1
        assert self.clicks <= MOST_CLICKS, f"{self.clicks} clicks"
        assert page.status == 200, page.text
        self.page = page
        return page


@contextmanager
def operator(config: Path, clock: Clock | None = None) -> Iterator[Operator]:
    with web_server.serve_console_in_thread(
        tenant_configs_and_states.single_tenant([config]), clock or SystemClock()
    ) as base_url:
        yield Operator(base_url)


def folder_site(site: Site) -> Site:
    serve_folder(site)
    site.init()
    site.fill()
    return site


def test_which_orders_did_not_reach_the_3pl_and_why(tmp_path: Path) -> None:
    """The list of what last night's run rejected names each order, and the answer of the 3PL."""
    with order_depot.depot(tmp_path) as depot:
        depot.export(order_depot.some_orders(3) | UNKNOWN_PRODUCT)
        depot.sync(exit_code=1)
        with operator(depot.folder / "c.yaml") as who:
            assert "wms.orders rejected 1" in who.follow("degraded").text
            found = who.follow("1").text
            assert re.search("SO-900 wms.orders .*acme has no product '9999'", found), found
            assert "SO-001" not in found


def test_which_acknowledgement_is_overdue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The start page names the partner, the file and when it was due, whether or not a run has come since."""
    stage = PartnerFiles(tmp_path)
    stage.export("SO-1,Ann,1", "SO-2,Bob,2")
    stage.sync()
    clock = ManualClock(datetime.now(UTC) + timedelta(hours=9))
    with operator(stage.config, clock) as who:
        assert re.search(r"wms has not acknowledged ord_00001.csv with 2 records, .* due by \S+ \S+Z", who.page.text)
        assert "SO-2 shop.orders" in who.follow("Ask the partner whether it has the file; after the next run").text
    later(monkeypatch, hours=9)
    stage.sync(1)
    with operator(stage.config, clock) as who:
        assert "SO-2 shop.orders" in who.follow("Ask the partner whether it has the file, then resolve").text
        assert "The decision is about 2 operations." in who.follow("Resolve").text


def test_replay_what_failed_for_a_missing_product(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The group of rejected records of one reason is replayed by one action, and its page says that it is delivered."""
    with order_depot.depot(tmp_path) as depot:
        depot.export(UNKNOWN_PRODUCT)
        depot.sync(exit_code=1)
        depot.partner.warehouse.add_product("acme", "9999")
        for name, value in depot.environment.items():
            monkeypatch.setenv(name, value)
        with operator(depot.folder / "c.yaml") as who:
            who.follow("Correct the source or the mapping")
            assert "1 record will be mapped again" in who.follow("Replay rejected records").text
            who.send(why="the 3PL has the product now")
            done = who.ended()
            assert "wms.orders 1 0 0 1 run 2: done" in done, done
            assert "nothing of it is left to do" in done
        assert depot.created() == {"wms:SO-900": 1}


def test_what_did_this_customers_record_look_like_on_monday(site: Site) -> None:
    """Its page shows the content of the day that is asked for; personal values are shown on request."""
    monday = datetime(2026, 3, 2, 5, tzinfo=UTC)
    clock = ManualClock(monday)
    serve_folder(site)
    site.init()
    for days, name in ((0, "Drossel"), (2, "Star")):
        clock.advance(days * 86_400)
        site.export(f"CUST_{days}.csv", f"CUSTNO;NAME\nC1;{name}\n")
        sync(site, clock)
    with operator(site.config, clock) as who:
        record = who.search("C1")
        form = next(number for number, each in enumerate(record.forms) if "day" in each["fields"])
        found = who.send(form, day="2026-03-02").text
        assert "Since 2026-03-02 05:00:00Z, run 1" in found
        assert "Drossel" not in found
        assert "/name Drossel" in who.follow("Show personal data").text


def sync(site: Site, clock: Clock) -> None:
    loaded = project.load(site.config)
    report = sync_and_replay.sync(loaded, [], clock=clock, progress=SilentProgress(), interrupt=threading.Event())
    assert report.exit_code == 0, report.errors


def test_was_a_file_imported_twice(site: Site) -> None:
    """A search for its name says how often, with the time of each import."""
    folder_site(site)
    site.sync()
    site.export("PROD_1.csv", PRODUCTS.replace("0.25", "0.30"))
    site.sync()
    with operator(site.config) as who:
        found = who.search("PROD_1.csv").text
        assert "PROD_1.csv was imported 2 times, with 2 different contents." in found
        assert len(re.findall(r"PROD_1.csv wms.products \d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ imported", found)) == 2


def test_who_approved_the_price_change(site: Site) -> None:
    """The audit log names the person, the stream, the number of updates and the reason."""
    serve_folder(site)
    site.edit("key: [SKU]", "key: [SKU]\n        changes: {at_most: 1}", within="products:")
    site.init()
    site.fill()
    site.sync()
    site.export("PROD_2.csv", PRODUCTS.replace("1.50", "1.60").replace("0.25", "0.30"))
    assert site.sync().code == 4
    site.setenv("CROSSDOCK_PERSON", "Ada")
    site.setenv("CROSSDOCK_REASON", "the prices of March")
    assert site.run("approve", "wms.products", "2").code == 0
    with operator(site.config) as who:
        found = who.follow("Audit").text
        assert re.search(r"Z Ada .*approve stream wms.products .*\b2\b.*the prices of March done", found), found


def test_why_is_this_job_late(site: Site, front: Front) -> None:
    """The start page names the run that it waits for, and a link leads to its progress."""
    now = datetime.now(UTC)
    folder_site(site)
    due = f"{now - timedelta(hours=1):%H:%M}"
    site.config.write_text(
        f"{site.config.read_text()}jobs: {{nightly: {{schedule: {{time_zone: UTC, at: '{due}'}}}}}}\n"
    )
    days = [(now - timedelta(hours=1, days=number)).date() for number in (2, 0)]
    assert site.run("schedule", "--once", f"{days[0]}").code == 0
    site.export("PROD_2.csv", "SKU;NAME;PRICE\nP3;Screw;0.10\n")
    goes_on, is_sending = threading.Event(), threading.Event()

    def waits(_: Seen) -> str:
        is_sending.set()
        goes_on.wait(60)
        return FORWARD

    front.fate = waits
    running = threading.Thread(target=sync, args=(site, SystemClock()))
    running.start()
    try:
        assert is_sending.wait(60)
        with operator(site.config) as who:
            late = (
                rf"Job nightly for \S+ has not begun; it was due at \S+ {due}:00Z: run 2 \(sync\) has been in progress"
            )
            assert re.search(late, who.page.text), who.page.text
            assert re.search(r"In progress: [\d,]+ requests? in .* a second", who.follow("Wait for run 2").text)
    finally:
        goes_on.set()
        running.join()


def test_what_changed_since_the_config_edit(site: Site) -> None:
    """The settings name each value then and now, and the streams; a plan names the members."""
    folder_site(site)
    site.sync()
    site.edit("unitPrice: {from: PRICE, as: decimal}", "unitPrice: {const: 2.00}", within="products:")
    with operator(site.config) as who:
        found = who.follow("Settings").text
        changed = "connections.wms.streams.products.map.unitPrice"
        assert re.search("6 settings had another value in run 1 ?:", found), found
        assert re.search(rf"{changed}.from PRICE \(not set\)", found), found
        assert re.search(rf"{changed}.const \(not set\) 2 crossdock.yaml:\d+", found), found
        assert re.search(r"wms.products \S+ \S+ \S+Z no, changed since the import of \S+ \S+Z", found), found
        assert "wms.customers" in found
        assert found.count("no, changed") == 1
        who.follow("Plan a sync: wms.products")
        who.send()
        done = who.ended()
        assert re.search(r"update wms.products P1 unitPrice: 1.5 -> 2 update wms.products P2", done), done


def test_is_the_partner_throttling_us(site: Site, front: Front) -> None:
    """The page of connections says how many requests were refused for their rate, and in which run last."""
    front.fate = lambda seen: Reply(429, headers={"retry-after": "0"}) if seen.number % 4 == 2 else FORWARD
    folder_site(site)
    site.run("sync")
    with operator(site.config) as who:
        found = who.follow("Connections").text
        assert re.search(r"[1-9]\d* of \d+ requests \(\d+ %\) of the last 1 run were refused, last in run 1", found), (
            found
        )


@pytest.fixture
def migrated(tmp_path: Path) -> Iterator[MigratedFolder]:
    with SandboxServer(tmp_path / "platform") as platform:
        yield MigratedFolder(tmp_path / "migrated", platform)


def test_is_the_migration_done(migrated: MigratedFolder) -> None:
    """The page of the migration says which waves are done, and which is next."""
    migrated.fill()
    migrated.load()
    with operator(migrated.config) as who:
        found = who.follow_to_counted("Migration")
        assert "All waves are done." in found
        assert "6 of 6 records delivered" in found


@pytest.mark.nightly
def test_undo_wave_3(migrated: MigratedFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """The wave's action says what it will do, undoes that wave alone, and its page says what was done."""
    monkeypatch.setenv("CROSSDOCK_API_KEY", migrated.platform.api_key)
    shelves = table("SHELF*.csv", ["CODE"], resource="warehouse_bin", map={"code": "CODE", "warehouse": {"const": "H"}})
    streams = {**STREAMS, "shelves": shelves}
    migrated.configure(
        connections={"wms": {"kind": "folder_warehouse", "path": "out", "settle_s": 0, "streams": streams}},
        migration={
            "name": "acme",
            "waves": {name: {"streams": [f"wms.{name}"]} for name in ("customers", "products", "shelves")},
        },
    )
    migrated.fill()
    migrated.write("SHELF1.csv", "CODE\nA1\nA2\n")
    migrated.load()
    with operator(migrated.config) as who:
        who.follow_to_counted("Migration")
        assert "wms.shelves: 2 records created." in who.follow("Undo a wave: shelves").text
        who.send(how="execute", why="the shelves are counted again")
        done = who.ended()
        assert "undo of wave shelves of migration acme: 2 delete" in done, done
        assert "run 4: done, 2 requests" in done
    assert [each["wave"] for each in migrated.status()["waves"] if each["state"] != "done"] == ["shelves"]
    assert [each["resource"] for each in migrated.effects() if each["operation"] == "delete"] == ["warehouse_bin"] * 2
    migrated.load()
    assert migrated.states()["shelves"][0] == "done"
