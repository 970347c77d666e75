"""Real exports of a wholesaler, from the SFTP server to the platform, judged by what the platform then holds."""

from __future__ import annotations

import csv
import gzip
import json
import os
import random
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.e2e import retail_truth
from tests.e2e.project_folder import LISTS, UNPACED, SandboxProcess, Stage
from tests.e2e.retail_truth import Holdings, canonical

from crossdock.testing.openssh_server import OpenSshServer

pytestmark = [pytest.mark.retail, pytest.mark.openssh]

WEEK = 7


@dataclass(frozen=True)
class Loaded:
    """A platform with the first week, and what was found there right after the load."""

    stage: Stage
    report: dict[str, Any]
    holdings: Holdings
    effects: list[dict[str, Any]]
    by_status: dict[str, int]


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory, openssh: OpenSshServer, exports: list[Path]) -> Iterator[Loaded]:
    folder = tmp_path_factory.mktemp("week")
    with SandboxProcess(folder / "sandbox", UNPACED) as sandbox:
        stage = Stage("week", openssh, sandbox, folder, UNPACED)
        stage.serve(exports[:WEEK])
        stage.init()
        report = stage.sync()
        _copy_state(folder, folder / "kept")
        by_status = sandbox.by_status()  # asked first, since reading back asks the platform too
        yield Loaded(stage, report, sandbox.holdings(), sandbox.effects(), by_status)


@pytest.fixture
def week(loaded: Loaded) -> Stage:
    """The stage as the load left it: no file served, and the state of that moment."""
    stage = loaded.stage
    stage.serve([])
    for file in stage.folder.glob("retail.db-*"):
        file.unlink()
    _copy_state(stage.folder / "kept", stage.folder)
    for mark in stage.folder.rglob("fence.json"):  # else the state is a restored backup that was not declared
        mark.unlink()
    assert not list(stage.spool.iterdir())
    return stage


def _copy_state(source: Path, to: Path) -> None:
    to.mkdir(exist_ok=True)
    for file in source.glob("retail.db*"):
        if file.is_file():
            shutil.copy2(file, to)


@pytest.mark.parametrize(
    ("days", "rows", "cancelled", "no_customer", "invoices", "customers", "products", "total"),
    [
        pytest.param(1, 3_108, 26, 1_140, 121, 95, 941, "46376.49", id="a day"),
        pytest.param(7, 19_632, 256, 6_620, 678, 506, 1_939, "273646.10", id="a week"),
    ],
)
def test_the_files_are_those_we_know(
    exports: list[Path],
    days: int,
    rows: int,
    cancelled: int,
    no_customer: int,
    invoices: int,
    customers: int,
    products: int,
    total: str,
) -> None:
    """What the other tests compare with has the figures that were once counted by hand."""
    truth = retail_truth.of(exports[:days])
    held = truth.holdings
    assert (truth.rows, truth.cancelled, truth.no_customer) == (rows, cancelled, no_customer)
    counts = held.invoices.total(), held.customers.total(), held.products.total()
    assert counts == (invoices, customers, products)
    assert held.total == Decimal(total)


def test_a_week_arrives_whole_and_once(loaded: Loaded, exports: list[Path]) -> None:
    """Every invoice, customer and product of the files is on the platform once, and the report says the same."""
    truth = retail_truth.of(exports[:WEEK])
    assert loaded.holdings.differences(truth.holdings) == {}
    assert truth.look_alikes == (22, 5)
    assert len(loaded.effects) == loaded.report["requests"] == truth.requests == 3_123
    assert {effect["operation"] for effect in loaded.effects} == {"create"}
    assert loaded.by_status == {"201": 3_123}
    assert loaded.report["throttled"] == 0
    filtered = {"cancelled": truth.cancelled, "no_customer": truth.no_customer}
    for name, records in (("customers", 506), ("products", 1_939), ("invoices", 678)):
        in_records = truth.kept if name == "invoices" else records
        stream = loaded.report["streams"][f"shop.{name}"]
        assert stream["rows"] == {
            "read": truth.rows,
            "filtered": filtered,
            "superseded": truth.kept - in_records,
            "rejected": 0,
            "in_records": in_records,
        }
        assert nonzero(stream["records"]) == {"read": records, "created": records, "delivered": records}


def test_a_second_sync_sends_nothing(week: Stage, exports: list[Path]) -> None:
    """Files that were worked through cost no request, and are not read again."""
    week.serve(exports[:WEEK])
    report = quiet_sync(week)
    assert {stream["rows"]["read"] for stream in report["streams"].values()} == {0}


