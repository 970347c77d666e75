"""A guess of a layout reads a file as its true layout does, says what it rests on, and is wrong about no usual file."""

from __future__ import annotations

import gzip
import io
import json
import os
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from openpyxl import Workbook
from tests.examples import examples
from tests.unit.formats.layouts import GOOD, ORDERS, layout, lines

from crossdock.errors import CrossdockError
from crossdock.reading.formats.file_formats import read_rows
from crossdock.reading.formats.guesses import file_guess
from crossdock.reading.formats.guesses.file_guess import format_guess_as_stream_yaml, guess_file, guess_value_form
from crossdock.values.raw_rows_and_records import LINE

ITEMS = "".join(f"{n:04};Größe {n};{n}.000,50;{n % 28 + 1:02}.11.2026\r\n" for n in range(1, 60))
WORDS = ["BOLT", "LONG SCREW", "NUT", "WASHER M8", "RING"]
FIXED = [f"{n:08}{WORDS[n % 5]:<12} {n * 100:07}" for n in range(40)]
COLUMNS = {"A": {"at": 1, "length": 8}, "B": {"at": 9, "length": 13}, "C": {"at": 22, "length": 7}}
POSITIONS = {"kind": "fixed_width", "columns": COLUMNS}
X12 = (
    "ISA*00*          *00*          *ZZ*SENDER         *ZZ*RECEIVER       *261101*1200*U*00401*000000001*0*P*>~"
    "GS*PO*S*R*20261101*1200*1*X*004010~ST*850*0001~BEG*00*NE*PO1**20261101~PO1*1*5*EA*1.50**SK*0017~CTT*1~SE*5*0001~"
    "GE*1*1~IEA*1*000000001~"
)
EDIFACT = "UNA:+.? 'UNB+UNOC:3+S+R+261101:1200+1'UNH+1+DESADV:D:96A:UN'BGM+351+D1+9'UNT+3+1'UNZ+1+1'"
XML = (
    '<Orders xmlns="urn:o" count="2"><Sent>2026-11-01</Sent><Order no="1"><City>X</City><Line qty="1"><Sku>a</Sku>'
    '</Line><Line qty="2"><Sku>b</Sku></Line></Order><Order no="2"><City>Y</City></Order></Orders>'
)
TABLE = pl.DataFrame(
    {"sku": ["0017", "0018"], "price": [Decimal("1.50"), None], "lines": [[1], []], "weight": [1.5, 2.0]}
)


def words(records: list[bytes]) -> bytes:
    return b"".join((len(each) + 4).to_bytes(2, "big") + b"\0\0" + each for each in records)


def workbook() -> bytes:
    book, data = Workbook(), io.BytesIO()
    for row in (["Stock list"], ["SKU", "QTY"], ["0017", 1], ["0018", 2]):
        book.worksheets[0].append(row)
    book.create_sheet("Other")
    book.save(data)
    return data.getvalue()


def written(write: str) -> bytes:
    data = io.BytesIO()
    getattr(TABLE, write)(data)
    return data.getvalue()


