"""Parcels and stock reach a fake Shopify shop once, whatever happens between the look-up and the write."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.partners.partner_server import PartnerAnswer, PartnerRequest
from tests.partners.shop_writes_stage import CREATE, LOOK_UP, LOOK_UP_STOCK, SET, ShopWrites, shop_writes
from tests.partners.shopify.access import ALL_SCOPES
from tests.partners.shopify.cost import STANDARD
from tests.partners.shopify.fake_shop import Interruption
from tests.partners.shopify.order_lines import Line
from tests.partners.shopify.site import Site
from tests.waiting import eventually

from crossdock.sandbox import SandboxServer
from crossdock.values import exact_json
from crossdock.values.json_paths import copy_with_value_at_path


@pytest.fixture(name="sandbox", scope="module")
def _sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxServer]:
    with SandboxServer(tmp_path_factory.mktemp("sandbox")) as sandbox:
        yield sandbox


@pytest.fixture(name="shop")
def _shop(tmp_path: Path, sandbox: SandboxServer) -> Iterator[ShopWrites]:
    with shop_writes(tmp_path, sandbox, Site()) as shop:
        yield shop


def synced(shop: ShopWrites) -> int:
    """The exit code of a sync, whose tally balances."""
    report = shop.sync("depot")
    assert report.balanced
    return report.exit_code


def letter(shop: ShopWrites) -> str:
    """The only dead letter, after a sync."""
    assert synced(shop) == 1
    (found,) = shop.dead_letters().values()
    return found


# ---- parcels


def test_a_parcel_is_told_once_with_its_units(shop: ShopWrites) -> None:
    """The order is looked up, and the units are taken from its fulfillment order; the same file again sends nothing."""
    order, key = shop.order()
    shop.parcel(key, "N1", LAMP=2)
    assert synced(shop) == 0
    assert (shop.numbers(order), order.display_fulfillment_status) == (["N1"], "PARTIALLY_FULFILLED")
    asked = len(shop.watched.requests)
    shop.parcel(key, "N1", LAMP=2)
    assert synced(shop) == 0
    assert len(shop.watched.requests) == asked


def test_a_parcel_without_items_has_all_that_is_left(shop: ShopWrites) -> None:
    """What an earlier parcel has is not shipped again."""
    chair = shop.site.variant("CHAIR", "90.00", 5)
    order, key = shop.order(Line(shop.site.lamp, 3), Line(chair, 1))
    shop.parcel(key, "N1", LAMP=1)
    assert synced(shop) == 0
    shop.parcel(key, "N2")
    assert synced(shop) == 0
    assert (shop.numbers(order), order.display_fulfillment_status) == (["N1", "N2"], "FULFILLED")
    assert [one.total_quantity for one in order.fulfillments] == [1, 3]


@pytest.mark.nightly(but=["internal_error"])
@pytest.mark.parametrize("kind", ["internal_error", "internal_error_after", "html"])
def test_a_parcel_in_doubt_is_looked_up(shop: ShopWrites, kind: Interruption) -> None:
    """If the shop has it, nothing is sent again; if not, it is created from what the shop has by then."""
    order, key = shop.order()
    shop.parcel(key, "N1", LAMP=1)
    shop.watched.once(CREATE, lambda: shop.site.shop.interrupt(kind))
    assert synced(shop) == 0
    assert shop.numbers(order) == ["N1"]
    assert shop.watched.count(CREATE) == (1 if kind == "internal_error_after" else 2)


@pytest.mark.parametrize("place", ["/fulfillments", "/fulfillments/0/trackingInfo", "/fulfillments/0"])
def test_a_look_up_with_null_does_not_tell_a_parcel_again(shop: ShopWrites, place: str) -> None:
    """The answer to the create is lost, and the look-up after it has null in place of what it found."""
    order, key = shop.order()
    shop.parcel(key, "N1", LAMP=1)
    once = iter([True])

    def lost(request: PartnerRequest) -> PartnerAnswer | None:
        if CREATE in request.body:
            shop.site.shop.answer(request)
            return PartnerAnswer(502, {})
        if shop.watched.count(CREATE) and LOOK_UP in request.body and next(once, False):
            given = shop.site.shop.answer(request)
            return replace(
                given, body=copy_with_value_at_path(exact_json.loads(given.content()), f"/data/order{place}", None)
            )
        return None

    shop.watched.before = lost
    assert synced(shop) == 0
    assert (shop.numbers(order), shop.watched.count(CREATE), next(once, None)) == (["N1"], 1, None)


def test_a_parcel_that_is_absent_is_created_from_fresh_facts(shop: ShopWrites) -> None:
    """After an error, the units are those of the fulfillment orders as they are then."""
    order, key = shop.order()
    shop.parcel(key, "N1", LAMP=2)

    def fail() -> None:
        shop.site.shop.interrupt("internal_error")
        shop.site.shop.orders.edit(order, Line(shop.site.lamp, 5), removed={"LAMP": 2})

    shop.watched.once(CREATE, fail)
    assert synced(shop) == 0
    (made,) = order.fulfillments
    assert sorted(line.quantity for line in made.fulfillment_line_items) == [1, 1]


def test_units_that_others_ship_meanwhile_are_not_shipped_twice(shop: ShopWrites) -> None:
    """The refusal leads to another look-up, which shows that nothing is left: a dead letter says so."""
    order, key = shop.order()
    shop.parcel(key, "N1", LAMP=3)
    shop.watched.once(CREATE, lambda: shop.site.shop.orders.edit(order, removed={"LAMP": 1}))
    message = "the shop has not 3 of LAMP left to ship at one location: shipped by others, cancelled, held or refunded"
    assert letter(shop) == f"conflict /items: {message}"
    assert (shop.numbers(order), shop.watched.count(CREATE)) == ([], 1)


def test_an_order_that_changes_again_and_again_is_a_dead_letter(shop: ShopWrites) -> None:
    """The look-ups end after as many rounds as there are attempts."""
    order, key = shop.order(Line(shop.site.lamp, 90))
    shop.parcel(key, "N1")

    def shrink(request: Any) -> None:
        if CREATE in request.body:
            shop.site.shop.orders.edit(order, removed={"LAMP": 1})

    shop.watched.before = shrink
    assert letter(shop) == "conflict None: others change this record repeatedly"
    assert (shop.numbers(order), shop.watched.count(CREATE)) == ([], 6)


def test_a_parcel_of_an_order_at_several_locations_is_from_one(shop: ShopWrites) -> None:
    """The units are taken where all of them are; a parcel from two locations is refused, as Shopify refuses it."""
    site = shop.site
    hamburg = site.shop.catalog.add_location("Hamburg")
    desk = site.shop.catalog.add_variant(site.shop.catalog.add_product("Desk"), "DESK", "300.00")
    site.shop.catalog.stock(desk, hamburg, 5)
    order, key = shop.order(Line(site.lamp, 2), Line(desk, 2))
    shop.parcel(key, "N1", DESK=1)
    assert synced(shop) == 0
    assert [one.location.name for one in order.fulfillments] == ["Hamburg"]
    shop.parcel(key, "N2", DESK=1, LAMP=1)
    assert letter(shop).startswith("conflict /items: the shop has not 1 of DESK, 1 of LAMP left to ship at one")
    assert shop.numbers(order) == ["N1"]


@pytest.mark.nightly(but=["cancelled", "refunded"])
@pytest.mark.parametrize(
    ("prevent", "message"),
    [
        pytest.param(lambda desk, order: desk.cancel(order), "left to ship at one location", id="cancelled"),
        pytest.param(lambda desk, order: desk.refund(order, {"LAMP": 3}), "left to ship at one", id="refunded"),
        pytest.param(lambda desk, order: desk.hold(*order.fulfillment_orders), "held or refunded", id="on hold"),
        pytest.param(lambda desk, order: desk.delete(order), "the shop has no order ", id="deleted"),
    ],
)
def test_a_parcel_that_the_shop_cannot_take_is_a_dead_letter(
    shop: ShopWrites, prevent: Callable[[Any, Any], None], message: str
) -> None:
    """It says what prevents it, and nothing is sent."""
    order, key = shop.order()
    prevent(shop.site.shop.orders, order)
    shop.parcel(key, "N1", LAMP=1)
    assert message in letter(shop)
    assert shop.watched.count(CREATE) == 0


@pytest.mark.nightly(but=["after the write"])
@pytest.mark.parametrize("is_carried_out", [False, True], ids=["before the write", "after the write"])
def test_a_parcel_of_a_run_that_was_killed_is_told_once(shop: ShopWrites, *, is_carried_out: bool) -> None:
    """The next run looks it up, and creates it only if the shop has not got it."""
    order, key = shop.order()
    shop.parcel(key, "N1", LAMP=1)
    with shop.process("depot") as process:

        def kill(request: PartnerRequest) -> PartnerAnswer | None:
            if CREATE not in request.body:
                return None
            process.kill()
            return None if is_carried_out else PartnerAnswer(500)

        shop.watched.before = kill
        process.communicate()
    shop.watched.before = lambda _: None
    eventually(lambda: shop.server.answering == 0)
    assert (process.returncode, len(order.fulfillments)) == (-signal.SIGKILL, int(is_carried_out))
    assert synced(shop) == 0
    assert shop.numbers(order) == ["N1"]


# ---- stock


def test_stock_is_set_where_it_differs(shop: ShopWrites) -> None:
    """An equal quantity is only looked up; the next sync of the same quantities sends nothing."""
    shop.site.variant("CHAIR", "90.00", 5)
    shop.stock(("LAMP", shop.berlin, 7), ("CHAIR", shop.berlin, 5))
    assert synced(shop) == 0
    assert (shop.on_hand("LAMP"), shop.on_hand("CHAIR"), shop.watched.count(SET)) == (7, 5, 1)
    asked = len(shop.watched.requests)
    shop.stock(("CHAIR", shop.berlin, 5), ("LAMP", shop.berlin, 7))
    assert synced(shop) == 0
    assert len(shop.watched.requests) == asked


def test_stock_that_changes_between_look_up_and_write_is_read_again(shop: ShopWrites) -> None:
    """Shopify refuses a quantity that replaces another one than was read; it is read again, and set."""
    shop.stock(("LAMP", shop.berlin, 7))
    shop.watched.once(SET, lambda: shop.site.shop.catalog.stock(shop.site.lamp, shop.site.berlin, 4))
    assert synced(shop) == 0
    assert (shop.on_hand(), shop.watched.count(SET)) == (7, 2)


@pytest.mark.parametrize("kind", ["internal_error", "internal_error_after", "html"])
def test_stock_in_doubt_is_looked_up(shop: ShopWrites, kind: Interruption) -> None:
    """It is set once, or again if it was not."""
    shop.stock(("LAMP", shop.berlin, 7))
    shop.watched.once(SET, lambda: shop.site.shop.interrupt(kind))
    assert synced(shop) == 0
    assert (shop.on_hand(), shop.watched.count(SET)) == (7, 1 if kind == "internal_error_after" else 2)


def test_stock_that_others_change_can_be_left_alone(tmp_path: Path, sandbox: SandboxServer) -> None:
    """With ``conflicts: reject`` a dead letter has the three quantities."""
    with shop_writes(tmp_path, sandbox, Site(), conflicts="reject") as shop:
        shop.stock(("LAMP", shop.berlin, 7))
        assert synced(shop) == 0
        shop.site.shop.catalog.stock(shop.site.lamp, shop.site.berlin, 9)
        shop.stock(("LAMP", shop.berlin, 6))
        message = "somebody else has changed quantity from 7 to 9; this would set 6; nothing was written"
        assert letter(shop) == f"conflict /quantity: {message}"
        assert shop.on_hand() == 9


def test_stock_is_looked_up_again_after_a_parcel(shop: ShopWrites) -> None:
    """The shop subtracts a parcel that the quantity of the 3PL already lacks; the next run sets it right, and once."""
    _, key = shop.order()
    shop.site.variant("CHAIR", "90.00", 5)
    shop.stock(("LAMP", shop.berlin, 8), ("CHAIR", shop.berlin, 5))  # 2 of 10 have left
    assert synced(shop) == 0
    shop.parcel(key, "N1", LAMP=2)
    assert synced(shop) == 0
    assert shop.on_hand() == 6
    looked_up = shop.watched.count(LOOK_UP_STOCK)
    for _ in range(2):
        shop.stock(("CHAIR", shop.berlin, 5), ("LAMP", shop.berlin, 8))
        assert synced(shop) == 0
        assert shop.on_hand() == 8
    assert shop.watched.count(LOOK_UP_STOCK) == looked_up + 1


@pytest.mark.parametrize(
    ("sku", "location", "message"),
    [
        pytest.param("DESK", None, "missing /sku: the shop has no variant with the SKU DESK", id="unknown SKU"),
        pytest.param("lamp", None, "missing /sku: the shop has no variant with the SKU lamp", id="other letters"),
        pytest.param("TWIN", None, "conflict /sku: the shop has 2 variants with the SKU TWIN", id="SKU of two"),
        pytest.param("LAMP", "999", "missing /location: is not stocked at the location 999 of the shop", id="location"),
    ],
)
def test_stock_without_a_place_at_the_shop_is_a_dead_letter(
    shop: ShopWrites, sku: str, location: str | None, message: str
) -> None:
    """It says what is missing or ambiguous, and the others are set."""
    for _ in range(2):
        shop.site.variant("TWIN", "1.00", 5)
    shop.stock((sku, location or shop.berlin, 7), ("LAMP", shop.berlin, 3))
    assert letter(shop) == message
    assert (shop.on_hand(), shop.watched.count(SET)) == (3, 1)


def test_stock_at_a_location_that_does_not_stock_the_product_is_a_dead_letter(shop: ShopWrites) -> None:
    """Shopify would tell no error, and change nothing."""
    hamburg = str(shop.site.shop.catalog.add_location("Hamburg").legacy_resource_id)
    shop.stock(("LAMP", hamburg, 7))
    assert letter(shop) == f"missing /location: is not stocked at the location {hamburg} of the shop"
    assert shop.watched.count(SET) == 0


# ---- the whole shop


@pytest.mark.parametrize(
    ("scope", "field"),
    [("write_merchant_managed_fulfillment_orders", "fulfillmentCreate"), ("write_inventory", "inventorySetQuantities")],
)
def test_a_scope_that_is_missing_ends_the_delivery_to_the_shop(
    tmp_path: Path, sandbox: SandboxServer, scope: str, field: str
) -> None:
    """The run ends with exit 3 and what Shopify says of the scope; with the scope, the next run delivers all."""
    lacking = {scope, scope.replace("merchant_managed", "third_party")}
    reading = {each.replace("write_", "read_") for each in lacking}
    with shop_writes(tmp_path, sandbox, Site(scopes=ALL_SCOPES - lacking | reading)) as shop:
        _, key = shop.order()
        if field == "fulfillmentCreate":
            shop.parcel(key, "N1", LAMP=1)
        else:
            shop.stock(("LAMP", shop.berlin, 7))
        report = shop.sync("depot")
        (error,) = report.errors.values()
        assert (report.exit_code, report.balanced) == (3, True)
        assert scope in str(error)
        assert shop.dead_letters() == {}
        shop.site.shop.scopes = ALL_SCOPES
        assert synced(shop) == 0
        assert shop.site.shop.effects[-1]["kind"] in {"fulfillment_created", "stock_written"}


def test_a_frozen_shop_is_unavailable(shop: ShopWrites) -> None:
    """402 rejects nothing: the run ends with exit 3, and the next one delivers."""
    order, key = shop.order()
    shop.parcel(key, "N1", LAMP=1)
    shop.watched.before = lambda _: PartnerAnswer(402, {"errors": "Unavailable Shop"})
    assert synced(shop) == 3
    assert shop.dead_letters() == {}
    shop.watched.before = lambda _: None
    assert synced(shop) == 0
    assert shop.numbers(order) == ["N1"]


@pytest.mark.nightly
def test_the_points_of_the_shop_are_used(shop: ShopWrites) -> None:
    """Of a few hundred writes hardly any is refused, and they take hardly more time than their points need."""
    shop.site.shop.bucket.empty()
    number = 200
    for each in range(number):
        shop.site.variant(f"P{each}", "1.00", 5)
    shop.stock(*((f"P{each}", shop.berlin, 7) for each in range(number)))
    begun = shop.clock.monotonic()
    report = shop.sync("depot")
    assert (report.exit_code, shop.watched.count(SET)) == (0, number)
    needed_s = shop.watched.points / STANDARD.restore_rate
    lasted_s = shop.clock.monotonic() - begun
    assert lasted_s <= 1.1 * needed_s, f"{lasted_s:.0f} s in place of {needed_s:.0f} s"
    assert report.counters.throttled <= 0.01 * number
