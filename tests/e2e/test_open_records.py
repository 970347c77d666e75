"""What is open decides the exit code and the status of a run, whether or not the run read it again."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
from tests.e2e.test_bad_platform import NO_KEYS
from tests.e2e.warehouse import FORWARD, INVOICES, LOSE, PERSON, PRODUCTS, Front, Result, Site

from crossdock.config.project import project

JOB = """\
jobs:
  nightly: {streams: [wms], schedule: {time_zone: UTC, at: "00:00"}}
"""
BAD = INVOICES.replace("2;C2;P1;1;", "2;C2;P1;x;")
UNKNOWN = "4;C9;P1;1;1.50;EUR\n"  # its customer never comes
REST = {"rejected": 1, "waiting": 1, "pending": 0, "in_doubt": 1, "overdue": 0, "unverified": 0}


def listed(site: Site) -> dict[str, int]:
    """What ``records list`` shows, by state."""
    return Counter(item["state"].replace("-", "_") for item in site.listed())


def is_open(site: Site, result: Result) -> bool:
    """True if *result* says that one record of each kind is open, as the list does."""
    (report,) = result.json if isinstance(result.json, list) else [result.json]
    assert report["open"] == REST
    assert report["streams"]["wms.invoices"]["open"] == REST
    assert {state: number for state, number in REST.items() if number} == listed(site)
    return result.code == 1 and report["status"] == "degraded"


@pytest.fixture
def with_open(site: Site, front: Front) -> Site:
    """A site after a first sync, with an invoice that was rejected, one that waits and one in doubt."""
    site.edit(*NO_KEYS)
    site.config.write_text(site.config.read_text() + JOB)
    site.init()
    site.fill()
    site.export("INV_1.csv", BAD + UNKNOWN)
    front.fate = lambda seen: LOSE if b'"quantity":100' in seen.body else FORWARD
    assert is_open(site, site.sync())
    return site


def test_every_run_says_1_while_records_are_open(with_open: Site) -> None:
    """Files unchanged, one changed, a plan, a replay and a scheduled run: none is green; other streams are."""
    site = with_open
    assert is_open(site, site.sync())
    site.export("PROD_2.csv", PRODUCTS.replace("Bolt", "Screw"))
    assert is_open(site, site.sync())
    plan = str(site.folder / "daily.plan")
    assert site.run("plan", "-o", plan).code == 0
    assert is_open(site, site.run("apply", plan, "--json"))
    for _ in range(2):
        assert is_open(site, site.run("records", "replay", "wms.invoices", "--json"))
    day = (datetime.now(UTC) - timedelta(days=1)).date().isoformat()
    assert is_open(site, site.run("schedule", "--once", day, "--json"))
    (scheduled,) = site.run("jobs", "list", "--json").json["nights"]
    assert (scheduled["status"], scheduled["note"]) == ("degraded", "open: 1 rejected, 1 waiting, 1 in doubt")
    others = site.sync("wms.products", "wms.customers")
    assert (others.code, others.json["status"], others.json["open"]["rejected"]) == (0, "done", 0)


def test_runs_keep_what_was_open_at_their_end(with_open: Site) -> None:
    """Lists and reports of past runs say so, in words and as data, also after the records are settled."""
    site = with_open
    said = "wms.invoices: open: 1 rejected, 1 waiting, 1 in doubt"
    assert said in site.run("sync").out
    assert site.run("records", "drop", "wms.invoices", "--yes").code == 0
    assert listed(site) == {"in_doubt": 1}
    (arrived,) = (each for each in site.effects("invoice") if any(i["quantity"] == 100 for i in each["body"]["items"]))
    assert site.run("records", "resolve", "wms.invoices", "3", "--delivered-as", arrived["id"], "--yes").code == 0
    done = site.sync()
    assert (done.code, done.json["status"], listed(site)) == (0, "done", {})
    latest, second, _ = site.run("runs", "--json").json
    assert (latest["status"], latest["open"]["rejected"]) == ("done", 0)
    assert (second["status"], second["open"]) == ("degraded", REST)
    assert said in site.run("show", str(second["run"])).out
    assert site.run("show", str(second["run"]), "-o", str(site.folder / "report.html")).code == 0
    assert "1 rejected, 1 waiting, 1 in doubt" in (site.folder / "report.html").read_text()


def test_what_is_sent_next_is_listed_as_pending(with_open: Site) -> None:
    """An operator said that an operation was not carried out: until the next run sends it, the list shows it."""
    site = with_open
    assert site.run("records", "resolve", "wms.invoices", "3", "--not-delivered").code == 0
    assert listed(site) == {"rejected": 1, "waiting": 1, "pending": 1}
    assert site.sync("wms.products").code == 0
    assert listed(site)["pending"] == 0


def test_a_row_without_key_can_be_dropped(site: Site) -> None:
    """It is open until an operator drops it, and then no longer, though its file stays where it is."""
    site.init()
    site.export("PROD_1.csv", f"{PRODUCTS};Lost;1.00\n")
    for _ in range(2):
        result = site.sync("wms.products")
        assert (result.code, result.json["open"]["rejected"]) == (1, 1)
    assert site.run("records", "drop", "wms.products", "--yes").out == "dropped 1 record\n"
    assert site.sync("wms.products").code == 0


def test_all_commands_show_one_duration(site: Site) -> None:
    """The sync, the list of runs, the report of a run and the estimate of a job have one measure of it."""
    site.init()
    site.fill()
    seconds = site.sync().json["seconds"]
    assert site.run("runs", "--json").json[0]["seconds"] == seconds > 0
    assert site.run("show", "1", "--json").json["seconds"] == seconds
    with closing(project.load(site.config).open_state(read_only=True)) as state, state.begin_read_only() as tx:
        run = tx.runs.get(1)
    assert run is not None
    assert run.duration == timedelta(seconds=seconds)


def test_a_replay_names_streams_that_the_config_no_longer_has(site: Site) -> None:
    """Their rejected records cannot be mapped, and stay listed."""
    site.init()
    site.export("PROD_1.csv", "SKU;NAME;PRICE\nP1;Bolt;x\n")
    assert site.sync("wms.products").code == 1
    site.edit("products:", "articles:")
    replayed = site.run("records", "replay")
    assert "wms.products: not replayed, because the config has no such stream" in replayed.err
    assert [each["stream"] for each in site.listed()] == ["wms.products"]


def test_a_newer_version_that_had_to_wait_is_said(site: Site) -> None:
    """Creates that no look-up finds are sent at the end of the run, and the next one delivers the newer version."""
    site.edit("lookup: {settle_s: 0.05}", "lookup: {enabled: false}")
    site.init()
    site.export("PROD_1.csv", PRODUCTS)
    site.setenv("CROSSDOCK_API_KEY", "wrong")
    assert site.sync("wms.products").code == 3
    site.setenv("CROSSDOCK_API_KEY", site.api_key)
    site.export("PROD_2.csv", "SKU;NAME;PRICE\nP1;Bolt;1.75\n")
    night = site.sync("wms.products")
    assert (night.code, night.json["status"], night.json["open"]["pending"]) == (1, "degraded", 0)
    (note,) = (each for each in night.json["streams"]["wms.products"]["notes"] if "newer" in each)
    assert note.startswith("newer versions left to the next run")
    assert note.endswith("had to end first: 1")
    again = site.sync("wms.products")
    assert (again.code, again.records("products")) == (0, {"read": 2, "unchanged": 1, "updated": 1})


def test_a_reference_that_never_comes_and_an_order_of_a_guest(site: Site) -> None:
    """A guest's invoice goes to who stands for guests. One for an unknown customer is a dead letter in time, and a
    replay delivers it once the customer has come.
    """
    guests = 'columns: {CUSTNO: {table: {"": CASH}}}\n        waits_at_most: 14d\n        group_by: [INVNO]'
    site.edit("group_by: [INVNO]", guests)
    site.init()
    site.export("CUST_1.csv", f"CUSTNO;NAME\nCASH;{PERSON} of the house\n")
    site.export("PROD_1.csv", PRODUCTS)
    site.export("INV_1.csv", f"{INVOICES.splitlines()[0]}\n1;;P1;2;1.50;EUR\n2;C9;P1;1;1.50;EUR\n")
    assert site.sync().records("invoices") == {"read": 2, "created": 1, "carried_on": 1}
    with closing(sqlite3.connect(site.folder / "state.db")) as state, state:  # half a month later
        (since,) = state.execute("select since from waiting_records").fetchone()
        earlier = datetime.fromisoformat(since) - timedelta(days=15)
        state.execute("update waiting_records set since = ?", [earlier.isoformat()])
    assert site.run("plan", "--json").json["streams"]["wms.invoices"]["records"]["rejected"] == 1
    late = site.sync()
    assert (late.code, late.records("invoices")) == (1, {"carried_over": 1, "rejected": 1})
    (listed,) = site.listed()
    assert (listed["state"], listed["key"]) == ("rejected", "2")
    assert "for customer wms:C9: not delivered until now" in listed["why"]
    site.export("CUST_2.csv", f"CUSTNO;NAME\nC9;{PERSON} Star\n")
    assert site.sync().records("invoices") == {}
    assert site.run("records", "replay", "--reason", "missing_reference").code == 0
    assert (site.listed(), len(site.effects("invoice"))) == ([], 2)
