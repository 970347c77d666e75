"""Quantities of stock at a partner: set if they are as expected, or adjusted by a signed difference, and never lost."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.chaos.chance import chaos_seed
from tests.e2e.order_depot import Depot, depot
from tests.partners.partner_server import Fault
from tests.partners.plain_3pl_habits import Habits

SET: dict[str, Any] = {
    "members": {"quantity": {"type": "number", "required": True}},
    "update": "PUT /v1/stock/{id}",
    "read": "GET /v1/stock/{id}",
    "compare": {"quantity": "expected_quantity"},
    "outdated": {"status": 409, "text": "changed_meanwhile"},
}
ADJUSTED: dict[str, Any] = {
    "members": {
        "stock_id": {"type": "text", "required": True},
        "delta": {"type": "number", "required": True},
    },
    "name": "id",
    "id": "{name}",
    "create": "POST /v1/stock/{stock_id}/adjustments",
    "repeated": "ignored",
}
QUANTITIES: dict[str, Any] = {
    "files": "STOCK_*.csv",
    "mode": "snapshot",
    "key": ["ID"],
    "format": {},
    "to": "plain.stock",
    "contributes": ["quantity"],
    "matches": "id",
    "map": {"quantity": {"from": "QTY", "as": "decimal"}},
}
MOVEMENTS: dict[str, Any] = {
    "files": "STOCK_*.csv",
    "mode": "append",
    "key": ["ID"],
    "format": {},
    "to": "plain.adjustments",
    "map": {"stock_id": "STOCK", "delta": {"from": "QTY", "as": "decimal"}},
}
FAULTS: Mapping[Fault, float] = {"lost_answer": 0.2, "refused": 0.1, "throttled": 0.1, "unavailable": 0.1}
PATIENT: Mapping[str, Any] = {"retry": {"base_s": 0.01, "cap_s": 0.05, "attempts": 20}}
QUICK: dict[str, Any] = {"idempotency_keys": False, "retry_after_s": Decimal("0.02"), "throttling": "429_float"}


class Stock:
    """A 3PL with four stock records of ten units, and a folder with quantities for it."""

    def __init__(self, made: Depot, resource: str, declared: dict[str, Any], stream: dict[str, Any]) -> None:
        self.depot, self._files = made, 0
        warehouse = made.partner.warehouse
        for lot in range(4):
            warehouse.receive("acme", "0017", f"L{lot}", "A-01", 10)
        self.ids = list(warehouse.tables["stock"])
        made.plain["target"]["resources"] = {resource: declared}
        made.config["connections"]["wms"]["streams"] = {"stock": stream}
        made.configure()

    def write(self, header: str, rows: list[str]) -> None:
        self._files += 1
        path = self.depot.folder / "out" / f"STOCK_{self._files:03}.csv"
        path.write_text("\n".join((header, *rows, "")))
        os.utime(path, (1_600_000_000 + self._files, 1_600_000_000 + self._files))

    def export(self, quantities: Mapping[str, int]) -> None:
        self.write("ID,QTY", [f"{stock_id},{quantity}" for stock_id, quantity in quantities.items()])

    def change(self, stock_id: str, delta: int) -> None:
        """Somebody at the 3PL corrects a quantity."""
        self.depot.partner.warehouse.adjust(stock_id, delta)

    def held(self) -> dict[str, int]:
        return {
            each: int(row.members["quantity"]) for each, row in self.depot.partner.warehouse.tables["stock"].items()
        }

    def effects(self) -> list[Any]:
        return [each["body"] for each in self.depot.partner.effects]

    def reasons(self) -> dict[str, str]:
        """The dead letters: why, by key."""
        return {each["key"]: each["why"] for each in json.loads(self.depot.run("records", "list", "--json").stdout)}


Made = Callable[..., Stock]


@contextmanager
def stock_with(folder: Path, declared: dict[str, Any], **options: Any) -> Iterator[Stock]:
    """A 3PL whose stock is written as *declared*."""
    sets = declared is SET
    stream = (QUANTITIES if sets else MOVEMENTS) | options.pop("stream", {})
    with depot(folder, Habits(stock_writes="set" if sets else "adjust", **QUICK), begin=False, **options) as made:
        stock = Stock(made, "stock" if sets else "adjustments", declared, stream)
        made.init()
        yield stock


def test_a_quantity_is_set_if_it_is_as_expected(tmp_path: Path) -> None:
    """The first update reads what is there, later ones expect what was written; nothing new sends nothing."""
    with stock_with(tmp_path, SET) as stock:
        stock.export(dict.fromkeys(stock.ids, 7))
        stock.depot.planned_sync(looked_up=True)
        assert stock.held() == dict.fromkeys(stock.ids, 7)
        stock.export({**dict.fromkeys(stock.ids, 7), stock.ids[1]: 5})
        assert stock.depot.planned_sync()["requests"] == 1
        assert stock.effects()[-1] == {"quantity": 5, "expected_quantity": 7}
        assert stock.depot.planned_sync()["requests"] == 0


def test_a_quantity_that_somebody_else_changed_is_read_before_it_is_overwritten(tmp_path: Path) -> None:
    """By default the stream owns the quantity; no update is blind."""
    with stock_with(tmp_path, SET) as stock:
        stock.export(dict.fromkeys(stock.ids, 7))
        stock.depot.sync()
        stock.change(stock.ids[0], -3)
        stock.export({**dict.fromkeys(stock.ids, 7), stock.ids[0]: 6})
        stock.depot.planned_sync(looked_up=True)
        assert stock.effects()[-1] == {"quantity": 6, "expected_quantity": 4}


def test_a_conflict_is_shown_with_its_quantities(tmp_path: Path) -> None:
    """With ``conflicts: reject`` nothing is written, and the other records are."""
    with stock_with(tmp_path, SET, stream={"conflicts": "reject"}) as stock:
        stock.export(dict.fromkeys(stock.ids, 7))
        stock.depot.sync()
        stock.change(stock.ids[0], -3)
        stock.export({**dict.fromkeys(stock.ids, 8), stock.ids[0]: 6})
        stock.depot.sync(exit_code=1)
        assert stock.held() == {**dict.fromkeys(stock.ids, 8), stock.ids[0]: 4}
        said = "conflict: somebody else has changed quantity from 7 to 4; this would set 6; nothing was written"
        assert stock.reasons() == {stock.ids[0]: said}


@pytest.mark.nightly(but=["0"])
@pytest.mark.parametrize("number", range(2))
def test_updates_in_any_order_lose_nothing(tmp_path: Path, number: int) -> None:
    """Nights, faults and changes at the 3PL in random order: each write expected what was there."""
    random = Random(chaos_seed() + number)
    with stock_with(tmp_path, SET, faults=FAULTS, target=PATIENT) as stock:
        wanted = dict.fromkeys(stock.ids, 10)
        for _ in range(6):
            for stock_id in random.sample(stock.ids, 2):
                stock.change(stock_id, random.randint(-2, 5))
            changed = random.sample(stock.ids, 2)
            wanted |= {stock_id: random.randint(0, 30) for stock_id in changed}
            stock.export(wanted)
            stock.depot.sync()
            assert {each: stock.held()[each] for each in changed} == {each: wanted[each] for each in changed}
        requests = stock.depot.sync()["requests"]
    assert requests == 0
    assert "lost_answer" in {fault for _, fault in stock.depot.server.requests}


def test_adjustments_are_carried_out_once(tmp_path: Path) -> None:
    """Signed differences add up to the same quantity, with changes at the 3PL between them, whatever answer is lost."""
    random = Random(chaos_seed())
    with stock_with(tmp_path, ADJUSTED, faults=FAULTS, target=PATIENT) as stock:
        wanted, rows = dict.fromkeys(stock.ids, 10), 0
        for _ in range(4):
            lines = []
            for stock_id in stock.ids:
                by_us, by_them = random.randint(-1, 4), random.randint(-1, 4)
                rows += 1
                lines.append(f"M{rows},{stock_id},{by_us}")
                stock.change(stock_id, by_them)
                wanted[stock_id] += by_us + by_them
            stock.write("ID,STOCK,QTY", lines)
            stock.depot.sync()
            assert stock.held() == wanted
        assert stock.depot.sync()["requests"] == 0
        assert sorted(each["id"] for each in stock.effects()) == sorted(f"wms:M{each}" for each in range(1, rows + 1))


def test_an_adjustment_below_zero_is_a_dead_letter(tmp_path: Path) -> None:
    """The 3PL's reason is kept, and the others are carried out."""
    with stock_with(tmp_path, ADJUSTED) as stock:
        stock.write("ID,STOCK,QTY", [f"M1,{stock.ids[0]},-11", f"M2,{stock.ids[1]},-4"])
        stock.depot.sync(exit_code=1)
        assert stock.held() == {**dict.fromkeys(stock.ids, 10), stock.ids[1]: 6}
        ((key, reason),) = stock.reasons().items()
        assert key == "M1"
        assert reason.endswith("would be -1")


def test_a_resource_without_create_is_only_completed(tmp_path: Path) -> None:
    """A stream that would create such records is an error of the config."""
    with stock_with(tmp_path, SET) as stock:
        streams = stock.depot.config["connections"]["wms"]["streams"]
        streams["stock"] = {name: rule for name, rule in QUANTITIES.items() if name not in {"contributes", "matches"}}
        stock.depot.configure()
        done = stock.depot.run("plan")
        assert done.exit_code == 2
        assert "streams.stock.contributes: is missing: the target has no request that creates stock" in done.stderr
