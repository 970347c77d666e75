"""Every stream of a WooCommerce shop passes the contract tests for streams, and ``check`` says what is wrong."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.partners.partner_server import PartnerAnswer, PartnerRequest
from tests.partners.partner_transport import transport
from tests.partners.woocommerce.shop import FakeShop
from tests.partners.woocommerce.shop_keys import ApiKey
from tests.partners.woocommerce.shop_settings import ShopSettings

from crossdock import Finding
from crossdock.config.project.connections_and_bound_streams import load_connector
from crossdock.errors import UnauthorizedError
from crossdock.testing import ManualClock, context
from crossdock.testing.contract import StreamContract
from crossdock.testing.sandbox_syncs import write_private_file
from crossdock.values.clock import Clock
from crossdock_connectors.shop.woocommerce.check import check


def filled_shop(clock: Clock | None = None) -> FakeShop:
    """Simple and variable products, accounts and a guest, orders in several states, and refunds."""
    shop = FakeShop(clock=clock)
    lamp = shop.catalog.add("Lamp", "49.90", sku="LAMP", manage_stock=True, stock_quantity=10)
    shirt = shop.catalog.add("Shirt", type="variable", manage_stock=True, stock_quantity=5)
    blue = shop.catalog.add("Shirt", "20", shirt, sku="SHIRT-B", attributes=[{"name": "Colour", "option": "Blue"}])
    ada = shop.customers.add("ada@example.com", first_name="Ada")
    shop.orders.place((lamp, 3), (blue, 1), customer_id=ada.id)
    refunded = shop.orders.place((lamp, 1), billing={"email": "bo@example.com", "first_name": "Bo"})
    shop.orders.refund(refunded, "10.00", units={refunded.lines[0].id: 1})
    shop.orders.trash(shop.orders.place((blue, 2), customer_id=ada.id))
    return shop


class _OfWooCommerce(StreamContract):
    connector = load_connector("woocommerce")
    environment = {"CONSUMER_KEY": "ck_fake", "CONSUMER_SECRET": "cs_fake"}
    settings: dict[str, Any] = {
        "kind": "woocommerce",
        "base_url": "https://shop.example",
        "consumer_key": "env:CONSUMER_KEY",
        "consumer_secret": "env:CONSUMER_SECRET",
    }
    shop = filled_shop()

    def network(self) -> httpx.BaseTransport:
        return transport(self.shop)


@pytest.mark.nightly
class TestProducts(_OfWooCommerce):
    stream = "products"


@pytest.mark.nightly
class TestCustomers(_OfWooCommerce):
    stream = "customers"


@pytest.mark.nightly
class TestLocations(_OfWooCommerce):
    stream = "locations"


class TestStock(_OfWooCommerce):
    stream = "stock"


class _OfAmounts(_OfWooCommerce):
    """Amounts are rounded to the currency's minor unit, as the shop's own sums are."""

    decimals = 2


@pytest.mark.nightly
class TestOrders(_OfAmounts):
    stream = "orders"


@pytest.mark.nightly
class TestInvoices(_OfAmounts):
    stream = "invoices"


class Dated:
    """A shop behind a server whose clock is late, or that loses a header."""

    def __init__(self, shop: FakeShop, clock: ManualClock, late: timedelta = timedelta(), lost: str = "") -> None:
        self.shop, self.clock, self.late, self.lost = shop, clock, late, lost
        self.effects = shop.effects

    def throttled(self) -> PartnerAnswer:
        return self.shop.throttled()

    def answer(self, request: PartnerRequest) -> PartnerAnswer:
        given = self.shop.answer(request)
        headers = {**given.headers, "date": format_datetime(self.clock.now() - self.late, usegmt=True)}
        return replace(given, headers={name: text for name, text in headers.items() if name != self.lost})


def findings(folder: Path, shop: FakeShop, **server: Any) -> list[Finding]:
    clock = ManualClock()
    settings = {
        "base_url": "https://shop.example",
        "consumer_key": write_private_file(folder / "key", "ck_fake"),
        "consumer_secret": write_private_file(folder / "secret", "cs_fake"),
    }
    network = transport(Dated(shop, clock, **server))
    return list(check(context(load_connector("woocommerce"), settings, transport=network, clock=clock, folder=folder)))


def test_a_shop_in_order(tmp_path: Path) -> None:
    """Each finding says what was found."""
    found = findings(tmp_path, filled_shop())
    assert all(each.ok for each in found)
    assert [each.text.partition("orders ")[2] or each.text for each in found] == [
        "responds; it has 2 orders: a first load reads them in about 0 seconds, with 1 requests",
        "the clocks of the shop and of this machine differ by 0 seconds",
        "2 products",
        "1 customers",
        "the shop lists what has changed",
    ]


def test_a_clock_that_is_wrong(tmp_path: Path) -> None:
    """Ten minutes are as much as runs overlap."""
    [wrong] = [each for each in findings(tmp_path, filled_shop(), late=timedelta(minutes=10)) if not each.ok]
    assert wrong.text.startswith("the clocks of the shop and of this machine differ by 10 minutes")


def test_a_shop_before_5_8(tmp_path: Path) -> None:
    """It ignores the filter by change, so each run reads everything."""
    shop = FakeShop(ShopSettings(filters_by_change=False))
    shop.orders.place((shop.catalog.add("Lamp", "1"), 1))
    [wrong] = [each for each in findings(tmp_path, shop) if not each.ok]
    assert "ignores modified_after" in wrong.text


def test_a_proxy_that_removes_the_number_of_records(tmp_path: Path) -> None:
    """Without it no list can be read."""
    wrong = [each for each in findings(tmp_path, filled_shop(), lost="x-wp-total") if not each.ok]
    assert "responds without X-WP-Total" in wrong[0].text


@pytest.mark.parametrize(
    ("key", "status"), [(ApiKey(permissions="write"), 401), (ApiKey(manages=False), 403), (ApiKey("ck_other"), 401)]
)
def test_keys_that_may_not_read(tmp_path: Path, key: ApiKey, status: int) -> None:
    """The refusal names the status."""
    with pytest.raises(UnauthorizedError, match=f"HTTP {status}"):
        findings(tmp_path, FakeShop(keys=[key]))
