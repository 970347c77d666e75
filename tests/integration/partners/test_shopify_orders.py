from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.partners.shopify.order_lines import Discount, Line, Tax
from tests.partners.shopify.orders import Order
from tests.partners.shopify.site import Site

VAT = Tax(Decimal("0.19"), included=True)
SALES_TAX = Tax(Decimal("0.0825"), included=False, title="NY State Tax")
SETS = (
    "subtotalPriceSet", "totalPriceSet", "originalTotalPriceSet", "totalTaxSet", "totalDiscountsSet",
    "totalTipReceivedSet",
    "totalShippingPriceSet", "totalReceivedSet", "totalRefundedSet", "totalRefundedShippingSet", "totalOutstandingSet",
    "netPaymentSet", "currentSubtotalPriceSet", "currentTotalPriceSet", "currentTotalTaxSet",
    "currentTotalDiscountsSet", "currentShippingPriceSet",
)  # fmt: skip
MONEY = "{ shopMoney { amount currencyCode } presentmentMoney { amount currencyCode } }"
TOTALS = f"""query ($id: ID!) {{ order(id: $id) {{
  displayFinancialStatus displayFulfillmentStatus edited cancelReason closed test
  {" ".join(f"{name} {MONEY}" for name in SETS)} }} }}"""
LINES = """query ($id: ID!) { order(id: $id) {
  discountApplications(first: 5) { nodes { __typename targetSelection value {
    ... on PricingPercentageValue { percentage } ... on MoneyV2 { amount } }
    ... on DiscountCodeApplication { code } ... on AutomaticDiscountApplication { title } } }
  lineItems(first: 9) { nodes { sku quantity currentQuantity refundableQuantity unfulfilledQuantity isGiftCard
    originalTotalSet { shopMoney { amount } } discountedTotalSet { shopMoney { amount } }
    totalDiscountSet { shopMoney { amount } }
    discountAllocations { allocatedAmountSet { shopMoney { amount } } discountApplication { index } }
    taxLines { title rate priceSet { shopMoney { amount } } } } } } }"""


@pytest.fixture(name="site")
def _site() -> Site:
    return Site()


def totals(site: Site, order: Order, *names: str, side: str = "shopMoney") -> list[str]:
    found = site.data(TOTALS, id=order.id)["order"]
    return [found[name][side]["amount"] for name in names]


def lines(site: Site, order: Order) -> Any:
    return site.data(LINES, id=order.id)["order"]


def test_totals_with_tax_included(site: Site) -> None:
    """Prices include the tax, shipping is taxed too, and the tip is in the total."""
    order = site.shop.orders.place(Line(site.lamp, 2), tax=VAT, shipping=Decimal("4.90"), tip=Decimal(3))
    names = ("subtotalPriceSet", "totalShippingPriceSet", "totalTaxSet", "totalTipReceivedSet", "totalPriceSet")
    assert totals(site, order, *names) == ["99.8", "4.9", "16.71", "3.0", "107.7"]
    assert totals(site, order, "totalReceivedSet", "totalOutstandingSet") == ["107.7", "0.0"]


def test_totals_with_tax_added(site: Site) -> None:
    """Prices are without the tax, which is added to the total."""
    order = site.shop.orders.place(Line(site.lamp, 2), tax=SALES_TAX, shipping=Decimal(10))
    assert totals(site, order, "subtotalPriceSet", "totalTaxSet", "totalPriceSet") == ["99.8", "9.06", "118.86"]


