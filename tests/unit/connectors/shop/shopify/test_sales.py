"""Orders, invoices and credit notes of a Shopify shop have the sums that the shop shows, in both currencies."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.partners.shopify.money import MoneyBag
from tests.partners.shopify.order_lines import Line
from tests.partners.shopify.payments import OrderAdjustment
from tests.partners.shopify.random_orders import Sold, sold
from tests.partners.shopify.reading import drafts, json_record, read_stream
from tests.partners.shopify.site import Site

from crossdock import Record, RecordError, Reference
from crossdock_connectors.shop.shopify.sale_amounts import (
    AmountReader,
    product_of_line,
    sale_after_edits_and_refunds,
    sale_as_charged_before_refunds,
    sale_of_refund,
)
from crossdock_connectors.shop.shopify.settings import ShopifySettings


def total(draft: dict[str, Any]) -> Decimal:
    """The sum of the lines of an order or an invoice."""
    return sum((line["quantity"] * line["unitPrice"] for line in draft["items"]), Decimal(0))


def amount(bag: MoneyBag, currency: str) -> Decimal:
    return (bag.shop_money if currency == "shop" else bag.presentment_money).amount


def invoiced(made: Sold, currency: str, when: str = "paid") -> dict[str, dict[str, Any]]:
    """The invoice and the credit notes, by key."""
    return drafts(made.site, "invoices", currency=currency, invoices=when)


@settings(max_examples=examples(60))
@given(made=sold(edits=True), currency=st.sampled_from(["shop", "presentment"]))
def test_an_order_is_what_is_left_of_it(made: Sold, currency: str) -> None:
    """After any edits and refunds the lines of the order add up to its current total."""
    expected = amount(made.order.current_total_price_set, currency)
    assert total(drafts(made.site, "orders", currency=currency)[made.number]) == expected


@settings(max_examples=examples(60))
@given(made=sold(edits=False), currency=st.sampled_from(["shop", "presentment"]))
def test_an_invoice_is_what_was_charged(made: Sold, currency: str) -> None:
    """Without edits the invoice is what the buyer paid when the order was placed, whatever was paid back since."""
    assert total(invoiced(made, currency)[made.number]) == amount(made.order.original_total_price_set, currency)


@settings(max_examples=examples(60))
@given(made=sold(edits=True), currency=st.sampled_from(["shop", "presentment"]))
def test_a_credit_note_is_what_was_paid_back(made: Sold, currency: str) -> None:
    """The lines of each credit note add up to the refund, also when the order was edited before or after it."""
    notes = invoiced(made, currency)
    for refund in made.order.refunds:
        key = f"credit-note-{refund.legacy_resource_id}"
        back = amount(refund.total_refunded_set, currency)
        assert (key in notes) == (back != 0)
        if back:
            assert total(notes[key]) == -back
            assert all(line["quantity"] < 0 for line in notes[key]["items"])


@settings(max_examples=examples(60))
@given(made=sold(edits=True), currency=st.sampled_from(["shop", "presentment"]))
def test_an_invoice_follows_edits_and_no_refunds(made: Sold, currency: str) -> None:
    """Of an order from which units were removed, it is what is left together with what the refunds were for."""
    order = made.order
    found = invoiced(made, currency, "placed")  # what was added may not be paid yet
    if made.removed:
        kept = sum(amount(one.amount_set, currency) for refund in order.refunds for one in refund.order_adjustments)
        assert sum(map(total, found.values())) == amount(order.current_total_price_set, currency) + kept
    else:
        assert total(found[made.number]) == amount(order.total_price_set, currency)


@pytest.mark.parametrize(
    ("units", "less"),
    [
        pytest.param({"LAMP": 1}, "all", id="units come back, and the merchant keeps the money"),
        pytest.param({"GIFT": 1}, 0, id="a unit that cost nothing comes back"),
    ],
)
def test_a_refund_without_money_leaves_the_invoice_alone(units: dict[str, int], less: Any) -> None:
    """The invoice stays as it was delivered, to the line, and there is no credit note."""
    site = Site()
    gift = site.variant("GIFT", "0.00", 9)
    order = site.shop.orders.place(Line(site.lamp, 3, discount=Decimal(1)), Line(gift, 2), email="buyer@example.com")
    before = drafts(site, "invoices")
    site.shop.orders.refund(order, units, less=less)
    assert drafts(site, "invoices") == before


def booked(site: Site) -> dict[str, Decimal]:
    """The sum of each invoice and credit note."""
    return {key: total(draft) for key, draft in drafts(site, "invoices").items()}


@pytest.mark.parametrize("adjusted", [True, False], ids=["with an adjustment", "with nothing but the money"])
@pytest.mark.parametrize("removed", ["edit", "cancel"])
def test_what_is_paid_back_for_removed_units_was_on_the_invoice(removed: str, *, adjusted: bool) -> None:
    """The refund has no lines, so the books equal the payments only if the invoice has what it pays back."""
    site = Site()
    order = site.shop.orders.place(Line(site.lamp, 2), email="buyer@example.com")
    if removed == "edit":
        site.shop.orders.edit(order, removed={"LAMP": 1})
    else:
        site.shop.orders.cancel(order)
    kept = amount(order.current_total_price_set, "shop")
    assert booked(site) == {str(order.legacy_resource_id): kept}
    refund = site.shop.orders.refund(order, less=kept - Decimal("99.80"))
    if not adjusted:
        refund.order_adjustments.clear()
    assert sorted(booked(site).values()) == [kept - Decimal("99.80"), Decimal("99.80")]
    assert sum(booked(site).values()) == amount(order.net_payment_set, "shop")


@pytest.mark.parametrize(
    ("deposit", "units", "unpaid", "kept", "left"),
    [(30, 2, 70, 0, 0), (60, 1, 40, 0, 50), (60, 2, 40, 10, 10)],
    ids=["all of the deposit goes back", "some units stay", "the merchant keeps a part of the deposit"],
)
def test_returned_units_that_were_never_paid_are_on_no_invoice(
    deposit: int, units: int, unpaid: int, kept: int, left: int
) -> None:
    """Of a deposit that is paid back, the refund has all units, and an adjustment only for what is kept."""
    site = Site()
    order = site.shop.orders.place(Line(site.lamp, 2, Decimal(50)), paid=False, email="buyer@example.com")
    site.shop.orders.deposit(order, Decimal(deposit))
    site.shop.orders.refund(order, {"LAMP": units}, less=Decimal(kept), unpaid=Decimal(unpaid))
    assert amount(order.net_payment_set, "shop") == left
    assert sum(booked(site).values()) == left


def test_a_discount_of_shipping_is_taken_off_its_price() -> None:
    """Shopify documents ``totalShippingPriceSet`` as the price before discounts and returns."""
    site = Site()
    terms: dict[str, Any] = {"shipping": Decimal(7), "shipping_discount": Decimal(7), "email": "buyer@example.com"}
    order = site.shop.orders.place(Line(site.lamp, 2), **terms)
    assert order.total_shipping_price_set.shop_money.amount == 7
    assert list(booked(site).values()) == [Decimal("99.80")]
    site.shop.orders.refund(order, {"LAMP": 1})
    assert sorted(booked(site).values()) == [Decimal("-49.90"), Decimal("99.80")]


@pytest.mark.parametrize("in_subtotal", [True, False])
def test_a_tip_with_a_line_is_charged_once_and_paid_back_once(*, in_subtotal: bool) -> None:
    """Whether the subtotal has it or not; nothing but its name distinguishes the line."""
    site = Site()
    order = site.shop.orders.place(Line(site.lamp, 1), tip=Decimal(5), tip_line=True, email="buyer@example.com")
    refund = site.shop.orders.refund(order, {"Tip": 1})
    [invoice, note] = read_stream(site, "invoices").records
    more = Decimal(5) if in_subtotal else Decimal(0)
    record = changed(invoice.record, subtotalPriceSet=bag(str(Decimal("49.90") + more)))
    sale = sale_as_charged_before_refunds(record, AmountReader(record, "shop"), OWN)
    assert (sale.total, sale.total_minus_items_and_charges) == (Decimal("54.90"), Decimal(0))
    assert not any(sale.charges.values())
    [tip] = [item for item in sale.items if item.product is None]
    assert (tip.kind, tip.amount) == ("tip", Decimal(5))
    assert note.record.key == f"credit-note-{refund.legacy_resource_id}"
    assert [(line["productId"].key, line["unitPrice"]) for line in dict(note.members or {})["items"]] == [
        ("charge-tip", 5)
    ]


def test_an_item_to_ship_without_a_product_is_counted() -> None:
    """Streams that send orders on leave it out, since it has the product of a charge."""
    site = Site()
    site.shop.orders.place(Line(site.lamp, 1), Line(None, 1, Decimal(20), "Table"), email="buyer@example.com")
    [tried] = read_stream(site, "orders").records
    assert tried.record.parts["item to ship without a product"] == 1


def test_a_credit_note_of_a_cancelled_fulfillment_has_its_invoice() -> None:
    """The order is unfulfilled again, but its invoice may have been written when it was shipped."""
    site = Site()
    order = site.shop.orders.place(Line(site.lamp, 2), email="buyer@example.com")
    shipment = site.shop.shipments.ship(order.fulfillment_orders[0], number="T-1")
    before = drafts(site, "invoices", invoices="shipped")
    site.shop.shipments.cancel(shipment)
    assert drafts(site, "invoices", invoices="shipped") == {}
    refund = site.shop.orders.refund(order, {"LAMP": 1})
    found = drafts(site, "invoices", invoices="shipped")
    note = found.pop(f"credit-note-{refund.legacy_resource_id}")
    assert (found, total(note)) == (before, Decimal("-49.90"))


def test_a_payment_for_removed_units_that_is_on_its_way_is_on_no_invoice() -> None:
    """Neither the invoice nor a credit note has it before it has arrived."""
    site = Site()
    order = site.shop.orders.place(Line(site.lamp, 2), email="buyer@example.com")
    site.shop.orders.edit(order, removed={"LAMP": 1})
    refund = site.shop.orders.refund(order, less=Decimal("-49.90"), status="PENDING")
    assert list(booked(site).values()) == [Decimal("49.90")]
    site.shop.orders.settle(refund)
    assert sorted(booked(site).values()) == [Decimal("-49.90"), Decimal("99.80")]


def test_money_that_is_paid_back_without_units_is_a_line() -> None:
    """The invoice of an order that nobody has edited stays, to the line."""
    site = Site()
    order = site.shop.orders.place(Line(site.lamp, 2), email="buyer@example.com")
    [before] = drafts(site, "invoices").values()
    site.shop.orders.refund(order, less=Decimal(-10))
    invoice, note = drafts(site, "invoices").values()
    assert invoice == before
    assert [(line["productId"].key, line["quantity"] * line["unitPrice"]) for line in note["items"]] == [
        ("charge-refund", -10)
    ]


@pytest.mark.parametrize(
    ("adjustments", "refunded", "line"),
    [
        pytest.param(["2.00"], "47.90", "2.00", id="kept back"),
        pytest.param(["-2.00"], "51.90", "-2.00", id="beyond the units"),
        pytest.param(["49.90", "-49.90"], "49.90", None, id="on its way for a while"),
    ],
)
def test_an_adjustment_is_positive_for_money_that_was_kept_back(
    adjustments: list[str], refunded: str, line: str | None
) -> None:
    """As Shopify's REST API documents it, whose ``amount_set`` is the ``amountSet`` of GraphQL."""
    site = Site()
    order = site.shop.orders.place(Line(site.lamp, 2), email="buyer@example.com")
    refund = site.shop.orders.refund(order, {"LAMP": 1})
    refund.transactions[0].amount_set = order.currencies.bag(Decimal(refunded))
    for each in adjustments:
        money = order.currencies.bag(Decimal(each))
        refund.order_adjustments.append(
            site.shop.records.add(OrderAdjustment(amount_set=money, tax_amount_set=order.currencies.bag(Decimal(0))))
        )
    note = drafts(site, "invoices")[f"credit-note-{refund.legacy_resource_id}"]
    assert total(note) == -Decimal(refunded)
    found = [item["quantity"] * item["unitPrice"] for item in note["items"] if item["productId"].key == "charge-refund"]
    assert found == ([] if line is None else [Decimal(line)])


