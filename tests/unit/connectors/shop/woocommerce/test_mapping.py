"""WooCommerce's records become drafts: sums to the cent, and a clear reason for each record that cannot be mapped."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock import RawBatch, Record, RecordError, Reference
from crossdock.values.record_keys import key_text
from crossdock_connectors.shop.woocommerce import mapping
from crossdock_connectors.shop.woocommerce.invoicing_rules import credit_note_rows_of_order, is_invoice_due
from crossdock_connectors.shop.woocommerce.settings import WooCommerceSettings

BASE = {
    "kind": "woocommerce",
    "base_url": "https://shop.example",
    "consumer_key": "env:KEY",
    "consumer_secret": "env:SECRET",
}


def settings(**more: Any) -> WooCommerceSettings:
    return WooCommerceSettings.model_validate({**BASE, **more})


def record(item: Any, key: str = "1") -> Record:
    batch = RawBatch.json([item], source="page")
    return Record(key_text((key,)), (batch.load().drop("_line").to_dicts()[0],), "page", (1,))


def line(subtotal: str, total: str | None = None, quantity: Any = 1, **more: Any) -> dict[str, Any]:
    amounts = {"subtotal": subtotal, "total": subtotal if total is None else total, "total_tax": "0.00"}
    return {"id": 1, "product_id": 5, "variation_id": 0, "sku": "LAMP", "quantity": quantity, **amounts, **more}


def order(*lines: dict[str, Any], total: str, **more: Any) -> dict[str, Any]:
    return {
        "id": 7,
        "status": "processing",
        "currency": "EUR",
        "customer_id": 3,
        "date_created_gmt": "2026-03-02T12:00:00",
        "billing": {"email": "ada@example.com"},
        "shipping": {},
        "line_items": list(lines),
        "shipping_lines": [],
        "fee_lines": [],
        "refunds": [],
        "total_tax": "0.00",
        "total": total,
        **more,
    }


def charges(items: Any) -> dict[str, Decimal]:
    """The amounts of lines by the key of their product."""
    found: dict[str, Decimal] = {}
    for item in items:
        found[item.product_id.key] = found.get(item.product_id.key, Decimal(0)) + item.quantity * item.unit_price
    return found


@given(
    lines=st.lists(st.tuples(st.integers(1, 7), st.integers(0, 99_999), st.integers(0, 100)), min_size=1, max_size=5),
    decimals=st.integers(2, 4),
    tax=st.integers(0, 9_999),
    currency=st.sampled_from(["EUR", "JPY", "KWD"]),
)
def test_lines_add_up_to_the_total(lines: list[tuple[int, int, int]], decimals: int, tax: int, currency: str) -> None:
    """However many decimals the shop shows, and whichever it rounds: the sum is the shop's total in its currency."""
    scale = Decimal(1).scaleb(-decimals)
    amounts = [
        (quantity, units * scale, (units * scale * (100 - off) / 100).quantize(scale)) for quantity, units, off in lines
    ]
    taxes = tax * scale
    total = sum((each[2] for each in amounts), taxes)
    items = [line(f"{before:f}", f"{after:f}", quantity) for quantity, before, after in amounts]
    unit = {"EUR": Decimal("0.01"), "JPY": Decimal(1), "KWD": Decimal("0.001")}[currency]
    shown = order(*items, total=f"{total:f}", total_tax=f"{taxes:f}", currency=currency)
    draft = mapping.order(record(shown), settings())
    found = sum((item.quantity * item.unit_price for item in draft.items), Decimal(0))
    assert abs(found - total) <= unit / 2


def test_a_wrong_total_is_refused() -> None:
    """A difference beyond rounding means that something is not understood."""
    with pytest.raises(RecordError, match="is 12.00, but items and charges add up to 10.00 EUR") as caught:
        mapping.order(record(order(line("10.00"), total="12.00")), settings())
    assert caught.value.pointer == "/total"


@pytest.mark.parametrize(
    ("lines", "tax", "total", "lines_and_tax"),
    [
        pytest.param(["79", "79", "79"], "59", "297", "-1", id="as a shop shows it that ignores dp"),
        pytest.param(["79.20000000"] * 3, "60.00000000", "298.00000000", "-0.4", id="with the decimals that it stores"),
        pytest.param(["79.20000000"] * 3, "59.40000000", "297.00000000", "0", id="rounded nowhere"),
    ],
)
def test_sums_are_rounded_as_the_shop_shows_them(lines: list[str], tax: str, total: str, lines_and_tax: str) -> None:
    """A shop that shows SEK without decimals rounds to a krona, though the currency has öre."""
    shown = order(*map(line, lines), total=total, total_tax=tax, currency="SEK")
    tried = record(shown)
    draft = mapping.order(tried, settings())
    assert sum(charges(draft.items).values()) == Decimal(total)
    rounding = -Decimal(lines_and_tax)
    assert charges(draft.items).get("charge-rounding", 0) == rounding
    assert tried.parts == ({"rounding in a line of its own": 1} if rounding else {})


