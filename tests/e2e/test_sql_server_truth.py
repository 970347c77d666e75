"""What the exports in SQL Server's form must become, compared with figures that were worked out by hand."""

from __future__ import annotations

import ast
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.e2e import sql_server_truth
from tests.e2e.sql_server_exports import TABLES, Size, encoded, nights

pytestmark = pytest.mark.nightly

SMALL = Size(12, 12, 12)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exports")
    for night in nights(1, SMALL):
        night.write(folder)
    return folder


def test_it_shares_nothing_with_what_it_judges() -> None:
    """The standard library only, and not the generator."""
    tree = ast.parse(Path(sql_server_truth.__file__).read_text(encoding="utf-8"))
    imported = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    imported |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in imported} <= sys.stdlib_module_names


def test_the_first_night(folder: Path) -> None:
    """The numbers of records, and each one that is missing on the platform with its cause."""
    truth = sql_server_truth.of(folder, 1)
    assert truth.counts == {
        "ledger_account": 22 - 2 - 2 - 2,  # statistical, of an unknown type, and below such a one
        "customer": 12 - 2,
        "product": 12,
        "warehouse_bin": 5 * 3 * 3,
        "inventory_lot": 9 - 1,
        "order": 12 - 2 - 2 - 1,  # without lines, of a customer without a name, with an unknown product
    }
    assert truth.skipped == 2
    assert truth.dead == {
        ("ledger_account", "erp:17"): "unknown type",
        ("ledger_account", "erp:20"): "unknown type",
        ("customer", "erp:11004"): "neither person nor store",
        ("customer", "erp:11007"): "neither person nor store",
        ("warehouse_bin", "erp:99|A|1"): "unknown location",
        ("order", "erp:50004"): "no lines",
        ("order", "erp:50005"): "no lines",
        ("order", "erp:50013"): "lines without an order",
        ("order", "erp:50014"): "lines without an order",
    }
    assert truth.waiting == {
        ("ledger_account", "erp:18"): ("erp:17",),
        ("ledger_account", "erp:19"): ("erp:17",),
        ("inventory_lot", "erp:712|2|A|2"): ("erp:712",),
        ("order", "erp:50002"): ("erp:11004",),
        ("order", "erp:50003"): ("erp:11007",),
        ("order", "erp:50010"): ("erp:712",),
    }


def test_bodies_of_the_first_night(folder: Path) -> None:
    """One record of each resource, read from its file by hand."""
    held = sql_server_truth.of(folder, 1).held
    assert held["ledger_account"]["erp:4"] == {
        "externalId": "erp:4",
        "code": "0040",
        "name": "Cash",
        "type": "asset",
        "parentId": "erp:3",
    }
    assert held["customer"]["erp:11000"] == {"externalId": "erp:11000", "name": "Wu Cycles | No. 0"}
    assert held["customer"]["erp:11001"] == {"externalId": "erp:11001", "name": "Léa Wu"}
    saddle = {"externalId": "erp:701", "sku": "BK-0001", "name": "Saddle «Comfort» 1", "unitOfMeasure": "CM"}
    assert held["product"]["erp:701"] == {**saddle, "unitPrice": Decimal("0.21"), "currency": "USD", "active": True}
    assert "unitPrice" not in held["product"]["erp:703"]
    assert held["product"]["erp:705"]["active"] is False
    assert held["warehouse_bin"]["erp:2|N%2FA|1"] == {
        "externalId": "erp:2|N%2FA|1",
        "code": "N/A-1",
        "warehouse": "Tool Crib",
        "zone": "N/A",
        "capacity": Decimal(48),
        "active": True,
    }
    assert "capacity" not in held["warehouse_bin"]["erp:1|A|2"]
    assert held["inventory_lot"]["erp:702|2|N%2FA|2"] == {
        "externalId": "erp:702|2|N%2FA|2",
        "productId": "erp:702",
        "lotNumber": "702-2",
        "binId": "erp:2|N%2FA|2",
        "quantity": Decimal(748),
    }
    assert held["order"]["erp:50008"] == {
        "externalId": "erp:50008",
        "customerId": "erp:11003",
        "currency": "EUR",
        "placedAt": "2014-02-08T08:00:00Z",  # midnight in Los Angeles, in winter
        "status": "in_process",
        "items": [
            {"productId": "erp:700", "quantity": Decimal(1), "unitPrice": Decimal("2131.9885")},
            {"productId": "erp:702", "quantity": Decimal(8), "unitPrice": Decimal("1573.1471")},
        ],
    }
    assert held["order"]["erp:50006"]["placedAt"] == "2014-06-06T07:00:00Z"  # in summer


def test_lines_of_one_order_in_two_files_are_all_there(folder: Path) -> None:
    """One line is in the first file and two are in the second."""
    assert len(sql_server_truth.of(folder, 1).held["order"]["erp:50007"]["items"]) == 3


