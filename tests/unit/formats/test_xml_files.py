"""XML files: declared elements and attributes become rows of text, and anything else is refused with its place."""

from __future__ import annotations

import gzip
import xml.etree.ElementTree as ET
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.unit.formats.layouts import Content, layout, read

from crossdock.errors import RefusedError
from crossdock.reading.formats import xml_files
from crossdock.reading.formats.file_formats import (
    LeniencyCounts,
    get_reader_of_layout,
    may_be_truncated,
    read_rows,
    read_rows_at_lines,
)

ORDERS = """<?xml version="1.0" encoding="UTF-8"?>
<!-- of the warehouse -->
<Orders>
  <Header sender="WMS"><Sent>2026-11-01</Sent></Header>
  <Order no="1">
    <Address><City> Köln </City></Address>
    <Note/>
    <Lines>
      <Line n="1"><Sku>A&amp;B</Sku><Qty>2</Qty></Line>
      <Line n="2"><Sku><![CDATA[<C>]]></Sku><Weight unit="kg">7</Weight></Line>
    </Lines>
  </Order>
  <Order no="0017"><Lines/></Order>
  <Trailer><Count>2</Count></Trailer>
</Orders>
"""
COLUMNS = {
    "SENT": "/Orders/Header/Sent", "SENDER": "/Orders/Header/@sender", "NO": "@no", "CITY": "Address/City",
    "NOTE": "Note", "LINE": "Lines/Line/@n", "SKU": "Lines/Line/Sku", "QTY": "Lines/Line/Qty",
}  # fmt: skip
FORM: dict[str, Any] = {
    "kind": "xml", "record": "/Orders/Order", "rows": "Lines/Line", "columns": COLUMNS,
    "count": "/Orders/Trailer/Count",
}  # fmt: skip
ROWS = [
    ("2026-11-01", "WMS", "1", "Köln", "", "1", "A&B", "2", 1),
    ("2026-11-01", "WMS", "1", "Köln", "", "2", "<C>", "", 2),
    ("2026-11-01", "WMS", "0017", "", "", "", "", "", 3),
]
PLAIN: dict[str, Any] = {"kind": "xml", "record": "/Items/Item", "columns": {"SKU": "@sku", "NAME": "Name"}}
"""A layout without rows, a count and values around the records."""


def items(inside: str) -> str:
    return f"<Items>{inside}</Items>"


@pytest.mark.parametrize("chunk", [1 << 16, 7, 1])
@pytest.mark.parametrize("packed", [False, True])
def test_declared_values_become_rows(monkeypatch: pytest.MonkeyPatch, chunk: int, *, packed: bool) -> None:
    """One row for each line with the values around it; what is missing is empty; from any pieces of the file."""
    monkeypatch.setattr(xml_files, "_CHUNK_BYTES", chunk)
    data = ORDERS.encode()
    for batch in (100_000, 1):
        frame = read(gzip.compress(data) if packed else data, FORM, batch_rows=batch)
        assert frame.rows() == ROWS
        assert frame.schema == {**dict.fromkeys(COLUMNS, pl.String), "_line": pl.UInt64}
    content = Content(data)
    assert pl.concat(read_rows_at_lines(content, layout(**FORM), [2], name="f")).rows() == ROWS[1:2]
    assert all(frame.height == 1 for frame in read_rows(content, layout(**FORM), name="f", batch_rows=1))
    assert not may_be_truncated(content, layout(**FORM))
    assert get_reader_of_layout(layout(**FORM)).describe_cell_places(layout(**FORM), ["CITY"], 1) == {
        "CITY": "Address/City"
    }


