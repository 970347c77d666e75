"""One door to all formats: kinds, rows, some lines again, and files that may have been cut."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from pydantic import ValidationError
from tests.unit.formats.edi import X12
from tests.unit.formats.layouts import GOOD, ORDERS, Content, layout, lines

from crossdock.reading.formats import delimited_files
from crossdock.reading.formats.delimited_layout import DelimitedFormat
from crossdock.reading.formats.file_formats import may_be_truncated, read_rows, read_rows_at_lines
from crossdock.values.raw_rows_and_records import ELEMENT, LINE, record_number_column

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
    assert may_be_truncated(Content(data), layout(**config)) is expected


XML = {
    "kind": "xml",
    "record": "/Shops/Shop/Order",
    "rows": "Line",
    "columns": {"SHOP": "/Shops/Shop/@id", "NO": "@no", "SKU": "Line/@sku"},
}
TYPES: dict[str, Any] = {
    "file": {"code": "F", "once": "first", "names": ["F", "SHOP"]},
    "order": {"code": "O", "parent": "file", "names": ["O", "NO"]},
    "line": {"code": "L", "parent": "order", "names": ["L", "SKU"]},
}
SETS = {
    "kind": "x12",
    "set": "945",
    "loops": {"order": {"starts": "LX"}, "item": {"starts": "W12", "in": "order"}},
    "rows": "item",
    "columns": {"SHOP": "W06.2", "NO": {"at": "N9.2", "when": {"1": "ON"}}, "SKU": "W12.8"},
}
SHIPPED = X12().file(
    [
        [["W06", "F", "S"], ["N9", "ON", "1"], ["LX", "1"], *([["W12", *[""] * 7, each] for each in "AB"])],
        [
            *[["W06", "F", "S"], ["N9", "ON", "1"], ["LX", "1"], ["W12", *[""] * 7, "A"]],
            *[["LX", "2"], ["N9", "ON", "1"], ["W12", *[""] * 7, "B"]],
        ],
    ]
)


@pytest.mark.parametrize(
    ("config", "data", "key", "numbers"),
    [
        (XML, '<Order no="1"><Line sku="A"/><Line sku="B"/></Order><Order no="1"/>', ("NO",), ["1", "1", "2"]),
        (XML, '<Order no="1"><Line sku="A"/><Line sku="B"/></Order><Order no="1"/>', ("SHOP", "NO"), ["1", "1", "2"]),
        (XML, '<Order no="1"><Line sku="A"/></Order>', ("SKU",), None),
        (XML, '<Order no="1"><Line sku="A"/></Order>', ("SHOP",), None),
        (XML | {"rows": None, "columns": {"NO": "@no"}}, '<Order no="1"/>', ("NO",), None),
        ({"record_types": TYPES, "records": "line"}, "F,S\nO,1\nL,A\nL,B\nO,1\nL,A\n", ("NO",), ["2", "2", "5"]),
        ({"record_types": TYPES, "records": "line"}, "F,S\nO,1\nL,A\n", ("SHOP",), None),
        ({"record_types": TYPES, "records": "line"}, "F,S\nO,1\nL,A\n", ("NO", "SKU"), None),
        (
            {"record_types": TYPES | {"file": {"code": "F", "names": ["F", "SHOP"]}}, "records": "line"},
            "F,S\nO,1\nL,A\nF,T\nO,1\nL,B\n",
            ("NO",),
            None,
        ),
        (SETS, SHIPPED, ("SHOP",), ["3", "3", "10", "10"]),
        (SETS, SHIPPED, ("NO",), ["3", "3", "", ""]),
        (SETS | {"rows": "set", "columns": {"NO": "W06.2"}}, SHIPPED, ("NO",), None),
    ],
)
def test_records_of_several_rows_are_numbered(
    config: dict[str, Any], data: str, key: tuple[str, ...], numbers: list[str] | None
) -> None:
    """Where an element, a header or a set has the key: not in rows, nor in what is around several of them."""
    content = Content((f'<Shops><Shop id="S">{data}</Shop></Shops>' if data.startswith("<") else data).encode())
    form = layout(**{name: value for name, value in config.items() if value is not None})
    plain = pl.concat(read_rows(content, form, name="f"))
    rows = pl.concat(read_rows(content, form.with_groups([key]), name="f", batch_rows=1))
    name = record_number_column(key)
    assert (rows[name].to_list() if name in rows.columns else None) == numbers
    assert rows.drop(name, strict=False).equals(plain)


@pytest.mark.parametrize("chunk", [1, 8, 1 << 20])
@pytest.mark.parametrize(
    ("data", "rows"),
    [
        ("O,1\nL,A\nO,2\nO,3\nL,A\nL,B\nO,4\n", [("1", "A"), ("2", ""), ("3", "A"), ("3", "B"), ("4", "")]),
        ("O,1\nO,2\n", [("1", ""), ("2", "")]),
        ("", []),
    ],
)
def test_a_record_without_rows_is_one_row_unless_rows_are_records(
    chunk: int, data: str, rows: list[tuple[str, str]]
) -> None:
    """A header that cancels an order has no lines; wherever the file is cut into pieces, it is a row of its own."""
    form = layout(record_types=TYPES, records="line")
    content = Content(f"F,S\n{data}".encode())

    def read(kept: DelimitedFormat) -> pl.DataFrame:
        return pl.concat(delimited_files.read_delimited_rows(content, kept, name="f", _chunk=chunk))

    assert isinstance(form, DelimitedFormat)
    kept = read(form.with_groups([("NO",)], keeps_empty=True))
    assert kept[["NO", "SKU"]].rows() == rows
    assert kept[LINE].is_sorted()
    assert [mark is not None for mark in kept[ELEMENT]] == [bool(row[1]) for row in rows]
    with_lines = [row for row in rows if row[1]]
    assert read(form.with_groups([("NO",)]))[["NO", "SKU"]].rows() == with_lines
    for groups in ([("SKU",)], [("NO",), ("SHOP", "NO"), ("SKU",)]):
        assert read(form.with_groups(groups, keeps_empty=True))[["NO", "SKU"]].rows() == with_lines


@pytest.mark.parametrize(
    ("config", "data", "marks"),
    [
        (XML, '<Order no="1"><Line sku="A"/><Line sku="B"/></Order><Order no="2"/>', ["", "", None]),
        (
            SETS,
            X12().file([[["W06", "F", "1"], ["LX", "1"], ["W12", *[""] * 7, "A"]], [["W06", "F", "2"]]]),
            ["", None],
        ),
    ],
)
def test_a_row_of_a_record_without_rows_is_marked(config: dict[str, Any], data: str, marks: list[str | None]) -> None:
    """Its own cells may look like those of a line, so that a map could not tell it from one."""
    content = Content((f"<Shops><Shop>{data}</Shop></Shops>" if data.startswith("<") else data).encode())
    form = layout(**config).with_groups([("NO",)], keeps_empty=True)
    assert pl.concat(read_rows(content, form, name="f", batch_rows=1))[ELEMENT].to_list() == marks