def test_the_same_rows_shuffled_into_one_new_file_send_nothing(week: Stage, exports: list[Path]) -> None:
    """What is known is told by content: another file name and another order of rows are no change."""
    rows = all_rows(exports[:WEEK])
    random.Random(17).shuffle(rows)
    write(week.drop / "sales of a week.csv.gz", rows)
    assert_all_unchanged(quiet_sync(week), len(rows))


def test_the_same_rows_in_two_new_files_backwards_send_nothing(week: Stage, exports: list[Path]) -> None:
    """Rows may come in other files than before, as long as no invoice is torn apart."""
    rows = all_rows(exports[:WEEK])[::-1]
    odd = {row["InvoiceNo"] for row in rows if row["InvoiceNo"][-1] in "13579"}
    write(week.drop / "odd.csv.gz", [row for row in rows if row["InvoiceNo"] in odd], age_s=60)
    write(week.drop / "even.csv.gz", [row for row in rows if row["InvoiceNo"] not in odd])
    assert_all_unchanged(quiet_sync(week), len(rows))


def test_the_next_day_sends_only_what_it_brings(week: Stage, exports: list[Path]) -> None:
    """Day eight is 226 creates and two renamed products, planned as they are done, and only the name is sent."""
    before, after = (retail_truth.of(exports[:days]).holdings for days in (WEEK, WEEK + 1))
    old, new = names(before), names(after)
    renamed = {key: new[key] for key in old if new[key] != old[key]}
    assert len(renamed) == 2
    by_hand = {"active": False, "sku": "changed by hand"}
    target_ids = {body["externalId"]: body["id"] for body in week.sandbox.stored("product")}
    for key in renamed:
        week.sandbox.patch(f"{LISTS['product']}/{target_ids[key]}", by_hand)
    effects, requests = len(week.sandbox.effects()), week.sandbox.requests()

    week.serve(exports[: WEEK + 1])
    planned = week.run("plan", "--json", "--limit", "1000").document
    report = week.sync()

    assert planned["operations"] == {"create": 98 + 67 + 61, "update": 2}
    updates = {item["key"]: item["changes"] for item in planned["shown"] if item["do"] == "update"}
    assert updates == {key.removeprefix("shop:"): {"name": {"before": old[key], "after": new[key]}} for key in renamed}
    log = week.sandbox.request_log(after=requests)
    assert Counter((entry["method"], int(entry["status"])) for entry in log) == {
        ("POST", 201): 226,
        ("PATCH", 412): 2,  # somebody has changed these two
        ("GET", 200): 2,
        ("PATCH", 200): 2,
    }
    assert report["requests"] == len(log) == 232
    told = week.sandbox.effects(after=effects)
    assert Counter((effect["operation"], effect["resource"]) for effect in told) == {
        ("create", "customer"): 67,
        ("create", "product"): 61,
        ("update", "product"): 2,
        ("create", "invoice"): 98,
    }
    for key, name in renamed.items():
        theirs = {"externalId": key, "name": name, "sku": key.removeprefix("shop:"), "active": True}
        after.products.subtract([canonical(theirs)])
        after.products.update([canonical(theirs | by_hand)])  # a PATCH of more than the name would have undone it
    assert week.sandbox.holdings().differences(after) == {}


def names(held: Holdings) -> dict[str, str]:
    """The name of each product, by its external id."""
    bodies = map(json.loads, held.products)
    return {body["externalId"]: body["name"] for body in bodies}


def all_rows(files: Sequence[Path]) -> list[dict[str, str]]:
    return [row for file in files for row in retail_truth.rows(file)]


def write(file: Path, rows: Sequence[dict[str, str]], *, age_s: int = 0) -> None:
    with gzip.open(file, "wt", encoding="utf-8", newline="") as text:
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    os.utime(file, (time.time() - age_s,) * 2)


def quiet_sync(stage: Stage) -> dict[str, Any]:
    """A sync during which nothing reaches the platform."""
    before = stage.sandbox.requests()
    report = stage.sync()
    assert stage.sandbox.requests() == before
    assert report["requests"] == 0
    return report


def assert_all_unchanged(report: dict[str, Any], rows: int) -> None:
    for name, records in (("customers", 506), ("products", 1_939), ("invoices", 678)):
        stream = report["streams"][f"shop.{name}"]
        assert stream["rows"]["read"] == rows
        assert nonzero(stream["records"]) == {"read": records, "unchanged": records}


def nonzero(terms: dict[str, int]) -> dict[str, int]:
    return {term: number for term, number in terms.items() if number}