@pytest.mark.parametrize(
    ("declared", "written", "set_to"),
    [
        ("UTF-8", "utf-8-sig", None),
        ("UTF-16", "utf-16", None),
        ("ISO-8859-1", "latin-1", None),
        ("windows-1252", "cp1252", None),
        ("UTF-8", "cp1252", "cp1252"),
        ("UTF-8", "cp850", "cp850"),
        ("Shift_JIS", "utf-8", "utf-8"),
        ("UTF-8", "cp037", "cp037"),
        ("UTF-16", "utf-16", "utf-16"),
    ],
)
def test_encodings_are_declared_in_the_file_or_in_the_layout(declared: str, written: str, set_to: str | None) -> None:
    """The layout comes first, because files are often in another encoding than they say."""
    data = ORDERS.replace("UTF-8", declared).encode(written)
    assert read(data, FORM if set_to is None else {**FORM, "encoding": set_to}).rows() == ROWS


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("declared", ["ISO-8859-1", "windows-1252", "us-ascii"])
def test_utf_8_under_another_name_is_refused(declared: str, mark: str) -> None:
    """Programs write a fixed declaration above text in UTF-8: Müller would become MÃ¼ller at the platform."""
    text = "".join(f"<I><N>{number} Müller, größer</N></I>" for number in range(5_000))
    data = f'{mark}<?xml version="1.0" encoding="{declared}"?><P>{text}</P>'.encode()
    form = {"kind": "xml", "record": "/P/I", "columns": {"N": "N"}}
    with pytest.raises(RefusedError) as refused:
        read(data, form)
    if declared != "us-ascii":  # which no byte of them is
        assert "f:1: the file is in UTF-8, and declares" in str(refused.value)
    assert read(data, {**form, "encoding": "utf-8"})["N"][7] == "7 Müller, größer"


def test_an_encoding_with_characters_of_several_bytes_is_set() -> None:
    """The parser cannot read such an encoding by its declaration, and the refusal says what to do."""
    data = items("<Item sku='1'><Name>カ</Name></Item>").encode("shift_jis")
    data = b'<?xml version="1.0" encoding="Shift_JIS"?>' + data
    with pytest.raises(RefusedError, match="several bytes") as refused:
        read(data, PLAIN)
    assert "Declare encoding" in (refused.value.hint or "")
    assert read(data, {**PLAIN, "encoding": "shift_jis"}).rows() == [("1", "カ", 1)]
    with pytest.raises(RefusedError, match="is not ascii") as refused:
        read(data, {**PLAIN, "encoding": "ascii"})
    assert refused.value.where == "f:1"


@pytest.mark.parametrize(
    ("namespaces", "record", "name"),
    [
        ({"w": "urn:wms", "p": "urn:parts"}, "/w:Items/w:Item", "p:Name"),
        ({"": "urn:wms", "q": "urn:parts"}, "/Items/Item", "q:Name"),
    ],
)
def test_names_are_those_of_namespaces(namespaces: dict[str, str], record: str, name: str) -> None:
    """Prefixes are those of the layout, whatever prefixes the file has; an empty one is for elements only."""
    data = "<Items xmlns='urn:wms' xmlns:x='urn:parts'><Item sku='1'><x:Name>a</x:Name><Name>b</Name></Item></Items>"
    form = {**PLAIN, "namespaces": namespaces, "record": record, "columns": {"SKU": "@sku", "NAME": name}}
    assert read(data, form).rows() == [("1", "a", 1)]


def test_the_prefix_xml_needs_no_declaration() -> None:
    """The languages of elements are columns as other attributes are."""
    form = {**PLAIN, "columns": {"LANGUAGE": "Name/@xml:lang"}}
    assert read(items("<Item><Name xml:lang='de'>a</Name></Item>"), form).rows() == [("de", 1)]


def test_the_text_of_records_and_rows_is_a_column() -> None:
    """A dot is the text of the record; the path of the rows is the text of each."""
    form = {"kind": "xml", "record": "/Prices/Sku", "columns": {"SKU": ".", "PRICE": "@price"}}
    assert read("<Prices><Sku price='1.50'>0017</Sku><Sku/></Prices>", form).rows() == [
        ("0017", "1.50", 1),
        ("", "", 2),
    ]
    form = {"kind": "xml", "record": "/P/O", "rows": "T", "columns": {"NO": "@no", "TAG": "T"}}
    data = "<P><O no='1'><T>a</T><T>b</T></O><O no='2'/></P>"
    assert read(data, form).rows() == [("1", "a", 1), ("1", "b", 2), ("2", "", 3)]


