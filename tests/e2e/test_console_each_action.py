"""Each action of the console, through its pages, while a scheduler runs a job of the same state every second."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qsl, urljoin, urlsplit

import pytest
from tests.chaos.soon_asking import SOON_ASKING
from tests.console_crawl import complete_page
from tests.e2e.folder_project import table
from tests.e2e.migrated_folder import STREAMS, WAVES, MigratedFolder
from tests.e2e.processes import SchedulerProcesses
from tests.e2e.project_folder import in_process
from tests.e2e.test_audit import OPEN
from tests.e2e.test_bad_platform import NO_KEYS
from tests.e2e.test_folder_warehouse import serve_folder
from tests.e2e.test_reconcile import call
from tests.e2e.warehouse import FORWARD, LOSE, PRODUCTS, Front, Seen, Site
from tests.partners.shop_stage import WooCommerceStage, woocommerce_stage
from tests.partners.woocommerce.shop import FakeShop
from tests.plain_browser import Browser, Page
from tests.waiting import eventually

from crossdock.console import tenant_configs_and_states, web_server
from crossdock.console.action_definitions import ACTIONS
from crossdock.sandbox import SandboxServer
from crossdock.testing.sandbox_syncs import write_private_file
from crossdock.values import exact_json
from crossdock.values.clock import SystemClock

pytestmark = pytest.mark.nightly

REASON = "the partner has asked for it"
OFTEN = {"time_zone": "UTC", "every": "1s"}
BUSY = "[state_busy]"
RAN = " after "  # a run has ended, whatever its result


@dataclass
class Desk:
    """A person at the console of a tenant."""

    config: Path
    tenant: str
    browser: Browser

    def page(self, place: str) -> Page:
        return complete_page(self.browser, f"/t/{self.tenant}{f'/{place}' if place else ''}")

    def place(self, page: Page) -> str:
        return urlsplit(page.url).path.removeprefix(f"/t/{self.tenant}/")

    def links(self, place: str, action: str, **fields: str) -> list[str]:
        """Return the addresses of *action* about *fields* to which the page at *place* leads."""
        page = self.page(place)
        addresses = [urlsplit(each.address) for each in page.links]
        return [
            urljoin(page.url, each.geturl())
            for each in addresses
            if each.path.endswith(f"/do/{action}") and fields.items() <= dict(parse_qsl(each.query)).items()
        ]

    def start(self, place: str, action: str, entered: Mapping[str, str], **fields: str) -> Page:
        """Follow the link to *action* on the page at *place*, which is about *fields*, and confirm what it shows."""
        while True:
            preview = self.browser.open(self.links(place, action, **fields)[0])
            assert [each for each in preview.forms if each["method"] == "post"], preview.text
            answer = self.browser.send(preview, why=REASON, **entered)
            if answer.status != 409 or "It has changed since it was shown" not in answer.text:
                assert answer.status == 200, answer.text
                return answer  # otherwise a run of the scheduler has begun or ended

    def ended(self, page: Page) -> Page:
        pages = [page]

        def has_ended() -> bool:
            pages[0] = self.browser.open(page.url)
            return "It is running" not in pages[0].text

        eventually(has_ended)
        return pages[0]

    def done(self, place: str, action: str, entered: Mapping[str, str] | None = None, **fields: str) -> Page:
        """Carry out an action, again if it met a run of the scheduler; return the page of the command."""
        while True:
            page = self.ended(self.start(place, action, entered or {}, **fields))
            if BUSY not in page.text:
                assert re.search(r"exit code [01]\b", page.text), page.text
                return page

    def audit(self) -> list[dict[str, Any]]:
        """Return the rows of the audit log, oldest first."""
        done = in_process(self.config, "audit", "--json", "--limit", "100000", environment={})
        found: list[dict[str, Any]] = json.loads(done.stdout)
        return found[::-1]


class Stage:
    """A config whose jobs a process runs from the first use of its desk until `end`; a context manager."""

    def __init__(self, config: Path, tenant: str) -> None:
        self.config, self.tenant, self._stack = config, tenant, ExitStack()

    @cached_property
    def desk(self) -> Desk:
        base_url = self._stack.enter_context(
            web_server.serve_console_in_thread(tenant_configs_and_states.single_tenant([self.config]), SystemClock())
        )
        command = [*SOON_ASKING, "-C", str(self.config), "schedule"]
        self._jobs = self._stack.enter_context(SchedulerProcesses(command, self.config.parent / "schedule.log"))
        self._jobs.start()
        self._jobs.says(RAN)
        return Desk(self.config, self.tenant, Browser(base_url))

    def end(self) -> None:
        """Fails unless the scheduler still runs its jobs, and never found the state locked."""
        self._jobs.says(RAN)
        assert self._jobs.stop() == [0]
        assert not re.search("locked|Traceback", self._jobs.log), self._jobs.log

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


# ---- records, runs and jobs


class Depot(Stage):
    """A warehouse with an invoice that was rejected, one in doubt and one that waits."""

    def __init__(self, site: Site, front: Front) -> None:
        super().__init__(site.config, site.tenant)
        self.site, self.front = site, front

    @property
    def in_doubt(self) -> str:
        """The id at the platform of the invoice in doubt, which it has created."""
        (made,) = [each["id"] for each in self.site.effects("invoice") if each["body"]["items"][0]["quantity"] == 100]
        return str(made)

    def states(self) -> dict[str, list[str]]:
        found = dict[str, list[str]]()
        for each in self.site.listed("--all"):
            found.setdefault(each["state"].replace("_", "-"), []).append(each["key"])
        return found

    def paused(self) -> list[str]:
        found: list[str] = self.site.run("jobs", "list", "--json").json["paused"]
        return found

    def runs(self) -> list[dict[str, Any]]:
        """The newest first, without those of the job that runs often."""
        found: list[dict[str, Any]] = self.site.run("runs", "--json", "--limit", "1000").json
        return [each for each in found if each["job"] != "often"]

    def new_product(self) -> None:
        self.site.export("PROD_2.csv", "SKU;NAME;PRICE\nP3;Screw;0.10\n")

    def products(self) -> list[str]:
        return [each.removeprefix("wms:") for each in self.site.names("product")]


@pytest.fixture
def depot(site: Site, front: Front) -> Iterator[Depot]:
    site.edit(*NO_KEYS)
    serve_folder(site)
    site.edit("key: [SKU]", "key: [SKU]\n        changes: {at_most: 1}", within="products:")
    jobs = {
        "nightly": {"streams": ["wms.customers"], "schedule": {"time_zone": "UTC", "at": "00:00"}},
        "often": {"streams": ["wms.customers"], "schedule": OFTEN},
    }
    site.config.write_text(f"{site.config.read_text()}jobs: {json.dumps(jobs)}\n")
    site.init()
    site.fill()
    site.export("INV_1.csv", OPEN)
    front.fate = lambda seen: LOSE if b'"quantity":100' in seen.body else FORWARD
    assert site.sync().code == 1
    front.fate = lambda _: FORWARD
    with Depot(site, front) as stage:
        yield stage


def replay(depot: Depot) -> None:
    depot.site.edit("quantity: {from: QTY, as: decimal}", "quantity: {const: 7}")
    depot.desk.done("records/rejected?stream=wms.invoices", "replay", stream="wms.invoices")
    assert [each["body"]["items"][0]["quantity"] for each in depot.site.effects("invoice")].count(7) == 1
    assert "rejected" not in depot.states()


def drop(depot: Depot) -> None:
    depot.desk.done("records/rejected?stream=wms.invoices", "drop", stream="wms.invoices")
    assert [each["key"] for each in depot.site.listed("--state", "dropped")] == ["2"]
    assert "rejected" not in depot.states()


def resolve(depot: Depot) -> None:
    made = depot.in_doubt
    decided = {"decision": "delivered_as", "id": made}
    depot.desk.done("record?stream=wms.invoices&key=3", "resolve", decided, key="3")
    assert "in-doubt" not in depot.states()
    assert made in depot.site.run("trace", "3", "--json").out


def candidates(depot: Depot) -> None:
    assert depot.in_doubt in depot.desk.done("record?stream=wms.invoices&key=3", "candidates", key="3").text
    assert depot.states()["in-doubt"] == ["3"]


def reopen(depot: Depot) -> None:
    decided = "records", "resolve", "wms.invoices", "3", "--delivered-as", depot.in_doubt, "--yes"
    assert depot.site.run(*decided).code == 0
    depot.desk.done("record?stream=wms.invoices&key=3", "reopen", key="3")
    assert depot.states()["in-doubt"] == ["3"]


def approve(depot: Depot) -> None:
    depot.site.export("PROD_2.csv", PRODUCTS.replace("1.50", "1.60").replace("0.25", "0.30"))
    assert depot.site.sync("wms.products").code == 4
    at = depot.desk
    at.done("approvals", "approve", stream="wms.products", number="2")
    at.done("", "sync")
    assert [each["operation"] for each in depot.site.effects("product")].count("update") == 2


def sync(depot: Depot) -> None:
    depot.new_product()
    depot.desk.done("", "sync")
    assert depot.products() == ["P1", "P2", "P3"]


def plan(depot: Depot) -> None:
    depot.new_product()
    assert "create wms.products P3" in depot.desk.done("", "plan").text
    assert depot.products() == ["P1", "P2"]


def apply(depot: Depot) -> None:
    depot.new_product()
    at = depot.desk
    planned = at.done("", "plan")
    at.done(at.place(planned), "apply")
    assert depot.products() == ["P1", "P2", "P3"]


def start_job(depot: Depot) -> None:
    depot.site.export("CUST_2.csv", "CUSTNO;NAME\nC3;Star\n")
    depot.desk.done("", "start-job", job="nightly")
    assert next((each["job"], each["status"]) for each in depot.runs()) == ("nightly", "done")


def pause_job(depot: Depot) -> None:
    depot.desk.done("", "pause-job", job="nightly")
    assert depot.paused() == ["nightly"]


def resume_job(depot: Depot) -> None:
    assert depot.site.run("jobs", "pause", "nightly").code == 0
    depot.desk.done("", "resume-job", job="nightly")
    assert depot.paused() == []


def stop_run(depot: Depot) -> None:
    lines = "".join(f"N{number};Nail;0.10\n" for number in range(200))
    depot.site.export("PROD_2.csv", f"SKU;NAME;PRICE\n{lines}")
    goes_on, is_sending, at = threading.Event(), threading.Event(), depot.desk

    def waits(_: Seen) -> str:
        is_sending.set()
        goes_on.wait(60)
        return FORWARD

    try:
        page = at.start("", "sync", {})
        while not is_sending.is_set():  # a run of the scheduler may have been in its way
            depot.front.fate = waits
            is_sending.wait(0.05)
            if BUSY in at.browser.open(page.url).text:
                page = at.start("", "sync", {})
        run = next(str(each["run"]) for each in depot.runs() if each["status"] == "running")
        at.done(f"runs/{run}", "stop-run", run=run)
        eventually(lambda: "it was asked to stop" in at.browser.open(page.url).text)
    finally:
        goes_on.set()
    depot.front.fate = lambda _: FORWARD
    assert "stopped (exit code 130)" in at.ended(page).text
    assert len(depot.products()) < 100


def undo(depot: Depot) -> None:
    depot.new_product()
    assert depot.site.sync("wms.products").code == 0
    run = str(depot.runs()[0]["run"])
    depot.desk.done(f"runs/{run}", "undo", {"how": "execute"}, run=run)
    assert [each["operation"] for each in depot.site.effects("product")] == ["create"] * 3 + ["delete"]


def reconcile(depot: Depot) -> None:
    found = depot.site.effects("product")[0]
    call(depot.site, "PATCH", f"catalog/products/{found['id']}", {"name": "changed by somebody"})
    at = depot.desk
    compared = at.done("", "reconcile")
    assert "1 product diverged" in compared.text
    at.done(at.place(compared), "apply")
    assert depot.site.effects("product")[-1]["body"]["name"] == found["body"]["name"]


# ---- a migration


class Migration(Stage):
    """Three waves, of which the second needs a person's consent; six of twelve records come before it."""

    def __init__(self, folder: MigratedFolder) -> None:
        super().__init__(folder.config, folder.platform.tenant)
        self.folder = folder


