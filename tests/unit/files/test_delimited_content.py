"""Delimited files: what is written reads back equal, by our reader and by another one."""

from __future__ import annotations

import csv
import io
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.unit.files.contents import FACTS, content_of, is_writable, read_back, record, refusal, text_of

CELL = {"from": "x", "default": ""}
EVIL = ["a,b", 'a"b', "a\nb", "a\r\nb", "\ttab", " spaced ", "=1+1", "'", ";", "x" * 10_000, "-1", "", "émoji"]


@settings(max_examples=examples(300), deadline=None)
@given(
    rows=st.lists(st.tuples(st.text(max_size=8), st.sampled_from(EVIL)), min_size=1, max_size=4),
    delimiter=st.sampled_from([",", ";", "tab", "|", "||", "'"]),
    quoting=st.sampled_from(["minimal", "all", "none"]),
    encoding=st.sampled_from(["utf-8", "cp1252", "utf-16"]),
    line_end=st.sampled_from(["lf", "crlf"]),
)
def test_what_can_be_written_reads_back_equal(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[str, str]],
    delimiter: str,
    quoting: str,
    encoding: str,
    line_end: str,
) -> None:
    """Of any texts, the writable ones come back unchanged."""
    content = content_of(
        kind="delimited", delimiter=delimiter, quoting=quoting, encoding=encoding, line_end=line_end,
        rows=[{"columns": {"a": {"from": "a", "default": ""}, "b": {"from": "b", "default": ""}}}],
    )  # fmt: skip
    records = [each for a, b in rows if is_writable(content, each := record({"a": a, "b": b}))]
    data = content.file_bytes(records, FACTS)
    quote = None if quoting == "none" else '"'
    found = read_back(tmp_path_factory.mktemp("f"), data, delimiter=delimiter, quote=quote, encoding=encoding)
    assert found == [each.payload for each in records]


def test_the_csv_module_reads_the_same() -> None:
    """An independent reader agrees, also about quotes, line breaks and formulas, which are data as any other text."""
    content = content_of(
        kind="delimited", delimiter=";", line_end="crlf", rows=[{"columns": {"a": CELL, "b;": "{external_id}"}}]
    )
    text = text_of(content, *(record({"x": each}) for each in EVIL))
    assert list(csv.reader(io.StringIO(text, newline=""), delimiter=";")) == [
        ["a", "b;"],
        *([each, "SO-1"] for each in EVIL),
    ]
    assert text.startswith('a;"b;"\r\na,b;SO-1\r\n"a""b";SO-1\r\n"a\nb";SO-1\r\n')
    assert (
        text_of(content_of(kind="delimited", quoting="all", rows=[{"columns": {"a": "x"}}]), record({})) == '"a"\n"x"\n'
    )


def test_what_a_file_cannot_hold_is_refused_at_its_member() -> None:
    """Characters that the encoding lacks, control characters, and delimiters where nothing is quoted."""
    plain = {"rows": [{"columns": {"a": CELL, "b": "x"}}]}
    for keys, text, message in (
        ({}, "a\0b", "has the character U+0000, a control character or line break"),
        ({}, "a\rb", "has the character U+000D, a control character or line break"),
        ({}, "a\x1bb", "has the character U+001B, a control character or line break"),
        ({}, "\ufeffa", "has the character U+FEFF, a control character or line break"),
        ({}, "a\ud800", "has the character U+D800, a control character or line break"),
        ({"encoding": "cp1252"}, "a\U0001f600", "has the character U+1F600, which cp1252 has not"),
        ({"encoding": "shift_jis"}, "a\u203e", "has the character U+203E, which shift_jis has not"),  # written as ~
        ({"encoding": "cp932"}, "a\u301c", "has the character U+301C, which cp932 has not"),  # as another dash
        ({"quoting": "none"}, "a,b", "holds the delimiter, and fields are not quoted"),
        ({"quoting": "none", "delimiter": "||"}, "a|", "holds the delimiter, and fields are not quoted"),
        ({"quoting": "none"}, "a\nb", "has the character U+000A, a control character or line break"),
        ({"quoting": "none"}, "a\u2028b", "has the character U+2028, a control character or line break"),
    ):
        assert refusal(content_of(kind="delimited", **plain, **keys), record({"x": text})) == ("/x", message)
    one = content_of(kind="delimited", quoting="none", rows=[{"columns": {"a": CELL}}])
    assert refusal(one, record({"x": ""}))[1] == "is the only field of its line and empty, so the line would be blank"
    assert text_of(content_of(kind="delimited", rows=[{"columns": {"a": CELL}}]), record({"x": ""})) == 'a\n""\n'


def test_byte_order_marks_and_byte_orders_are_the_same_everywhere() -> None:
    """UTF-16 without a byte order is little-endian with a mark; UTF-8 has a mark where it is declared."""
    rows = [{"columns": {"a": "{x}"}}]
    for keys, expected in (
        ({"bom": True}, b"\xef\xbb\xbfa\nx\n"), ({"encoding": "utf-8-sig"}, b"\xef\xbb\xbfa\nx\n"),
        ({"encoding": "utf-16"}, b"\xff\xfea\0\n\0x\0\n\0"), ({"encoding": "utf-16-be"}, b"\0a\0\n\0x\0\n"),
        ({"encoding": "cp037"}, b"\x81%\xa7%"),
    ):  # fmt: skip
        assert content_of(kind="delimited", rows=rows, **keys).file_bytes([record({"x": "x"})], FACTS) == expected


@pytest.mark.parametrize(
    ("kind", "more", "written"),
    [
        ("delimited", {"delimiter": ";", "column_names": False}, "QTY;1,5 of 1.5;2,5;-3,5\n"),
        ("edifact", {"message": "ORDERS", "sender": "1", "receiver": "2"}, "'QTY+1,5 of 1.5+2,5+-3,5'"),
        ("xml", {"record": "/Orders/Order"}, "<A>QTY</A><B>1,5 of 1.5</B><C>2,5</C><D>-3,5</D>"),
    ],
)
def test_the_decimal_mark_of_a_file_is_that_of_all_its_numbers(kind: str, more: dict[str, Any], written: str) -> None:
    """In a template, too, where a program that reads commas would take 1.5 for 15; texts stay as they are."""
    cells: list[Any] = ["QTY", "{a} of {t}", {"from": "b"}, {"from": "c", "as": "decimal"}]
    row = {"segment": cells} if kind == "edifact" else {"columns": dict(zip("ABCD", cells, strict=True))}
    content = content_of(kind=kind, decimal_mark=",", rows=[row], **more)
    payload = {"a": Decimal("1.5"), "b": Decimal("2.50"), "c": Decimal("-3.5"), "t": "1.5"}
    assert written in text_of(content, record(payload)).replace("\n<", "<")
