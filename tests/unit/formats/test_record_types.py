"""Record types that do not fit together are errors of the config."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError
from tests.unit.formats.layouts import ORDERS, layout

from crossdock.reading.formats.fixed_width_layout import FixedWidthFormat

TYPES: dict[str, Any] = {
    "H": {"names": ["T", "ORDER"]},
    "L": {"parent": "H", "names": ["LT", "SKU"]},
    "E": {"once": "last", "names": ["T", "N"], "counts": {"N": ["L"]}},
}


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("L", {"names": ["T", "SKU"]}, "have two columns 'T'"),
        ("L", {"parent": "X"}, "must be another type"),
        ("H", {"parent": "L", "names": ["A"]}, "must be another type"),
        ("L", {"code": "H"}, "the same code as H"),
        ("L", {"otherwise": True, "code": "L"}, "either code or otherwise"),
        ("E", {"otherwise": True}, "needs a code"),
        ("H", {"once": "last"}, "the last record already"),
        ("L", {"once": "first"}, "the parent comes first"),
        ("E", {"counts": {"M": ["L"]}}, "is not a column"),
        ("E", {"counts": {"N": ["X"]}}, "there is no type 'X'"),
        ("E", {"sums": {"N": "L.PRICE"}}, "must be TYPE.COLUMN"),
        ("E", {"once": None}, "declare once"),
        ("E", {"parent": "H", "names": ["ET", "N"], "counts": {"N": ["E2"]}}, "there is no type"),
    ],
)
def test_types_that_do_not_fit_together_are_refused(name: str, change: dict[str, Any], message: str) -> None:
    """The message says what to change."""
    types = {**TYPES, name: {**TYPES[name], **change}}
    with pytest.raises(ValidationError, match=message):
        layout(record_types=types, records="L")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"records": "X"}, "name the type whose records are read"),
        ({"records": None}, "name the type whose records are read"),
        ({"header": True}, "take the place of header"),
        ({"record_types": None}, "belong to record_types"),
        ({"record_type": 2}, "lack field 2"),
    ],
)
def test_a_delimited_format_declares_types_or_a_header(change: dict[str, Any], message: str) -> None:
    """Not both, and the field of the code is one that all types have."""
    with pytest.raises(ValidationError, match=message):
        layout(**{"record_types": TYPES, "records": "L", **change})


def test_a_file_that_states_its_rows_is_known() -> None:
    """Only then may a snapshot that lacks many records be taken as whole."""
    counted = layout(**ORDERS)
    assert isinstance(counted, FixedWidthFormat)
    assert counted.states_rows
    assert counted.marks_end
    assert not layout(**{**ORDERS, "records": "order"}).states_rows
    assert layout(record_types=TYPES, records="L").states_rows
    plain = layout(kind="fixed_width", columns={"A": {"at": 1, "length": 4}})
    assert isinstance(plain, FixedWidthFormat)
    assert not plain.marks_end