def test_values_around_records_are_those_before_them_in_the_same_element() -> None:
    """A group without a value has none, and not that of the group before."""
    form = {"kind": "xml", "record": "/A/G/R", "columns": {"G": "/A/G/Name", "AT": "/A/G/@at", "R": "."}}
    data = "<A><G at='1'><Name>x</Name><R>1</R><R>2</R></G><G><R>3</R></G></A>"
    assert read(data, form).rows() == [("x", "1", "1", 1), ("x", "1", "2", 2), ("", "", "3", 3)]
    with pytest.raises(RefusedError, match="follows records") as refused:
        read("<A><G><R>1</R><Name>x</Name></G></A>", form)
    assert refused.value.where == "f:1:15"


def test_blanks_around_values_are_left_out_unless_declared() -> None:
    """Inner ones stay; a comment divides no text."""
    data = items("<Item sku=' 1 '><Name>\n a <!-- x -->b\n</Name></Item>")
    assert read(data, PLAIN).rows() == [("1", "a b", 1)]
    assert read(data, {**PLAIN, "trim": False}).rows() == [(" 1 ", "\n a b\n", 1)]


def test_missing_elements_are_empty_or_refuse_the_file() -> None:
    """An empty element is not a missing one."""
    data = items("<Item sku='1'><Name/></Item>\n<Item sku='2'/>")
    assert read(data, PLAIN).rows() == [("1", "", 1), ("2", "", 2)]
    with pytest.raises(RefusedError, match="column NAME is missing") as refused:
        read(data, {**PLAIN, "missing": "refuse"})
    assert (refused.value.where or "").startswith("f:2:")
    assert read(items("<Item sku='1'><Name/></Item>"), {**PLAIN, "missing": "refuse"}).height == 1


def test_columns_that_no_record_has_are_counted() -> None:
    """A sender who renames an element would empty the member of each record without a sign of it."""
    for inside, shown in (
        ("<Item sku='1'><Title>a</Title></Item>", "1 column found in no record"),
        ("<Item/>", "2 columns found in no record"),
        ("<Item sku='1'/><Item><Name/></Item>", ""),
        ("", ""),
    ):
        counted = LeniencyCounts()
        list(read_rows(Content(items(inside).encode()), layout(**PLAIN), name="f", leniencies=counted))
        assert str(counted) == shown


def test_elements_with_the_name_of_a_record_elsewhere_are_counted() -> None:
    """Records in another case of letters, or in a group of their own, are missing without a sign of it otherwise."""
    for inside, shown in (
        ("<Item sku='1'><Name/></Item><item sku='2'/>", "1 element with the name of a record not read"),
        ("<New><Item/><Item/></New><Item sku='1'><Name/></Item>", "2 elements with the name of a record not read"),
        ("<Item sku='1'><Name/><Part><Item/></Part></Item><Items/>", ""),
    ):
        counted = LeniencyCounts()
        rows = pl.concat(read_rows(Content(items(inside).encode()), layout(**PLAIN), name="f", leniencies=counted))
        assert (rows.height, str(counted)) == (1, shown)


def test_a_file_without_records_has_no_rows() -> None:
    """One empty frame with the columns, if the root is the declared one and the stated number is 0."""
    assert read("<Orders><Trailer><Count>0</Count></Trailer></Orders>", FORM).schema == read(ORDERS, FORM).schema
    assert read(items(""), PLAIN).rows() == []
    assert read(items("<Sent/><x><y/></x>"), PLAIN).rows() == []
    assert read(items("<Batch><Item/></Batch><Item/>"), PLAIN).height == 1


CHARACTERS = st.characters(
    exclude_categories=("Cs", "Cc"), exclude_characters="\ufffe\uffff", include_characters="\n\t"
)
TEXTS = st.text(CHARACTERS, max_size=8)
RECORDS = st.lists(st.tuples(TEXTS, TEXTS, st.lists(st.tuples(TEXTS, TEXTS), max_size=3)), max_size=6)