def test_a_difference_in_a_shop_with_cents_is_no_rounding() -> None:
    """One krona is no rounding where the lines show öre."""
    with pytest.raises(RecordError, match=r"differences: line makes a line of 1\.00"):
        mapping.order(record(order(line("79.20"), total="80.20", currency="SEK")), settings())


@pytest.mark.parametrize("total", ["98", "99", "101"])
def test_a_difference_in_whole_euros_is_no_rounding(total: str) -> None:
    """That all sums of an order are whole by chance, and its lines are not, does not hide an unknown deduction."""
    shown = order(line("33.33000000"), line("66.67000000"), total=f"{total}.00000000", total_tax="0.00000000")
    with pytest.raises(RecordError, match=f"is {total}.00, but items and charges add up to 100.00 EUR"):
        mapping.order(record(shown), settings())


@pytest.mark.parametrize(
    ("currency", "total", "booked"),
    [("JPY", "19.33", "19"), ("JPY", "49.50", "50"), ("CLP", "0.49", "0"), ("EUR", "12.345", "12.35")],
)
def test_a_total_that_is_finer_than_its_currency_is_counted(currency: str, total: str, booked: str) -> None:
    """The shop has more decimals than the currency, and its buyers paid a rounded sum; so it is for refunds."""
    sold = record(order(line(total), total=total, currency=currency))
    assert sum(charges(mapping.order(sold, settings()).items).values()) == Decimal(booked)
    assert sold.parts == {"total rounded to the currency": 1}
    refund = {"id": 9, "amount": total, "line_items": [line("0", f"-{total}", -1)]}
    [row] = credit_note_rows_of_order({**order(total=total, currency=currency), "refunds": [refund]}, due=True)
    back = record(row)
    assert sum(charges(mapping.credit_note(back, settings()).items).values()) == -Decimal(booked)
    assert back.parts == {"total rounded to the currency": 1}


def test_a_currency_of_woocommerce_that_iso_4217_has_not() -> None:
    """The dead letter names the setting, which says what it is worth; refunds are in the same currency."""
    pound = order(line("1.00"), total="1.00", currency="GGP", refunds=[{"id": 9, "amount": "1.00", "line_items": []}])
    with pytest.raises(RecordError, match="setting currencies, as {GGP: GBP}") as caught:
        mapping.order(record(pound), settings())
    assert caught.value.pointer == "/currency"
    named = settings(currencies={"GGP": "GBP"})
    [row] = credit_note_rows_of_order(pound, due=True)
    found = (mapping.order(record(pound), named), mapping.credit_note(record(row), named))
    assert [draft.currency for draft in found] == ["GBP", "GBP"]


@pytest.mark.parametrize("quantity", [Decimal("1.5"), "1.5"])
def test_a_part_of_a_unit_is_sold_and_comes_back(quantity: Any) -> None:
    """By an extension that sells by weight; a refund has half of it."""
    draft = mapping.order(record(order(line("10.00", quantity=quantity), total="10.00")), settings())
    assert sum(item.quantity for item in draft.items) == Decimal("1.5")
    back = {"id": 9, "amount": "5.00", "line_items": [line("0", "-5.00", Decimal("-0.5"))]}
    [row] = credit_note_rows_of_order({**order(total="0"), "refunds": [back]}, due=True)
    [item] = mapping.credit_note(record(row), settings()).items
    assert (item.quantity, item.unit_price) == (Decimal("-0.5"), Decimal(10))


def test_a_gift_card_may_lower_the_total() -> None:
    """It is a line if it explains the difference; one that is a payment changes no sum."""
    cards = [{"id": 1, "code": "X", "amount": "4.00"}]
    lowered = mapping.order(record(order(line("10.00"), total="6.00", gift_cards=cards)), settings())
    assert charges(lowered.items) == {"5": Decimal(10), "charge-gift_card": Decimal(-4)}
    paid = mapping.order(record(order(line("10.00"), total="10.00", gift_cards=cards)), settings())
    assert charges(paid.items) == {"5": Decimal(10)}


