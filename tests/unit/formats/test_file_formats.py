"""One door to all formats: kinds, rows, some lines again, and files that may have been cut."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from pydantic import ValidationError
from tests.unit.formats.layouts import GOOD, ORDERS, Content, layout, lines

from crossdock.reading.formats.delimited_layout import DelimitedFormat
from crossdock.reading.formats.file_formats import looks_cut, read_rows, read_rows_at_lines

ITEMS = {"kind": "fixed_width", "columns": {"SKU": {"at": 1, "length": 4}}}


def test_a_format_without_kind_is_delimited() -> None:
    """As in all configs before there were other kinds; its version does not change."""
    assert layout() == DelimitedFormat()
    assert DelimitedFormat().model_dump(exclude_none=True) == {
        "kind": "delimited", "delimiter": ",", "quote": '"', "encoding": "utf-8", "header": True,
    }  # fmt: skip
    with pytest.raises(ValidationError, match="sheet"):
        layout(kind="avro")


@pytest.mark.parametrize(
    ("config", "data"),
    [
        (ITEMS, "".join(f"{number:04d}\n" for number in range(50))),
        (ORDERS, lines(*GOOD)),
        ({"record_types": {"A": {"names": ["T", "X"]}}, "records": "A"}, "A,1\nA,2\n"),
        ({}, "SKU\n1\n2\n"),
    ],
)
def test_some_lines_are_read_again(config: dict[str, Any], data: str) -> None:
    """They are the same rows as in the whole file."""
    content, form = Content(data.encode()), layout(**config)
    whole = pl.concat(read_rows(content, form, name="f", batch_rows=7))
    some = whole[1::2]
    assert pl.concat(read_rows_at_lines(content, form, some["_line"].to_list(), name="f")).equals(some)
    assert list(read_rows_at_lines(content, form, [], name="f")) == []


@pytest.mark.parametrize(
    ("config", "data", "expected"),
    [
        (ITEMS, b"0017\n", False),
        (ITEMS, b"0017", True),
        ({**ITEMS, "line_end": "none", "length": 4}, b"00170018", False),
        ({**ITEMS, "line_end": "nel", "encoding": "cp037"}, "0017\x85".encode("cp037"), False),
        ({**ITEMS, "line_end": "nel", "encoding": "cp037"}, "0017".encode("cp037"), True),
        (ORDERS, b"no trailer", False),
        ({}, b"SKU\n1", True),
    ],
)
def test_a_file_without_its_last_line_end_may_have_been_cut(
    config: dict[str, Any], data: bytes, expected: bool
) -> None:
    """Unless its layout finds that otherwise: by its trailer, or by the length of its records."""
    assert looks_cut(Content(data), layout(**config)) is expected