@given(records=RECORDS, encoding=st.sampled_from(["utf-8", "utf-16", "us-ascii"]), namespace=st.booleans())
@settings(max_examples=examples(500), deadline=None)
def test_what_another_writer_writes_is_read(
    records: list[tuple[str, str, list[tuple[str, str]]]], encoding: str, *, namespace: bool
) -> None:
    """ElementTree's text and attributes come back as they were, with escapes, character references and prefixes."""
    space = "{urn:x}" if namespace else ""
    root = ET.Element(f"{space}L")
    for number, name, lines in records:
        record = ET.SubElement(root, f"{space}R", {"no": number})
        ET.SubElement(record, f"{space}Name").text = name
        for sku, quantity in lines:
            ET.SubElement(ET.SubElement(record, f"{space}Line"), f"{space}Sku").text = sku
            record[-1].set("qty", quantity)
    form = {
        "kind": "xml", "record": "/L/R", "rows": "Line", "trim": False,
        "namespaces": {"": "urn:x"} if namespace else {},
        "columns": {"NO": "@no", "NAME": "Name", "SKU": "Line/Sku", "QTY": "Line/@qty"},
    }  # fmt: skip
    expected = [(no, name, *line) for no, name, lines in records for line in (lines or [("", "")])]
    found = read(ET.tostring(root, encoding=encoding, xml_declaration=True), form)
    assert found.drop("_line").rows() == expected
    assert found["_line"].to_list() == list(range(1, len(expected) + 1))


def test_a_file_that_was_cut_anywhere_is_refused() -> None:
    """No part of a document but the whole is one."""
    data = ORDERS.strip().encode()
    for length in range(len(data)):
        with pytest.raises(RefusedError) as refused:
            read(data[:length], FORM)
        assert refused.value.hint
    assert read(data, FORM).rows() == ROWS


BOMB = "<!DOCTYPE x [<!ENTITY a 'ha'><!ENTITY b '&a;&a;&a;'>]>"


