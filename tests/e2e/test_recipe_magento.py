"""The example ``configs/magento.yaml`` with a fake Magento shop: what goes to the platform, and what comes back."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.partners.magento import BASE, TOKEN, Magento, MagentoError
from tests.partners.partner_server import PartnerRequest
from tests.partners.shop_recipe import Recipe, recipe

pytestmark = pytest.mark.nightly

SIZE = 50  # of a page, as the example says


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Recipe, Magento]]:
    with recipe("magento", tmp_path, monkeypatch, Magento, BASE, TOKEN) as made:
        magento = made.shop.partner
        assert isinstance(magento, Magento)
        for sku, price in (("A", "9.5"), ("B", "20"), ("CHAIR-RED", "100")):
            magento.add_product(sku, price)
        magento.add_product("CHAIR", "0", kind="configurable", stock=None)
        made.depot.lists["stock"] = [{"sku": "A", "quantity": 5}]
        yield made, magento


def total(body: dict[str, Any]) -> Decimal:
    return sum((Decimal(str(each["quantity"])) * Decimal(str(each["unitPrice"])) for each in body["items"]), Decimal())


def page_of(path: str, number: int, request: PartnerRequest) -> bool:
    """Whether *request* asks for this page of a list."""
    return request.path == BASE + path and request.param("searchCriteria[currentPage]") == str(number)


def test_what_the_shop_has_is_delivered_once(shop: tuple[Recipe, Magento]) -> None:
    """As planned: orders of accounts and guests with their sums in the shop; then nothing, then a change alone."""
    syncs, magento = shop
    ada, chair = magento.add_customer("Ada"), {"CHAIR-RED": "Chair"}
    money = {"shipping": "4.9", "discount": "-10", "tax": "22.63"}
    first = magento.place(ada, [("A", 2, "9.5"), ("CHAIR-RED", 1, "100")], parents=chair, **money)
    guest = magento.place(None, [("B", 3, "20")])
    magento.invoice(first)
    assert syncs.planned() == 3 + 3 + 2 + 2 + 1 + 1  # products, lots, customers, orders, invoice; stock
    assert syncs.delivered() == 12
    orders, products = syncs.stored("order"), syncs.stored("product")
    assert {"shop:A", "shop:B", "shop:CHAIR-RED"} <= products.keys()
    assert "shop:CHAIR" not in products
    assert total(orders[f"shop:{first}"]) == Decimal("136.53")
    assert (total(orders[f"shop:{guest}"]), len(orders[f"shop:{guest}"]["items"])) == (Decimal(60), 1)
    assert orders[f"shop:{first}"]["placedAt"] == "2026-01-01T00:00:00Z"
    assert [total(each) for each in syncs.invoices()] == [Decimal("136.53")]
    assert {"shop:1", f"shop_guests:{guest}"} == syncs.stored("customer").keys()
    assert syncs.stored("customer")["shop:1"]["billingAddress"]["city"] == "Berlin"
    assert syncs.delivered() == 0
    magento.ship(guest, [{"track_number": "T1", "carrier_code": "dhl", "title": "DHL"}])
    assert syncs.delivered() == 1
    assert syncs.stored("order")[f"shop:{guest}"]["tracking"] == [{"carrier": "dhl", "number": "T1"}]
    assert syncs.stored("order")[f"shop:{guest}"]["status"] == "complete"


def test_every_track_of_a_shipment_is_there(shop: tuple[Recipe, Magento]) -> None:
    """Of two shipments with two tracks each, in their order."""
    syncs, magento = shop
    order = magento.place(magento.add_customer("Ada"), [("A", 2, "9.5")])
    magento.ship(order, [{"track_number": f"T{number}", "carrier_code": "dhl"} for number in (1, 2)])
    further = [{"track_number": f"T{number}", "carrier_code": "ups"} for number in (3, 4)]
    magento.tables["shipments"].append({"entity_id": 9, "order_id": order, "tracks": further})
    syncs.delivered()
    tracking = syncs.stored("order")[f"shop:{order}"]["tracking"]
    found = [(each["carrier"], each["number"]) for each in tracking]
    assert found == [("dhl", "T1"), ("dhl", "T2"), ("ups", "T3"), ("ups", "T4")]


def test_a_street_of_several_lines_is_whole(shop: tuple[Recipe, Magento]) -> None:
    """A shop may ask for up to twenty lines: those after the first are one, of orders and of customers."""
    syncs, magento = shop
    buyer = magento.add_customer("Ada")
    order = magento.place(buyer, [("A", 2, "9.5")])
    street = ["Building 7", "Floor 3", "", "Main St 5"]
    shipping = magento.order(order)["extension_attributes"]["shipping_assignments"][0]["shipping"]
    shipping["address"]["street"] = magento.tables["customers"][0]["addresses"][1]["street"] = street
    syncs.delivered()
    sent = syncs.stored("order")[f"shop:{order}"]["shippingAddress"]
    kept = syncs.stored("customer")[f"shop:{buyer}"]["billingAddress"]
    assert [(each["line1"], each["line2"]) for each in (sent, kept)] == [("Building 7", "Floor 3, Main St 5")] * 2


def test_the_invoice_of_a_bundle_has_its_price_once(shop: tuple[Recipe, Magento]) -> None:
    """The parts of a bundle with a dynamic price have their prices on an invoice, and the bundle has no total there."""
    syncs, magento = shop
    magento.add_product("BUNDLE", "0", kind="bundle")
    order = magento.place(magento.add_customer("Ada"), [("A", 1, "9.5"), ("B", 1, "20")])
    magento.add_bundle(order, "BUNDLE", "29.5")
    magento.invoice(order)
    syncs.delivered()
    assert [total(each) for each in syncs.invoices()] == [Decimal("29.5")]
    assert total(syncs.stored("order")[f"shop:{order}"]) == Decimal("29.5")


def test_an_invoice_that_is_cancelled_is_none(shop: tuple[Recipe, Magento]) -> None:
    """Magento keeps it in its list, with the state 3."""
    syncs, magento = shop
    order = magento.place(magento.add_customer("Ada"), [("A", 2, "9.5")])
    magento.invoice(order)
    magento.tables["invoices"][-1]["state"] = 3
    magento.invoice(order)
    magento.tables["invoices"][-1]["state"] = 1
    syncs.delivered()
    assert [total(each) for each in syncs.invoices()] == [19]


def test_what_raises_or_lowers_the_total_is_a_line(shop: tuple[Recipe, Magento]) -> None:
    """Fixed product taxes, gift wrapping, and what Adobe Commerce takes off for credit, gift cards and points."""
    syncs, magento = shop
    order = magento.place(magento.add_customer("Ada"), [("A", 2, "9.5")])
    placed = magento.order(order)
    placed["items"][0]["weee_tax_applied_row_amount"] = 2
    placed["extension_attributes"] |= {"customer_balance_amount": 5, "gift_cards_amount": 3, "gw_price": Decimal("1.5")}
    placed["extension_attributes"] |= {"reward_currency_amount": 1, "gw_items_price": "2.0000", "gw_card_price": None}
    placed["grand_total"] = Decimal("15.5")
    syncs.delivered()
    assert total(syncs.stored("order")[f"shop:{order}"]) == Decimal("15.5")


def test_an_order_or_invoice_with_another_total_is_a_dead_letter(shop: tuple[Recipe, Magento]) -> None:
    """An amount that the example does not know is not lost: the reason has both sums. A rounding is a line."""
    syncs, magento = shop
    buyer = magento.add_customer("Ada")
    unknown, rounded = (magento.place(buyer, [("A", 2, "9.5")]) for _ in range(2))
    magento.order(unknown)["grand_total"] = 21
    magento.order(rounded)["grand_total"] = Decimal("19.01")
    magento.invoice(unknown)
    report = syncs.sync()
    assert total(syncs.stored("order")[f"shop:{rounded}"]) == Decimal("19.01")
    assert report.tallies["shop.orders"].parts == {"rounding in a line of its own": 1}
    reason = "bad_value grand_total: is 21, but quantity times unitPrice of items add up to 19"
    assert list(syncs.dead_letters().values()) == [reason] * 2


def test_what_a_3pl_ships_and_has_goes_back(shop: tuple[Recipe, Magento]) -> None:
    """One shipment of the order with all parcels, and the stock of a product that differs; nothing the second time."""
    syncs, magento = shop
    order = magento.place(magento.add_customer("Ada"), [("A", 2, "9.5")])
    parcels = [{"number": "T1", "carrier": "DHL"}, {"number": "T2", "carrier": "DHL"}]
    syncs.depot.lists["shipments"] = [{"shop_order": f"shop:{order}", "parcels": parcels}]
    syncs.depot.lists["stock"] = [{"sku": "A", "quantity": 7}, {"sku": "B", "quantity": 0}]
    syncs.delivered()
    shipped, *saved = sorted(magento.effects, key=lambda each: each["kind"], reverse=True)
    assert (shipped["kind"], shipped["id"]) == ("shipped", str(order))
    assert [each["track_number"] for each in shipped["body"]["tracks"]] == ["T1", "T2"]
    stock = {each["id"]: each["body"]["extension_attributes"]["stock_item"] for each in saved}
    assert stock == {"A": {"qty": 7, "is_in_stock": True}, "B": {"qty": 0, "is_in_stock": False}}
    before = len(magento.effects)
    syncs.delivered()  # the order's own status and parcel
    assert len(magento.effects) == before
    assert syncs.delivered() == 0


def test_an_order_that_is_edited_at_a_page_border_hides_no_other(shop: tuple[Recipe, Magento]) -> None:
    """It moves to the end of the list, and the first one of the next page moves to the page before: it is noticed."""
    syncs, magento = shop
    buyer = magento.add_customer("Ada")
    for _ in range(SIZE + 3):
        magento.place(buyer, [("A", 1, "9.5")])
        magento.clock.advance(60)

    def edit(request: PartnerRequest) -> None:
        if page_of("/orders", 2, request) and "null" not in str(request.params):
            magento.before = lambda _: None
            magento.touch(magento.order(10), status="holded")

    magento.before = edit
    report = syncs.sync()
    assert report.exit_code == 4
    assert "changed while it was read (1 were on two pages)" in report.errors["shop.orders"].message
    syncs.delivered()
    orders = syncs.stored("order")
    assert orders.keys() == {f"shop:{number}" for number in range(1, SIZE + 4)}
    assert orders["shop:10"]["status"] == "holded"
    assert syncs.delivered() == 0


def test_a_shop_that_limits_the_rate_is_waited_for(shop: tuple[Recipe, Magento]) -> None:
    """Requests of reading and of writing are sent again after the wait, and nothing is there twice."""
    syncs, magento = shop
    order = magento.place(magento.add_customer("Ada"), [("A", 2, "9.5")])
    syncs.depot.lists["shipments"] = [{"shop_order": f"shop:{order}", "parcels": [{"number": "T1", "carrier": "DHL"}]}]
    syncs.shop.faults = {"throttled": 0.3}
    syncs.delivered()
    throttled = sum(fault == "throttled" for _, fault in syncs.shop.requests)
    assert throttled > 2
    assert sorted(each["kind"] for each in magento.effects) == ["product_saved", "shipped"]
    assert syncs.stored("order").keys() == {f"shop:{order}"}


def test_an_unreachable_page_ends_one_list_and_loses_nothing(shop: tuple[Recipe, Magento]) -> None:
    """The other streams are delivered; the next sync reads the list again, and sends what is missing."""
    syncs, magento = shop
    buyer = magento.add_customer("Ada")
    for _ in range(SIZE + 3):
        magento.place(buyer, [("A", 1, "9.5")])
        magento.clock.advance(60)
    syncs.shop.faults = {"refused": 1}
    syncs.shop.chosen = lambda request: page_of("/orders", 2, request) and "null" not in str(request.params)
    assert syncs.sync().exit_code == 3
    assert {"shop:A", "shop:B", "shop:CHAIR-RED"} <= syncs.stored("product").keys()
    syncs.shop.faults = {}
    syncs.delivered()
    assert syncs.stored("order").keys() == {f"shop:{number}" for number in range(1, SIZE + 4)}
    assert syncs.delivered() == 0


@pytest.mark.nightly
def test_a_cancelled_sync_continues(shop: tuple[Recipe, Magento]) -> None:
    """It ends while the orders of a page are expanded; the next one delivers each of them once."""
    syncs, magento = shop
    buyer = magento.add_customer("Ada")
    numbers = [magento.place(buyer, [("A", 1, "9.5")]) for _ in range(20)]

    def cancel(request: PartnerRequest) -> None:
        if request.path.endswith("/shipments"):
            syncs.interrupt.set()

    magento.before = cancel
    assert syncs.sync().exit_code != 0
    assert len(syncs.shown("/shipments")) == 1
    magento.before = lambda _: None
    syncs.delivered()
    created = [each for each in syncs.effects("order") if each["operation"] == "create"]
    assert sorted(each["body"]["externalId"] for each in created) == sorted(f"shop:{number}" for number in numbers)


def test_an_order_whose_shipments_cannot_be_read_is_a_dead_letter(shop: tuple[Recipe, Magento]) -> None:
    """Without them its tracking would be lost silently; the others are delivered."""
    syncs, magento = shop
    buyer = magento.add_customer("Ada")
    for _ in range(2):
        magento.place(buyer, [("A", 1, "9.5")])
    value = "searchCriteria[filter_groups][0][filters][0][value]"

    def refuse(request: PartnerRequest) -> None:
        if request.path.endswith("/shipments") and request.param(value) == "2":
            raise MagentoError(404, "No such entity.")

    magento.before = refuse
    syncs.sync()
    assert syncs.stored("order").keys() == {"shop:1"}
    (letter,) = syncs.dead_letters().values()
    assert letter.startswith("unmatched shipments: could not be read")
