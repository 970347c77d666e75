"""The example ``configs/bigcommerce.yaml`` with a fake BigCommerce shop, and a 3PL that ships its orders."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.partners.bigcommerce import (
    BASE,
    CANCELLED,
    DECLINED,
    INCOMPLETE,
    TOKEN,
    WINDOW_MS,
    BigCommerce,
    BigCommerceError,
)
from tests.partners.partner_server import PartnerRequest
from tests.partners.shop_recipe import Recipe, recipe

pytestmark = pytest.mark.nightly

SIZE = 50  # of a page, as the example says


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Recipe, BigCommerce]]:
    with recipe("bigcommerce", tmp_path, monkeypatch, BigCommerce, BASE, TOKEN) as made:
        bigcommerce = made.shop.partner
        assert isinstance(bigcommerce, BigCommerce)
        bigcommerce.add_product("Mug", ["MUG"], "9.5")
        bigcommerce.add_product("Shirt", ["SHIRT-S", "SHIRT-L"], "20")
        made.depot.lists["stock"] = [{"sku": "MUG", "quantity": 5}]
        yield made, bigcommerce


def total(body: dict[str, Any]) -> Decimal:
    return sum((Decimal(str(each["quantity"])) * Decimal(str(each["unitPrice"])) for each in body["items"]), Decimal())


def orders_page(number: int, request: PartnerRequest) -> bool:
    """Whether *request* asks for this page of all orders, not of those of guests or of those to ship."""
    is_all = not request.params.keys() & {"customer_id", "status_id"}
    return request.path == f"{BASE}/v2/orders" and is_all and request.param("page") == str(number)


def test_what_the_shop_has_is_delivered_once(shop: tuple[Recipe, BigCommerce]) -> None:
    """As planned: orders of accounts and guests with their sums in the shop; then nothing, then a change alone."""
    syncs, bigcommerce = shop
    ada = bigcommerce.add_customer("Ada")
    money = {"shipping_cost_ex_tax": "4.9000", "coupon_discount": "10.0000", "total_tax": "6.0700"}
    first = bigcommerce.place(ada, [("MUG", 2, "9.5"), ("SHIRT-L", 1, "20")], money)
    guest = bigcommerce.place(0, [("SHIRT-S", 3, "20")])
    abandoned = bigcommerce.place(ada, [("MUG", 1, "9.5")], status=INCOMPLETE)
    assert syncs.planned() == 3 + 3 + 2 + 2 + 2 + 1  # products, lots, customers, orders; orders to the 3PL; stock
    assert syncs.delivered() == 13
    orders = syncs.stored("order")
    assert orders.keys() == {f"shop:{first}", f"shop:{guest}"}
    assert not syncs.shown(f"/{abandoned}/products")
    assert total(orders[f"shop:{first}"]) == Decimal("39.97")
    assert total(orders[f"shop:{guest}"]) == 60
    assert (orders[f"shop:{first}"]["currency"], orders[f"shop:{first}"]["placedAt"]) == ("USD", "2026-01-01T00:00:00Z")
    assert syncs.stored("customer").keys() == {"shop:1", f"shop_guests:{guest}"}
    assert {"shop:10", "shop:20", "shop:21"} <= syncs.stored("product").keys()
    assert syncs.delivered() == 0
    bigcommerce.move(guest, 2)
    assert syncs.delivered() == 1
    assert syncs.stored("order")[f"shop:{guest}"]["status"] == "Shipped"
    assert syncs.delivered() == 0


def test_an_order_with_another_total_is_a_dead_letter(shop: tuple[Recipe, BigCommerce]) -> None:
    """A fee, which is not among the members of an order, is not lost: the reason has both sums."""
    syncs, bigcommerce = shop
    order = bigcommerce.place(bigcommerce.add_customer("Ada"), [("MUG", 2, "9.5")], status=3)
    bigcommerce.order(order)["total_inc_tax"] = "24.0000"
    syncs.sync()
    (letter,) = syncs.dead_letters().values()
    assert letter == "bad_value total_inc_tax: is 24, but quantity times unitPrice of items add up to 19"


def test_a_record_without_elements_is_counted(shop: tuple[Recipe, BigCommerce]) -> None:
    """A product without variants makes no product of the platform, and the report says so."""
    syncs, bigcommerce = shop
    bigcommerce.add_product("Empty", [], "1")
    bigcommerce.tables["products"][0]["variants"] = None
    assert syncs.sync().tallies["shop.products"].parts == {"record without elements in variants": 2}


def test_the_other_addresses_of_a_customer_are_counted(shop: tuple[Recipe, BigCommerce]) -> None:
    """The platform has one, the first; that the shop has more is in the report."""
    syncs, bigcommerce = shop
    bigcommerce.add_customer("Ada")
    bigcommerce.tables["customers"][0]["addresses"].append({"address1": "2 Main St", "city": "Austin"})
    report = syncs.sync()
    assert report.tallies["shop.customers"].parts == {"elements of addresses left out, which map does not read": 1}


def test_what_a_3pl_ships_and_has_goes_back(shop: tuple[Recipe, BigCommerce]) -> None:
    """The 3PL names the shop's lines, which it got with the order; the shop's order then has status and tracking."""
    syncs, bigcommerce = shop
    order = bigcommerce.place(bigcommerce.add_customer("Ada"), [("MUG", 2, "9.5"), ("SHIRT-S", 1, "20")])
    syncs.delivered()
    (sent,) = syncs.depot.effects
    assert (sent["reference"], sent["recipient"]["city"]) == (f"shop:{order}", "Austin")
    parcels = [
        {"reference": sent["reference"], "address_id": sent["address_id"], "number": f"T{number}", "carrier": "usps"}
        | {"lines": [{"line_id": line["line_id"], "quantity": line["quantity"]}]}
        for number, line in enumerate(sent["lines"])
    ]
    syncs.depot.lists["shipments"] = parcels
    syncs.depot.lists["stock"] = [{"sku": "MUG", "quantity": 3}]
    assert syncs.delivered() == 3  # two parcels, and the stock
    shipped = [each for each in bigcommerce.effects if each["kind"] == "shipped"]
    numbers = {(each["id"], each["body"]["tracking_number"]) for each in shipped}
    assert (len(shipped), numbers) == (2, {(order, "T0"), (order, "T1")})
    assert syncs.delivered() == 2  # the order and the lot, as the shop has them now
    known = syncs.stored("order")[f"shop:{order}"]
    assert (known["status"], {each["number"] for each in known["tracking"]}) == ("Shipped", {"T0", "T1"})
    assert syncs.delivered() == 0
    assert len(syncs.depot.effects) == 1


@pytest.mark.parametrize("status", [CANCELLED, DECLINED])
def test_an_order_that_is_cancelled_after_it_was_sent(shop: tuple[Recipe, BigCommerce], status: int) -> None:
    """The 3PL is told, once; one that was not sent is none of its business, and one that is packed is a dead letter."""
    syncs, bigcommerce = shop
    ada = bigcommerce.add_customer("Ada")
    sent, packed = (bigcommerce.place(ada, [("MUG", 1, "9.5")]) for _ in range(2))
    never = bigcommerce.place(ada, [("MUG", 1, "9.5")], status=CANCELLED)
    syncs.delivered()
    ids = {each["reference"]: each["id"] for each in syncs.depot.effects}
    assert ids.keys() == {f"shop:{sent}", f"shop:{packed}"}
    for order in (sent, never):
        bigcommerce.move(order, status)
    syncs.delivered()
    assert (syncs.depot.cancelled, syncs.stored("order")[f"shop:{sent}"]["status"]) == (
        [f"shop:{sent}"], bigcommerce.order(sent)["status"],
    )  # fmt: skip
    assert syncs.delivered() == 0
    syncs.depot.packed.add(ids[f"shop:{packed}"])
    bigcommerce.move(packed, status)
    assert syncs.sync().exit_code == 1
    assert list(syncs.dead_letters().values()) == ["conflict None: the order is packed"]
    assert syncs.depot.cancelled == [f"shop:{sent}"]


@pytest.mark.nightly
def test_an_order_that_is_edited_at_a_page_border_hides_no_other(shop: tuple[Recipe, BigCommerce]) -> None:
    """It is on two pages, which tells that the list changed; the next sync reads it again."""
    syncs, bigcommerce = shop
    buyer = bigcommerce.add_customer("Ada")
    numbers = []
    for _ in range(SIZE + 3):
        numbers.append(bigcommerce.place(buyer, [("MUG", 1, "9.5")], status=3))
        bigcommerce.clock.advance(60)

    def edit(request: PartnerRequest) -> None:
        if orders_page(2, request):
            bigcommerce.before = lambda _: None
            bigcommerce.move(numbers[9], 2)

    bigcommerce.before = edit
    report = syncs.sync()
    assert report.exit_code == 4
    assert "changed while it was read (1 were on two pages)" in report.errors["shop.orders"].message
    syncs.delivered()
    orders = syncs.stored("order")
    assert orders.keys() == {f"shop:{number}" for number in numbers}
    assert orders[f"shop:{numbers[9]}"]["status"] == "Shipped"
    assert syncs.delivered() == 0


def test_a_used_up_quota_is_waited_for_until_its_window_ends(shop: tuple[Recipe, BigCommerce]) -> None:
    """The answer states the rest of the window in milliseconds and no `Retry-After`; nothing is sent before."""
    syncs, bigcommerce = shop
    order = bigcommerce.place(bigcommerce.add_customer("Ada"), [("MUG", 2, "9.5")])
    answered = list[int]()  # when, after the quota was used up

    def use_up(request: PartnerRequest) -> None:
        if request.path.endswith("/products") and "/orders/" in request.path:
            bigcommerce.before = lambda _: answered.append(int(bigcommerce.clock.monotonic() * 1000))
            bigcommerce.use_up()

    bigcommerce.before = use_up
    syncs.delivered()
    (refused,) = bigcommerce.refused_at
    assert min(answered) >= (refused // WINDOW_MS + 1) * WINDOW_MS
    assert syncs.stored("order").keys() == {f"shop:{order}"}


@pytest.mark.nightly
def test_an_unreachable_page_ends_one_list_and_loses_nothing(shop: tuple[Recipe, BigCommerce]) -> None:
    """The other streams are delivered; the next sync reads the list again, and sends what is missing."""
    syncs, bigcommerce = shop
    buyer = bigcommerce.add_customer("Ada")
    numbers = [bigcommerce.place(buyer, [("MUG", 1, "9.5")], status=3) for _ in range(SIZE + 3)]
    syncs.shop.faults, syncs.shop.chosen = {"unavailable": 1}, lambda request: orders_page(2, request)
    assert syncs.sync().exit_code == 3
    assert len(syncs.effects("inventory_lot")) == 3
    syncs.shop.faults = {}
    syncs.delivered()
    assert syncs.stored("order").keys() == {f"shop:{number}" for number in numbers}
    assert syncs.delivered() == 0


@pytest.mark.nightly
def test_a_cancelled_sync_continues(shop: tuple[Recipe, BigCommerce]) -> None:
    """It ends while the orders of a page are expanded; the next one delivers each of them once."""
    syncs, bigcommerce = shop
    buyer = bigcommerce.add_customer("Ada")
    numbers = [bigcommerce.place(buyer, [("MUG", 1, "9.5")], status=3) for _ in range(20)]

    def cancel(request: PartnerRequest) -> None:
        if request.path.endswith("/shipments"):
            syncs.interrupt.set()

    bigcommerce.before = cancel
    assert syncs.sync().exit_code != 0
    bigcommerce.before = lambda _: None
    syncs.delivered()
    created = [each for each in syncs.effects("order") if each["operation"] == "create"]
    assert sorted(each["body"]["externalId"] for each in created) == sorted(f"shop:{number}" for number in numbers)


def test_an_order_that_is_gone_between_two_requests_is_a_dead_letter(shop: tuple[Recipe, BigCommerce]) -> None:
    """Its lines cannot be read any more; the others are delivered."""
    syncs, bigcommerce = shop
    buyer = bigcommerce.add_customer("Ada")
    first, second = (bigcommerce.place(buyer, [("MUG", 1, "9.5")], status=3) for _ in range(2))

    def refuse(request: PartnerRequest) -> None:
        if request.path.endswith(f"/{first}/products"):
            raise BigCommerceError(404, "The requested resource was not found.")

    bigcommerce.before = refuse
    syncs.sync()
    assert syncs.stored("order").keys() == {f"shop:{second}"}
    (letter,) = syncs.dead_letters().values()
    assert letter.startswith("unmatched products: could not be read")
    assert "HTTP 404" in letter
    bigcommerce.before = lambda _: None
    syncs.delivered()  # the full list that is due reads it again
    assert syncs.stored("order").keys() == {f"shop:{first}", f"shop:{second}"}
    assert not syncs.dead_letters()


def test_a_parcel_whose_answer_is_lost_is_not_sent_again(shop: tuple[Recipe, BigCommerce]) -> None:
    """It is in doubt, for a person to decide: the shop's shipments have no name of ours."""
    syncs, bigcommerce = shop
    bigcommerce.place(bigcommerce.add_customer("Ada"), [("MUG", 2, "9.5")])
    syncs.delivered()
    (sent,) = syncs.depot.effects
    parcel = {"reference": sent["reference"], "address_id": sent["address_id"], "number": "T1", "carrier": "usps"}
    lines = [{"line_id": sent["lines"][0]["line_id"], "quantity": 1}]  # of two: the shop would accept it twice
    syncs.depot.lists["shipments"] = [parcel | {"lines": lines}]
    syncs.shop.faults, syncs.shop.chosen = {"lost_answer": 1}, lambda request: request.method == "POST"
    assert syncs.sync().exit_code == 1
    syncs.shop.faults = {}
    assert syncs.sync().exit_code == 1
    assert [each["kind"] for each in bigcommerce.effects].count("shipped") == 1