@pytest.mark.parametrize(
    ("discount", "kind", "value", "whole"),
    [
        (Discount("code", "TEN", percentage=Decimal(10)), "DiscountCodeApplication", {"percentage": 10.0}, "11.66"),
        (
            Discount("automatic", "Sale", amount=Decimal("6.66")),
            "AutomaticDiscountApplication",
            {"amount": "6.66"},
            "6.66",
        ),
        (Discount("manual", "Sorry", amount=Decimal(5)), "ManualDiscountApplication", {"amount": "5.0"}, "5.0"),
    ],
)
def test_a_discount_is_allocated_to_the_lines(
    site: Site, discount: Discount, kind: str, value: Any, whole: str
) -> None:
    """A discount on the order is in the allocations of its lines, which add up to it, and not in the lines' totals."""
    chair = site.variant("CHAIR", "33.33", 5)
    order = site.shop.orders.place(
        Line(site.lamp), Line(chair, 2), Line(None, price=Decimal("0.01")), discount=discount
    )
    shown = lines(site, order)
    [application] = shown["discountApplications"]["nodes"]
    assert (application["__typename"], application["targetSelection"], application["value"]) == (kind, "ALL", value)
    allocated = [
        Decimal(one["allocatedAmountSet"]["shopMoney"]["amount"])
        for line in shown["lineItems"]["nodes"]
        for one in line["discountAllocations"]
    ]
    assert (len(allocated), sum(allocated)) == (3, Decimal(whole))
    assert totals(site, order, "totalDiscountsSet") == [whole]
    first = shown["lineItems"]["nodes"][0]
    assert first["originalTotalSet"] == first["discountedTotalSet"] == {"shopMoney": {"amount": "49.9"}}


def test_a_discount_on_a_line_is_in_its_total(site: Site) -> None:
    """A discount that the merchant gave on one line is in the line's discounted total."""
    order = site.shop.orders.place(Line(site.lamp, 2, discount=Decimal(9)))
    [line] = lines(site, order)["lineItems"]["nodes"]
    assert line["totalDiscountSet"]["shopMoney"]["amount"] == "9.0"
    assert line["discountedTotalSet"]["shopMoney"]["amount"] == "90.8"
    assert totals(site, order, "totalPriceSet") == ["90.8"]


def test_a_buyer_pays_in_another_currency(site: Site) -> None:
    """Each amount is in both currencies; the yen has no decimals."""
    buyer = ("JPY", Decimal("163.27"))
    order = site.shop.orders.place(Line(site.lamp, 3), tax=VAT, buyer=buyer, shipping=Decimal("4.90"))
    found = site.data(TOTALS, id=order.id)["order"]["totalPriceSet"]
    assert found["shopMoney"] == {"amount": "154.6", "currencyCode": "EUR"}
    unit = round(Decimal("49.90") * buyer[1])
    shipping = round(Decimal("4.90") * buyer[1])
    assert found["presentmentMoney"] == {"amount": f"{3 * unit + shipping}.0", "currencyCode": "JPY"}


def test_a_gift_card_is_sold_and_pays(site: Site) -> None:
    """A gift card that is sold is a line without tax and shipping; one that pays is a transaction of its own."""
    product = site.shop.catalog.add_product("Gift card", is_gift_card=True)
    card = site.shop.catalog.add_variant(product, None, "25.00")
    order = site.shop.orders.place(Line(card), Line(site.lamp), tax=VAT, gift_card=Decimal(20))
    card_line, lamp_line = lines(site, order)["lineItems"]["nodes"]
    assert (card_line["isGiftCard"], card_line["taxLines"], card_line["sku"]) == (True, [], None)
    assert lamp_line["taxLines"] == [{"title": "VAT", "rate": 0.19, "priceSet": {"shopMoney": {"amount": "7.97"}}}]
    query = """query ($id: ID!) { order(id: $id) {
      transactions(first: 5) { kind gateway amountSet { shopMoney { amount } } }
      fulfillmentOrders(first: 5) { nodes { lineItems(first: 5) { nodes { sku } } } } } }"""
    found = site.data(query, id=order.id)["order"]
    paid = [(one["kind"], one["gateway"], one["amountSet"]["shopMoney"]["amount"]) for one in found["transactions"]]
    assert paid == [("SALE", "gift_card", "20.0"), ("SALE", "shopify_payments", "54.9")]
    assert found["fulfillmentOrders"]["nodes"] == [{"lineItems": {"nodes": [{"sku": "LAMP"}]}}]


