"""Counts and sums that a file states are right, or the file is refused."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.formats.layouts import Content

from crossdock.errors import RefusedError
from crossdock.reading.formats.delimited_files import read_delimited_rows
from crossdock.reading.formats.delimited_layout import DelimitedFormat
from crossdock.reading.formats.record_types import (
    convert_column_to_exact_decimals,
    format_decimal_without_trailing_zeros,
)

CONFIG: dict[str, Any] = {
    "record_types": {
        "H": {"names": ["T", "ID", "N"], "counts": {"N": ["L"]}},
        "L": {"parent": "H", "names": ["LT", "AMOUNT"]},
        "E": {"parent": "H", "once": "last", "names": ["ET", "SUM"], "sums": {"SUM": "L.AMOUNT"}},
        "Z": {
            "once": "last",
            "names": ["T", "ALL", "SUM"],
            "counts": {"ALL": ["H", "L", "E"]},
            "sums": {"SUM": "L.AMOUNT"},
        },
    },
    "records": "L",
}  # fmt: skip
AMOUNTS = st.lists(st.decimals(-9999, 9999, places=3), max_size=4)


def written(groups: list[list[Decimal]]) -> list[str]:
    lines = []
    for number, amounts in enumerate(groups):
        lines += [f"H,{number},{len(amounts)}", *(f"L,{amount:f}" for amount in amounts), f"E,{sum(amounts):f}"]
    return [*lines, f"Z,{len(lines)},{sum(map(sum, groups)):f}"]


def read(lines: list[str], chunk: int) -> int:
    content = Content("".join(f"{line}\n" for line in lines).encode())
    form = DelimitedFormat.model_validate(CONFIG)
    return sum(frame.height for frame in read_delimited_rows(content, form, name="f", _chunk=chunk))


@given(st.lists(AMOUNTS, max_size=5), st.integers(1, 60))
def test_what_is_stated_rightly_is_accepted(groups: list[list[Decimal]], chunk: int) -> None:
    """Over groups and pieces of any size, also empty ones."""
    assert read(written(groups), chunk) == sum(map(len, groups))


@given(st.lists(AMOUNTS, min_size=1, max_size=5), st.integers(1, 60), st.data())
def test_one_amount_more_or_less_is_found(groups: list[list[Decimal]], chunk: int, data: st.DataObject) -> None:
    """Wherever a detail is added, lost or changed."""
    lines = written(groups)
    details: list[int] = [number for number, line in enumerate(lines) if line.startswith("L")]
    headers = [number for number, line in enumerate(lines) if line.startswith("H")]
    if details and data.draw(st.sampled_from([0, 1])):
        at = data.draw(st.sampled_from(details))
        changed = data.draw(st.sampled_from([[], [f"{lines[at]}1"], [lines[at], "L,0"]]))
        lines[at : at + 1] = changed
    else:
        lines.insert(data.draw(st.sampled_from(headers)) + 1, "L,0.001")
    with pytest.raises(RefusedError, match="^f:[0-9]+: [HEZ][.](N|SUM|ALL) states"):
        read(lines, chunk)


def test_numbers_are_exact() -> None:
    """Up to 26 digits before the point and 9 after it; more are refused instead of rounded."""
    frame = pl.DataFrame({"*": ["0.1", "", " 99999999999999999999999999.999999999"], "_line": [1, 2, 3]})
    total = frame.select(convert_column_to_exact_decimals(frame, "*", file="f").sum()).item()
    assert total == Decimal("100000000000000000000000000.099999999")
    for odd in ("0.0000000001", "1e3", "+1", "1,5"):
        frame = pl.DataFrame({"A": [odd], "_line": [7]})
        with pytest.raises(RefusedError, match="^f:7: column 'A' is not a number"):
            convert_column_to_exact_decimals(frame, "A", file="f")


@pytest.mark.parametrize(("number", "text"), [("1.500", "1.5"), ("100", "100"), ("0.000", "0"), ("-2.10", "-2.1")])
def test_numbers_are_shown_without_needless_zeros(number: str, text: str) -> None:
    """In errors."""
    assert format_decimal_without_trailing_zeros(Decimal(number)) == text
