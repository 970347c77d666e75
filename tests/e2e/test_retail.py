"""Real exports of a wholesaler, from the SFTP server to the platform, judged by what the platform then holds."""

from __future__ import annotations

import csv
import gzip
import random
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.e2e import retail_truth
from tests.e2e.retail_truth import Holdings, canonical
from tests.e2e.stage import LISTS, UNPACED, SandboxProcess, Stage

from crossdock.testing.openssh import OpenSshServer

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
        yield Loaded(stage, report, sandbox.holdings(), sandbox.effects(), sandbox.by_status())


@pytest.fixture
def week(loaded: Loaded) -> Stage:
    """The stage as the load left it: no file served, and the state of that moment."""
    stage = loaded.stage
    stage.serve([])
    for file in stage.folder.glob("retail.db-*"):
        file.unlink()
    _copy_state(stage.folder / "kept", stage.folder)
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
    write(week.drop / "odd.csv.gz", [row for row in rows if row["InvoiceNo"] in odd])
    write(week.drop / "even.csv.gz", [row for row in rows if row["InvoiceNo"] not in odd])
    assert_all_unchanged(quiet_sync(week), len(rows))


def test_the_next_day_sends_only_what_it_brings(week: Stage, exports: list[Path]) -> None:
    """Day eight is 226 creates and two renamed products, planned as they are done; what others changed stays."""
    before, after = (retail_truth.of(exports[:days]).holdings for days in (WEEK, WEEK + 1))
    renamed = after.products.keys() - before.products.keys()
    known = {code for body in before.products if (code := retail_truth.code(body))}
    renamed = {body for body in renamed if retail_truth.code(body) in known}
    assert len(renamed) == 2
    del week, renamed