@pytest.fixture
def migration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Migration]:
    with SandboxServer(tmp_path / "platform") as platform:
        monkeypatch.setenv("CROSSDOCK_API_KEY", platform.api_key)
        made = MigratedFolder(tmp_path / "migrated", platform)
        bins = table(
            "SHELF*.csv", ["CODE"], resource="warehouse_bin", map={"code": "CODE", "warehouse": {"const": "H"}}
        )
        wms = {"kind": "folder_warehouse", "path": "out", "settle_s": 0, "streams": {**STREAMS, "bins": bins}}
        made.configure(connections={"wms": wms}, jobs={"often": {"streams": ["wms.bins"], "schedule": OFTEN}})
        made.waves(products={"person": True})
        made.fill()
        with Migration(made) as stage:
            yield stage


def load(stage: Migration) -> None:
    stage.folder.configure(migration={"name": "acme", "waves": WAVES})
    stage.desk.done("migration", "load")
    assert len(stage.folder.created()) == 12


def go(stage: Migration) -> None:
    stage.folder.load(exit_code=4)
    stage.desk.done("migration", "go", wave="products")
    assert stage.folder.states()["products"] == ("done", "approved")


def pause_migration(stage: Migration) -> None:
    stage.folder.load(exit_code=4)
    stage.desk.done("migration", "pause-migration")
    assert stage.folder.status()["migration"]["paused_at"]


