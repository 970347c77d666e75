"""Ten nights of a bicycle wholesaler, each with mishaps: one command answers each question of the morning.

The questions are those of docs/how_to/fix/morning_questions.md; the answers are those of the model of the nights.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.chaos import processes
from tests.e2e.warehouse import BREAK, FORWARD, LOSE, Fate, Front, Reply, Seen, Site, once
from tests.e2e.warehouse import ask as request
from tests.e2e.wholesaler import PARTS, SHOPS, Morning, Shop, Wholesaler, changed, name_of, shop
from tests.waiting import WITHIN_S


class Nights:
    """The nights, and the questions of each morning.

    Attributes:
        delivered: How many invoices the platform must have.
        wrong: Those that were rejected.
    """

    def __init__(self, site: Site, front: Front, of: Wholesaler, partner: Shop) -> None:
        self.site, self.front, self.of, self.partner = site, front, of, partner
        self.morning = Morning(site)
        self.ask, self.learn = self.morning.ask, self.morning.learn
        self.delivered, self.wrong = 0, ""

    def run(self, *, code: int, delivers: int = 0) -> None:
        """The run of the night ends with *code* and *delivers* so many invoices."""
        self.of.run(code=code)
        self.delivered += delivers
        self.morning.comes()

    def do(self, *command: str, code: int = 0) -> None:
        """A person runs a *command*."""
        done = self.site.run(*command)
        assert done.code == code, f"{command}: exit {done.code}\n{done.out}{done.err}"
        self.morning.comes()

    def ids(self, resource: str, external: str = "") -> list[str]:
        """The platform's ids of what was created, in order."""
        created = (each for each in self.site.effects(resource) if each["operation"] == "create")
        return [each["id"] for each in created if not external or each["body"]["externalId"] == external]


