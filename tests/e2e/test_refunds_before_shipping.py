"""Units that are paid back before they ship, by the configs of shops as they are: the 3PL ships the others only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.partners.partner_server import PartnerServer, serving
from tests.partners.shop_recipe import Depot, Recipe
from tests.partners.shopify.order_lines import Line
from tests.partners.shopify.site import Site
from tests.partners.shopify.watched import WatchedShop
from tests.partners.woocommerce.shop import FakeShop
from tests.partners.woocommerce.shop_keys import ApiKey
from tests.partners.woocommerce.shop_server import serving_shop

from crossdock.sandbox import SandboxServer, SandboxSettings
from crossdock.testing import ManualClock

pytestmark = pytest.mark.nightly

ADDRESS = {"first_name": "Bo", "address_1": "Kai 1", "city": "Kiel", "country": "DE", "email": "bo@example.com"}
Open = Callable[[str, PartnerServer, ManualClock], Recipe]


@pytest.fixture
def open_recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """Opens the example of a kind of shop, with a 3PL that has one lamp in stock."""
    with ExitStack() as opened:

        def enter(kind: str, shop: PartnerServer, clock: ManualClock) -> Recipe:
            limits = SandboxSettings(rate_per_min=600_000, burst=100_000)
            sandbox = opened.enter_context(SandboxServer(tmp_path / "sandbox", limits))
            depot = Depot()
            depot.lists["stock"] = [{"sku": "LAMP", "location": "Berlin", "quantity": 1}]
            at_depot = opened.enter_context(serving(PartnerServer(depot)))
            urls = {"PLATFORM_URL": sandbox.base_url, "SHOP_URL": shop.url, "THREEPL_URL": at_depot.url}
            for name, value in {**urls, "CROSSDOCK_API_KEY": sandbox.api_key, "THREEPL_KEY": "key"}.items():
                monkeypatch.setenv(name, value)
            return Recipe(tmp_path, kind, shop, depot, clock)

        yield enter


def sent(recipe: Recipe) -> list[tuple[str, list[dict[str, Any]]]]:
    """The orders that the 3PL still has, with their lines."""
    return sorted(
        (each["shop_order"], sorted(each["lines"], key=lambda line: str(line["sku"])))
        for each in recipe.depot.effects
        if each["reference"] not in recipe.depot.cancelled
    )


def test_shopify(open_recipe: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """An order of which nothing is left does not go to the 3PL, and is cancelled there if it did."""
    site = Site()
    chair, orders = site.variant("CHAIR", "20.00", 9), site.shop.orders
    monkeypatch.setenv("SHOP_TOKEN", site.shop.token)
    placed = [orders.place(Line(site.lamp, 2), Line(chair, 1), email="bo@example.com") for _ in range(3)]
    some, nothing, later = (f"shop:{each.legacy_resource_id}" for each in placed)
    orders.refund(placed[0], {"LAMP": 1, "CHAIR": 1})
    orders.refund(placed[1], {"LAMP": 2, "CHAIR": 1})
    with serving(PartnerServer(WatchedShop(site.shop))) as server:
        recipe = open_recipe("shopify", server, site.clock)
        assert recipe.sync("shop", "erp").exit_code == 0
        whole = [{"sku": "CHAIR", "quantity": 1}, {"sku": "LAMP", "quantity": 2}]
        assert sent(recipe) == sorted([(some, [{"sku": "LAMP", "quantity": 1}]), (later, whole)])
        orders.refund(placed[2], {"LAMP": 2, "CHAIR": 1})
        assert (recipe.sync("shop", "erp").exit_code, recipe.sync("erp").exit_code) == (0, 0)
        assert [order for order, _ in sent(recipe)] == [some]
        assert recipe.stored("order")[nothing]["status"] == "cancelled"


@pytest.mark.parametrize("whole", ["by its units", "by its status"])
def test_woocommerce(open_recipe: Open, monkeypatch: pytest.MonkeyPatch, whole: str) -> None:
    """As Shopify's, although refunds change neither the lines nor, unless they are all, the status of an order."""
    clock = ManualClock()
    shop, key = FakeShop(clock=clock), ApiKey()
    lamp, chair = (shop.catalog.add(sku, "20.00", sku=sku) for sku in ("LAMP", "CHAIR"))
    monkeypatch.setenv("SHOP_KEY", key.consumer_key)
    monkeypatch.setenv("SHOP_SECRET", key.consumer_secret)
    placed = [shop.orders.place((lamp, 2), (chair, 1), billing=ADDRESS, shipping=ADDRESS) for _ in range(3)]
    some, nothing, later = (f"shop:{each.id}" for each in placed)

    def refund_all(number: int) -> None:
        order = placed[number]
        if whole == "by its status":
            shop.orders.edit(order, {"status": "refunded"})
        else:
            shop.orders.refund(order, "60.00", units={order.lines[0].id: 2, order.lines[1].id: 1})

    shop.orders.refund(placed[0], "40.00", units={placed[0].lines[0].id: 1, placed[0].lines[1].id: 1})
    refund_all(1)
    with serving_shop(shop) as server:
        recipe = open_recipe("woocommerce", server, clock)
        assert recipe.sync("shop", "erp").exit_code == 0
        all_lines = [{"sku": "CHAIR", "quantity": 1}, {"sku": "LAMP", "quantity": 2}]
        assert sent(recipe) == sorted([(some, [{"sku": "LAMP", "quantity": 1}]), (later, all_lines)])
        clock.advance(3_600)
        refund_all(2)
        assert (recipe.sync("shop", "erp").exit_code, recipe.sync("erp").exit_code) == (0, 0)
        assert [order for order, _ in sent(recipe)] == [some]
        assert recipe.stored("order")[nothing]["status"] == "cancelled"