def test_an_amount_without_units_is_a_charge() -> None:
    """A merchant may enter an amount for no units; it is not lost."""
    draft = mapping.order(record(order(line("10.00"), line("4.00", quantity=0), total="14.00")), settings())
    assert charges(draft.items) == {"5": Decimal(10), "charge-custom_item": Decimal(4)}


def a_refund(*lines: tuple[int, str, int], amount: str, named: bool = True) -> dict[str, Any]:
    """A refund of units by the ids of their lines."""
    items = [
        line("0", f"-{worth}", -units, id=90 + number, product_id=number)
        | ({"meta_data": [{"id": 1, "key": "_refunded_item_id", "value": str(number)}]} if named else {})
        for number, worth, units in lines
    ]
    return {"id": 9, "amount": amount, "line_items": items}


@pytest.mark.parametrize("named", [True, False], ids=["by the line", "by the product"])
def test_an_order_is_what_refunds_have_left_of_it(named: bool) -> None:
    """Its units are those to ship, and its sum is what was not paid back; an amount without units is a charge."""
    lines = [line("10.00", quantity=3, id=1, product_id=1), line("5.00", id=2, product_id=2)]
    refunds = [a_refund((1, "6.67", 2), (2, "5.00", 1), amount="11.67", named=named), a_refund(amount="1.00")]
    draft = mapping.order(record(order(*lines, total="15.00", refunds=refunds)), settings())
    assert [item.quantity for item in draft.items] == [Decimal(1), Decimal(1)]
    assert list(charges(draft.items)) == ["1", "charge-refund"]
    assert sum(charges(draft.items).values()) == Decimal("2.33")
    assert draft.status == "processing"


def test_refunded_units_of_no_line_are_counted() -> None:
    """They are still to ship, as far as the order shows."""
    refunds = [a_refund((7, "4.00", 1), amount="4.00", named=named) for named in (True, False)]
    tried = record(order(line("10.00", quantity=2, id=1, product_id=1), total="10.00", refunds=refunds))
    assert mapping.order(tried, settings()).items[0].quantity == Decimal(2)
    assert tried.parts["refunded units without a line"] == 1


@pytest.mark.parametrize(
    ("status", "refunds", "completed", "expected"),
    [
        ("processing", [a_refund((1, "10.00", 1), amount="10.00")], None, "cancelled"),
        ("refunded", [a_refund(amount="10.00")], None, "cancelled"),
        ("refunded", [a_refund((1, "10.00", 1), amount="10.00")], "2026-03-02T12:00:00", "closed"),
        ("completed", [a_refund((1, "10.00", 1), amount="10.00")], "2026-03-02T12:00:00", "shipped"),
    ],
)
def test_an_order_of_which_nothing_is_left_to_ship_is_cancelled(
    status: str, refunds: list[dict[str, Any]], completed: str | None, expected: str
) -> None:
    """One that was completed keeps its status: its goods came back after they were shipped."""
    shown = order(line("10.00"), total="10.00", status=status, refunds=refunds, date_completed_gmt=completed)
    assert mapping.order(record(shown), settings()).status == expected


def test_an_order_of_fees_alone_is_not_cancelled_by_a_part_paid_back() -> None:
    """It has nothing to ship, so that nothing of it has come back."""
    fee = {"id": 5, "name": "Service", "total": "10.00", "total_tax": "0.00"}
    shown = order(total="10.00", fee_lines=[fee], refunds=[a_refund(amount="4.00")])
    assert mapping.order(record(shown), settings()).status == "processing"


def test_a_status_of_the_settings_holds_for_refunded_orders() -> None:
    """Whoever gives it a meaning of his own keeps it."""
    shown = order(line("10.00"), total="10.00", status="refunded", refunds=[a_refund(amount="10.00")])
    assert mapping.order(record(shown), settings(statuses={"refunded": "returned"})).status == "returned"


def test_an_item_to_ship_without_a_product_is_counted() -> None:
    """Streams that send orders on leave it out, since it has the product of a charge."""
    sold = order(line("10.00", sku=None), total="12.00", shipping_lines=[{"method_id": "flat_rate", "total": "2.00"}])
    tried = record(sold)
    mapping.order(tried, settings())
    assert tried.parts["item to ship without a product"] == 1