def test_the_tax_of_an_adjustment_is_added_to_its_amount() -> None:
    """Whether prices include tax or not."""
    whole = {"nodes": [], "pageInfo": {"hasNextPage": False}}
    adjustment = {"amountSet": bag("-13.64"), "taxAmountSet": bag("-1.36")}
    lists = {"refundLineItems": whole, "refundShippingLines": whole, "transactions": whole}
    refund = json_record(
        {**lists, "orderAdjustments": {**whole, "nodes": [adjustment]}, "totalRefundedSet": bag("15.00")}
    )
    for included in (True, False):
        order = an_order(taxesIncluded=included)
        assert sale_of_refund(refund, order, AmountReader(order, "shop"), OWN).total_minus_items_and_charges == 0


def test_a_refund_whose_payments_are_not_told_is_refused() -> None:
    """Null is not an empty list: whether the refund only removes units is not known."""
    site = Site()
    order = site.shop.orders.place(Line(site.lamp, 3), email="buyer@example.com")
    site.shop.orders.refund(order, {"LAMP": 1}, less="all").order_adjustments.clear()
    [invoice, *_] = read_stream(site, "invoices").records
    [refund] = invoice.record.json()["refunds"]
    record = changed(invoice.record, refunds=[{**refund, "transactions": None}])
    with pytest.raises(RecordError) as caught:
        sale_as_charged_before_refunds(record, AmountReader(record, "shop"), OWN)
    assert caught.value.pointer == "/refunds/0/transactions/nodes"


