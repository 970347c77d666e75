"""Mapping: strict conversions, repairs and filters in columns, and the declarative form."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from pydantic import TypeAdapter, ValidationError

from crossdock.errors import RecordError
from crossdock.mapping import convert
from crossdock.mapping.columns import Filter, Repair, first_match
from crossdock.mapping.declarative import Form, RecordMap
from crossdock.records import Record, key_text
from crossdock.resources import Reference

FORMS: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Form])


def record(*rows: dict[str, str | None]) -> Record:
    return Record("K", rows, "f.csv", tuple(range(2, 2 + len(rows))))


def mapped(forms: dict[str, Any], *rows: dict[str, str | None]) -> dict[str, Any]:
    return RecordMap(FORMS.validate_python(forms))(record(*rows))


@pytest.mark.parametrize(
    ("text", "mark", "number"),
    [
        pytest.param("2.550", ".", Decimal("2.55"), id="plain"),
        pytest.param("-0.0001", ".", Decimal("-0.0001"), id="negative"),
        pytest.param("2,55", ",", Decimal("2.55"), id="decimal comma"),
        pytest.param("0017", ".", Decimal(17), id="leading zeros"),
    ],
)
def test_decimals_are_read_exactly(text: str, mark: str, number: Decimal) -> None:
    """Digits of the file are the digits of the number."""
    assert convert.decimal({"A": text}, "A", decimal_mark=mark) == number


@pytest.mark.parametrize("text", ["", "1e3", " 1", "1_000", "1,000", "1.23456", "1" * 16, "NaN", "٣", "--1", "1."])
def test_what_is_no_decimal_is_a_dead_letter(text: str) -> None:
    """Python's own parser would take some of these; a legacy file must not mean them."""
    with pytest.raises(RecordError) as refused:
        convert.decimal({"A": text}, "A")
    assert (refused.value.code, refused.value.pointer) == ("bad_value", "A")
    canary = f"<{text}>" if len(text) < 4 else text
    assert canary not in refused.value.message


def test_a_point_in_a_comma_file_is_refused() -> None:
    """1.234 in a file with decimal commas is a thousand or a mistake, never 1.234."""
    with pytest.raises(RecordError):
        convert.decimal({"A": "1.234"}, "A", decimal_mark=",")


def test_times_need_a_zone() -> None:
    """Text without offset is an instant only in a declared zone; the offset counts where there is one."""
    layout = "%Y-%m-%d %H:%M"
    assert convert.instant({"A": "2026-07-01 02:00"}, "A", layout=layout, timezone="Europe/Berlin") == datetime(
        2026, 7, 1, 0, 0, tzinfo=UTC
    )
    with pytest.raises(RecordError, match="no timezone is declared"):
        convert.instant({"A": "2026-07-01 02:00"}, "A", layout=layout)


def test_every_form_of_a_map() -> None:
    """Column, conversion, constant, template, reference, object and each, side by side."""
    forms = {
        "sku": "SKU",
        "quantity": {"from": "QTY", "as": "decimal"},
        "count": {"from": "N", "as": "integer"},
        "day": {"from": "D", "as": "date", "format": "%Y%m%d", "empty": "00000000"},
        "active": {"from": "ACT", "as": "boolean", "true_text": "Y", "false_text": "N"},
        "currency": {"const": "EUR"},
        "name": {"template": "Lot {SKU}/{N}"},
        "productId": {"ref": "product", "key": "SKU"},
        "binId": {"ref": "warehouse_bin", "key": ["WH", "BIN"], "namespace": "site"},
        "address": {"object": {"city": "CITY", "region": "REGION"}},
        "items": {"each": {"quantity": {"from": "QTY", "as": "decimal"}}},
    }
    row: dict[str, str | None] = {
        "SKU": "0017", "QTY": "1.50", "N": "3", "D": "20261101", "ACT": "Y",
        "WH": "A|1", "BIN": "", "CITY": "", "REGION": None,
    }  # fmt: skip
    assert mapped(forms, row) == {
        "sku": "0017",
        "quantity": Decimal("1.5"),
        "count": 3,
        "day": date(2026, 11, 1),
        "active": True,
        "currency": "EUR",
        "name": "Lot 0017/3",
        "productId": Reference("product", "0017"),
        "binId": Reference("warehouse_bin", "A%7C1|", "site"),
        "items": [{"quantity": Decimal("1.5")}],
    }


