"""A column of a map: converted, looked up in a table, or the default."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from pydantic import ValidationError

from crossdock.errors import RecordError
from crossdock.mapping.from_column import FromColumn


def value(cell: str | None, **form: Any) -> Any:
    return FromColumn.model_validate({"from": "A", **form}).compile()({"A": cell})


TYPES = {"Assets": "asset", "Y": True, "2": 2, "half": Decimal("0.5")}


@pytest.mark.parametrize(("cell", "expected"), [("Assets", "asset"), ("Y", True), ("2", 2), ("half", Decimal("0.5"))])
def test_a_table_gives_the_value_of_a_text(cell: str, expected: object) -> None:
    """Values have the type that the config file gives them."""
    found = value(cell, table=TYPES)
    assert (found, type(found)) == (expected, type(expected))


def test_a_text_outside_of_the_table_is_a_dead_letter_or_otherwise() -> None:
    """It is never passed on as it is, and never quoted."""
    with pytest.raises(RecordError, match="is not in the table") as refused:
        value("assets", table=TYPES)
    assert (refused.value.code, refused.value.pointer) == ("bad_value", "A")
    assert "assets" not in refused.value.message
    assert value("assets", table=TYPES, otherwise="expense") == "expense"
    assert value("assets", table=TYPES, otherwise=False) is False


@pytest.mark.parametrize("cell", [None, "", "00000000"])
def test_an_empty_cell_is_left_out_or_the_default(cell: str | None) -> None:
    """``otherwise`` is for other texts; an empty cell has its own default."""
    assert value(cell, table=TYPES, otherwise="x", empty="00000000") is None
    assert value(cell, table=TYPES, default=False, empty="00000000") is False
    assert value(cell, default="none", empty="00000000") == "none"
    assert value(cell, **{"as": "decimal"}, default=0, empty="00000000") == 0


def test_a_blank_number_is_an_empty_cell() -> None:
    """Fixed-width exports fill empty numbers with spaces; a text of spaces stays one."""
    assert value("   ", **{"as": "decimal"}) is None
    assert value("   ", **{"as": "integer"}, default=1) == 1
    assert value("   ") == "   "


def test_numbers_are_read_as_declared() -> None:
    """The keys of a number are those of `convert.decimal` and `convert.integer`."""
    german = {"as": "decimal", "decimal_mark": ",", "thousands": ".", "sign": "trailing", "round": "half_up"}
    assert value("1.234,56785-", **german) == Decimal("-1234.5679")
    assert value("1,234.00", **{"as": "integer"}, thousands=",") == 1234


@pytest.mark.parametrize(
    ("form", "key"),
    [
        ({"thousands": ","}, "thousands"),
        ({"sign": "trailing"}, "sign"),
        ({"as": "integer", "round": "down"}, "round"),
        ({"as": "decimal", "thousands": "."}, "thousands"),
        ({"as": "decimal", "decimal_mark": ",", "thousands": ","}, "thousands"),
        ({"as": "decimal", "table": {"a": 1}}, "table"),
        ({"otherwise": "x"}, "otherwise"),
    ],
)
def test_keys_that_cannot_work_together_are_refused_at_their_place(form: dict[str, Any], key: str) -> None:
    """Found when the config is loaded, not in the night."""
    with pytest.raises(ValidationError) as refused:
        FromColumn.model_validate({"from": "A", **form})
    (finding,) = refused.value.errors()
    assert finding["ctx"]["key"] == (key,)


def test_a_factor_is_a_number_or_a_column() -> None:
    """A quantity in cases becomes eaches by the size of its case."""
    cases = {"from": "CASES", "as": "decimal", "factor": "SIZE"}
    eaches = FromColumn.model_validate(cases)
    assert list(eaches.columns()) == ["CASES", "SIZE"]
    assert eaches.compile()({"CASES": "2.5", "SIZE": "12"}) == 30
    assert value("7", **{"as": "integer"}, factor=12) == 84
    assert value("129900", **{"as": "decimal"}, factor=Decimal("0.01")) == 1299
    for size in ("0", "-12", "", "x"):
        with pytest.raises(RecordError) as refused:
            eaches.compile()({"CASES": "2", "SIZE": size})
        assert refused.value.pointer == "SIZE"


def test_minor_units_are_those_of_the_currency() -> None:
    """Of a currency that is declared, or that a column names; another text there is a dead letter."""
    price = FromColumn.model_validate({"from": "PRICE", "as": "decimal", "minor_units": "CURRENCY"})
    assert list(price.columns()) == ["PRICE", "CURRENCY"]
    found = [price.compile()({"PRICE": "129900", "CURRENCY": code}) for code in ("EUR", "usd", "JPY", "KWD")]
    assert found == [Decimal(text) for text in ("1299.00", "1299.00", "129900", "129.900")]
    assert value("-5", **{"as": "decimal"}, minor_units="EUR") == Decimal("-0.05")
    assert list(FromColumn.model_validate({"from": "A", "as": "decimal", "minor_units": "EUR"}).columns()) == ["A"]
    for code in ("XAU", "euro", "", None):
        with pytest.raises(RecordError, match="not a currency with minor units") as refused:
            price.compile()({"PRICE": "129900", "CURRENCY": code})
        assert refused.value.pointer == "CURRENCY"
    with pytest.raises(RecordError):
        price.compile()({"PRICE": "1299.00", "CURRENCY": "EUR"})


@pytest.mark.parametrize(
    ("form", "problem"),
    [
        ({"as": "date", "format": "unix"}, "needs as: instant"),
        ({"as": "date", "hour_24": True}, "needs as: instant"),
        ({"as": "instant", "ambiguous": "later"}, "needs timezone"),
        ({"decimals": 2}, "needs as: decimal"),
        ({"as": "decimal", "decimals": 2, "thousands": ","}, "cannot be used with thousands"),
        ({"factor": 12}, "needs as: decimal"),
        ({"as": "integer", "minor_units": "EUR"}, "needs as: decimal"),
        ({"as": "decimal", "minor_units": "EUR", "decimals": 2}, "cannot be used with decimals"),
        ({"as": "decimal", "factor": 0}, "greater than 0"),
    ],
)
def test_what_does_not_fit_the_type_is_refused(form: dict[str, Any], problem: str) -> None:
    """When the config is loaded, at the key that does not fit."""
    with pytest.raises(ValidationError, match=problem):
        FromColumn.model_validate({"from": "A", **form})
