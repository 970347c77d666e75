"""Cells of OpenDocument sheets are read whole, or refused with their names."""

from __future__ import annotations

import json
from io import BytesIO
from typing import Any

import pytest
from tests.unit.formats.hostile_sheets import ods, packed

from crossdock.reading.formats.limited_process import CellError
from crossdock.reading.formats.ods_sheet import is_ods_file, read_ods_sheet

ERROR = 'calcext:value-type="error" table:formula="of:=1/0"'


def answers(rows: str, sheet: str | int = 1, *, around: str = "{}", finds_errors: bool = True) -> tuple[Any, list[Any]]:
    first, *found = read_ods_sheet(BytesIO(ods(rows, around=around)), sheet, finds_errors=finds_errors)
    return first, [json.loads(row) for row in found]


def row(*cells: str, attributes: str = "") -> str:
    return f"<table:table-row {attributes}>{''.join(cells)}</table:table-row>"


def cell(content: str = "", attributes: str = "") -> str:
    return f"<table:table-cell {attributes}>{content}</table:table-cell>"


def valued(kind: str, value: str, name: str = "value", *, others: str = "", shown: str = "shown") -> str:
    attributes = f'office:value-type="{kind}" office:{name}="{value}" {others}'
    return cell(f"<text:p>{shown}</text:p>", attributes)


def text(content: str, attributes: str = "") -> str:
    return cell(content, f'office:value-type="string" {attributes}')


@pytest.mark.parametrize(
    ("found", "value"),
    [
        (valued("float", "12.50"), 12.5),
        (valued("float", "0.28999999999999998"), 0.29),  # as Excel writes it
        (valued("percentage", "0.19"), 0.19),
        (valued("currency", " 1E3 "), 1000.0),
        (valued("boolean", "true", "boolean-value"), True),
        (valued("date", "2026-11-25", "date-value"), "2026-11-25"),
        (valued("date", "2026-11-25", "date-value", shown="25.11.2026 00:00"), "2026-11-25T00:00:00"),
        (valued("date", "2026-11-25T10:00:00.500000000", "date-value"), "2026-11-25T10:00:00.500000"),
        (valued("date", "2026-11-25T10:00:00.000000000", "date-value"), "2026-11-25T10:00:00"),
        (valued("time", "PT08H15M00S", "time-value"), "08:15:00"),
        (valued("time", "PT8H0.5S", "time-value"), "08:00:00.500000"),
        (valued("time", "PT30H00M00S", "time-value"), "30:00:00"),
        (valued("time", "-P1DT2H", "time-value"), "-26:00:00"),
        (valued("time", "P1M", "time-value"), "P1M"),
        (valued("string", "stored", "string-value"), "stored"),
        (text("<text:p>one</text:p>\n<text:p>two</text:p>"), "one\ntwo"),
        (text('<text:p>a<text:tab/>b<text:line-break/>c<text:s text:c="2"/>d<text:s/>e</text:p>'), "a\tb\nc  d e"),
        (text("<text:p>x<![CDATA[ & y]]><!-- not this -->z</text:p>"), "x & yz"),
        (text("<text:p><text:span>s</text:span><text:a>l</text:a></text:p>"), "sl"),
        (text("<office:annotation><text:p>note</text:p></office:annotation><text:p>A1</text:p>"), "A1"),
        (text("<text:p>A1</text:p><draw:frame><draw:image><text:p/></draw:image></draw:frame>"), "A1"),
        (text("A1"), "A1"),
        (cell("<text:p>Important</text:p>"), "Important"),
        (text("<text:p>#1</text:p>", 'table:formula="of:=A1"'), "#1"),
    ],
)
def test_values_and_texts_are_read(found: str, value: Any) -> None:
    """The stored value counts, else the text in all its parts, without notes and pictures."""
    assert answers(row(found))[1] == [[value]]


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (valued("float", "1234567890123.4567"), "a number of more than 15 digits"),
        (valued("float", "99999999999999.9999"), "a number of more than 15 digits"),
        (valued("float", "1,5"), "no number"),
        (valued("float", "NaN"), "no number"),
        (valued("boolean", "1", "boolean-value"), "neither true nor false"),
        (cell("<text:p>5</text:p>", 'office:value-type="float"'), "a text without its value"),
        (valued("float", "0", others=ERROR, shown="#DIV/0!"), "the cell holds an error"),
        (valued("string", "", "string-value", others=ERROR, shown="#NV"), "the cell holds an error"),
        (valued("float", "0", others='table:formula="of:=1/0"', shown="Err:502"), "the cell holds an error"),
        (text("<text:p>#N/A</text:p>", 'table:formula="of:=NA()"'), "the cell holds an error"),
        (cell(attributes='table:formula="of:=1+1"'), "the formula was never calculated"),
        (cell(f'<table:table table:name="sub">{row(text("x"))}</table:table>'), "a table in a table"),
        (cell("x", 'table:number-columns-repeated="0"'), "a number of repeats"),
        (text("x", 'table:number-columns-repeated="-1"'), "a number of repeats"),
    ],
)
def test_a_cell_without_a_certain_value_is_refused(found: str, message: str) -> None:
    """With its name; errors may be declared to be empty cells."""
    with pytest.raises(CellError, match=message) as error:
        answers(row(cell(), found))
    assert error.value.cell == "Items!B1"
    if "error" in message or "formula" in message:
        assert answers(row(text("a"), found), finds_errors=False)[1] == [["a"]]