def test_a_deleted_product_is_an_item_without_a_product() -> None:
    """WooCommerce keeps the id of a deleted product in its orders, and has null for its SKU."""
    draft = mapping.order(record(order(line("10.00", sku=None), total="10.00")), settings())
    assert charges(draft.items) == {"charge-custom_item": Decimal(10)}


def test_products_are_referred_to_by_sku_if_the_settings_say_so() -> None:
    """A product without SKU is then refused, since nothing else names it."""
    by_sku = settings(product_namespace="erp")
    draft = mapping.order(record(order(line("10.00", variation_id=9), total="10.00")), by_sku)
    assert draft.items[0].product_id == Reference("product", "LAMP", "erp")
    with pytest.raises(RecordError, match="the products' key is the SKU"):
        mapping.order(record(order(line("10.00", sku=""), total="10.00")), by_sku)
    assert mapping.order(record(order(line("1.00", variation_id=9), total="1.00")), settings()).items[
        0
    ].product_id == Reference("product", "9")


@pytest.mark.parametrize(
    ("member", "value", "message"),
    [
        ("line_items", None, "/line_items"),
        ("shipping_lines", {}, "/shipping_lines"),
        ("refunds", None, "/refunds"),
        ("total", None, "/total"),
        ("currency", "EURO", "/currency"),
        ("status", "wc-waiting", "/status"),
        ("date_created_gmt", None, "/date_created_gmt"),
        ("customer_id", None, "/customer_id"),
    ],
)
def test_a_broken_order_names_the_place(member: str, value: Any, message: str) -> None:
    """Null in place of a list, and values that are none, are the order's dead letter."""
    with pytest.raises(RecordError) as caught:
        mapping.order(record({**order(line("1.00"), total="1.00"), member: value}), settings())
    assert caught.value.pointer == message


def test_the_status_is_left_to_another_stream() -> None:
    """With progress: other, a status that crossdock does not know harms nobody."""
    shown = order(line("1.00"), total="1.00", status="wc-waiting")
    assert mapping.order(record(shown), settings(progress="other")).status is None
    assert mapping.order(record(shown), settings(statuses={"wc-waiting": "on_hold"})).status == "on_hold"


REFUND = {"id": 9, "amount": "59.50", "line_items": [line("0", "-50.00", -1, total_tax="-9.50")]}


def test_a_refund_with_its_tax_needs_no_adjustment() -> None:
    """Units, tax and shipping of a refund are its lines; only the rest is an adjustment."""
    [row] = credit_note_rows_of_order({**order(total="0"), "refunds": [REFUND]}, due=True)
    assert (row["key"], row["due"], row["test"]) == ("credit-note-9", True, False)
    draft = mapping.credit_note(record(row), settings())
    assert charges(draft.items) == {"5": Decimal(-50), "charge-tax": Decimal("-9.5")}
    with_shipping = {**row, "amount": "70", "shipping_lines": [{"total": "-5.00", "total_tax": "-0.95"}]}
    draft = mapping.credit_note(record(with_shipping), settings())
    assert charges(draft.items)["charge-shipping"] == -5
    assert charges(draft.items)["charge-refund"] == Decimal("-4.55")
    assert sum(charges(draft.items).values()) == -70


@pytest.mark.parametrize("kind", ["line_items", "shipping_lines", "fee_lines"])
def test_lines_of_a_refund_that_are_null_are_not_none(kind: str) -> None:
    """Its units would not come back. Old versions have no lines of shipping and fees."""
    [row] = credit_note_rows_of_order({**order(total="0"), "refunds": [REFUND]}, due=True)
    assert {"shipping_lines", "fee_lines"}.isdisjoint(row)
    odds: tuple[Any, ...] = (None, {}, [None])
    for odd in odds:
        with pytest.raises(RecordError) as caught:
            mapping.credit_note(record({**row, kind: odd}), settings())
        assert (caught.value.pointer or "").startswith(f"/{kind}")
    del row["line_items"]
    with pytest.raises(RecordError, match="is missing"):
        mapping.credit_note(record(row), settings())


def test_a_refund_without_money_is_not_due() -> None:
    """Units that come back for nothing are no credit note."""
    rows = list(credit_note_rows_of_order({"refunds": [{**REFUND, "amount": "0.00"}, None]}, due=True))
    assert [row["due"] for row in rows] == [False, True]
    assert rows[1]["key"] is None


def test_with_refunds_rejected_the_invoice_changes() -> None:
    """So that the invoice that was sent is a dead letter."""
    shown = order(line("50.00"), total="50.00", refunds=[{**REFUND, "amount": "20.00"}])
    draft = mapping.invoice(record(shown), settings(refunds="reject"))
    assert charges(draft.items) == {"5": Decimal(50), "charge-refund": Decimal(-20)}
    assert charges(mapping.invoice(record(shown), settings()).items) == {"5": Decimal(50)}


