"""Fixed-width files: every character at its place, and what is written reads back equal."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from tests.examples import examples
from tests.unit.files.contents import FACTS, content_of, is_writable, lines, read_back, record, refusal, text_of

D = Decimal


def fixed(columns: dict[str, Any], **keys: Any) -> Any:
    return content_of(kind="fixed_width", rows=[{"columns": columns}], **keys)


@settings(max_examples=examples(200), deadline=None)
@given(
    rows=st.lists(
        st.tuples(st.text(max_size=7), st.decimals(-(10**5), 10**5, places=3) | st.integers(-(10**7), 10**7)),
        min_size=1,
        max_size=4,
    ),
    sign=st.sampled_from([None, "leading", "trailing", "overpunch", "leading_overpunch"]),
    fill=st.sampled_from([" ", "0"]),
    encoding=st.sampled_from(["utf-8", "cp1252", "cp037", "cp273"]),
    line_end=st.sampled_from(["lf", "crlf", "none"]),
)
def test_what_can_be_written_reads_back_equal(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[str, Decimal | int]], sign: str | None, fill: str, encoding: str, line_end: str,
) -> None:  # fmt: skip
    """Texts but for spaces at their ends, and exact numbers in each notation of a sign."""
    fill = "0" if sign == "leading_overpunch" else fill
    places: dict[str, Any] = {"at": 9, "length": 9, "fill": fill, "decimals": 2, **({"sign": sign} if sign else {})}
    columns = {
        "text": {"at": 1, "length": 6, "from": "text", "default": ""},
        "number": {**places, "from": "number", "as": "decimal"},
    }
    content = fixed(columns, encoding=encoding, line_end=line_end, length=20)
    records = [each for text, number in rows if is_writable(content, each := record({"text": text, "number": number}))]
    if not records:
        return
    layout = {
        "kind": "fixed_width",
        "encoding": encoding,
        "length": 20,
        "columns": {"text": {"at": 1, "length": 6}, "number": places},
    }
    data = content.file_bytes(records, FACTS)
    found = read_back(
        tmp_path_factory.mktemp("f"), data, **layout, line_end="none" if line_end == "none" else "line_feed"
    )
    assert [(row["text"], D(row["number"])) for row in found] == [
        (each.payload["text"].rstrip(" "), each.payload["number"]) for each in records
    ]


def test_record_types_and_control_totals(tmp_path: Any) -> None:
    """A header, lines of orders and a trailer whose count and sum our reader proves."""

    def code(text: str) -> dict[str, Any]:
        return {"at": 1, "length": 1, "template": text}

    content = content_of(
        kind="fixed_width",
        header=[{"columns": {"type": code("H"), "day": {"at": 2, "length": 8, "from": "file_time", "as": "instant",
        "format": "%Y%m%d"}}}],
        rows=[
            {"columns": {"type": code("O"), "no": {"at": 2, "length": 6, "template": "{external_id}"}}},
            {"each": "lines", "columns": {
                "type": code("L"), "sku": {"at": 2, "length": 4, "template": "{line.sku}"},
                "quantity": {"at": 6, "length": 6, "from": "line.quantity", "as": "decimal", "decimals": 2,
                "fill": "0"},
            }},
        ],
        trailer=[{"columns": {
            "type": code("T"), "count": {"at": 2, "length": 5, "count": "lines", "fill": "0", "decimals": 0},
            "sum": {"at": 7, "length": 8, "sum": "lines.quantity", "decimals": 2},
        }}],
    )  # fmt: skip
    two = [record(lines(1, D("2.5"))), record(lines(3), name="SO-2")]
    assert text_of(content, *two).splitlines() == [
        "H20261101", "OSO-1  ", "LS1  000100", "LS2  000250", "OSO-2  ", "LS1  000300", "T00003     650",
    ]  # fmt: skip
    number = {"decimals": 2, "fill": "0"}
    found = read_back(
        tmp_path, content.file_bytes(two, FACTS), kind="fixed_width", record_type={"length": 1}, records="line",
        record_types={
            "head": {"code": "H", "once": "first", "columns": {"day": {"at": 2, "length": 8}}},
            "order": {"code": "O", "columns": {"no": {"at": 2, "length": 6}}},
            "line": {"code": "L", "parent": "order", "columns": {
                "sku": {"at": 2, "length": 4}, "quantity": {"at": 6, "length": 6, **number}}},
            "end": {"code": "T", "once": "last", "counts": {"count": ["line"]}, "sums": {"sum": "line.quantity"},
            "columns": {
                "count": {"at": 2, "length": 5, "decimals": 0, "fill": "0"}, "sum": {"at": 7, "length": 8,
                "decimals": 2}}},
        },
    )  # fmt: skip
    assert [(row["no"], row["sku"], row["quantity"]) for row in found] == [
        ("SO-1", "S1", "1.00"), ("SO-1", "S2", "2.50"), ("SO-2", "S1", "3.00"),
    ]  # fmt: skip


def test_columns_are_filled_up() -> None:
    """On the declared side, and numbers with zeros after their sign."""
    for keys, payload, expected in (
        ({"template": "{x}"}, "ab", "ab   |"), ({"template": "{x}", "padding": "left"}, "ab", "   ab|"),
        ({"template": "{x}", "fill": "*"}, "ab", "ab***|"), ({"from": "x", "as": "integer"}, -12, None),
        ({"from": "x", "as": "integer"}, 12, "   12|"), ({"from": "x", "as": "integer", "padding": "right"}, 12,
        "12   |"),
        ({"from": "x", "as": "integer", "sign": "leading", "fill": "0"}, -12, "-0012|"), ({"from": "x",
        "as": "integer", "sign": "leading"}, -12, "  -12|"),
        ({"from": "x", "as": "integer", "sign": "trailing", "fill": "0"}, 12, "0012+|"), ({"from": "x",
        "as": "integer", "sign": "trailing"}, -12, "  12-|"),
        ({"from": "x", "as": "integer", "sign": "parentheses", "fill": "0"}, -12, "(012)|"), ({"from": "x",
        "as": "integer", "fill": "0"}, "0017", "00017|"),
        ({"from": "x", "as": "integer", "default": "", "fill": "0"}, None, "     |"), ({"from": "x", "cut": True},
        "abcdefg", "abcde|"),
        ({"from": "x", "max_length": 2, "cut": True}, "abc", "ab   |"), ({"template": "{x}", "padding": "none"}, "ab",
        None),
        ({"template": "{x}"}, "abcdef", None), ({"from": "x", "as": "integer"}, 123456, None), ({"template": "{x}",
        "fill": "0", "padding": "left"}, "017", None),
        ({"template": "{x}", "fill": "0", "padding": "left"}, "017AB", "017AB|"), ({"template": "{x}"}, "a\tb", None),
        ({"from": "x", "as": "decimal", "decimals": 1}, D("0.25"), None), ({"template": "{x}"}, "x" * 10_000, None),
    ):  # fmt: skip
        content = fixed({"a": {"at": 1, "length": 5, **keys}, "end": {"at": 6, "length": 1, "template": "|"}})
        if expected is None:
            assert refusal(content, record({"x": payload}))[0] == "/x"
        else:
            assert text_of(content, record({"x": payload})) == f"{expected}\n"


def test_bytes_are_counted_where_programs_count_them() -> None:
    """In Shift-JIS, a character of two bytes takes two positions."""
    columns = {"a": {"at": 1, "length": 6, "template": "{x}"}, "b": {"at": 7, "length": 1, "template": "|"}}
    content = fixed(columns, encoding="shift_jis", count="bytes")
    assert text_of(content, record({"x": "日本"}), encoding="shift_jis") == "日本  |\n"
    assert refusal(content, record({"x": "日本語a"})) == ("/x", "has 7 bytes, and its column 6")
    wide = fixed({**columns, "a": {**columns["a"], "fill": "\u3000"}}, encoding="shift_jis", count="bytes")
    assert text_of(wide, record({"x": "日本"}), encoding="shift_jis") == "日本\u3000|\n"
    assert refusal(wide, record({"x": "日a"})) == ("/x", "leaves 3 bytes of its column, and the fill character has 2")
    nel = fixed({"a": {"at": 1, "length": 2, "template": "{x}"}}, encoding="cp037", line_end="nel")
    assert nel.file_bytes([record({"x": "a"})] * 2, FACTS) == b"\x81\x40\x15\x81\x40\x15"


def test_a_byte_order_mark_takes_no_position() -> None:
    """It precedes the file, and no value."""
    columns = {"a": {"at": 1, "length": 6, "template": "{x}"}, "b": {"at": 7, "length": 1, "template": "|"}}
    content = fixed(columns, encoding="utf-8-sig", count="bytes")
    assert content.file_bytes([record({"x": "é"})], FACTS) == "\ufeffé    |\n".encode()


def test_declarations_that_contradict_themselves_are_refused() -> None:
    """When the config is read."""
    column = {"at": 1, "length": 2, "template": "x"}
    for columns, keys in (
        ({"a": {"at": 1, "length": 2, "from": "x", "as": "integer", "sign": "leading_overpunch"}}, {}),
        ({"a": column, "b": {**column, "at": 2}}, {}), ({"a": column}, {"length": 1}), ({"a": column},
        {"line_end": "none"}),
        ({"a": {"at": 1, "length": 2, "from": "x", "as": "integer", "fill": "*"}}, {}), ({"a": column},
        {"encoding": "iso2022_jp", "count": "bytes"}), ({"a": column}, {"encoding": "utf-16-le", "count": "bytes"}),
        ({"a": {**column, "fill": "\u3000"}}, {"encoding": "cp1252"}),
        ({"a": {"at": 1, "length": 2, "from": "x", "as": "integer", "fill": "0", "padding": "right"}}, {}), ({}, {}),
        ({"a": {**column, "at": 0}}, {}),
    ):  # fmt: skip
        with pytest.raises(ValidationError):
            fixed(columns, **keys)