EBCDIC = [each.encode("cp037") for each in FIXED]
CASES: dict[str, tuple[bytes, dict[str, Any]]] = {
    "semicolons.csv": (
        f"Artikel;Text;Preis;Datum\r\n{ITEMS}".encode("cp1252"), {"delimiter": ";", "encoding": "cp1252"},
    ),
    "utf16.txt": (("Artikel\tText\n" + "1\tö\n" * 9).encode("utf-16"), {"delimiter": "tab", "encoding": "utf-16"}),
    "packed.csv.gz": (gzip.compress(b'\xef\xbb\xbfid,note\n1,"a\nb, c"\n2,d\n'), {}),
    "plain_quotes.tsv": (b'id\tnote\n1\t"x"\n2\ta "b" c\n', {"delimiter": "tab", "quote": None}),
    "no_header.csv": (
        b"0017|Bolt|9.50\n0018|Nut|1.00\n", {"delimiter": "|", "header": False, "names": ["A", "B", "C"]},
    ),
    "preamble.csv": (b"Export of 2026-11-01\nid;name\n1;a\n2;b\n3;c\n", {"delimiter": ";", "skip_lines": 1}),
    "trailer.csv": (b"id,name\n1,a\n2,b\nTRL,2,x\n", {"trailer": {"prefix": "TRL,", "count": 1}}),
    "types.txt": (
        b"HDR|20261101\nITM|0017|9.50|Bolt\nITM|0018|2.50|Nut\nTRL|2|12.00\n",
        {
            "delimiter": "|", "records": "ITM",
            "record_types": {
                "HDR": {"names": ["A", "B"]}, "ITM": {"names": ["T", "SKU", "P", "N"]},
                "TRL": {"names": ["X", "Y", "Z"]},
            },
        },
    ),
    "short_positions.txt": (
        b"0001  Bolt      12\n0002  Screw\n0003  Nut       7\n",
        {
            "kind": "fixed_width", "short_lines": "pad",
            "columns": {"A": {"at": 1, "length": 6}, "B": {"at": 7, "length": 10}, "C": {"at": 17, "length": 2}},
        },
    ),
    "japanese.csv": ("番号,名前\n1,山田太郎\n2,鈴木\n".encode("shift_jis"), {"encoding": "shift_jis"}),
    "positions.txt": ("".join(f"{each}\n" for each in FIXED).encode(), POSITIONS),
    "fixed_types.txt": (lines(*GOOD).encode(), ORDERS),
    "mainframe.dat": (b"".join(EBCDIC), {**POSITIONS, "encoding": "cp037", "line_end": "none", "length": 28}),
    "nel.dat": (b"".join(each + b"\x15" for each in EBCDIC), {**POSITIONS, "encoding": "cp037", "line_end": "nel"}),
    "words.dat": (words(EBCDIC), {**POSITIONS, "encoding": "cp037", "line_end": "rdw"}),
    "blocks.dat": (
        (len(words(EBCDIC)) + 4).to_bytes(2, "big") + b"\0\0" + words(EBCDIC),
        {**POSITIONS, "encoding": "cp037", "line_end": "bdw"},
    ),
    "objects.jsonl": (b'{"id": 1, "at": {"city": "X"}}\n{"id": 2, "l": [1]}\n', {"kind": "json_lines"}),
    "document.json": (
        b'{"meta": {"total": 2, "tags": [1]}, "a.b": {"items": [{"id": "x"}, {"id": "y", "l": [{}]}]}}',
        {"kind": "json", "records": "/a.b/items", "count": "meta.total"},
    ),
    "list.json": (b'[{"id": "1"},\n {"id": "2"}]', {"kind": "json"}),
    "orders.xml": (
        XML.encode(),
        {
            "kind": "xml", "record": "/Orders/Order", "rows": "Line", "namespaces": {"": "urn:o"},
            "columns": {"NO": "@no", "CITY": "City", "QTY": "Line/@qty", "SKU": "Line/Sku"},
        },
    ),
    "orders.edi": (X12.encode(), {"kind": "x12", "layout": "x12/850"}),
    "notice.edi": (EDIFACT.encode(), {"kind": "edifact", "layout": "edifact/DESADV"}),
    "stock.xlsx": (workbook(), {"kind": "sheet", "skip_rows": 1}),
    "table.parquet": (
        written("write_parquet"), {"kind": "parquet", "columns": ["sku", "price", "lines"], "objects": True},
    ),
    "table.arrow": (written("write_ipc"), {"kind": "arrow", "columns": ["sku", "price", "lines"], "objects": True}),
}  # fmt: skip


def cells_of(path: Path, form: Any) -> list[tuple[Any, ...]]:
    return pl.concat(read_rows(path, form, name=path.name)).drop(LINE).rows()