@pytest.mark.parametrize(
    ("status", "paid", "completed", "due"),
    [
        pytest.param("pending", False, False, "", id="not paid"),
        pytest.param("on-hold", False, False, "placed", id="paid later"),
        pytest.param("processing", True, False, "paid placed", id="paid"),
        pytest.param("completed", True, True, "paid shipped placed", id="shipped"),
        pytest.param("refunded", True, True, "paid shipped placed", id="shipped, and refunded later"),
        pytest.param("refunded", False, False, "placed", id="refunded without payment"),
        pytest.param("cancelled", False, False, "", id="cancelled"),
        pytest.param("cancelled", True, False, "paid", id="cancelled after payment"),
        pytest.param("waiting", False, False, "placed", id="a status of an extension"),
        pytest.param("trash", True, True, "", id="in the trash"),
        pytest.param("pending", True, False, "", id="its payment is awaited again"),
        pytest.param("on-hold", True, False, "placed", id="its payment was reversed, or is examined"),
        pytest.param("failed", True, False, "paid", id="a dead letter: its payment failed later"),
    ],
)
def test_when_an_order_is_invoiced(status: str, paid: bool, completed: bool, due: str) -> None:
    """A paid order is invoiced whatever becomes of it later, except in the trash."""
    at = "2026-03-02T12:00:00"
    shown = {"status": status, "date_paid_gmt": at if paid else None, "date_completed_gmt": at if completed else None}
    assert " ".join(when for when in ("paid", "shipped", "placed") if is_invoice_due(shown, when)) == due


@pytest.mark.parametrize("status", ["trash", "cancelled", "failed", "on-hold", "pending"])
def test_an_order_with_a_refund_of_money_is_due_in_any_status(status: str) -> None:
    """Its invoice may have been written before: both are there, and their sum is what the shop has kept."""
    at = "2026-03-02T12:00:00"
    shown = order(line("50.00"), total="50.00", status=status, refunds=[{**REFUND, "amount": "20.00"}])
    shown |= {"date_paid_gmt": at, "date_completed_gmt": at}
    assert all(is_invoice_due(shown, when) for when in ("paid", "shipped", "placed"))
    tried = record(shown)
    assert charges(mapping.invoice(tried, settings()).items) == {"5": Decimal(50)}
    assert tried.parts == {}
    in_vain = {**shown, "refunds": [{**REFUND, "amount": "0.00"}]}
    assert is_invoice_due(in_vain, "placed") == (status == "on-hold")


def test_a_payment_that_failed_later_is_decided_by_a_person() -> None:
    """WooCommerce never removes the date of payment, so it proves nothing; a cancelled order still has its money."""
    failed = order(line("1.00"), total="1.00", status="failed")
    with pytest.raises(RecordError, match="not clear whether it was paid") as caught:
        mapping.invoice(record(failed), settings())
    assert caught.value.pointer == "/status"
    assert mapping.invoice(record(failed), settings(invoices="shipped")).items
    cancelled = record({**failed, "status": "cancelled"})
    mapping.invoice(cancelled, settings())
    assert cancelled.parts == {"invoice of a cancelled order": 1}


PRODUCT = {
    "id": 5,
    "name": "Shirt",
    "sku": "",
    "status": "publish",
    "price": "9.90",
    "attributes": [{"options": ["S"]}],
}


def test_a_product_without_sku_has_its_id() -> None:
    """Prices need a currency, which the API does not tell."""
    draft = mapping.product(record(PRODUCT), settings(price_currency="EUR"))
    assert (draft.sku, draft.name, draft.unit_price, draft.currency) == ("5", "Shirt", Decimal("9.90"), "EUR")
    assert mapping.product(record(PRODUCT), settings()).unit_price is None
    assert mapping.product(record({**PRODUCT, "price": ""}), settings(price_currency="EUR")).unit_price is None


@pytest.mark.parametrize(
    ("sku", "found", "parts"),
    [
        ("LA\u200bMP", "LAMP", {"text cleaned": 1}),
        ("L" * 101, "5", {"text left out": 1, "SKU assumed": 1}),
        (4711, "4711", {}),
    ],
)
def test_no_order_waits_for_a_sku(sku: Any, found: str, parts: dict[str, int]) -> None:
    """One that the platform would refuse is cleaned or left out, and counted."""
    tried = record({**PRODUCT, "sku": sku})
    assert mapping.product(tried, settings()).sku == found
    assert tried.parts == parts