def resume_migration(stage: Migration) -> None:
    stage.folder.load(exit_code=4)
    stage.folder.migrate("pause")
    stage.desk.done("migration", "resume-migration")
    assert not stage.folder.status()["migration"]["paused_at"]


def reconcile_migration(stage: Migration) -> None:
    stage.folder.load(exit_code=4)
    stage.desk.done("migration", "reconcile-migration")


def undo_wave(stage: Migration) -> None:
    stage.folder.load(exit_code=4)
    stage.desk.done("migration", "undo-wave", {"how": "execute"}, wave="products")
    assert [each["resource"] for each in stage.folder.effects() if each["operation"] == "delete"] == ["product"] * 3


def undo_migration(stage: Migration) -> None:
    stage.folder.load(exit_code=4)
    assert "6 delete" in stage.desk.done("migration", "undo-migration").text
    assert len(stage.folder.created()) == 6


# ---- a shop


class Shop(Stage):
    """A shop that has told crossdock of nothing since its products were read."""

    def __init__(self, project: WooCommerceStage, shop: FakeShop) -> None:
        super().__init__(project.config, "sandbox")
        self.project, self.shop = project, shop


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    fake = FakeShop(clock=SystemClock())
    more = {"webhooks": {"secrets": [write_private_file(tmp_path / "hook-secret", "a secret of our own")]}}
    listen = {"public_url": "https://hooks.example"}
    with (
        SandboxServer(tmp_path / "platform") as platform,
        woocommerce_stage(tmp_path, platform, fake, SystemClock(), listen, **more) as project,
    ):
        document = exact_json.loads(project.config.read_bytes())
        document |= {"jobs": {"often": {"streams": ["shop.customers"], "schedule": OFTEN}}}
        project.config.write_bytes(exact_json.dumps(document))
        with Shop(project, fake) as stage:
            yield stage


