"""``crossdock state purge``: old data is removed, and later runs do nothing twice."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from tests.e2e.warehouse import CUSTOMERS, FORWARD, PERSON, PRODUCTS, Front, Reply, Site

from crossdock.config.project import project
from crossdock.state import FileFacts, State


@pytest.fixture
def site(site: Site) -> Site:
    site.init()
    site.fill()
    return site


def grow_old(site: Site) -> None:
    """Let everything in the state have ended years ago."""
    with closing(sqlite3.connect(site.folder / "state.db")) as state, state:
        for table, column in (
            ("intents", "settled_at"),
            ("dead_letters", "refused_at"),
            ("runs", "finished_at"),
            ("taken_files", "accepted_at"),
            ("snapshots", "finished_at"),
        ):
            state.execute(f"UPDATE {table} SET {column} = '2020' || substr({column}, 5) WHERE {column} IS NOT NULL")


def test_after_a_purge_nothing_is_sent_again(site: Site) -> None:
    """Bindings stay: the same rows in new files need no request, and a change is one update."""
    assert site.sync().code == 0
    grow_old(site)
    announced = site.run("state", "purge", "--dry-run", "--json")
    assert announced.json["operations_removed"] == 7
    done = site.run("state", "purge", "--json")
    assert done.code == 0
    assert done.json | {"dry_run": True, "before": announced.json["before"]} == announced.json
    assert "0 settled operations were removed" in site.run("state", "purge").out
    site.fill()
    site.export("CUST_2.csv", CUSTOMERS)
    assert site.sync().json["requests"] == 0
    site.assert_everything_once()
    site.export("CUST_3.csv", CUSTOMERS.replace("Amsel", "Meise"))
    assert site.sync().records("customers") == {"read": 2, "unchanged": 1, "updated": 1}


def test_what_retention_has_removed_cannot_be_undone(site: Site) -> None:
    """An undo of a run whose operations are gone is refused with their number, not planned as if nothing was done."""
    run = str(site.sync().json["run"])
    grow_old(site)
    assert site.run("state", "purge").code == 0
    refused = site.run("undo", run)
    assert (refused.code, f"retention has removed what run {run} did to 7 records" in refused.err) == (4, True)


def test_a_rejected_record_without_its_data_is_not_replayed_in_silence(site: Site) -> None:
    """The run says which records it could not map again, and what helps."""
    site.export("PROD_2.csv", PRODUCTS.splitlines()[0] + "\nP9;Bolt;x\n")
    assert site.sync().code == 1
    grow_old(site)
    assert site.run("state", "purge", "--json").json["dead_letters_emptied"] == 1
    replayed = site.run("records", "replay", "wms.products", "P9")
    assert replayed.code == 1
    assert "1 record not replayed, whose data retention has removed (P9): have each sent again" in replayed.out
    assert site.run("records", "drop", "wms.products", "P9").code == 0


def test_a_corrected_record_gets_a_new_key(site: Site) -> None:
    """A record that was rejected, purged and corrected is sent under a key that the platform has not seen."""
    with Front(site.platform.base_url) as front:
        site.base_url = front.base_url
        site.configure()
        (site.folder / "state.db").unlink()
        site.init()
        front.fate = lambda seen: Reply(422) if b"Amsel" in seen.body else FORWARD
        assert site.sync("wms.customers").code == 1
        grow_old(site)
        assert site.run("state", "purge").code == 0
        shown = site.run("records", "show", "wms.customers", "C2", "--raw")
        assert "rejected: HTTP 422" in shown.out
        assert PERSON.encode() not in (site.folder / "state.db").read_bytes().replace(f"{PERSON} Vogel".encode(), b"")
        site.export("CUST_2.csv", CUSTOMERS.replace("Amsel", "Meise"))
        assert site.sync("wms.customers").code == 0
        keys = [seen.key for seen in front.seen if b"wms:C2" in seen.body]
        assert len(keys) == len(set(keys)) == 2
    assert site.names("customer") == ["wms:C1", "wms:C2"]


@pytest.mark.nightly
def test_a_purged_file_is_recognised(site: Site) -> None:
    """One that comes back under its old name is neither read nor planned, and is on record again."""
    site.export("PROD_2.csv", PRODUCTS.replace("Nut", "Bar"))
    assert site.sync().code == 0
    (site.out / "PROD_1.csv").unlink()
    grow_old(site)
    assert site.run("state", "purge", "--json").json["files_removed"] == 1
    site.export("PROD_1.csv", PRODUCTS)
    assert site.run("plan", "--json").json["operations"] == {}
    for _ in range(2):
        done = site.sync()
        assert (done.code, done.json["requests"], done.rows("products")["read"]) == (0, 0, 0)
        assert [facts.name for facts in intake(site, "products")] == ["PROD_2.csv", "PROD_1.csv"]


def test_purged_content_counts_again_in_a_newer_file(site: Site) -> None:
    """What a file said long ago is delivered again, once, if the next one says it: the last file remains on record."""
    site.export("CUST_2.csv", CUSTOMERS.replace("Amsel", "Meise"))
    assert site.sync().code == 0
    for name in ("CUST_1.csv", "CUST_2.csv"):
        (site.out / name).unlink()
    grow_old(site)
    assert site.run("state", "purge", "--json").json["files_removed"] == 1
    site.export("CUST_3.csv", CUSTOMERS)
    assert site.sync().records("customers") == {"read": 2, "unchanged": 1, "updated": 1}
    assert site.sync().rows("customers")["read"] == 0


@pytest.mark.nightly
def test_a_file_that_is_still_listed_stays_on_record(site: Site) -> None:
    """However old it is: it need not be fetched to be recognised."""
    site.export("CUST_2.csv", CUSTOMERS.replace("Amsel", "Meise"))
    assert site.sync().code == 0
    grow_old(site)
    assert site.sync().code == 0
    assert site.run("state", "purge", "--json").json["files_removed"] == 0
    assert [facts.name for facts in intake(site, "customers")] == ["CUST_1.csv", "CUST_2.csv"]


def intake(site: Site, stream: str) -> list[FileFacts]:
    """What is on record of the files of a stream, oldest first."""
    (bound,) = (s for c in project.load(site.config).connections for s in c.streams if s.name == stream)
    with project.load(site.config).read_state() as tx:
        return list(tx.intake.finished_files(f"wms.{stream}", bound.version).values())


@pytest.mark.nightly
def test_what_the_platform_remembers_is_kept(site: Site) -> None:
    """No age that is asked for removes an operation whose idempotency key the platform may still know."""
    assert site.sync().code == 0
    assert site.run("state", "purge", "--older-than", "0h", "--json").json["operations_removed"] == 0
    site.edit("in_flight: 4", "in_flight: 4\n  idempotency: {kept_s: 1000000000}")
    grow_old(site)
    assert site.run("state", "purge", "--older-than", "0h", "--json").json["operations_removed"] == 0


def test_a_purge_is_refused_during_a_run(site: Site) -> None:
    """While a run holds the state a purge ends with exit 3; a dry run only looks, and may."""
    loaded = project.load(site.config)
    with closing(State(loaded.state_url, loaded.pinned_tenant)) as state, state.hold_run_lease("test"):
        refused = site.run("state", "purge")
        assert (refused.code, refused.out) == (3, "")
        assert "another run is using" in refused.err
        assert site.run("state", "purge", "--dry-run").code == 0


def test_a_purge_by_a_wrong_clock_is_refused(site: Site) -> None:
    """It ends with exit 3 and removes nothing, and so does one that cannot ask the platform for its time."""
    assert site.sync().code == 0
    grow_old(site)
    site.edit("in_flight: 4", "in_flight: 4\n  max_clock_skew_s: 0.000001")
    wrong = site.run("state", "purge")
    assert (wrong.code, "the clock of this machine is" in wrong.err) == (3, True)
    site.edit("max_clock_skew_s: 0.000001", "max_clock_skew_s: 300")
    site.setenv("CROSSDOCK_API_KEY", None)
    unknown = site.run("state", "purge")
    assert (unknown.code, "did not tell its time" in unknown.err) == (3, True)
    site.setenv("CROSSDOCK_API_KEY", site.api_key)
    assert site.run("state", "purge", "--json").json["operations_removed"] == 7


@pytest.mark.nightly(but=["5w"])
@pytest.mark.parametrize("age", ["90", "5w", "-1d", "99999d", "d"])
def test_an_age_that_is_none(site: Site, age: str) -> None:
    """An age needs a unit and has a maximum; the error shows the form, and nothing is changed."""
    refused = site.run("state", "purge", "--older-than", age)
    assert (refused.code, refused.out) == (2, "")
    assert "such as 90d or 36h" in refused.err