@pytest.mark.parametrize(
    ("price", "currency", "found", "counted"),
    [
        ("9.123456", "EUR", "9.1235", "price rounded"),
        ("9.50000000", "EUR", "9.5", ""),
        ("16.24", "JPY", "16", "price rounded"),
        ("1,234.50", "EUR", None, "price left out"),
        (f"1{'0' * 15}", "EUR", None, "price left out"),
        (f"1{'0' * 40}", "EUR", None, "price left out"),
    ],
)
def test_no_order_waits_for_a_price(price: str, currency: str, found: str | None, counted: str) -> None:
    """One that the platform would refuse is rounded or left out, and counted."""
    tried = record({**PRODUCT, "sku": "LAMP", "price": price})
    draft = mapping.product(tried, settings(price_currency=currency))
    assert draft.unit_price == (None if found is None else Decimal(found))
    assert tried.parts == ({counted: 1} if counted else {})


@pytest.mark.parametrize(
    ("own", "of_parent", "active"),
    [("publish", "publish", True), ("private", "publish", False), ("publish", "draft", False)],
)
def test_a_variation_is_sold_if_its_product_is(own: str, of_parent: str, active: bool) -> None:
    """Its name is that of its product and its own attributes; "any" has no option."""
    options = [{"name": "Colour", "option": "Blue"}, {"name": "Size", "option": ""}]
    parent = {"id": 4, "name": "Shirt", "status": of_parent}
    shown = {**PRODUCT, "status": own, "attributes": options, "parent": parent}
    draft = mapping.product(record(shown), settings())
    assert (draft.name, draft.active) == ("Shirt - Blue", active)


def test_a_customer_is_called_by_the_best_name_there_is() -> None:
    """Names, the name of the bill, the company, the address, the user's name, the number."""
    person = {"first_name": "Ada", "last_name": "", "email": "", "username": "", "billing": {}, "shipping": {}}
    assert mapping.customer(record(person), settings()).name == "Ada"
    person["first_name"] = ""
    assert mapping.customer(record(person, "12"), settings()).name == "Customer 12"
    assert mapping.customer(record({**person, "username": "ada"}), settings()).name == "ada"
    assert (
        mapping.customer(record({**person, "billing": {"company": "Lux", "email": "a@b.c"}}), settings()).name == "Lux"
    )
    assert mapping.customer(record({**person, "billing": {"last_name": "L."}}), settings()).name == "L."


def test_the_company_of_a_customer_with_a_name_is_counted() -> None:
    """The platform's customers have one name, and an address that is empty shows no company."""
    tried = record({"first_name": "Ada", "billing": {"company": "Lux"}, "shipping": {"company": "Lux"}})
    assert mapping.customer(tried, settings()).name == "Ada"
    assert tried.parts == {"company left out": 1}


def test_the_company_is_part_of_an_orders_address() -> None:
    """The carrier needs both; the company alone is the name."""
    berlin = {"address_1": "Hauptstraße 1", "city": "Berlin", "country": "DE", "company": "Lux"}
    for person, name, line2 in (({"first_name": "Ada"}, "Ada", "Lux"), ({}, "Lux", None)):
        draft = mapping.order(record(order(line("1.00"), total="1.00", shipping={**berlin, **person})), settings())
        assert draft.shipping_address is not None
        assert (draft.shipping_address.name, draft.shipping_address.line2) == (name, line2)


def test_telephone_numbers_and_postal_codes_may_be_numbers() -> None:
    """Plugins write them so, and no order is refused for it."""
    berlin = {"address_1": "Hauptstraße 1", "city": "Berlin", "country": "DE", "postcode": 10115, "phone": 491234567}
    draft = mapping.order(record(order(line("1.00"), total="1.00", shipping=berlin)), settings())
    assert draft.shipping_address is not None
    assert (draft.shipping_address.postal_code, draft.shipping_address.phone) == ("10115", "491234567")


def test_stock_that_is_managed_and_unknown_is_refused() -> None:
    """Null is no quantity; negative ones of backorders are."""
    level = {"id": 5, "sku": "LAMP", "stock_quantity": -3}
    assert mapping.inventory_lot(record(level), settings()).quantity == -3
    with pytest.raises(RecordError):
        mapping.inventory_lot(record({**level, "stock_quantity": None}), settings())
