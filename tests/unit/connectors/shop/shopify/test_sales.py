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
from tests.partners.shopify.random_orders import Sold, sold
from tests.partners.shopify.reading import drafts, json_record, read_stream
from tests.partners.shopify.site import Site

from crossdock import Record, RecordError, Reference
from crossdock_connectors.shop.shopify.sales import Amounts, current, paid_back, product_of_line
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
        kept = -sum(amount(one.amount_set, currency) for refund in order.refunds for one in refund.order_adjustments)
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
        current(record, Amounts(record, "shop"), OWN)
    assert caught.value.pointer == pointer


def test_a_difference_is_shown_in_the_sale() -> None:
    """What the total has beside its parts is no charge of a kind that is known."""
    record = an_order(currentTotalPriceSet=bag("27.50"))
    sale = current(record, Amounts(record, "shop"), OWN)
    assert (sale.total, sale.difference) == (Decimal("27.50"), Decimal("2.50"))


@pytest.mark.parametrize("name", ["refundLineItems", "refundShippingLines", "orderAdjustments"])
def test_a_refund_that_is_not_read_whole_is_refused(name: str) -> None:
    """A list of a refund that goes on is no credit note, and the reason names it."""
    whole = {"nodes": [], "pageInfo": {"hasNextPage": False}}
    lists = dict.fromkeys(("refundLineItems", "refundShippingLines", "orderAdjustments"), whole)
    lists[name] = {"nodes": [], "pageInfo": {"hasNextPage": True}}
    refund = json_record({**lists, "totalRefundedSet": bag("1.00")})
    order = an_order()
    with pytest.raises(RecordError, match="has more elements than are read") as caught:
        paid_back(refund, order, Amounts(order, "shop"), OWN)
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