def file(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("name", CASES)
def test_a_guess_reads_what_the_true_layout_reads(tmp_path: Path, name: str) -> None:
    """In every format, whatever the columns are called."""
    data, true = CASES[name]
    path = file(tmp_path, name, data)
    found = guess_file(path)
    form = layout(**found.guess.format)
    expected = cells_of(path, layout(**true))
    got = cells_of(path, form)
    if name == "fixed_types.txt":  # no file says what parents and signs are, nor where numbers meet
        assert [row[0] for row in got] == [row[1] for row in expected]
        return
    assert [tuple(map(str.strip, row)) for row in got] == expected
    assert found.remarks[0].startswith("The whole file is read so: ")
    assert all(len(cells) or form for cells, form in found.columns.items())


DELIMITERS = {
    "id;has;cost;group\n" + "".join(f"{n};;62.25;['345', '1']\n" for n in range(6)): ";",
    'Country;Location;Count;Date\nChina;"35.86;104.19";97100,7;04/07/20\nChina;"35.8;104.1";97100,7;04/07/20\n': ";",
    "item1,item2,2022-03-28 17:24:10,6\nitem1,item2,2022-03-28 17:24:11,7\n": ",",
    "Quarter,Completions NEW,%YoY Completions \n2001 Q1,1,3%\n2001 Q2,1,3%\n": ",",
    "Product,Quantity,Price\nBobby 'Tables' XKCD,1,42\n": ",",
    'id,text,ok\n1,"a, b",1\n2,"this \'\'bug\'\', c",1\n3,"this ""bug"", d",0\n': ",",
    '"a"|"b"\n"Private Company"|"Point Rd"\n"Other One"|"Long St"\n': "|",
    "bytearray(b'fake'),20:53:06,2019-09-01T19:28:21\nbytearray(b'fake'),19:33:15,2005-02-15T19:10:31\n": ",",
    '"{""a"": ""b"", ""c"":""d""}",13:31:38,06:00:04\n"{""a"": ""b"", ""c"":""d""}",22:13:29,14:20:11\n': ",",
    "A&|B&|C\n1&|2&|3\n4&|5&|6\n": "&|",
    "c0\nv0\na;b\n": "\t",
    "name\nPedro\nMaria\n": "\t",
}
"""Tables at which sniffers of other programs are wrong, each with its delimiter; a tab where there is none."""


def test_texts_inside_of_fields_are_no_delimiters(tmp_path: Path) -> None:
    """Lists, times, decimal commas, quotes and apostrophes; no row is taken for a preamble."""
    for text, delimiter in DELIMITERS.items():
        path = file(tmp_path, "t.csv", text.encode())
        found = guess_file(path)
        assert found.guess.format["delimiter"] == delimiter, text
        rows = cells_of(path, layout(**found.guess.format))
        assert len(rows) == text.count("\n") - found.guess.format["header"], text


def test_a_header_is_told_from_rows(tmp_path: Path) -> None:
    """By values of another kind below it, or by its style; with names that are missing it is passed over."""
    for text, header in {
        "SKU,NAME\n0017,Bolt\n": True, "name,city\nAnna,Bonn\nJan,Trier\n": True, "0017,Bolt\n0018,Nut\n": False,
        "Anna,Bonn\nJan,Trier\n": False,
    }.items():  # fmt: skip
        assert guess_file(file(tmp_path, "t.csv", text.encode())).guess.format["header"] is header, text
    found = guess_file(file(tmp_path, "t.csv", b"SKU;NAME;\n1;a;\n2;b;\n")).guess.format
    assert (found["skip_lines"], found["header"], found["names"]) == (1, False, ["SKU", "NAME", "F3"])
    found = guess_file(file(tmp_path, "t.csv", b"sep=;\nSKU;NAME\n1;a\n2;b\n")).guess.format
    assert (found["skip_lines"], found["header"]) == (1, True)
    assert guess_file(file(tmp_path, "t.csv", b"a;b\n1;2\n\n")).guess.format["blank_lines"] == "refuse"


FORMS: dict[tuple[str, ...], dict[str, Any]] = {
    ("0017", "0018"): {},
    ("1", "-2", ""): {"as": "integer"},
    ("1.50", "2"): {"as": "decimal"},
    ("1,50", "-2,25"): {"as": "decimal", "decimal_mark": ","},
    ("1.234,50", "2,25"): {"as": "decimal", "decimal_mark": ",", "thousands": "."},
    ("1,234.50", "2.25"): {"as": "decimal", "thousands": ","},
    ("1'234.50", "2.25"): {"as": "decimal", "thousands": "'"},
    ("12.50-", "3.00"): {"as": "decimal", "sign": "trailing"},
    ("(12.50)", "3.00"): {"as": "decimal", "sign": "parentheses"},
    ("2026-11-01", "2026-12-31"): {"as": "date"},
    ("20261101", "20261231"): {"as": "date", "format": "%Y%m%d"},
    ("01.11.2026", "31.12.2026"): {"as": "date", "format": "%d.%m.%Y"},
    ("11/25/2026", "11/01/2026"): {"as": "date", "format": "%m/%d/%Y"},
    ("2026-11-01T12:00:00Z", "2026-11-01T12:00:00.5+01:00"): {"as": "instant"},
    ("Y", "N"): {"as": "boolean", "true_text": "Y", "false_text": "N"},
    ("true", "false"): {"as": "boolean"},
    ("12345678", "99999999"): {"as": "integer"},
    ("Bolt", "12"): {},
}


def test_the_forms_of_values_are_found() -> None:
    """Of dates, numbers and truth values; identifiers with zeros stay texts, and what may be two things is told."""
    for cells, keys in FORMS.items():
        assert guess_value_form(cells).keys == keys, cells
    assert "%m/%d/%Y" in guess_value_form(["01/02/2026", "03/04/2026"]).unsure
    assert "thousands" in guess_value_form(["1.234", "2.345"]).unsure
    assert guess_value_form([*["1"] * 19, "n/a"]).basis == "19 of 20 values"
    assert "empty: [TEXT]" in guess_value_form([*["1"] * 19, "n/a"]).unsure


def test_identifiers_are_texts(tmp_path: Path) -> None:
    """Also those of digits, by the names of their columns, of which one that is unique may be the key."""
    path = file(tmp_path, "t.csv", b"paid,CustomerNo,LOTNO,order_id,PRICE\n1,5,7,8,9\n2,5,8,9,10\n")
    found = guess_file(path)
    assert {name: form.keys.get("as") for name, form in found.columns.items()} == {
        "paid": "integer", "CustomerNo": None, "LOTNO": None, "order_id": None, "PRICE": "integer",
    }  # fmt: skip
    assert (found.key, found.key_basis) == ("LOTNO", "all 2 values differ")
    prose = b"just some words\nthat are no table at all\nthird line\n"
    assert guess_file(file(tmp_path, "t.txt", prose)).guess.format["names"] == ["F1"]
    doctype = b'<!DOCTYPE r [<!ENTITY a "b">]><r><i><n>1</n></i><i><n>2</n></i></r>'
    assert "document type" in guess_file(file(tmp_path, "t.xml", doctype)).guess.remarks[0]
    assert guess_file(file(tmp_path, "t.csv", b"id,a\n1,x\n")).key_basis == "unsure: one row shows nothing"


def test_a_guess_says_what_it_rests_on_and_shows_no_value(tmp_path: Path) -> None:
    """Counts beside each line, what else it may be, and what is refused."""
    path = file(tmp_path, "ITEMS_20261101.csv", f"Artikel;Text;Preis;Datum\n{ITEMS}9;9\n".encode("cp850"))
    text = format_guess_as_stream_yaml(guess_file(path))
    assert '          delimiter: ";"   # 60 of 61 rows have 4 fields\n' in text
    assert "          encoding: cp850   # it is not UTF-8; 118 of 118 bytes beyond ASCII" in text
    assert "# unsure: it may be cp1252, latin-1" in text
    assert "1 of 61 rows have fewer fields" in text
    assert "# short_lines: pad   # would read them" in text
    assert "is refused after " in text
    assert "ITEMS_*.csv" in text
    assert "Größe" not in text


def test_only_the_first_part_of_a_file_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which may end in the middle of a row, a character or an element."""
    monkeypatch.setattr(file_guess, "SAMPLE_BYTES", 301)
    monkeypatch.setattr(file_guess, "_MOST_ROWS", 50)
    many = "id;name\n" + "".join(f"{n};ö{n}\n" for n in range(100_000))
    found = guess_file(file(tmp_path, "t.csv", many.encode()))
    assert found.guess.format == {"delimiter": ";", "encoding": "utf-8", "header": True}
    assert found.remarks[0] == "The first 50 rows are read so; the others were not looked at."
    objects = [{"id": n, "note": "ö" * 9} for n in range(200)]
    found = guess_file(file(tmp_path, "t.json", json.dumps({"data": objects}).encode()))
    assert found.guess.format == {"kind": "json", "records": "data"}
    xml = "<r>" + "".join(f"<i><n>ö{n}</n></i>" for n in range(200)) + "</r>"
    found = guess_file(file(tmp_path, "t.xml", xml.encode()))
    assert found.guess.format == {"kind": "xml", "record": "/r/i", "columns": {"n": "n"}}


def test_what_is_no_file_of_a_known_kind_is_refused(tmp_path: Path) -> None:
    """Nothing, bytes, a PDF, a pipe and a device, each with what to do."""
    os.mkfifo(tmp_path / "pipe")
    for path, says in {
        file(tmp_path, "empty", b""): "the file is empty",
        file(tmp_path, "bytes", bytes(range(256)) * 9): "is neither text nor a file of a known kind",
        file(tmp_path, "a.pdf", b"%PDF-1.4 xx"): "the file is a PDF document",
        file(tmp_path, "a.json", b"[[1, 2], [3, 4]]"): "is JSON without a list of objects",
        file(tmp_path, "cut.parquet", written("write_parquet")[:-9]): "the file has no footer",
        tmp_path / "pipe": "it is not a regular file",
        Path("/dev/zero"): "it is not a regular file",
    }.items():
        with pytest.raises(CrossdockError, match=says) as error:
            guess_file(path)
        assert error.value.hint


_pieces = st.sampled_from(
    [*"\n\r;,|\t\"'{}[]:<>/ \x15\x00@9A", '{"a":', "<a>", "</a>", "ISA*00*", "UNB+UNOC:3+", "ST*850*", "\x85", "ö", "é"]
) | st.text(max_size=5)


@settings(max_examples=examples(500), deadline=None)
@given(pieces=st.lists(_pieces, max_size=40), encoding=st.sampled_from(["utf-8", "cp1252", "utf-16", "cp037"]))
def test_any_text_has_a_guess_or_is_refused(pieces: list[str], encoding: str, tmp_path_factory: Any) -> None:
    """With an error of ours; and a guess is YAML of one format, whatever names are in it."""
    path = tmp_path_factory.mktemp("guess") / "t\n.txt"
    path.write_bytes("".join(pieces).encode(encoding, "replace"))
    with suppress(CrossdockError):
        found = guess_file(path)
        stream = yaml.safe_load(format_guess_as_stream_yaml(found))["connections"]["source"]["streams"]["records"]
        assert stream["format"] == found.guess.format
        assert stream["key"] == [found.key]