def test_the_second_night(folder: Path) -> None:
    """What arrives later completes what was missing; what is gone stays on the platform."""
    first, second = (sql_server_truth.of(folder, number) for number in (1, 2))
    assert second.dead == {
        ("ledger_account", "erp:20"): "unknown type",
        ("customer", "erp:11007"): "neither person nor store",
        ("warehouse_bin", "erp:99|A|1"): "unknown location",
        ("order", "erp:50005"): "no lines",
        ("order", "erp:50014"): "lines without an order",
    }
    assert second.waiting == {("order", "erp:50003"): ("erp:11007",)}
    before, after = first.canonical(), second.canonical()
    new = {resource: after[resource].keys() - before[resource].keys() for resource in after}
    assert new == {
        "ledger_account": {"erp:17", "erp:18", "erp:19"},
        "customer": {"erp:11004"},
        "product": {"erp:712"},
        "warehouse_bin": set(),
        "inventory_lot": {"erp:712|2|A|2"},
        "order": {"erp:50002", "erp:50004", "erp:50010", "erp:50013", "erp:50015", "erp:50016", "erp:50017"},
    }
    changed = {
        resource: {key for key, body in before[resource].items() if after[resource][key] != body} for resource in after
    }
    assert changed == {
        "ledger_account": {"erp:16"},
        "customer": {"erp:11001", "erp:11003"},
        "product": {"erp:700", "erp:701", "erp:702", "erp:703"},
        "warehouse_bin": {f"erp:1|{shelf}|{number}" for shelf in ("A", "B", "N%2FA") for number in (1, 2, 3)},
        "inventory_lot": {"erp:700|4|B|2"},
        "order": {"erp:50008", "erp:50009"},
    }
    assert second.held["product"]["erp:711"] == first.held["product"]["erp:711"]  # gone from the export
    assert second.held["product"]["erp:701"]["active"] is False
    assert second.held["order"]["erp:50008"]["items"][0]["quantity"] == Decimal(17)
    assert len(second.held["order"]["erp:50009"]["items"]) == len(first.held["order"]["erp:50009"]["items"]) + 1


def test_every_size_and_seed_has_the_same_defects(tmp_path: Path) -> None:
    """Larger exports hold more records and the same number of dead letters and waiting records."""
    for night in nights(7, Size(60, 50, 400)):
        night.write(tmp_path)
    truth = sql_server_truth.of(tmp_path, 1)
    assert (len(truth.dead), len(truth.waiting)) == (9, 6)
    assert truth.counts["order"] == 400 - 2 - 2 - 1
    assert (len((truth := sql_server_truth.of(tmp_path)).dead), len(truth.waiting)) == (5, 1)
    assert truth.counts["order"] == 400 + 3 + 1 - 1 - 1  # new and late ones; no lines, no customer


def test_a_file_in_another_form_is_an_error(folder: Path, tmp_path: Path) -> None:
    """It never guesses: a row with too few cells, or a file that ends within a row, raises."""
    layout, columns = TABLES["Product"]
    whole = encoded([{"ProductID": "1"}], columns, layout)
    for name, data, message in (("cells", b"1\t2\r\n", "row 1 has 2 cells"), ("end", whole[:-1], "does not end with")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "Product_20140630.csv").write_bytes(data)
        with pytest.raises(ValueError, match=message):
            sql_server_truth.of(tmp_path / name)


def test_what_a_platform_lists_is_compared_by_external_ids() -> None:
    """Ids become external ids, also in items; the platform's members and records of others are left out."""
    given = {"createdAt": "x", "updatedAt": "x"}
    stored: dict[str, list[dict[str, Any]]] = {
        "customer": [{"id": "c1", "externalId": "erp:1", "name": "A", **given}, {"id": "c2", "externalId": "other:1"}],
        "product": [{"id": "p1", "externalId": "erp:7", **given}],
        "order": [
            {
                "id": "o1",
                "externalId": "erp:5",
                "customerId": "c1",
                "items": [{"productId": "p1", "quantity": Decimal(2)}],
            }
        ],
    }
    held = sql_server_truth.held_by(stored)
    assert held["customer"] == {"erp:1": sql_server_truth.canonical({"externalId": "erp:1", "name": "A"})}
    order = {
        "externalId": "erp:5",
        "customerId": "erp:1",
        "items": [{"productId": "erp:7", "quantity": Decimal("2.0")}],
    }
    assert held["order"] == {"erp:5": sql_server_truth.canonical(order)}


def test_numbers_are_compared_by_value() -> None:
    """6 and 6.0000 are one number, and no number is a text."""
    six = sql_server_truth.canonical({"unitPrice": Decimal(6)})
    assert sql_server_truth.canonical({"unitPrice": Decimal("6.0000")}) == six
    assert sql_server_truth.canonical({"unitPrice": "6"}) != six
    assert sql_server_truth.canonical({"unitPrice": Decimal("0.0000")}) == '{"unitPrice": {"number": "0"}}'