def test_a_payment_is_authorized_and_captured(site: Site) -> None:
    """An order that is not paid at once is authorized; the capture pays it, and changes the order."""
    order = site.shop.orders.place(Line(site.lamp), paid=False, test=True)
    shown = site.data(TOTALS, id=order.id)["order"]
    assert (shown["displayFinancialStatus"], shown["test"]) == ("AUTHORIZED", True)
    assert totals(site, order, "totalReceivedSet", "totalOutstandingSet") == ["0.0", "49.9"]
    site.clock.advance(5)
    site.shop.orders.capture(order)
    assert site.data(TOTALS, id=order.id)["order"]["displayFinancialStatus"] == "PAID"
    assert site.changed("updated_at:>'2026-01-01T00:00:00Z'") == ["#1001"]


def test_a_refund_of_units_that_have_not_shipped(site: Site) -> None:
    """They are cancelled and can be sold again; what is left is in the current totals."""
    order = site.shop.orders.place(Line(site.lamp, 4), tax=VAT, shipping=Decimal("4.90"))
    refund = site.shop.orders.refund(order, {"LAMP": 1}, shipping=Decimal("1.90"), less=Decimal(2), note="late")
    shown = site.data(TOTALS, id=order.id)["order"]
    assert shown["displayFinancialStatus"] == "PARTIALLY_REFUNDED"
    assert totals(site, order, "totalPriceSet", "currentTotalPriceSet", "currentSubtotalPriceSet") == [
        "204.5",
        "152.7",
        "149.7",
    ]
    assert totals(site, order, "totalRefundedSet", "netPaymentSet", "totalOutstandingSet") == ["49.8", "154.7", "-2.0"]
    assert totals(site, order, "totalRefundedShippingSet", "currentShippingPriceSet") == ["1.9", "3.0"]
    [line] = lines(site, order)["lineItems"]["nodes"]
    assert (line["quantity"], line["currentQuantity"], line["unfulfilledQuantity"]) == (4, 3, 3)
    query = """query ($id: ID!) { refund(id: $id) { note totalRefundedSet { shopMoney { amount } }
      refundLineItems(first: 5) { nodes { quantity restockType restocked subtotalSet { shopMoney { amount } } } }
      refundShippingLines(first: 5) { nodes { subtotalAmountSet { shopMoney { amount } } } }
      orderAdjustments(first: 5) { nodes { reason amountSet { shopMoney { amount } } } }
      transactions(first: 5) { nodes { kind parentTransaction { kind } } } } }"""
    found = site.data(query, id=refund.id)["refund"]
    [item] = found["refundLineItems"]["nodes"]
    assert item == {
        "quantity": 1,
        "restockType": "CANCEL",
        "restocked": True,
        "subtotalSet": {"shopMoney": {"amount": "49.9"}},
    }
    assert found["orderAdjustments"]["nodes"][0]["amountSet"]["shopMoney"]["amount"] == "2.0"
    assert found["transactions"]["nodes"] == [{"kind": "REFUND", "parentTransaction": {"kind": "SALE"}}]
    [level] = site.berlin.inventory_levels
    assert (level.units["available"], level.units["committed"], level.units["on_hand"]) == (7, 3, 10)


def test_a_full_refund(site: Site) -> None:
    """When all is paid back, nothing is left."""
    order = site.shop.orders.place(Line(site.lamp, 2), tax=SALES_TAX)
    site.shop.orders.refund(order, {"LAMP": 2})
    assert site.data(TOTALS, id=order.id)["order"]["displayFinancialStatus"] == "REFUNDED"
    names = ("currentTotalPriceSet", "currentTotalTaxSet", "netPaymentSet", "totalOutstandingSet")
    assert totals(site, order, *names) == ["0.0", "0.0", "0.0", "0.0"]


def test_an_edit_adds_and_removes(site: Site) -> None:
    """An edit changes the current totals and what is owed; the original total stays."""
    chair = site.variant("CHAIR", "80.00", 5)
    order = site.shop.orders.place(Line(site.lamp, 2))
    site.shop.orders.edit(order, Line(chair), removed={"LAMP": 1})
    shown = site.data(TOTALS, id=order.id)["order"]
    assert (shown["edited"], shown["displayFinancialStatus"]) == (True, "PARTIALLY_PAID")
    names = ("originalTotalPriceSet", "totalPriceSet", "currentTotalPriceSet", "totalOutstandingSet")
    assert totals(site, order, *names) == ["99.8", "179.8", "129.9", "30.1"]
    quantities = [(one["sku"], one["currentQuantity"]) for one in lines(site, order)["lineItems"]["nodes"]]
    assert quantities == [("LAMP", 1), ("CHAIR", 1)]