@pytest.fixture
def nights(site: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[Nights]:
    with Front(site.base_url) as front, shop() as (partner, url):
        site.base_url = front.base_url
        site.configure()
        of = Wholesaler(site, monkeypatch, url)
        site.init()
        yield Nights(site, front, of, partner)


@pytest.mark.nightly
def test_ten_nights(nights: Nights) -> None:
    """What ran, what did not and why, which records are open, what changed, and what must be done."""
    all_is_well(nights)
    a_file_is_missing(nights)
    a_file_is_short(nights)
    two_streams_fail(nights)
    records_are_rejected(nights)
    the_platform_is_down(nights)
    a_process_is_killed(nights)
    corrections_come(nights)
    too_much_is_gone(nights)
    an_answer_is_lost(nights)
    webhooks_come(nights)
    others_change_records(nights)
    a_backup_is_restored(nights)
    the_clock_is_wrong(nights)
    assert nights.morning.asked == nights.morning.commands.keys()
    assert nights.morning.learned == {*map(name_of, nights.morning.commands.values())}
    assert Counter(nights.site.invoices().values()) == {1: nights.delivered}
    assert {effect["operation"] for effect in nights.site.effects("product")} == {"create", "update"}


def all_is_well(nights: Nights) -> None:
    """The first night, and the first load of bins, whose gate is closed."""
    of, ask, learn = nights.of, nights.ask, nights.learn
    customers = f"{of.customers()}TEST-1;for a test\n"
    bins = "CODE;HALL;CAPACITY\nB1;H;10\nB2;H;many\n"
    of.night(customers=customers, products=of.products(), invoices=of.invoices(30), bins=bins)
    nights.run(code=0, delivers=30)
    nights.do("migrate", "load", code=4)
    runs = learn("What ran, what started it, and how did it end?", "nightly", "migrate load: bins", "done", "degraded")
    assert [(run["job"], run["command"], run["status"]) for run in runs] == [
        (None, "migrate load: bins", "degraded"),
        ("nightly", None, "done"),
    ]
    (night,) = learn("Which job is done for which date?", "nightly", str(of.date(1)), "done")["nights"]
    assert (night["job"], night["business_date"], night["run"]) == ("nightly", str(of.date(1)), 1)
    streams = learn("What was read, delivered and left out?", f"run 1 (nightly for {of.date(1)}): done", RUN="1")[
        "streams"
    ]
    assert {name: (each["rows"]["read"], each["records"]["created"]) for name, each in streams.items()} == {
        "wms.customers": (SHOPS + 1, SHOPS),
        "wms.products": (PARTS, PARTS),
        "wms.invoices": (60, 30),
    }
    filtered = learn("How many rows did which filter skip?", "skip test_data", RUN="1")["streams"]["wms.customers"][
        "rows"
    ]
    assert filtered["filtered"] == {"test_data": 1}
    files = learn("Which files were read?", f"read CUST_01.csv ({SHOPS + 1} rows)", "INV_01.csv (60 rows)", RUN="1")
    assert files["streams"]["wms.products"]["files"] == [{"name": "PROD_01.csv", "rows": PARTS}]
    assert learn("Does the tally balance?", "the tally balances", RUN="1")["balanced"] is True
    sent = SHOPS + PARTS + 30
    requests = learn(
        "How many requests were sent, and did the rate limit slow it down?",
        f"{sent} requests (0 throttled)",
        "never below a quarter",
        RUN="1",
    )
    assert (requests["requests"], requests["throttled"]) == (sent, 0)
    steps = learn("How long did a run take, and what was slow?", "Slowest steps", "sending wms.", RUN="1")
    assert 0 < steps["slowest_steps"][0]["seconds"] <= steps["seconds"]
    tomorrow = of.today + timedelta(days=1)
    (due,) = learn("What will run next, and how long will it take?", "nightly", f"{tomorrow} 00:00:00Z")
    assert (due["business_date"], due["expected_requests"]) == (str(tomorrow), sent)

    ask("Which records are open, and why?", "1 rejected", "wms.bins", "CAPACITY", "BIN_01.csv:3")
    ask("What has a partner not acknowledged in time?", "no record is overdue")
    ask("What is handed over, and not due yet?", "no record is handed over")
    why = "gate closed: 1 of 2 records open (1 rejected); none may be"
    status = learn("How far is the migration, and what holds it up?", why)
    assert (status["next"], status["waves"][0]["delivered"]) == ("bins", 1)
    ask("Does an approval wait for me, and since when?", "nothing needs approval")
    found = learn("Is everything reachable?", "ok state", "ok platform", "ok wms", "ok shop")["findings"]
    assert all(each["ok"] for each in found)
    ask(
        "Which files have the senders put there?", *(f"out/{each}_*: 1 file" for each in ("CUST", "PROD", "INV", "BIN"))
    )
    ask("Is there room on the disks?", "ok disk", " free for spool")
    ask("Is the clock right?", "ok clock: as the platform's")
    ask("Which scopes does the credential need?", "customers:write", "products:write", "bins:write", "invoices:write")
    ask("What is the rate limit, and who says so?", "10,000 a minute (documented), burst 2,000 (reported)")
    settings = learn("Which settings are in effect?", "starts_with: TEST", "at_most_percent: 5")
    assert stream(settings, "products")["gone"]["at_most_percent"] == 5  # the default
    held = learn("How large is the state, and what is in it?", "all operations are settled")["bindings"]
    assert held == {"customer": SHOPS, "product": PARTS, "invoice": 30, "warehouse_bin": 1}
    purge = learn(
        "What would the retention remove today?",
        "0 runs, 0 scheduled runs, 0 files, 0 files for partners, 0 snapshots and 0 entries of the audit log would be",
    )
    assert purge["dry_run"] is True
    assert not any(number for number in purge.values() if type(number) is int)
    amount = f"{of.amount:,}"
    ask("Does the platform hold what the sources say?", f"EUR {amount} {amount} {amount}", "1 warehouse bin rejected")
    (first,) = learn("What became of a line of a file?", "record 1001 of wms.invoices", **{"FILE:LINE": "INV_01.csv:2"})
    assert [each["run_id"] for each in first["operations"]] == [1]
    invoice = first["bindings"][0]["target_id"]
    assert invoice in nights.ids("invoice")
    ask("What is this id of the platform?", "record 1001 of wms.invoices", f"invoice {invoice}", ID=invoice)
    ask("From which file and run does this record come?", "run 1: create product", "PROD_01.csv:9", ID="PART-007")
    page = nights.site.folder / "report.html"
    ask("What can I send to others about a run?", "report written", RUN="1", FILE=str(page))
    assert all(text in page.read_text() for text in ("INV_01.csv", "The tally balances", nights.site.tenant))
    month = f"{of.date(1):%Y-%m}"
    sums = learn("What can I send to others about a month?", "report written", MONTH=month, FILE=str(page))
    assert sums["totals"]["runs"]["number"] >= 1
    assert f"{nights.site.tenant} in {month}" in page.read_text()


def a_file_is_missing(nights: Nights) -> None:
    """The parts do not come, the customers come again, and the bins are mended."""
    of, ask, learn = nights.of, nights.ask, nights.learn
    of.withdraw("bins")
    of.night(customers=f"{of.customers()}TEST-1;for a test\n", bins="CODE;HALL;CAPACITY\nB1;H;10\nB2;H;12\n")
    nights.do("sync", "wms", code=3)
    missing = learn("Which file did not come?", "wms.products", "no new file", "newest: PROD_01.csv")
    assert [(each["stream"], each["level"]) for each in missing["messages"]] == [("wms.products", "error")]
    ask("What failed, where, and what must I do?", "wms.products", "out/PROD_*")
    same = learn("Which file brought nothing new?", "CUST_02.csv has the content that was read before")
    assert same["streams"]["wms.customers"]["input"] == "unchanged"
    nights.do("migrate", "load")
    assert learn("How far is the migration, and what holds it up?", "all waves are done")["next"] is None
    ask("Which records are open, and why?", "no record is rejected")


def a_file_is_short(nights: Nights) -> None:
    """A file of parts is cut."""
    of, ask, learn = nights.of, nights.ask, nights.learn
    of.night(products=of.products(20, counted=40), invoices=of.invoices(5))
    nights.run(code=4, delivers=5)
    refused = learn(
        "Which file was refused, and why?", "wms.products: PROD_03.csv:22: the trailer counts 40, the file has 20"
    )
    assert [(each["code"], each["place"]) for each in refused["messages"]] == [("file_damaged", "PROD_03.csv:22")]
    ask("What failed, where, and what must I do?", "PROD_03.csv:22", "fetch it again")
    of.withdraw("products")


def two_streams_fail(nights: Nights) -> None:
    """Both errors are there, and those of the night before still are."""
    of, ask, learn = nights.of, nights.ask, nights.learn
    of.night(customers=of.customers() + "SHOP-999\n", products=of.products() + "PART-999\n", invoices=of.invoices(5))
    before = learn("What ran, what started it, and how did it end?")[0]["run"]
    nights.run(code=4, delivers=5)
    failed = learn("What failed, where, and what must I do?", f"CUST_04.csv:{SHOPS + 2}", f"PROD_04.csv:{PARTS + 2}")
    assert {each["stream"] for each in failed["messages"]} == {"wms.customers", "wms.products"}
    assert all(each["advice"] for each in failed["messages"])
    ask(
        "What failed in an earlier run?",
        f"run {before} (nightly",
        "PROD_03.csv:22",
        lacks="PROD_04.csv",
        RUN=str(before),
    )
    of.withdraw("customers", "products")


def records_are_rejected(nights: Nights) -> None:
    """Three invoices are wrong, of which one is dropped, and two come before their customer."""
    of, ask, learn = nights.of, nights.ask, nights.learn
    bad = of.invoices(3, quantity="two")
    wrong = [str(int(of.invoice) - each) for each in (2, 1, 0)]
    early = of.invoices(2, shop="SHOP-NEW").partition("\n")[2]
    of.night(products=of.products(), invoices=bad + early)
    nights.run(code=1)
    run = learn("What ran, what started it, and how did it end?")[0]
    records = learn("Since when is each of them open?", "3 rejected, 2 waiting", run["started_at"][:10])
    assert Counter((each["state"], each["stream"]) for each in records) == {
        ("rejected", "wms.invoices"): 3,
        ("waiting", "wms.invoices"): 2,
    }
    assert all(run["started_at"] <= each["since"] for each in records)
    rejected = learn("What was rejected, and for which reason?", *(f"INV_05.csv:{line}" for line in (2, 4, 6)))
    assert [(each["key"], each["pointer"]) for each in rejected] == [(key, "QTY") for key in wrong]
    assert len(learn("How many were rejected for each reason?", "1 of 3 rejected", "3 bad_value")) == 1
    assert len(learn("Which were rejected for this reason?", "3 rejected", CODE="bad_value")) == 3
    assert (
        len(
            learn("Which records of a stream or a connection are open?", "3 rejected, 2 waiting", STREAM="wms.invoices")
        )
        == 5
    )
    ask("Which records of a stream or a connection are open?", "no such record is rejected", STREAM="wms.products")
    waiting = learn("What waits, and for which record?", "1044 and 1 more", "waits for customer wms:SHOP-NEW")
    assert [each["key"] for each in waiting] == ["1044", "1045"]
    ask("Why is this record not delivered?", "bad_value", "QTY", "INV_05.csv:2", STREAM="wms.invoices", KEY=wrong[0])
    ask("Why is this record not delivered?", "customer wms:SHOP-NEW", "INV_05.csv:8", STREAM="wms.invoices", KEY="1044")
    (raw,) = learn("What is in the rejected record?", "two", STREAM="wms.invoices", KEY=wrong[0])
    assert str(raw["raw"]).count("'two'") == 2  # in both lines
    nights.do("records", "replay", "wms.invoices", wrong[0], code=1)
    (again,) = learn(
        "In which run was it rejected first?", f"first_run {run['run']}", STREAM="wms.invoices", KEY=wrong[0]
    )
    assert (again["first_run"], again["run"], again["attempts"]) == (run["run"], run["run"] + 1, 2)
    nights.do("records", "drop", "wms.invoices", wrong[2])
    (dropped,) = learn("What did a person decide not to deliver?", wrong[2], "INV_05.csv:6")
    assert (dropped["state"], dropped["key"]) == ("dropped", wrong[2])
    nights.wrong = bad


def the_platform_is_down(nights: Nights) -> None:
    """A changed price is in doubt until the retry."""
    of, ask, learn = nights.of, nights.ask, nights.learn
    of.prices["PART-001"] += 1
    of.night(products=of.products(), invoices=of.invoices(4))
    nights.front.fate = lambda _: Reply(503)
    nights.run(code=3)
    ask("What failed, where, and what must I do?", "every request fails: HTTP 503", "run again when it answers")
    (doubt,) = learn("What is in doubt?", "PART-001", "update was sent 2 times without a clear answer: HTTP 503")
    assert doubt["stream"] == "wms.products"
    ask("Is everything reachable?", "FAIL platform", "HTTP 503", "ok wms", "ok shop")
    nights.front.fate = lambda _: FORWARD
    nights.run(code=1, delivers=4)
    retried = learn("Did the retry work?", "degraded", "incomplete")
    assert [(run["status"], run["business_date"]) for run in retried] == [
        ("degraded", str(of.date(6))),
        ("incomplete", str(of.date(6))),
    ]
    assert retried[0]["open"] == {
        "rejected": 2,
        "waiting": 2,
        "pending": 0,
        "in_doubt": 0,
        "overdue": 0,
        "unverified": 0,
    }


def a_process_is_killed(nights: Nights) -> None:
    """While the platform has its requests."""
    of, ask, learn, front = nights.of, nights.ask, nights.learn, nights.front
    of.prices["PART-002"] += 1
    of.night(products=of.products(), invoices=of.invoices(4))
    came, goes_on = threading.Event(), threading.Event()

    def hold(seen: Seen) -> Fate:
        if seen.method != "POST":
            return FORWARD
        came.set()
        goes_on.wait(WITHIN_S)
        return BREAK

    front.fate = hold
    process = processes.start(of.once, os.environ)
    assert came.wait(WITHIN_S)
    nights.morning.comes()
    assert learn("Is a run active, or was it killed?", "running")[0]["status"] == "running"
    ask("What has a run done that is active or was killed?", "running", "operations: 1 delivered, 4 pending")
    process.kill()
    process.join()
    goes_on.set()
    front.fate = lambda _: FORWARD
    nights.morning.comes()
    assert learn("Is a run active, or was it killed?", "incomplete", lacks="running")[0]["status"] == "incomplete"
    ask("What failed, where, and what must I do?", "its end was not recorded: the process was killed")
    killed = learn("What has a run done that is active or was killed?", "operations: 1 delivered, 4 pending")
    assert killed["operations"] == {"delivered": 1, "pending": 4}
    sent = [str(int(of.invoice) - each) for each in (3, 2, 1, 0)]
    pending = learn("What will the next run send again?", *sent, "sends the create again, or looks it up")
    assert [each["key"] for each in pending] == sent
    plan = learn("What would the next run do?", *(f"resend wms.invoices {key}" for key in sent), "4 requests needed")
    assert plan["operations"]["resend"] == 4
    nights.run(code=1, delivers=4)
    assert [run["status"] for run in learn("Did the retry work?", "degraded")] == ["degraded", "incomplete"]


def corrections_come(nights: Nights) -> None:
    """The missing customer, another price, and the wrong invoices; then two that only a repair of the config reads."""
    of, ask, learn = nights.of, nights.ask, nights.learn
    old, of.prices["PART-007"] = of.prices["PART-007"], of.prices["PART-007"] + 5
    name = of.customers("SHOP-NEW")
    unread = of.invoices(2, quantity="2 pc").partition("\n")[2]
    of.night(customers=name, products=of.products(), invoices=nights.wrong.replace("two", "2") + unread)
    nights.run(code=1, delivers=5)
    before, after = (f"{price.normalize():f}" for price in (old, of.prices["PART-007"]))
    shown = f"/unitPrice: {before} -> {after}"
    (history,) = learn(
        "What changed for this record, when, and from which value?", shown, "PROD_08.csv:9", ID="PART-007"
    )
    update = history["operations"][-1]
    assert update["run_id"] == learn("What ran, what started it, and how did it end?")[0]["run"]
    assert update["changed"] == [{"pointer": "/unitPrice", "before": before, "after": after}]

    ask("Which records are open, and why?", "2 rejected", lacks="waiting")
    repaired = {"QTY": {"strip_suffix": " pc"}}
    with of.configured(lambda config: stream(config, "invoices").update(columns=repaired)):
        nights.do("records", "replay", "--reason", "bad_value")
        nights.delivered += 2
        replayed = learn("What did a replay do?", "(records replay --reason bad_value): done")
        records = replayed["streams"]["wms.invoices"]["records"]
        assert (records["carried_over"], records["created"]) == (2, 2)
        ask("Which records are open, and why?", "no record is rejected")


def stream(config: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = config["connections"]["wms"]["streams"][name]
    return found


def too_much_is_gone(nights: Nights) -> None:
    """Half of the parts are not listed; then the whole list comes again, and its change is undone."""
    of, ask, learn = nights.of, nights.ask, nights.learn
    half = PARTS // 2
    of.night(products=of.products(half))
    nights.run(code=4)
    (held,) = learn(
        "Does an approval wait for me, and since when?", "wms.products", str(half), "delete product", str(of.today)
    )
    assert (held["number"], held["approved_at"]) == (half, None)
    ask(
        "What failed, where, and what must I do?", f"{half} of {PARTS} records are gone", f"approve wms.products {half}"
    )
    ask("Is a file much shorter than those before?", f"the snapshot has {half} rows; the previous ones had {PARTS}")
    ask("Which records would be removed?", *(f"hold wms.products PART-{each:03}" for each in range(half, PARTS)))
    old, of.prices["PART-008"] = of.prices["PART-008"], of.prices["PART-008"] + 7
    of.export("products", of.products(), "b")
    nights.run(code=0)
    ask("Does an approval wait for me, and since when?", "nothing needs approval")

    run = str(learn("What ran, what started it, and how did it end?")[0]["run"])
    undo = learn("What would an undo of a run do?", "restore", "PART-008", "unitPrice", "1 update", RUN=run)
    assert undo["streams"]["wms.products"]["restore"] == 1
    plan = nights.site.folder / "undo.plan"
    nights.do("undo", run, "-o", str(plan))
    nights.do("apply", str(plan))
    undone = learn("What did an undo do?", f"(apply: undo of run {run}): done")
    assert undone["streams"]["wms.products"]["records"]["updated"] == 1
    back = f"/unitPrice: {of.prices['PART-008'].normalize():f} -> {old.normalize():f}"
    ask("What changed for this record, when, and from which value?", back, "from undo", ID="PART-008")
    nights.do("jobs", "pause", "nightly")
    assert learn("Is a job paused?", "paused: nightly")["paused"] == ["nightly"]
    nights.do("jobs", "resume", "nightly")
    assert learn("Is a job paused?", lacks="paused")["paused"] == []
    assert learn("Which file is set aside because it kills the process?", "Set aside: none") == {"set_aside": []}


def an_answer_is_lost(nights: Nights) -> None:
    """An invoice was created, its answer was lost, and a person finds and settles it."""
    of, ask, learn = nights.of, nights.ask, nights.learn
    of.export("invoices", of.invoices(1), "b")
    key = of.invoice
    with of.configured(lambda config: config["platform"].update(after_ambiguous={"invoice": "park"})):
        nights.front.fate = once(lambda seen: seen.method == "POST" and "invoices" in seen.path, LOSE)
        nights.do("sync", "wms.invoices", code=1)
        nights.delivered += 1
        nights.front.fate = lambda _: FORWARD
        (doubt,) = learn("What is in doubt?", key, "create was sent once without a clear answer")
        assert (doubt["key"], doubt["stream"]) == (key, "wms.invoices")
        created = nights.ids("invoice")[-1]
        found = learn("What may a record in doubt be on the platform?", created, STREAM="wms.invoices", KEY=key)
        assert [each["id"] for each in found["candidates"] if each["same_content"]] == [created]
        nights.do("records", "resolve", "wms.invoices", key, "--delivered-as", created, "--yes")
    ask("How was a record in doubt settled?", f"invoice {created} on the platform", ID=key)


def webhooks_come(nights: Nights) -> None:
    """One brings an order, one names an order that cannot be fetched, one has no key, one is forged."""
    ask, learn, posted = (
        nights.ask,
        nights.learn,
        [(changed("O1"), nights.of.secret), (changed("O2"), nights.of.secret)],
    )
    posted += [
        (json.dumps({"type": "orders.changed"}).encode(), nights.of.secret),
        (changed("O1"), "whsec_" + "A" * 44),
    ]

    nights.partner.sells()
    assert nights.of.posted(posted, {"O2"}) == [200, 200, 200, 401]
    nights.morning.comes()
    brought = learn("What did webhooks bring?", "(listen shop for", "shop.orders")
    created = {name: each["records"]["created"] for name, each in brought["streams"].items() if name.startswith("shop")}
    assert created == {"shop.customers": 1, "shop.orders": 1, "shop.products": 1}
    inbox = learn("Which records did webhooks name that are not fetched yet?", "O2", "HTTP 403", "/data/id: is missing")
    assert [each["key"] for each in inbox] == ["O2", ""]
    ask("Why is this record not delivered?", "inbox", "HTTP 403", STREAM="shop.orders", KEY="O2")
    ask("From which file and run does this record come?", "a webhook has named 'O2', which is not fetched yet", ID="O2")


def others_change_records(nights: Nights) -> None:
    """The last night brings an invoice with another content, and a part was changed by hand."""
    of, learn, site = nights.of, nights.learn, nights.site
    row = "INVNO;CUSTNO;SKU;QTY;PRICE;CURRENCY\n1001;{};PART-001;9;1;EUR\n"
    of.night(products=of.products(), invoices=row.format(of.shops[0]))
    (part,) = nights.ids("product", "wms:PART-010")
    headers = {"content-type": "application/merge-patch+json", "authorization": f"Bearer {site.api_key}"}
    path, netloc = f"/api/v1/catalog/products/{part}", urlsplit(site.platform.base_url).netloc
    assert (
        request(netloc, "PATCH", path, b'{"name": "By hand"}', headers | {"x-tenant-slug": site.tenant}).status == 200
    )
    nights.run(code=1)
    (changed_later,) = learn(
        "What differs from the invoice that was delivered?",
        "changed_after_delivery",
        "/items/0/quantity: 2 -> 9",
        STREAM="wms.invoices",
        KEY="1001",
    )
    assert changed_later["difference"][-1]["pointer"] == "/items/1"
    diverged = learn(
        "What did others change of the records of a stream?",
        "diverged product wms:PART-010 name",
        lacks="PART-011",
        STREAM="wms.products",
    )
    assert [(each["key"], each["members"]) for each in diverged["shown"]] == [("PART-010", ["name"])]
    nights.do("records", "drop", "wms.invoices", "1001")


def a_backup_is_restored(nights: Nights) -> None:
    """It does not know the last invoices; undeclared, nothing is sent."""
    of, ask, learn, site = nights.of, nights.ask, nights.learn, nights.site
    backup = site.folder / "backup.db"
    shutil.copy2(site.folder / "state.db", backup)
    of.export("invoices", of.invoices(3), "c")
    nights.do("sync", "wms.invoices")
    nights.delivered += 3
    for file in site.folder.glob("state.db-*"):
        file.unlink()
    shutil.copy2(backup, site.folder / "state.db")
    nights.run(code=4)
    refused = learn("What failed, where, and what must I do?", "the state is older than the last run", "state restored")
    assert (refused["business_date"], refused["operations"]) == (str(of.today), {})
    nights.do("state", "restored")
    known = (
        SHOPS + 1 + PARTS + 2 + 3 + nights.delivered - 3
    )  # with the new customer, two bins, three records of the shop
    unverified = learn("What is not compared yet after a backup was restored?", f"100 of {known} unverified records")
    assert {each["state"] for each in unverified} == {"unverified"}
    ask("Why is this record not delivered?", "unverified", STREAM="wms.products", KEY="PART-010")
    nights.do("sync", code=0)
    ask("What is not compared yet after a backup was restored?", "no record is unverified")


def the_clock_is_wrong(nights: Nights) -> None:
    """The platform's clock and ours differ by more than scheduled runs accept."""
    past = (datetime.now(UTC) - timedelta(hours=1)).strftime("%a, %d %b %Y %H:%M:%S GMT")
    nights.front.fate = lambda _: Reply(200, b'{"data": [], "nextCursor": null}', {"date": past})
    nights.morning.comes()
    nights.ask("Is the clock right?", "FAIL clock", "ahead of the platform's", "set the clock", "ok platform")
