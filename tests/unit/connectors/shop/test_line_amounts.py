"""Lines whose sum is an amount, in currencies with 0, 2 and 3 decimals."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from crossdock import Reference
from crossdock.values.field_types import minor_unit_digits_or_value_error
from crossdock_connectors.shop.sale_lines import lines_with_exact_unit_prices, smallest_currency_unit

LAMP = Reference("product", "LAMP")
CURRENCIES = ("JPY", "EUR", "KWD")
UNITS = st.integers(-(10**14), 10**14)
quantities = st.integers(1, 100_000)


def lines(quantity: int, amount: Decimal, currency: str) -> list[tuple[Decimal, Decimal]]:
    """The quantity and the price of each line."""
    found = list(lines_with_exact_unit_prices(LAMP, Decimal(quantity), amount, currency))
    assert {line.product_id for line in found} == {LAMP}
    return [(line.quantity, line.unit_price) for line in found]


@given(currency=st.sampled_from(CURRENCIES), quantity=quantities, units=UNITS, returned=st.booleans())
@example(currency="EUR", quantity=100_000, units=-(10**14) + 1, returned=True)
@example(currency="JPY", quantity=8, units=4, returned=False)
def test_the_sum_is_exact(currency: str, quantity: int, units: int, returned: bool) -> None:
    """Whatever quantity and amount: at most two lines, as many units, the same sum, and prices that are accepted."""
    sign, amount = -1 if returned else 1, units * smallest_currency_unit(currency)
    made = lines(sign * quantity, sign * amount, currency)
    assert len(made) <= 2
    assert sum(units for units, _ in made) == sign * quantity
    assert sum(units * price for units, price in made) == sign * amount
    for each, price in made:
        assert each * sign > 0
        assert each == each.to_integral_value()
        assert price * units >= 0, "another sign than the amount"
        assert price == round(price, min(4, 4 if minor_unit_digits_or_value_error(currency) else 0)), (
            "the platform refuses such a price"
        )


@given(currency=st.sampled_from(CURRENCIES), quantity=quantities, units=UNITS)
def test_units_that_come_back_cost_what_they_cost(currency: str, quantity: int, units: int) -> None:
    """The lines of a return are those of the sale with negative quantities."""
    amount = units * smallest_currency_unit(currency)
    sold, returned = lines(quantity, amount, currency), lines(-quantity, -amount, currency)
    assert [(-each, price) for each, price in returned] == sold


@pytest.mark.parametrize(
    ("quantity", "amount", "currency", "expected"),
    [
        pytest.param(3, "10.00", "EUR", [(2, "3.33"), (1, "3.34")], id="thirds of a cent"),
        pytest.param(-3, "-10.00", "EUR", [(-2, "3.33"), (-1, "3.34")], id="thirds that come back"),
        pytest.param(3, "-10.00", "EUR", [(2, "-3.33"), (1, "-3.34")], id="a negative price"),
        pytest.param(8, "0.02", "EUR", [(8, "0.0025")], id="four decimals are a price"),
        pytest.param(16, "0.01", "EUR", [(15, "0"), (1, "0.01")], id="less than a cent each"),
        pytest.param(2, "5", "JPY", [(1, "2"), (1, "3")], id="half a yen is no price"),
        pytest.param(7, "1.000", "KWD", [(1, "0.142"), (6, "0.143")], id="a thousandth"),
        pytest.param(4, "0", "EUR", [(4, "0")], id="free"),
    ],
)
def test_a_price_is_split_only_if_it_must_be(
    quantity: int, amount: str, currency: str, expected: list[tuple[int, str]]
) -> None:
    """One line if a price of at most four decimals exists that the currency has, else two that differ by one unit."""
    assert lines(quantity, Decimal(amount), currency) == [(Decimal(each), Decimal(price)) for each, price in expected]


def test_a_quantity_with_decimals_divides_an_amount() -> None:
    """A price is found for one and a half metres, too."""
    [line] = lines_with_exact_unit_prices(LAMP, Decimal("1.5"), Decimal("3.00"), "EUR")
    assert (line.quantity, line.unit_price) == (Decimal("1.5"), Decimal(2))


@pytest.mark.parametrize(("currency", "unit"), [("JPY", "1"), ("EUR", "0.01"), ("KWD", "0.001"), ("XAU", "1")])
def test_the_unit_of_a_currency(currency: str, unit: str) -> None:
    """A code without decimals in the standard counts whole units."""
    assert smallest_currency_unit(currency) == Decimal(unit)