@pytest.mark.parametrize("nodes", [None, [None], [{}], [{"status": None}]])
def test_a_credit_note_needs_the_state_of_its_payments(nodes: Any) -> None:
    """A refund whose money may be on its way yet is no credit note."""
    whole = {"nodes": [], "pageInfo": {"hasNextPage": False}}
    lists = dict.fromkeys(("refundLineItems", "refundShippingLines", "orderAdjustments"), whole)
    refund = json_record({**lists, "transactions": {**whole, "nodes": nodes}, "totalRefundedSet": bag("1.00")})
    order = an_order()
    with pytest.raises(RecordError) as caught:
        sale_of_refund(refund, order, AmountReader(order, "shop"), OWN)
    assert (caught.value.pointer or "").startswith("/transactions/nodes")


def test_an_exchange_for_something_cheaper_is_a_credit_note_with_its_worth() -> None:
    """The refund has only the money that went back; a setting makes a line of what the buyer keeps."""
    site = Site()
    order = site.shop.orders.place(Line(site.lamp, 1, Decimal(100)), email="buyer@example.com")
    refund = site.shop.orders.refund(order, {"LAMP": 1})
    refund.transactions[0].amount_set = order.currencies.bag(40)
    with pytest.raises(AssertionError, match=r"differences: line makes a line of 60"):
        drafts(site, "invoices")
    note = drafts(site, "invoices", differences="line")[f"credit-note-{refund.legacy_resource_id}"]
    assert [(line["productId"].key, line["quantity"] * line["unitPrice"]) for line in note["items"]] == [
        (mock.ANY, -100), ("charge-difference", 60),
    ]  # fmt: skip


