"""A WooCommerce shop is read into the platform: whole syncs with a fake shop and a sandbox, judged by effects."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.chaos import processes
from tests.chaos.processes import CROSSDOCK
from tests.partners.partner_server import PartnerRequest
from tests.partners.shop_stage import WooCommerceStage, woocommerce_stage
from tests.partners.woocommerce.shop import FakeShop
from tests.partners.woocommerce.shop_faults import ShopFault
from tests.partners.woocommerce.shop_orders import Order
from tests.partners.woocommerce.shop_settings import ShopSettings

from crossdock.runs.run_report import Report
from crossdock.sandbox import SandboxServer, SandboxSettings
from crossdock.testing import ManualClock
from crossdock_connectors.shop.woocommerce.lists_and_records_by_id import UNFILTERED

UNPACED = SandboxSettings(rate_per_min=600_000, burst=100_000)
START = datetime(2026, 3, 2, 12, tzinfo=UTC)
PAGE = 6  # records of a list; tests/long has more, and more runs
CLOCK_RUNS, SITE_RUNS = 4, 8
Open = Callable[..., WooCommerceStage]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START)


@pytest.fixture
def shop(clock: ManualClock) -> FakeShop:
    return FakeShop(clock=clock)


@pytest.fixture
def open_stage(tmp_path: Path, shop: FakeShop, clock: ManualClock) -> Iterator[Open]:
    """Opens the stage of a shop; by default of `shop` and `clock`."""
    with ExitStack() as opened:

        def enter(own_shop: FakeShop = shop, own_clock: ManualClock = clock, **settings: Any) -> WooCommerceStage:
            sandbox = opened.enter_context(SandboxServer(tmp_path / "sandbox", UNPACED))
            return opened.enter_context(woocommerce_stage(tmp_path, sandbox, own_shop, own_clock, **settings))

        yield enter


def ok(report: Report) -> Report:
    assert (report.exit_code, report.balanced) == (0, True), report.errors
    return report


def orders_of(shop: FakeShop, number: int, clock: ManualClock | None = None, pause_s: float = 60) -> list[Order]:
    """Orders of one lamp each; *pause_s* apart, or all in the same second without a clock."""
    lamp = shop.catalog.by_sku("LAMP") or shop.catalog.add("Lamp", "49.90", sku="LAMP")
    made = []
    for _ in range(number):
        made.append(shop.orders.place((lamp, 1)))
        if clock:
            clock.advance(pause_s)
    return made


def keys(orders: list[Order]) -> set[str]:
    return {f"shop:{order.id}" for order in orders}


def statuses(stage: WooCommerceStage) -> dict[str, str]:
    return {key: order["status"] for key, order in stage.stored("order").items()}


def at_offset(path: str, status: str = "any") -> Callable[[PartnerRequest], bool]:
    """Chooses requests for a page of a list that is not its first."""
    return lambda asked: (
        asked.path.endswith(path) and asked.param("offset", "0") != "0" and asked.param("status", status) == status
    )


def for_each(action: Callable[[Any], None], records: list[Any]) -> Callable[[], None]:
    def act() -> None:
        for record in records:
            action(record)

    return act


def gone(stage: WooCommerceStage, resource: str) -> set[str]:
    """The external ids of the records that the platform removed."""
    ids = {each["id"] for each in stage.effects(resource) if each["operation"] == "delete"}
    return {key for key, record in stage.stored(resource).items() if record["id"] in ids}


def total(items: list[dict[str, Any]]) -> Decimal:
    return sum((Decimal(item["quantity"]) * Decimal(item["unitPrice"]) for item in items), Decimal(0))


# ---- what is read


def test_a_shop_is_loaded_and_a_second_run_sends_nothing(open_stage: Open, shop: FakeShop) -> None:
    """Products and variations, customers and guests, stock, orders and invoices arrive; sums are exact to the cent."""
    lamp = shop.catalog.add("Lamp", "49.90", sku="LAMP", manage_stock=True, stock_quantity=10)
    shirt = shop.catalog.add("Shirt", type="variable")
    option = [{"name": "Colour", "option": "Blue"}, {"name": "Size", "option": "L"}]
    blue = shop.catalog.add("Shirt", "19.99", shirt, sku="SHIRT-B", attributes=option)
    ada = shop.customers.add("ada@example.com", first_name="Ada", last_name="Lovelace")
    first = shop.orders.place((lamp, 3), (blue, 1), customer_id=ada.id)
    address = {"first_name": "Bo", "address_1": "Kai 1", "city": "Kiel", "country": "DE", "email": "bo@example.com"}
    second = shop.orders.place((lamp, 1), billing=address, shipping=address)
    stage = open_stage(price_currency="EUR")
    ok(stage.sync())
    products = stage.stored("product")
    assert products[f"shop:{blue.id}"]["name"] == "Shirt - Blue, L"
    assert (products[f"shop:{blue.id}"]["sku"], products[f"shop:{blue.id}"]["unitPrice"]) == (
        "SHIRT-B",
        Decimal("19.99"),
    )
    assert f"shop:{shirt.id}" not in products
    assert {each["name"] for each in stage.stored("customer").values()} == {"Ada Lovelace", "Bo"}
    assert {key: lot["quantity"] for key, lot in stage.stored("inventory_lot").items()} == {f"shop:{lamp.id}": 6}
    orders = stage.stored("order")
    assert total(orders[f"shop:{first.id}"]["items"]) == Decimal("201.93")
    assert orders[f"shop:{second.id}"]["shippingAddress"]["line1"] == "Kai 1"
    assert orders[f"shop:{second.id}"]["placedAt"] == "2026-03-02T12:00:00Z"
    assert sorted(total(each["items"]) for each in stage.invoices()) == [Decimal("59.38"), Decimal("201.93")]
    assert ok(stage.sync()).counters.requests == 0


@pytest.mark.nightly
def test_discounts_shipping_fees_and_tax_are_charges(open_stage: Open, tmp_path: Path, clock: ManualClock) -> None:
    """Items stand at their price before discounts; whatever is added or taken off has a line of its own."""
    shop = FakeShop(ShopSettings(coupons={"TEN": Decimal(10)}), clock=clock)
    lamp = shop.catalog.add("Lamp", "9.99", sku="LAMP")
    shop.orders.place(
        (lamp, 3),
        coupon_lines=[{"code": "TEN"}],
        shipping_lines=[{"method_id": "flat", "total": "4.90"}],
        fee_lines=[{"name": "Gift wrap", "total": "2.00"}],
    )
    stage = open_stage(shop)
    ok(stage.sync())
    by_id = {product["id"]: product["sku"] for product in stage.stored("product").values()}
    [order] = stage.stored("order").values()
    found = {by_id[item["productId"]]: (item["quantity"], item["unitPrice"]) for item in order["items"]}
    assert found["LAMP"] == (3, Decimal("9.99"))
    assert found["DISCOUNT"] == (1, Decimal(-3))
    assert found["SHIPPING"] == (1, Decimal("4.9"))
    assert found["FEE"] == (1, 2)
    assert total(order["items"]) == Decimal("40.30")


def test_one_of_many_changes(open_stage: Open, shop: FakeShop, clock: ManualClock) -> None:
    """Only what changed is read and sent."""
    orders = orders_of(shop, 10, clock)
    stage = open_stage()
    ok(stage.sync())
    clock.advance(7_200)
    shop.orders.edit(orders[7], {"status": "completed"})
    clock.advance(60)
    before = len(stage.effects("order"))
    report = ok(stage.sync("shop.orders"))
    [effect] = stage.effects("order")[before:]
    assert (effect["operation"], statuses(stage)[f"shop:{orders[7].id}"]) == ("update", "shipped")
    assert report.counters.requests == 1


@pytest.mark.nightly
def test_a_trashed_order_is_cancelled(open_stage: Open, shop: FakeShop, clock: ManualClock) -> None:
    """The list of all statuses leaves the trash out, so that is read as well."""
    [order] = orders_of(shop, 1)
    stage = open_stage(invoices="never")
    ok(stage.sync())
    clock.advance(3_600)
    shop.orders.trash(order)
    ok(stage.sync())
    assert statuses(stage) == {f"shop:{order.id}": "cancelled"}


@pytest.mark.nightly
def test_the_stock_of_a_product_is_counted_once_for_its_variations(open_stage: Open, shop: FakeShop) -> None:
    """A product that keeps the stock of its variations is a product with a lot; what is sold beyond it is negative."""
    shirt = shop.catalog.add(
        "Shirt", type="variable", sku="SHIRT", manage_stock=True, stock_quantity=2, backorders="yes"
    )
    blue = shop.catalog.add("Shirt", "20", shirt, sku="SHIRT-B")
    shop.catalog.add("Poster", "5", sku="POSTER")
    shop.orders.place((blue, 5))
    stage = open_stage()
    ok(stage.sync())
    assert {key: lot["quantity"] for key, lot in stage.stored("inventory_lot").items()} == {f"shop:{shirt.id}": -3}


def test_a_refund_becomes_a_credit_note(open_stage: Open, shop: FakeShop, clock: ManualClock) -> None:
    """Units that came back are negative, and what the lines do not explain is a charge; the invoice stays."""
    lamp = shop.catalog.add("Lamp", "50.00", sku="LAMP")
    order = shop.orders.place((lamp, 2))
    stage = open_stage()
    ok(stage.sync())
    clock.advance(3_600)
    items = [{"id": order.lines[0].id, "quantity": 1, "refund_total": "50.00"}]
    shop.orders.refund(order, "59.50", line_items=items)
    ok(stage.sync())
    invoice, credit = sorted(stage.invoices(), key=lambda each: -total(each["items"]))
    by_id = {product["id"]: product["sku"] for product in stage.stored("product").values()}
    assert total(invoice["items"]) == Decimal(119)
    found = {by_id[item["productId"]]: (item["quantity"], item["unitPrice"]) for item in credit["items"]}
    assert found == {"LAMP": (-1, 50), "REFUND": (-1, Decimal("9.5"))}
    clock.advance(3_600)
    shop.orders.refund(order, "59.50")
    ok(stage.sync())
    assert sorted(total(each["items"]) for each in stage.invoices()) == [
        Decimal("-59.5"),
        Decimal("-59.5"),
        Decimal(119),
    ]
    assert statuses(stage) == {f"shop:{order.id}": "cancelled"}  # it was never completed


@pytest.mark.nightly
def test_a_refund_of_an_order_without_invoice_is_no_credit_note(open_stage: Open, shop: FakeShop) -> None:
    """An order that was never paid is not invoiced, and its refund is not either."""
    lamp = shop.catalog.add("Lamp", "50.00", sku="LAMP")
    order = shop.orders.place((lamp, 1), status="on-hold")
    shop.orders.edit(order, {"status": "refunded"})
    stage = open_stage()
    ok(stage.sync())
    assert stage.invoices() == []


def test_what_was_deleted_is_removed(open_stage: Open, shop: FakeShop, clock: ManualClock) -> None:
    """The shop tells nothing of deletions; lists of what exists show them. The order of a deleted account stays."""
    orders = orders_of(shop, 12, clock)
    accounts = [shop.customers.add(f"c{number}@example.com") for number in range(12)]
    kept = shop.orders.place((shop.catalog.add("Chair", "1"), 1), customer_id=accounts[4].id)
    removing = {"on_gone": "delete", "gone": {"at_most_percent": 100}}
    stage = open_stage(streams=dict.fromkeys(("orders", "customers"), removing))
    for number in range(3):  # a list is believed if it is as long as the last three
        orders_of(shop, 1, clock, 3_600)
        shop.customers.add(f"d{number}@example.com")
        ok(stage.sync("shop.products", "shop.customers", "shop.orders"))
    shop.orders.delete(orders[3])
    shop.delete_customer(accounts[4])
    ok(stage.sync("shop.products", "shop.customers", "shop.orders"))
    assert gone(stage, "order") == {f"shop:{orders[3].id}"}
    assert gone(stage, "customer") == {f"shop:{accounts[4].id}"}
    [guest] = [each["id"] for key, each in stage.stored("customer").items() if "guest" in key]
    assert stage.stored("order")[f"shop:{kept.id}"]["customerId"] == guest


def removing_orders(open_stage: Open, shop: FakeShop, clock: ManualClock, at_most: int = 100) -> WooCommerceStage:
    """A stage whose lists of existing orders are believed, as they are as long as the last three."""
    gone = {"at_most": at_most, "at_most_percent": 100}
    stage = open_stage(streams={"orders": {"on_gone": "delete", "gone": gone}})
    for _ in range(4):
        orders_of(shop, 1, clock, 3_600)
        ok(stage.sync())
    return stage


def test_an_order_that_no_list_shows_is_not_removed(open_stage: Open, shop: FakeShop, clock: ManualClock) -> None:
    """The status of an extension that was switched off is on no list; only the order that does not exist is gone."""
    hidden, deleted, *_ = orders_of(shop, 24, clock)
    stage = removing_orders(open_stage, shop, clock)
    shop.orders.set_unregistered_status(hidden, "awaiting-pickup")
    shop.orders.delete(deleted)
    report = ok(stage.sync())
    assert gone(stage, "order") == {f"shop:{deleted.id}"}
    assert any(f"which exist: {hidden.id} (awaiting-pickup);" in each for each in report.warnings)


@pytest.mark.nightly
def test_orders_beyond_the_limit_are_requested_only_after_an_approval(
    open_stage: Open, shop: FakeShop, clock: ManualClock
) -> None:
    """A list that lacks many orders costs no request for each of them, and an approval removes none that exists."""
    hidden, deleted, *_ = orders_of(shop, 24, clock)
    stage = removing_orders(open_stage, shop, clock, at_most=1)
    shop.orders.set_unregistered_status(hidden, "awaiting-pickup")
    shop.orders.delete(deleted)
    single: list[str] = []
    shop.meanwhile(lambda asked: bool(re.search(r"/orders/\d+$", asked.path)), lambda: single.append("asked"))
    assert "more than gone.at_most (1)" in str(stage.sync().errors["shop.orders"])
    assert single == []
    done = processes.finish([*CROSSDOCK, "-C", str(stage.config), "approve", "shop.orders", "2"], os.environ)
    assert done.exit_code == 0, done.stderr
    ok(stage.sync())
    assert gone(stage, "order") == {f"shop:{deleted.id}"}


@pytest.mark.nightly
def test_no_order_is_removed_while_the_shop_knows_no_single_order(
    open_stage: Open, shop: FakeShop, clock: ManualClock
) -> None:
    """A 404 that does not call the id invalid comes from something else, and shows nothing of the order."""
    deleted, *_ = orders_of(shop, 12, clock)
    stage = removing_orders(open_stage, shop, clock)
    shop.orders.delete(deleted)
    stage.faulty.plan("no_route", lambda asked: asked.path.endswith(f"/orders/{deleted.id}"))
    assert "No route was found" in str(stage.sync().errors["shop.orders"])
    assert gone(stage, "order") == set()


@pytest.mark.nightly
@pytest.mark.parametrize("invoices", ["placed", "paid"])
def test_a_draft_that_the_list_of_orders_shows_is_left_out(tmp_path: Path, invoices: str, open_stage: Open) -> None:
    """A form for an order that somebody has only opened is counted, and becomes neither order, guest nor invoice."""
    clock = ManualClock(START)
    shop = FakeShop(ShopSettings(custom_statuses=("auto-draft",)), clock=clock)
    lamp = shop.catalog.add("Lamp", "49.90", sku="LAMP")
    placed = shop.orders.place((lamp, 1))
    shop.orders.place((lamp, 5), status="auto-draft")
    stage = open_stage(shop, clock, invoices=invoices, guests="order")
    report = ok(stage.sync())
    assert set(stage.stored("order")) == {f"shop:{placed.id}"}
    assert report.tallies["shop.orders"].rows_filtered["auto_draft"] == 1
    assert (len(stage.invoices()), len(stage.stored("customer"))) == (1, 1)


# ---- lists that change while they are read


def test_orders_that_change_while_they_are_read_are_not_lost(
    open_stage: Open, shop: FakeShop, clock: ManualClock
) -> None:
    """Orders that were read move behind the others, and the others move up: none of them is skipped."""
    orders = orders_of(shop, 3 * PAGE, clock)

    def sell() -> None:
        for order in orders[: PAGE // 2]:
            clock.advance(1)
            shop.orders.edit(order, {"status": "completed"})

    shop.meanwhile(at_offset("/orders"), sell)
    stage = open_stage(page_size=PAGE)
    ok(stage.sync())
    assert set(stage.stored("order")) == keys(orders)
    ok(stage.sync())
    assert {key for key, status in statuses(stage).items() if status == "shipped"} == keys(orders[: PAGE // 2])


@pytest.mark.nightly
def test_a_page_that_was_moved_as_a_whole_is_read_again(open_stage: Open, shop: FakeShop, clock: ManualClock) -> None:
    """If all orders of a page are trashed before the next, no order behind them is skipped."""
    orders = orders_of(shop, 3 * PAGE, clock)
    shop.meanwhile(at_offset("/orders"), for_each(shop.orders.trash, orders[:PAGE]))
    stage = open_stage(page_size=PAGE)
    ok(stage.sync())
    assert set(stage.stored("order")) == keys(orders)
    assert {key for key, status in statuses(stage).items() if status == "cancelled"} == keys(orders[:PAGE])


@pytest.mark.nightly
def test_equal_times_across_pages_are_not_lost(open_stage: Open, shop: FakeShop, clock: ManualClock) -> None:
    """All orders of an import have the same second, which several pages share."""
    orders = orders_of(shop, 4 * PAGE + 2)
    shop.meanwhile(at_offset("/orders"), for_each(shop.orders.delete, orders[:2]))
    stage = open_stage(page_size=PAGE)
    ok(stage.sync())
    assert keys(orders[2:]) <= set(stage.stored("order"))


@pytest.mark.nightly
def test_customers_that_are_deleted_while_they_are_read_hide_no_others(open_stage: Open, shop: FakeShop) -> None:
    """Accounts are read in the order of their ids, which those behind a deleted one do not change."""
    added = [shop.customers.add(f"c{number}@example.com") for number in range(3 * PAGE)]
    shop.meanwhile(at_offset("/customers"), for_each(shop.delete_customer, added[: PAGE // 2]))
    stage = open_stage(page_size=PAGE)
    ok(stage.sync("shop.customers"))
    assert {f"shop:{each.id}" for each in added[PAGE // 2 :]} <= set(stage.stored("customer"))


# ---- times


@pytest.mark.nightly
@pytest.mark.parametrize("skew_s", [-300, 300], ids=["shop behind", "shop ahead"])
def test_clocks_may_differ_by_five_minutes(open_stage: Open, shop: FakeShop, clock: ManualClock, skew_s: int) -> None:
    """What changes just before and after a run is read by the next one, and requests are signed in time."""
    ours = ManualClock(START - timedelta(seconds=skew_s))
    stage = open_stage(shop, ours)
    placed = []
    for _ in range(CLOCK_RUNS):
        placed += orders_of(shop, 1)
        ok(stage.sync())
        placed += orders_of(shop, 1)
        for each in (clock, ours):
            each.advance(100)
    ok(stage.sync())
    assert set(stage.stored("order")) == keys(placed)


@pytest.mark.nightly
@pytest.mark.parametrize(
    "begin",
    [
        pytest.param(datetime(2026, 10, 25, 0, 5, tzinfo=UTC), id="autumn's repeated hour"),
        pytest.param(datetime(2026, 3, 29, 0, 50, tzinfo=UTC), id="spring's missing hour"),
    ],
)
def test_a_change_of_the_sites_clocks_loses_nothing(open_stage: Open, begin: datetime) -> None:
    """Orders and products that change around it arrive, although WordPress reads times in UTC as local ones."""
    clock = ManualClock(begin)
    shop = FakeShop(ShopSettings(zone="Europe/Berlin"), clock=clock)
    stage = open_stage(shop, clock)
    for number in range(SITE_RUNS):
        made = shop.catalog.add(f"Lamp {number}", "1.00")
        placed = shop.orders.place((made, 1))
        clock.advance(10_500 / SITE_RUNS)
        ok(stage.sync("shop.products", "shop.customers", "shop.orders"))
        assert f"shop:{made.id}" in stage.stored("product"), clock.now()
        assert f"shop:{placed.id}" in stage.stored("order"), clock.now()


@pytest.mark.nightly
def test_the_first_run_may_begin_later(open_stage: Open, shop: FakeShop, clock: ManualClock) -> None:
    """Orders that changed before are not read, to the second."""
    orders = orders_of(shop, 6, clock)
    stage = open_stage(first="2026-03-02T12:02:00Z")
    ok(stage.sync())
    assert set(stage.stored("order")) == keys(orders[2:])


@pytest.mark.nightly
def test_an_old_shop_is_read_and_warned_of(open_stage: Open, clock: ManualClock) -> None:
    """A shop that ignores modified_after is read as a whole, and the report says so once."""
    shop = FakeShop(ShopSettings(filters_by_change=False), clock=clock)
    orders = orders_of(shop, 5, clock)
    clock.advance(86_400)
    stage = open_stage(shop)
    ok(stage.sync())
    shop.orders.edit(orders[2], {"status": "completed"})
    report = ok(stage.sync())
    assert statuses(stage)[f"shop:{orders[2].id}"] == "shipped"
    assert [each for each in report.warnings if "ignores modified_after" in each] == [
        f"shop: {UNFILTERED} [filter_ignored]"
    ]


# ---- bad input


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("notice", "it is an HTML page"),
        ("null", "has no list at the top: the answer is empty or null"),
        ("object", "has no list at the top"),
        ("cut_json", "cannot be read as JSON"),
    ],
)
def test_a_page_that_is_no_list_ends_the_stream(
    open_stage: Open, shop: FakeShop, clock: ManualClock, fault: Any, reason: str
) -> None:
    """Nothing of a broken list is believed; the next run reads all of it."""
    orders = orders_of(shop, PAGE + PAGE // 2, clock)
    stage = open_stage(page_size=PAGE)
    ok(stage.sync("shop.products"))
    stage.faulty.plan(fault, at_offset("/orders"))
    report = stage.sync("shop.orders")
    assert report.exit_code == 4
    assert reason in str(report.errors["shop.orders"])
    ok(stage.sync())
    assert set(stage.stored("order")) == keys(orders)


def test_keys_that_are_revoked_while_a_list_is_read(open_stage: Open, shop: FakeShop, clock: ManualClock) -> None:
    """The reason names the refusal and not the keys; with the keys, the next run reads everything."""
    orders = orders_of(shop, PAGE + PAGE // 2, clock)
    stage, known = open_stage(page_size=PAGE), dict(shop._access._keys)
    shop.meanwhile(at_offset("/orders"), shop._access._keys.clear)
    report = stage.sync("shop.orders")
    assert report.exit_code == 3
    assert "refused the credentials (HTTP 401)" in str(report.errors["shop.orders"])
    assert "ck_fake" not in str(report.errors["shop.orders"])
    shop._access._keys.update(known)
    ok(stage.sync())
    assert set(stage.stored("order")) == keys(orders)


@pytest.mark.nightly
def test_maintenance_and_limits_are_waited_for(open_stage: Open, shop: FakeShop, clock: ManualClock) -> None:
    """Pages of WordPress and of security plugins with 500, 503 and 429 are no data."""
    orders = orders_of(shop, PAGE + PAGE // 2, clock)
    stage = open_stage(page_size=PAGE)
    faults: tuple[ShopFault, ...] = ("critical_error", "maintenance", "too_many_requests")
    for fault in faults:
        stage.faulty.plan(fault, at_offset("/orders"))
    ok(stage.sync())
    assert set(stage.stored("order")) == keys(orders)


def test_odd_orders_are_dead_letters(open_stage: Open, clock: ManualClock) -> None:
    """An unknown status, an unknown currency and null in place of a list have a reason each; the others arrive."""
    shop = FakeShop(ShopSettings(custom_statuses=("waiting",)), clock=clock)
    fine, unknown, money = orders_of(shop, 3, clock)
    shop.orders.edit(unknown, {"status": "waiting"})
    shop.orders.edit(money, {"currency": "XXQ"})
    stage = open_stage(shop)
    report = stage.sync("shop.products", "shop.customers", "shop.orders")
    assert (report.exit_code, report.balanced) == (1, True)
    assert set(stage.stored("order")) == keys([fine])
    advice = ", and the platform has no others; name one of the same worth in the setting currencies, as {GGP: GBP}"
    assert stage.dead_letters() == {
        f"shop.orders {unknown.id}": "bad_value /status: is a status that is not in the setting statuses",
        f"shop.orders {money.id}": f"bad_value /currency: is no currency of ISO 4217{advice}",
    }


@pytest.mark.nightly
def test_a_refund_of_an_order_in_the_trash(open_stage: Open, shop: FakeShop, clock: ManualClock) -> None:
    """An invoice that was written keeps its credit note, although the order has left the list meanwhile."""
    [order] = orders_of(shop, 1)
    stage = open_stage()
    ok(stage.sync())
    clock.advance(3_600)
    shop.orders.refund(order, "20.00")
    shop.orders.trash(order)
    clock.advance(3_600)
    ok(stage.sync())
    assert sorted(total(each["items"]) for each in stage.invoices()) == [Decimal("-20.00"), Decimal("59.38")]


@pytest.mark.nightly
def test_a_product_that_is_deleted_while_its_variations_are_read(open_stage: Open, shop: FakeShop) -> None:
    """The report says whose variations are left out; the others arrive."""
    shirt = shop.catalog.add("Shirt", type="variable")
    shop.catalog.add("Shirt", "20", shirt, sku="SHIRT-B")
    lamp = shop.catalog.add("Lamp", "1")
    shop.meanwhile(lambda asked: asked.path.endswith("/variations"), lambda: shop.catalog.delete(shirt))
    stage = open_stage()
    report = ok(stage.sync("shop.products"))
    assert f"shop:{lamp.id}" in stage.stored("product")
    assert f"product {shirt.id} was deleted while it was read; its variations are left out" in str(report.notes)
