"""What was sold as lines: items and charges, whose sum is the shop's."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.partners.shopify.reading import json_record

from crossdock import LineDraft, Record, RecordError, Reference
from crossdock_connectors.shop import sale_lines as sales
from crossdock_connectors.shop.record_values_and_keys import rounded_product_price_or_none
from crossdock_connectors.shop.sale_lines import (
    Sale,
    SoldItem,
    charge_product_key,
    charge_product_reference,
    smallest_currency_unit_or_error,
)
from crossdock_connectors.shop.settings import ShopSettings

LAMP = Reference("product", "LAMP")
cents = st.integers(-1_000_000, 1_000_000).map(lambda units: Decimal(units) / 100)
kinds = st.sampled_from(["discount", "shipping", "tax", "tip", "refund"])
quantities = st.integers(0, 50).map(Decimal)


RECORD = Record("1", ({},), "page", (1,))


def lines_of(sold: Sale, pointer: str, **settings: str) -> tuple[LineDraft, ...]:
    chosen = ShopSettings.model_validate({"kind": "shop", "base_url": "https://shop.example", **settings})
    return sales.lines_of_sale(RECORD, sold, pointer, chosen)


def item(quantity: int | Decimal, amount: str | Decimal) -> SoldItem:
    return SoldItem(LAMP, Decimal(quantity), Decimal(amount))


def shown(sale: Sale) -> list[tuple[str, str, str]]:
    """Product, quantity and price of each line."""
    lines = [(line.product_id, str(line.quantity), str(line.unit_price)) for line in lines_of(sale, "/t")]
    return [(str(product.key), units, price) for product, units, price in lines if isinstance(product, Reference)]


@given(
    items=st.lists(st.tuples(quantities, cents), max_size=4),
    charges=st.dictionaries(kinds, cents),
    rounding=st.integers(-3, 3),
    is_refund=st.booleans(),
)
def test_the_lines_add_up_to_the_total(
    items: list[tuple[Decimal, Decimal]], charges: dict[str, Decimal], rounding: int, is_refund: bool
) -> None:
    """Whatever was sold or paid back, the sum of the lines is the total, and a difference within bounds is a line."""
    sign = -1 if is_refund else 1
    sold = [SoldItem(LAMP, sign * units, sign * amount) for units, amount in items]
    off = Decimal(rounding) / 100
    total = sum((one.amount for one in sold), off) + sum(charges.values())
    sale = Sale("EUR", tuple(sold), total, charges, rounding=Decimal("0.03"))  # type: ignore[arg-type]  # kinds as text
    lines = lines_of(sale, "/total")
    assert sum(line.quantity * line.unit_price for line in lines) == total
    assert sum(1 for line in lines if line.product_id == charge_product_reference("rounding")) == (off != 0)


def test_a_difference_is_refused_with_both_amounts() -> None:
    """The reason says where the total is, and what items and charges add up to."""
    sale = Sale("EUR", (item(2, "10.00"),), Decimal("12.00"), {"shipping": Decimal("1.50")})
    with pytest.raises(RecordError, match=r"is 12.00, but items and charges add up to 11.50 EUR") as caught:
        lines_of(sale, "/total")
    assert (caught.value.code, caught.value.pointer) == ("bad_value", "/total")


@pytest.mark.parametrize(("off", "is_refused"), [("0.02", False), ("-0.02", False), ("0.03", True), ("-0.03", True)])
def test_only_as_much_rounding_as_the_shop_rounds(off: str, is_refused: bool) -> None:
    """The bound itself is allowed, in both directions."""
    sale = Sale("EUR", (item(1, "10.00"),), Decimal(10) + Decimal(off), rounding=Decimal("0.02"))
    if is_refused:
        with pytest.raises(RecordError):
            lines_of(sale, "/total")
    else:
        assert shown(sale) == [("LAMP", "1", "10.00"), ("charge-rounding", "1", off)]


def test_charges_of_a_refund_have_its_sign() -> None:
    """Each line of a credit note has a negative quantity; what was kept back has a negative price."""
    charges = {"shipping": Decimal(-4), "refund": Decimal(1), "tax": Decimal(0)}
    sale = Sale("EUR", (item(-1, "-10"),), Decimal(-13), charges)  # type: ignore[arg-type]  # kinds as text
    assert shown(sale) == [("LAMP", "-1", "10"), ("charge-shipping", "-1", "4"), ("charge-refund", "-1", "-1")]


def test_an_item_without_units_is_a_line_only_if_nothing_else_is() -> None:
    """An order of which nothing is left keeps its lines with zero units: the platform wants a line."""
    gone = item(0, "0")
    assert shown(Sale("EUR", (gone, item(1, "5")), Decimal(5))) == [("LAMP", "1", "5")]
    assert shown(Sale("EUR", (gone, gone), Decimal(0))) == [("LAMP", "0", "0")] * 2
    assert shown(Sale("EUR", (gone,), Decimal(3), {"shipping": Decimal(3)})) == [("charge-shipping", "1", "3")]


def test_an_amount_without_units_is_a_charge() -> None:
    """It is part of the sum, and no line can have a price for zero units."""
    assert shown(Sale("EUR", (item(0, "-49.90"),), Decimal("-49.90"))) == [("charge-custom_item", "-1", "49.90")]
    sold = (item(1, "5"), SoldItem(LAMP, Decimal(0), Decimal(2), "gift_card"))
    assert shown(Sale("EUR", sold, Decimal(7))) == [("LAMP", "1", "5"), ("charge-gift_card", "1", "2")]


@pytest.mark.parametrize(
    ("price", "currency", "expected", "parts"),
    [
        ("19.90", "EUR", "19.90", {}),
        ("1.23456", "EUR", "1.2346", {"price rounded": 1}),
        ("1.23456", None, "1.2346", {"price rounded": 1}),
        ("49.5", "JPY", "50", {"price rounded": 1}),
        ("1", "no currency", None, {"price left out": 1}),
        (f"{10**30}.5", "EUR", None, {"price left out": 1}),
        (None, "EUR", None, {}),
    ],
)
def test_a_price_is_one_that_the_platform_takes(
    price: str | None, currency: str | None, expected: str | None, parts: dict[str, int]
) -> None:
    """No order waits for a product because of its price, and what was done is counted."""
    record = json_record({"price": price})
    assert rounded_product_price_or_none(record, "/price", currency) == (
        None if expected is None else Decimal(expected)
    )
    assert record.parts == parts


def test_an_item_without_a_product_is_a_charge() -> None:
    """A gift card and a custom item have products of their own."""
    items = (SoldItem(None, Decimal(1), Decimal(25), "gift_card"), SoldItem(None, Decimal(2), Decimal(6)))
    assert shown(Sale("EUR", items, Decimal(31))) == [("charge-gift_card", "1", "25"), ("charge-custom_item", "2", "3")]
    assert charge_product_reference("fee") == Reference("product", charge_product_key("fee"))


def test_a_currency_must_be_of_the_standard() -> None:
    """Its smallest amount is known, or the record is refused where the currency is."""
    units = [smallest_currency_unit_or_error(currency, "/c") for currency in ("EUR", "JPY", "KWD")]
    assert units == [Decimal("0.01"), Decimal(1), Decimal("0.001")]
    with pytest.raises(RecordError, match="no currency of ISO 4217") as caught:
        smallest_currency_unit_or_error("BTC", "/currency")
    assert caught.value.pointer == "/currency"


def test_a_difference_is_a_line_if_the_settings_say_so() -> None:
    """So an order that does not add up has a way to the platform, and the report counts it."""
    sale = Sale("EUR", (item(2, "10.00"),), Decimal("12.00"), {"shipping": Decimal("1.50")})
    lines = lines_of(sale, "/total", differences="line")
    assert lines[-1] == LineDraft(
        product_id=charge_product_reference("difference"), quantity=Decimal(1), unit_price=Decimal("0.50")
    )
    assert RECORD.parts["difference in a line of its own"] == 1


@given(quantity=st.integers(1, 99_999).map(lambda units: Decimal(units) / 10_000), amount=cents)
def test_parts_of_a_unit_add_up(quantity: Decimal, amount: Decimal) -> None:
    """A shop that sells by weight has any quantity, and its amount stays exact."""
    lines = lines_of(Sale("EUR", (SoldItem(LAMP, quantity, amount),), amount), "/total")
    assert sum((line.quantity for line in lines), Decimal(0)) == quantity
    assert sum((line.quantity * line.unit_price for line in lines), Decimal(0)) == amount