def test_empty_cells_leave_members_out() -> None:
    """An empty cell, a declared word for nothing and an empty reference make no member."""
    forms = {
        "a": "A",
        "b": {"from": "B", "as": "date", "format": "%Y%m%d", "empty": "00000000"},
        "c": {"ref": "customer", "key": "A"},
    }
    assert mapped(forms, {"A": "", "B": "00000000"}) == {}


def test_rows_of_one_record_must_agree_outside_each() -> None:
    """Two customers in one invoice are a dead letter that names column and line."""
    forms = {"customerId": {"ref": "customer", "key": "C"}, "items": {"each": {"sku": "S"}}}
    with pytest.raises(RecordError) as refused:
        mapped(forms, {"C": "1", "S": "a"}, {"C": "1", "S": "b"}, {"C": "2", "S": "c"})
    assert (refused.value.code, refused.value.pointer, refused.value.line) == ("rows_disagree", "C", 4)


def test_a_bad_cell_in_a_later_row_names_its_line() -> None:
    """Whoever looks for the cell finds it."""
    forms = {"items": {"each": {"quantity": {"from": "Q", "as": "decimal"}}}}
    with pytest.raises(RecordError) as refused:
        mapped(forms, {"Q": "1"}, {"Q": "x"})
    assert refused.value.line == 3


@pytest.mark.parametrize(
    "form", [{"from": "A", "as": "money"}, {"tepmlate": "x"}, {"const": 1.5}, {"ref": "shop", "key": "A"}, 7]
)
def test_an_unknown_form_is_refused(form: object) -> None:
    """A form is one of seven; nothing is guessed."""
    with pytest.raises(ValidationError):
        FORMS.validate_python({"a": form})


@pytest.mark.parametrize(
    ("repair", "text", "mended"),
    [
        pytest.param({"strip_suffix": ".0"}, "17850.0", "17850", id="suffix"),
        pytest.param({"strip_suffix": ".0"}, "1.0.0", "1.0", id="suffix once"),
        pytest.param({"strip_prefix": "00"}, "0000A", "00A", id="prefix once"),
        pytest.param({"strip": "both"}, "  a ", "a", id="white space"),
        pytest.param({"null": "NULL"}, "NULL", "", id="a word for nothing"),
        pytest.param({"strip": "right", "strip_suffix": "-"}, "5-  ", "5", id="in order"),
    ],
)
def test_repairs(repair: dict[str, Any], text: str, mended: str) -> None:
    """Small named repairs, in columns."""
    frame = pl.DataFrame({"A": [text]})
    assert frame.select(Repair(**repair).expression("A")).item() == mended


def test_a_row_counts_under_the_first_filter_that_matches() -> None:
    """The order of filters is the order of the file; null is empty and never an error."""
    filters = {
        "cancelled": Filter(field="A", starts_with="C"),
        "empty": Filter(field="B", empty=True),
        "test": Filter(field="A", one_of=("T1", "T2")),
        "full": Filter(field="B", equals="x"),
        "tail": Filter(field="A", ends_with="z"),
        "rest": Filter(field="B", empty=False),
    }
    frame = pl.DataFrame({"A": ["C1", "T1", "T1", "q", "yz", "y"], "B": [None, "", "b", "x", "b", "b"]})
    assert frame.select(first_match(filters)).to_series().to_list() == [
        "cancelled", "empty", "test", "full", "tail", "rest",
    ]  # fmt: skip
    assert frame.select(first_match({})).to_series().to_list() == [None]


def test_a_filter_has_one_condition() -> None:
    """Filters are data, not a little language."""
    with pytest.raises(ValidationError, match="give one of"):
        Filter(field="A", equals="x", starts_with="y")


def test_key_text_never_collides() -> None:
    """Parts that hold the separator, or its escape, stay apart."""
    keys = [key_text(parts) for parts in (["a|b"], ["a", "b"], ["a%7Cb"], ["a%7C", "b"], ["ä"], ["0017"])]
    assert len(set(keys)) == len(keys)
    assert keys[-1] == "0017"