def sync_record(stage: Shop) -> None:
    product = stage.shop.catalog.add("Nail", "2.00", sku="N1")
    assert stage.project.sync("shop.products").exit_code == 0
    stage.shop.catalog.change(product, {"name": "Steel nail"})
    stage.desk.done(f"records?q={product.id}", "sync-record", key=str(product.id))
    assert stage.project.effects("product")[-1]["body"]["name"] == "Steel nail"


def register_webhooks(stage: Shop) -> None:
    stage.desk.done("connections", "register-webhooks", connection="shop")
    assert stage.shop.webhooks.webhooks


# ---- the table


@dataclass(frozen=True)
class Trial:
    """How an action is tried, in which stage, and what it writes to the audit log."""

    stage: str
    carry_out: Callable[[Any], None]
    audited: Sequence[str] = ()


TRIALS = {
    "replay": Trial("depot", replay, ["records replay"]),
    "drop": Trial("depot", drop, ["records drop"]),
    "resolve": Trial("depot", resolve, ["records resolve"]),
    "candidates": Trial("depot", candidates),
    "reopen": Trial("depot", reopen, ["records reopen"]),
    "approve": Trial("depot", approve, ["approve", "sync"]),
    "sync": Trial("depot", sync, ["sync"]),
    "plan": Trial("depot", plan),
    "apply": Trial("depot", apply, ["apply"]),
    "start-job": Trial("depot", start_job, ["schedule --once"]),
    "pause-job": Trial("depot", pause_job, ["jobs pause"]),
    "resume-job": Trial("depot", resume_job, ["jobs resume"]),
    "stop-run": Trial("depot", stop_run, ["stop"]),
    "undo": Trial("depot", undo, ["apply"]),
    "reconcile": Trial("depot", reconcile, ["apply"]),
    "load": Trial("migration", load, ["migrate load"] * 3),
    "go": Trial("migration", go, ["migrate go"]),
    "pause-migration": Trial("migration", pause_migration, ["migrate pause"]),
    "resume-migration": Trial("migration", resume_migration, ["migrate resume"]),
    "reconcile-migration": Trial("migration", reconcile_migration, ["migrate reconcile"]),
    "undo-wave": Trial("migration", undo_wave, ["apply"]),
    "undo-migration": Trial("migration", undo_migration),
    "sync-record": Trial("shop", sync_record, ["sync"]),
    "register-webhooks": Trial("shop", register_webhooks, ["listen register"]),
}


def test_each_action_is_tried() -> None:
    """A new one is tried as the others are."""
    assert TRIALS.keys() == ACTIONS.keys()


@pytest.mark.nightly(but=["replay", "stop-run"])
@pytest.mark.parametrize("action", TRIALS)
def test_an_action_beside_a_scheduler(request: pytest.FixtureRequest, action: str) -> None:
    """It is done once, as its page said, and the audit log has it with the reason; the jobs go on."""
    trial = TRIALS[action]
    stage: Stage = request.getfixturevalue(trial.stage)
    trial.carry_out(stage)
    rows = [each for each in stage.desk.audit() if (each["reason"], each["outcome"]) == (REASON, "done")]
    assert [each["action"] for each in rows] == [*trial.audited]
    stage.end()