# ---- records that do not add up


def bag(amount: str, currency: str = "EUR") -> dict[str, Any]:
    money = {"amount": amount, "currencyCode": currency}
    return {"shopMoney": money, "presentmentMoney": money}


def an_order(**members: Any) -> Record:
    """The record of an order for three lamps, 10.00 off: 20.00, with 5.00 for shipping."""
    site = Site()
    site.shop.orders.place(
        Line(site.lamp, 3, Decimal(10), discount=Decimal(10)), shipping=Decimal(5), email="buyer@example.com"
    )
    [tried] = read_stream(site, "orders").records
    return changed(tried.record, **members)


def changed(record: Record, **members: Any) -> Record:
    return json_record({**record.json(), **members})


def shop(**more: Any) -> ShopifySettings:
    """A shop that writes its products under its own ids, unless *more* says otherwise."""
    facts = {"kind": "shopify", "base_url": "https://x.example", "token": "env:X"}
    return ShopifySettings.model_validate({**facts, **more})


OWN = shop()


@pytest.mark.parametrize(
    ("members", "pointer", "message"),
    [
        ({"currentSubtotalPriceSet": bag("19.99")}, "/subtotalPriceSet", "means a discount of -?10.01"),
        ({"currencyCode": "EURO"}, "/currencyCode", "no currency of ISO 4217"),
        (
            {"currentTotalTaxSet": bag("1.00", "USD")},
            "/currentTotalTaxSet/shopMoney/currencyCode",
            "is not EUR, the currency of the order",
        ),
        ({"totalTipReceivedSet": None}, "/totalTipReceivedSet/shopMoney/currencyCode", "missing"),
    ],
)
def test_an_order_that_does_not_add_up_is_refused(members: dict[str, Any], pointer: str, message: str) -> None:
    """Another discount than those of the lines, and amounts in another currency, are no order."""
    record = an_order(**members)
    with pytest.raises(RecordError, match=message) as caught:
        sale_after_edits_and_refunds(record, AmountReader(record, "shop"), OWN)
    assert caught.value.pointer == pointer


