"""Fixed-width layouts that cannot be are errors of the config."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError
from tests.unit.formats.layouts import ORDERS, fixed_width, layout


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"columns": {"A": {"at": 1, "length": 2}}}, "either columns or record_types"),
        ({"record_type": None}, "where their codes are"),
        ({"record_type": {"length": 2}}, "longer than 2 characters"),
        ({"length": 8}, "end at position"),
        ({"line_end": "none"}, "need length"),
        ({"line_end": "none", "length": 30, "short_lines": "pad"}, "never short"),
        ({"encoding": "utf8x"}, "not a character encoding"),
    ],
)
def test_a_fixed_width_format_that_cannot_be_is_refused(change: dict[str, Any], message: str) -> None:
    """The lengths and positions agree."""
    with pytest.raises(ValidationError, match=message):
        layout(**{**ORDERS, **change})


def test_columns_that_overlap_are_refused() -> None:
    """A gap is allowed, one character of two columns is not."""
    columns = {"B": {"at": 4, "length": 2}, "A": {"at": 1, "length": 4}}
    with pytest.raises(ValidationError, match="A ends at position 4, and B begins at 4: they overlap"):
        layout(kind="fixed_width", columns=columns)


def test_one_type_with_a_code_needs_its_place() -> None:
    """Else no record would be compared with it; a type of all records has no code."""
    columns = {"A": {"at": 1, "length": 4}}
    with pytest.raises(ValidationError, match="where their codes are"):
        layout(kind="fixed_width", record_types={"A": {"columns": columns}}, records="A")
    form = fixed_width(record_types={"A": {"columns": columns, "otherwise": True}}, records="A", kind="fixed_width")
    assert (form.names, form.record_length("A")) == (["A"], 4)