def test_blank_and_repeated_cells_have_their_places() -> None:
    """Blank rows and cells count where others follow them; rows may be in groups."""
    blank = cell(attributes='table:number-columns-repeated="2"')
    rows = row(blank, attributes='table:number-rows-repeated="2"') + "<table:table-header-rows>"
    rows += row(blank, text("a", 'table:number-columns-repeated="2"'), attributes='table:number-rows-repeated="2"')
    rows += "</table:table-header-rows>" + row(blank, attributes='table:number-rows-repeated="1048572"')
    assert answers(rows)[1] == [[], [], ["", "", "a", "a"], ["", "", "a", "a"]]
    assert answers(row(blank))[0]["empty"]


@pytest.mark.parametrize(
    ("rows", "place"),
    [
        (row(cell(attributes='table:number-columns-repeated="4294967295"'), text("x")), "MWLQKWV1"),
        (row(cell(), attributes='table:number-rows-repeated="1000000"') + row(text("x")), "A1000001"),
    ],
)
def test_a_cell_far_from_the_others_is_refused(rows: str, place: str) -> None:
    """It was lost, or took all memory."""
    with pytest.raises(CellError, match="a cell far from the others") as error:
        answers(rows)
    assert error.value.cell == f"Items!{place}"


def test_merged_cells_are_named() -> None:
    """Those that are covered, too, if the first of them does not tell; one cell alone is not merged."""
    spans = 'table:number-columns-spanned="{}" table:number-rows-spanned="{}"'
    covered = "<table:covered-table-cell/>"
    rows = row(text("a", spans.format(1, 1)), text("b", spans.format(2, 3)), covered) + row(cell(), covered, covered)
    assert answers(rows)[0]["merged"] == [((0, 1), (2, 2)), ((0, 2), (0, 2)), ((1, 1), (1, 1))]
    assert not answers(row(text("a", spans.format(1, 1))))[0]["merged"]


def test_sheets_are_chosen_by_name_or_number() -> None:
    """Hidden ones only by name; of two with one name each has its number."""
    style = (
        '<style:style style:name="h" style:family="table"><style:table-properties table:display="false"/></style:style>'
    )
    hidden = f'<table:table table:name="Hidden" table:style-name="h">{row(text("h"))}</table:table>'
    around = style + hidden + "{}" + f'<table:table table:name="Items">{row(text("second"))}</table:table>'
    found = [answers(row(text("first")), sheet, around=around) for sheet in (1, 2, "Hidden")]
    assert [rows for _, rows in found] == [[["first"]], [["second"]], [["h"]]]
    assert found[0][0] == {"title": "Items", "merged": [], "visible": 2, "hidden": 1, "empty": False}
    for sheet, message in ((3, "has 2 visible sheets"), ("Other", "no sheet 'Other'"), ("Items", "two sheets 'Items'")):
        with pytest.raises(CellError, match=message):
            answers(row(text("first")), sheet, around=around)


def test_an_encrypted_file_is_recognized() -> None:
    """By its manifest, which stays readable."""
    kind = b"application/vnd.oasis.opendocument.spreadsheet"
    file = BytesIO(
        packed({"mimetype": kind, "META-INF/manifest.xml": b"<m><m:encryption-data/></m>", "content.xml": b"?"})
    )
    assert is_ods_file(file)
    with pytest.raises(CellError, match="is protected by a password"):
        list(read_ods_sheet(file, 1, finds_errors=True))