def test_a_difference_is_shown_in_the_sale() -> None:
    """What the total has beside its parts is no charge of a kind that is known."""
    record = an_order(currentTotalPriceSet=bag("27.50"))
    sale = sale_after_edits_and_refunds(record, AmountReader(record, "shop"), OWN)
    assert (sale.total, sale.total_minus_items_and_charges) == (Decimal("27.50"), Decimal("2.50"))


@pytest.mark.parametrize("name", ["refundLineItems", "refundShippingLines", "orderAdjustments"])
def test_a_refund_that_is_not_read_whole_is_refused(name: str) -> None:
    """A list of a refund that goes on is no credit note, and the reason names it."""
    whole = {"nodes": [], "pageInfo": {"hasNextPage": False}}
    lists = dict.fromkeys(("refundLineItems", "refundShippingLines", "orderAdjustments"), whole)
    lists[name] = {"nodes": [], "pageInfo": {"hasNextPage": True}}
    refund = json_record({**lists, "totalRefundedSet": bag("1.00")})
    order = an_order()
    with pytest.raises(RecordError, match="has more elements than are read") as caught:
        sale_of_refund(refund, order, AmountReader(order, "shop"), OWN)
    assert caught.value.pointer == f"/refunds/{name}"


LINE = {"isGiftCard": False, "sku": "LAMP", "variant": {"id": "gid://shopify/ProductVariant/7", "sku": "LAMP-2"}}


@pytest.mark.parametrize(
    ("members", "own", "by_sku"),
    [
        pytest.param({}, "7", "LAMP-2", id="the variant decides"),
        pytest.param({"variant": None}, None, "LAMP", id="a deleted variant is known by the SKU of the line"),
        pytest.param({"variant": None, "sku": None}, None, None, id="a custom item has none"),
        pytest.param({"variant": None, "sku": ""}, None, None, id="an empty SKU is none"),
        pytest.param({"isGiftCard": True}, None, None, id="a gift card is a charge"),
    ],
)
def test_the_product_of_a_line(members: dict[str, Any], own: str | None, by_sku: str | None) -> None:
    """It is the variant's number, or its SKU where products are named by it, in the namespace that has them."""
    line = json_record({**LINE, **members})
    assert product_of_line(line, OWN) == (None if own is None else Reference("product", own))
    assert product_of_line(line, shop(product_key="sku")) == (None if by_sku is None else Reference("product", by_sku))
    assert product_of_line(line, shop(product_namespace="erp")) == (
        None if by_sku is None else Reference("product", by_sku, "erp")
    )


def test_a_variant_without_a_sku_is_refused_where_the_sku_is_the_key() -> None:
    """A line of such a variant is a dead letter, and no item without a product."""
    line = json_record({**LINE, "variant": {"id": "gid://shopify/X/7", "sku": None}})
    with pytest.raises(RecordError, match="the products' key is the SKU"):
        product_of_line(line, shop(product_key="sku"))