@pytest.mark.parametrize(
    ("data", "where", "says"),
    [
        ("", "f", "the file is empty"),
        (BOMB + items("<Item><Name>&b;</Name></Item>"), "f:1:1", "DOCTYPE"),
        ("<!DOCTYPE x [<!ENTITY e SYSTEM 'file:///etc/hostname'>]>" + items("&e;"), "f:1:1", "DOCTYPE"),
        ("<!DOCTYPE x SYSTEM 'http://127.0.0.1:9/x.dtd'>" + items(""), "f:1", "DOCTYPE"),
        ("<!DOCTYPE x [<!ENTITY % p SYSTEM 'file:///x'> %p;]>" + items(""), "f:1", "DOCTYPE"),
        (items("\n<Item>&nbsp;</Item>"), "f:2:7", "undefined entity"),
        (items("<x>" * 100 + "</x>" * 100), "f:1", "more than 64 levels"),
        (items("<Item " + " ".join(f"a{n}=''" for n in range(300)) + "/>"), "f:1:8", "more than 256 attributes"),
        (items("<Item sku='" + "x" * (3 << 20) + "'/>"), "f:1:8", "a tag or comment of more than"),
        (items("<!--" + "x" * (3 << 20) + "-->"), "f:1:8", "a tag or comment of more than"),
        (items("<Item><Name>" + "x" * (3 << 20) + "</Name></Item>"), "f:1", "a text of more than"),
        (items("<Item><Name>" + "x<!---->" * (9 << 17) + "</Name></Item>"), "f:1", "a text of more than"),
        (items("<Item><x>" + "x" * (17 << 20) + "</x></Item>"), "f:1", "a record of more than 16,777,216 bytes"),
        (items("".join(f"<n{number}/>" for number in range(20_000))), "f:1", "more than 10,000 different names"),
        (
            items("".join(f"<Item xmlns:n{number}='urn:x'/>" for number in range(20_000))),
            "f:1",
            "10,000 different names",
        ),
        (items("<Item>\n<Name>Köln</Name></Item>").encode("cp1252"), "f:2:8", "invalid token"),
        ('<?xml version="1.0" encoding="nonsense"?>' + items(""), "f:1", "an encoding that is not known"),
        ('<?xml version="1.0" encoding="zlib"?>' + items(""), "f:1", "an encoding that is not known"),
        ('<?xml version="1.0" encoding="UTF-16"?>' + items(""), "f:1:31", "encoding specified in XML declaration"),
        (items("<Item sku='1' sku='2'/>"), "f:1:22", "duplicate attribute"),
        (items("\n<Item><Name></Item>"), "f:2:15", "mismatched tag"),
        (items("<Item sku='1'>\0</Item>"), "f:1:22", "invalid token"),
        (items("") + "\n" + items(""), "f:2:1", "junk after document element"),
        (items("<Item>a & b</Item>"), "f:1", "invalid token"),
        (items("<x:Item/>"), "f:1:8", "unbound prefix"),
        (items("<Item><Name>a</Name>\n<Name>b</Name></Item>"), "f:2:1", "the element Name is repeated"),
        (items("<Item><Name>a<b>c</b></Name></Item>"), "f:1:21", "the element b inside of Name"),
        ("<Item/>", "f:1:1", "the root element is Item without a namespace, and not Items"),
        ("<Items xmlns='urn:x'/>", "f:1:1", "Items of the namespace urn:x, and Items without a namespace is declared"),
        (items("<Item xmlns='urn:x'/>"), "f:1:8", "Item of the namespace urn:x"),
        (items("<Item><Name xmlns='urn:x'>a</Name></Item>"), "f:1:14", "column NAME is in no record"),
        (items("\n<Batch>\n<Item/></Batch>"), "f:3:1", "no record is at /Items/Item, where it is declared"),
        (items("<ITEM/>"), "f:1:8", "no record is at /Items/Item, where it is declared"),
        ("<html><body>log in</body></html>", "f", "an HTML page"),
        ('{"Items": []}', "f", "JSON"),
        ("SKU;NAME\n1;a\n", "f:1:4", "invalid token"),
        (b"PK\3\4" + bytes(26) + b"xl/", "f", "an Excel file"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_damaged_file_is_refused_with_its_place(data: bytes | str, where: str, says: str) -> None:
    """Each has line and column, a reason, and something to do; nothing of a value is quoted."""
    with pytest.raises(RefusedError, match=says) as refused:
        read(data, PLAIN)
    assert (refused.value.where or "").startswith(where)
    assert refused.value.hint
    assert "log in" not in str(refused.value)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (">2</Count>", ">3</Count>", "the file states 3 records and has 2"),
        (">2</Count>", ">two</Count>", "is not a number"),
        (">2</Count>", ">²</Count>", "is not a number"),
        ("<Count>2</Count>", "", "number of records that the layout declares is missing"),
        ("<Count>2</Count>", "<Count>2</Count><Count>2</Count>", "the element Count is repeated"),
    ],
)
def test_a_stated_number_of_records_is_compared(old: str, new: str, says: str) -> None:
    """A file with another number is refused at its end; one that states it is complete."""
    with pytest.raises(RefusedError, match=says):
        read(ORDERS.replace(old, new), FORM)
    assert layout(**FORM).states_rows
    assert not layout(**PLAIN).states_rows
    form = {**FORM, "count": "/Orders/@count"}
    assert read(ORDERS.replace("<Orders>", "<Orders count=' 2 '>"), form).rows() == ROWS


def test_rows_repeat_only_so_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long value around many rows, or a record with too many rows, does not fill the memory."""
    form = {"kind": "xml", "record": "/A/R", "rows": "L", "columns": {"V": "V", "H": "/A/H", "L": "L"}}
    for data in (f"<R><V>{'x' * 900}</V>{'<L/>' * 20}</R>", f"<H>{'x' * 900}</H>{'<R/>' * 20}"):
        assert read(f"<A>{data}</A>", form).height == 20
        with monkeypatch.context() as patched, pytest.raises(RefusedError, match="columns around rows"):
            patched.setattr(xml_files, "MAX_EXPLODED", 10_000)
            read(f"<A>{data}</A>", form)
    monkeypatch.setattr(xml_files, "MAX_ROWS", 10)
    with pytest.raises(RefusedError, match="a record of more than 10 rows"):
        read(f"<A><R>{'<L/>' * 20}</R></A>", form)
