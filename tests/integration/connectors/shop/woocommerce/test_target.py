"""Parcels, statuses and stock reach a fake WooCommerce shop once, whatever happens between look-up and write."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.partners.partner_server import PartnerRequest
from tests.partners.shop_stage import woocommerce
from tests.partners.stage import Project
from tests.partners.threepl_stage import LONG_AGO
from tests.partners.woocommerce.shop import FakeShop
from tests.partners.woocommerce.shop_catalog import Product
from tests.partners.woocommerce.shop_faults import Faulty, ShopFault
from tests.partners.woocommerce.shop_keys import ApiKey
from tests.partners.woocommerce.shop_orders import Order
from tests.partners.woocommerce.shop_server import serving_shop
from tests.partners.woocommerce.shop_settings import ShopSettings

from crossdock.sandbox import SandboxServer
from crossdock.testing import ManualClock

FILES = {"format": {"delimiter": ";"}, "mode": "append"}
STREAMS = {
    "parcels": {
        **FILES,
        "files": "PARCELS_*.csv",
        "key": ["ORDER", "NUMBER"],
        "to": "shop.fulfillments",
        "map": {"carrier": "CARRIER", "url": "URL", "date": "DATE"},
    },
    "statuses": {
        **FILES,
        "files": "STATUSES_*.csv",
        "key": ["ORDER"],
        "to": "shop.order_status",
        "map": {"status": "STATUS"},
    },
    "stock": {
        **FILES,
        "files": "STOCK_*.csv",
        "key": ["SKU"],
        "to": "shop.stock",
        "map": {"quantity": {"from": "QTY", "as": "decimal"}},
    },
}


class ShopWrites(Project):
    """Files of parcels, statuses and stock, which are sent to the connection ``shop``."""

    def __init__(
        self, folder: Path, sandbox: SandboxServer, shop: FakeShop, faulty: Faulty, clock: ManualClock
    ) -> None:
        self.shop, self.faulty, self._written, self._out = shop, faulty, 0, folder / "out"
        self._out.mkdir()
        connections = {
            "shop": woocommerce(folder, shop.site, ApiKey()),
            "depot": {"kind": "folder_warehouse", "path": "out", "settle_s": 0, "streams": STREAMS},
        }
        super().__init__(folder, sandbox, connections, clock)

    def export(self, name: str, columns: str, *rows: tuple[object, ...]) -> None:
        self._written += 1
        path = self._out / f"{name}_{self._written:04}.csv"
        lines = [columns.split(), *rows]
        path.write_text("".join(f"{';'.join(map(str, line))}\n" for line in lines), encoding="utf-8")
        os.utime(path, (LONG_AGO + self._written, LONG_AGO + self._written))

    def parcel(self, order: Order, number: str, carrier: str = "DHL", url: str = "", day: str = "") -> None:
        self.export("PARCELS", "ORDER NUMBER CARRIER URL DATE", (order.id, number, carrier, url, day))

    def stock(self, sku: str, quantity: int) -> None:
        self.export("STOCK", "SKU QTY", (sku, quantity))

    def status(self, order_id: object, status: str) -> None:
        self.export("STATUSES", "ORDER STATUS", (order_id, status))

    def synced(self, code: int = 0) -> None:
        report = self.sync("depot")
        assert (report.exit_code, report.balanced) == (code, True), (report.errors, self.dead_letters())

    def letter(self) -> str:
        """The only dead letter, after a sync."""
        self.synced(1)
        (found,) = self.dead_letters().values()
        return found

    def writes(self) -> list[dict[str, Any]]:
        """The bodies of the writes, oldest first."""
        return [each["body"] for each in self.faulty.effects]


@pytest.fixture(name="sandbox", scope="module")
def _sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxServer]:
    with SandboxServer(tmp_path_factory.mktemp("sandbox")) as sandbox:
        yield sandbox


@pytest.fixture(name="opened")
def _opened(tmp_path: Path, sandbox: SandboxServer, request: pytest.FixtureRequest) -> Iterator[ShopWrites]:
    """A shop; a parameter is its settings."""
    clock = ManualClock()
    shop = FakeShop(getattr(request, "param", None), clock=clock)
    faulty = Faulty(shop)
    with serving_shop(shop, faulty):
        yield ShopWrites(tmp_path, sandbox, shop, faulty, clock)


def lamp(opened: ShopWrites, *, managed: bool = True) -> Product:
    return opened.shop.catalog.add("Lamp", "1", sku="LAMP", manage_stock=managed, stock_quantity=10)


def order(opened: ShopWrites) -> Order:
    return opened.shop.orders.place((lamp(opened), 1))


def sending(method: str) -> Callable[[PartnerRequest], bool]:
    return lambda asked: asked.method == method


def test_a_parcel_is_told_once(opened: ShopWrites) -> None:
    """With a carrier that the shop knows, its link, or one of ours; the same file again sends nothing."""
    placed = order(opened)
    opened.parcel(placed, "N 1", day="2026-03-01")
    opened.parcel(placed, "N|2", "Bike", "https://bike.example/N2")
    opened.synced()
    opened.parcel(placed, "N 1", day="2026-03-01")
    opened.synced()
    found = {each["tracking_number"]: each for each in placed.tracking}
    assert found["N 1"]["tracking_link"] == "https://dhl.example/?id=N 1"
    assert found["N 1"]["date_shipped"] == "2026-03-01"
    assert (found["N|2"]["tracking_provider"], found["N|2"]["tracking_link"]) == ("Bike", "https://bike.example/N2")
    assert len(opened.writes()) == len(placed.tracking) == 2


def test_a_parcel_that_somebody_told_already_is_left(opened: ShopWrites) -> None:
    """The shop would take the same number twice."""
    placed = order(opened)
    placed.tracking.append({"tracking_id": "abc", "tracking_number": "N1"})
    opened.parcel(placed, "N1")
    opened.synced()
    assert opened.writes() == []


@pytest.mark.nightly(but=["critical_error", "late_critical_error"])
@pytest.mark.parametrize("fault", ["critical_error", "late_critical_error", "notice", "null", "cut_json", "cut_body"])
def test_a_parcel_in_doubt_is_looked_up(opened: ShopWrites, fault: ShopFault) -> None:
    """Whether the shop has carried it out or not, it has the parcel once in the end."""
    placed = order(opened)
    opened.faulty.plan(fault, sending("POST"))
    opened.parcel(placed, "N1")
    opened.synced()
    assert [each["tracking_number"] for each in placed.tracking] == ["N1"]


@pytest.mark.parametrize("fault", ["null", "object", "nulls"])
def test_a_look_up_that_cannot_be_read_does_not_tell_a_parcel_again(opened: ShopWrites, fault: ShopFault) -> None:
    """The answer to the create is lost, and the look-up after it has no items, although the shop has one."""
    placed = order(opened)
    opened.faulty.plan("late_critical_error", sending("POST"))
    opened.faulty.plan(fault, lambda asked: asked.method == "GET" and bool(placed.tracking))
    opened.parcel(placed, "N1")
    opened.synced()
    assert [each["tracking_number"] for each in placed.tracking] == ["N1"]


def test_an_order_that_is_missing_is_one_dead_letter(opened: ShopWrites) -> None:
    """The other parcels arrive."""
    placed = order(opened)
    opened.export("PARCELS", "ORDER NUMBER CARRIER URL DATE", (9999, "N0", "DHL", "", ""))
    opened.parcel(placed, "N1")
    assert "the shop has no such order" in opened.letter()
    assert len(placed.tracking) == 1


@pytest.mark.parametrize("opened", [ShopSettings(tracking=None)], indirect=True)
def test_a_shop_without_the_extension(opened: ShopWrites) -> None:
    """The run ends with the reason; nothing is a dead letter."""
    opened.parcel(order(opened), "N1")
    report = opened.sync("depot")
    assert report.exit_code == 3
    [error] = report.errors.values()
    assert "/wp-json/wc-shipment-tracking/v3/orders/" in error.message
    assert "that the shop has the extension Shipment Tracking" in (error.hint or "")
    assert opened.dead_letters() == {}


def test_the_status_of_an_order_is_set(opened: ShopWrites) -> None:
    """Only if it is another one; an order in the trash is a dead letter."""
    placed = order(opened)
    opened.status(placed.id, "processing")
    opened.synced()
    assert opened.writes() == []
    opened.status(placed.id, "completed")
    opened.synced()
    assert (opened.writes(), placed.status) == ([{"status": "completed"}], "completed")
    opened.shop.orders.trash(placed)
    opened.status(placed.id, "on-hold")
    assert "the order is in the shop's trash" in opened.letter()


def test_a_key_that_is_no_order(opened: ShopWrites) -> None:
    """It could lead to another address of the API."""
    opened.status("7/notes", "completed")
    assert "the key must be the id of the shop's order" in opened.letter()


def test_stock_is_changed_by_the_difference(opened: ShopWrites) -> None:
    """A sale between the look-up and the write is kept, and the next quantity is compared with what the shop has."""
    product = lamp(opened)
    opened.shop.meanwhile(sending("PUT"), lambda: opened.shop.catalog.move_stock(product, -1))
    opened.stock("LAMP", 15)
    opened.synced()
    assert (opened.writes(), product.stock) == ([{"inventory_delta": 5}], 14)
    opened.stock("LAMP", 20)
    opened.synced()
    assert (opened.writes()[1:], product.stock) == ([{"inventory_delta": 6}], 20)


def test_stock_of_a_variation(opened: ShopWrites) -> None:
    """It is found by its SKU, and written below its product."""
    shirt = opened.shop.catalog.add("Shirt", type="variable")
    blue = opened.shop.catalog.add("Shirt", "1", shirt, sku="SHIRT-B", manage_stock=True, stock_quantity=-2)
    opened.stock("SHIRT-B", 0)
    opened.synced()
    assert blue.stock == 0


@pytest.mark.nightly(but=["critical_error"])
@pytest.mark.parametrize("fault", ["critical_error", "late_critical_error", "notice", "cut_body"])
def test_stock_in_doubt_is_looked_up(opened: ShopWrites, fault: ShopFault) -> None:
    """The difference is not added twice."""
    product = lamp(opened)
    opened.faulty.plan(fault, sending("PUT"))
    opened.stock("LAMP", 15)
    opened.synced()
    assert product.stock == 15


@pytest.mark.parametrize(
    ("managed", "sku", "reason"),
    [
        (True, "CHAIR", "the shop has no product with this SKU"),
        (False, "LAMP", "does not manage the stock"),
        (True, "A,B", "looks up no SKU with a comma"),
    ],
)
def test_stock_that_cannot_be_written(opened: ShopWrites, managed: bool, sku: str, reason: str) -> None:
    """Each is a dead letter with its reason."""
    lamp(opened, managed=managed)
    opened.stock(sku, 5)
    assert reason in opened.letter()
    assert opened.writes() == []