def test_a_cancelled_order_gives_its_stock_back(site: Site) -> None:
    """A cancelled order has a reason; its units are available, its fulfillment order is cancelled."""
    order = site.shop.orders.place(Line(site.lamp, 4))
    site.shop.orders.cancel(order, "FRAUD")
    site.shop.orders.close(order)
    shown = site.data(TOTALS, id=order.id)["order"]
    assert (shown["cancelReason"], shown["closed"], shown["displayFinancialStatus"]) == ("FRAUD", True, "PAID")
    query = "{ fulfillmentOrders(first: 5%s) { nodes { status } } }"
    assert site.data(query % "")["fulfillmentOrders"]["nodes"] == []
    assert site.data(query % ", includeClosed: true")["fulfillmentOrders"]["nodes"] == [{"status": "CANCELLED"}]
    assert site.berlin.inventory_levels[0].units["available"] == 10
    assert site.changed("status:cancelled") == ["#1001"]
    assert site.changed("status:open") == []


def test_a_hold_changes_the_fulfillment_order_only(site: Site) -> None:
    """The order shows the hold in its status, and is not in a list of changes."""
    order = site.shop.orders.place(Line(site.lamp))
    [one] = order.fulfillment_orders
    site.clock.advance(60)
    site.shop.orders.hold(one)
    assert site.data(TOTALS, id=order.id)["order"]["displayFulfillmentStatus"] == "ON_HOLD"
    since = "updated_at:>'2026-01-01T00:00:00Z'"
    assert site.changed(since) == []
    query = "query ($query: String) { fulfillmentOrders(first: 5, query: $query) { nodes { status order { name } } } }"
    held = {"status": "ON_HOLD", "order": {"name": "#1001"}}
    assert site.data(query, query=since)["fulfillmentOrders"]["nodes"] == [held]
    site.shop.orders.hold(one, released=True)
    assert site.data(TOTALS, id=order.id)["order"]["displayFulfillmentStatus"] == "UNFULFILLED"


AMOUNTS = st.decimals(0, 500, places=2)


@given(
    prices=st.lists(st.tuples(AMOUNTS, st.integers(1, 5)), min_size=1, max_size=4),
    percentage=st.sampled_from([None, Decimal("12.5"), Decimal(100)]),
    tax=st.sampled_from([VAT, SALES_TAX]),
    rate=st.sampled_from([Decimal(1), Decimal("1.0857"), Decimal("163.27")]),
    shipping=AMOUNTS,
)
@settings(max_examples=examples(100))
def test_totals_add_up(
    prices: list[tuple[Decimal, int]], percentage: Decimal | None, tax: Tax, rate: Decimal, shipping: Decimal
) -> None:
    """In both currencies the total is that of its parts, what is received is the total, and a refund of all units and
    the shipping leaves nothing."""
    site = Site()
    discount = Discount("code", "X", percentage=percentage) if percentage else None
    items = [Line(site.variant(f"S{index}", str(price), 9), units) for index, (price, units) in enumerate(prices)]
    buyer = ("JPY" if rate > 100 else "USD", rate)
    order = site.shop.orders.place(*items, discount=discount, tax=tax, buyer=buyer, shipping=shipping)
    for side in ("shopMoney", "presentmentMoney"):
        subtotal, shipped, taxes, total, received = (
            Decimal(one)
            for one in totals(
                site, order, "subtotalPriceSet", "totalShippingPriceSet", "totalTaxSet", "totalPriceSet",
                "totalReceivedSet", side=side,
            )
        )  # fmt: skip
        assert total == received == subtotal + shipped + (0 if tax.included else taxes)
    units = {f"S{index}": count for index, (_, count) in enumerate(prices)}
    site.shop.orders.refund(order, units, shipping=shipping)
    assert totals(site, order, "currentTotalPriceSet", "netPaymentSet") == ["0.0", "0.0"]
