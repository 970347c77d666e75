"""XML files: declared elements, escapes, and documents that other parsers read alike."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from tests.examples import examples
from tests.unit.files.contents import FACTS, content_of, is_writable, read_back, record, refusal, text_of

ORDERS: dict[str, Any] = {
    "kind": "xml",
    "record": "/o:Orders/List/Order",
    "namespaces": {"": "urn:base", "o": "urn:orders"},
    "header": {"@count": "{records}", "Head/Sent": "{file_time}", "Head/@no": "{file_number}"},
    "rows": [
        {
            "columns": {
                "@id": "{external_id}",
                "@op": "{operation}",
                "To/City": "{to.city}",
                "To/Zip": {"from": "to.zip", "default": ""},
                "To/City/@lang": "{to.lang?}",
                "Lines/Line": {"each": "lines", "columns": {"@no": "{line_number}", "Sku": "{line.sku}"}},
                "Tags/Tag": {
                    "when": {"field": "tags", "empty": False},
                    "rows": [{"each": "tags", "columns": {".": "{line}"}}],
                },
            }
        }
    ],
    "trailer": {"Total": {"count": "lines"}},
}


@settings(max_examples=examples(200), deadline=None)
@given(
    texts=st.lists(st.tuples(st.text(max_size=8), st.text(max_size=8)), min_size=1, max_size=3),
    encoding=st.sampled_from(["utf-8", "cp1252", "latin-1", "utf-16", "utf-16-le", "utf-16-be", "ascii"]),
)
def test_what_can_be_written_reads_back_equal(
    tmp_path_factory: pytest.TempPathFactory, texts: list[tuple[str, str]], encoding: str
) -> None:
    """Any texts of elements and attributes, by our reader and by the standard library."""
    columns = {"@a": {"from": "a", "default": ""}, "In/B": {"from": "b", "default": ""}}
    content = content_of(kind="xml", record="/R/D", encoding=encoding, rows=[{"columns": columns}])
    records = [each for a, b in texts if is_writable(content, each := record({"a": a, "b": b}))]
    data = content.file_bytes(records, FACTS)
    expected = [(each.payload["a"], each.payload["b"]) for each in records]
    assert [(each.get("a", ""), each.findtext("In/B", "")) for each in ET.fromstring(data)] == expected
    if records:
        layout = {"kind": "xml", "record": "/R/D", "trim": False, "columns": {"a": "@a", "b": "In/B"}}
        found = read_back(tmp_path_factory.mktemp("f"), data, **layout)
        assert [(row["a"], row["b"]) for row in found] == expected


def test_a_document_has_the_declared_elements(tmp_path: Any) -> None:
    """Attributes, nested elements, lists, namespaces, and totals around the records; one record on each line."""
    first = {"to": {"city": "A & <B>", "lang": 'd"e'}, "lines": [{"sku": "1"}, {"sku": "2"}], "tags": ["x", "y"]}
    second = {"to": {"city": "C", "zip": "01"}, "lines": [{"sku": "3"}]}
    content = content_of(**ORDERS)
    records = [record(first), record(second, "delete", "SO-2")]
    assert text_of(content, *records) == (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<o:Orders xmlns="urn:base" xmlns:o="urn:orders" count="2">\n'
        '<Head no="7">\n<Sent>2026-11-01T08:05:00-05:00</Sent>\n</Head>\n<List>\n'
        '<Order id="SO-1" op="create"><To><City lang="d&quot;e">A &amp; &lt;B&gt;</City></To>'
        '<Lines><Line no="1"><Sku>1</Sku></Line><Line no="2"><Sku>2</Sku></Line></Lines>'
        "<Tags><Tag>x</Tag><Tag>y</Tag></Tags></Order>\n"
        '<Order id="SO-2" op="delete"><To><City>C</City><Zip>01</Zip></To>'
        '<Lines><Line no="1"><Sku>3</Sku></Line></Lines>'
        "</Order>\n</List>\n<Total>3</Total>\n</o:Orders>\n"
    )
    rows = read_back(
        tmp_path, content.file_bytes(records, FACTS), kind="xml", record="/o:Orders/List/Order", rows="Lines/Line",
        namespaces=ORDERS["namespaces"], count="/o:Orders/@count", columns={"id": "@id", "city": "To/City",
        "sku": "Lines/Line/Sku"},
    )  # fmt: skip
    assert [tuple(row.values()) for row in rows] == [
        ("SO-1", "A & <B>", "1"),
        ("SO-1", "A & <B>", "2"),
        ("SO-2", "C", "3"),
    ]
    assert refusal(content, record({**second, "lines": []})) == ("/lines", "has no elements")


@pytest.mark.parametrize(
    ("encoding", "declared"),
    [
        ("utf-8-sig", "UTF-8"), ("utf-16", "UTF-16"), ("utf_16_le", "UTF-16LE"), ("utf-32-be", "UTF-32BE"),
        ("euc_jp", "EUC-JP"), ("iso2022_jp", "ISO-2022-JP"), ("shift_jis", "shift_jis"), ("cp1252", "windows-1252"),
        ("latin-1", "ISO-8859-1"), ("ascii", "US-ASCII"), ("cp850", "cp850"),
    ],
)  # fmt: skip
def test_the_declared_encoding_has_its_registered_name(encoding: str, declared: str) -> None:
    """That of IANA, which readers know, where Python has another one."""
    content = content_of(kind="xml", record="/R/D", encoding=encoding, rows=[{"columns": {"B": "{x}"}}])
    text = text_of(content, record({"x": "1"}), encoding=encoding)
    assert text.startswith(f'<?xml version="1.0" encoding="{declared}"?>\n')


def test_what_no_xml_may_have_is_refused() -> None:
    """Control characters have no escape; everything else has one."""
    content = content_of(
        kind="xml", record="/R/D", encoding="cp1252", declaration=False, rows=[{"columns": {"@a": "{x}", "B": "{x}"}}]
    )
    for text, character in (("a\0", "U+0000"), ("\x1b", "U+001B"), ("\ufffe", "U+FFFE"), ("\ud800", "U+D800")):
        assert refusal(content, record({"x": text})) == ("/x", f"has the character {character}, which no XML may have")
    text = text_of(content, record({"x": "]]>\r\n\t\U0001f600€" + "x" * 10_000}), encoding="cp1252")
    assert '<D a="]]&gt;&#13;&#10;&#9;&#128512;€xx' in text
    assert "<B>]]&gt;&#13;\n\t&#128512;€xx" in text
    japanese = content_of(kind="xml", record="/R/D", encoding="shift_jis", rows=[{"columns": {"B": "{x}"}}])
    written = text_of(japanese, record({"x": "日\u203e\u00a5"}), encoding="shift_jis")
    assert "<B>日&#8254;&#165;</B>" in written  # their bytes would be read as other characters


def test_declarations_that_contradict_themselves_are_refused() -> None:
    """When the config is read."""
    row = {"columns": {"A": "x"}}
    for keys in (
        {"record": "/R"}, {"record": "R/D"}, {"record": "/R/2"}, {"rows": [{"columns": {"x:A": "x"}}]},
        {"rows": [{"columns": {"A": "x", ".": "x"}}]},
        {"rows": [{"columns": {"@a": {"each": "lines", "columns": {"B": "x"}}}}]}, {"header": {"A": "{external_id}"}},
        {"rows": [{"columns": {"A/@b/C": "x"}}]},
        {"encoding": "ascii", "rows": [{"columns": {"Straße": "x"}}]}, {"rows": [{**row, "rows": [row]}]},
        {"rows": [{"columns": {"a\u00b2/B": "x"}}]},
    ):  # fmt: skip
        with pytest.raises(ValidationError):
            content_of(**{"kind": "xml", "record": "/R/D", "rows": [row], **keys})
