"""Cells without a certain value are found in the parts of an xlsx file."""

from __future__ import annotations

import zipfile
from io import BytesIO

import pytest

from crossdock.reading.formats.limited_process import CellError
from crossdock.reading.formats.xlsx_and_xlsb_archives import (
    cell_name,
    check_and_find_formatted_cells,
    raise_if_archive_damaged_or_too_large,
)

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
RELATED = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
WORKBOOK = (
    f'<x:workbook xmlns:x="{MAIN}" xmlns:r="{RELATED}"><x:sheets>'
    '<x:sheet name="Other" sheetId="1" r:id="rId1"/><x:sheet name="Items" sheetId="2" r:id="rId2"/>'
    "</x:sheets></x:workbook>"
)
RELATIONS = '<Relationships><Relationship Id="rId2" Target="/xl/worksheets/second.xml"/></Relationships>'


def archive(rows: str, **others: str) -> BytesIO:
    file = BytesIO()
    sheet = f'<x:worksheet xmlns:x="{MAIN}"><x:sheetData>{rows}</x:sheetData></x:worksheet>'
    parts = {"xl/workbook.xml": WORKBOOK, "xl/_rels/workbook.xml.rels": RELATIONS, "xl/worksheets/second.xml": sheet}
    with zipfile.ZipFile(file, "w") as packed:
        for name, text in {**parts, **others}.items():
            packed.writestr(name, text)
    return file


@pytest.mark.parametrize(
    ("rows", "cell"),
    [
        ('<x:row r="7"><x:c r="B7" t="e"><x:v>#N/A</x:v></x:c></x:row>', "B7"),
        ("<x:row><x:c/></x:row><x:row><x:c/><x:c><x:f>1+1</x:f></x:c></x:row>", "B2"),
        ("<x:row><x:c><x:f>1+1</x:f><x:v/></x:c></x:row>", "A1"),
    ],
)
def test_errors_and_missing_results_are_found(rows: str, cell: str) -> None:
    """With any prefix of the namespace; cells and rows without names follow the ones before."""
    with pytest.raises(CellError) as found:
        check_and_find_formatted_cells(archive(rows), "Items", finds_errors=True)
    assert found.value.cell == cell


@pytest.mark.parametrize(
    ("rows", "place"),
    [
        ('<x:row r="2"/><x:row r="2"/>', "row 2"),
        ('<x:row r="3"/><x:row r="2"/>', "row 2"),
        ('<x:row r="2"><x:c r="B2"/><x:c r="B2"/></x:row>', "B2"),
        ('<x:row r="2"><x:c r="B2"/><x:c r="A2"/></x:row>', "A2"),
        ('<x:row r="2"><x:c r="A3"/></x:row>', "A3"),
        ('<x:row r="1"><x:c r="B1"/><x:c/><x:c r="C1"/></x:row>', "C1"),
    ],
)
def test_what_is_there_twice_is_found(rows: str, place: str) -> None:
    """Its reader keeps the last of two rows or cells with one number, and says nothing."""
    with pytest.raises(CellError, match="not in their order, or one is there twice") as found:
        check_and_find_formatted_cells(archive(rows), "Items", finds_errors=False)
    assert found.value.cell == place


@pytest.mark.parametrize("value", [" 1 ", "\n1\n", "1.0", "+1", "-1", "x"])
def test_a_shared_text_has_a_whole_number(value: str) -> None:
    """Its reader takes any other number for that of the first text of the file, such as the name of a column."""
    rows = f'<x:row><x:c t="s"><x:v>0</x:v></x:c><x:c t="s"><x:v>{value}</x:v></x:c></x:row>'
    with pytest.raises(CellError, match="the number of a shared text") as found:
        check_and_find_formatted_cells(archive(rows), "Items", finds_errors=False)
    assert found.value.cell == "B1"
    rows = '<x:row><x:c t="s"><x:v>12</x:v></x:c><x:c t="s"><x:v/></x:c><x:c t="s"/></x:row>'
    assert check_and_find_formatted_cells(archive(rows), "Items", finds_errors=True) is not None


STYLES = (
    f'<styleSheet xmlns="{MAIN}"><numFmts><numFmt numFmtId="164" formatCode="[$-407]d/m/yy"/>'
    '<numFmt numFmtId="165" formatCode="[hh]:mm"/><numFmt numFmtId="166" formatCode="0.00&quot; days&quot;\\h"/>'
    '</numFmts><cellXfs><xf/><xf numFmtId="164"/><xf numFmtId="20"/><xf numFmtId="165"/><xf numFmtId="166"/></cellXfs>'
    "</styleSheet>"
)


@pytest.mark.parametrize(
    ("style", "value", "message"),
    [
        (0, "99999999999999.9999", "a number of more than 15 digits"),
        (4, "12345678.1234567891", "a number of more than 15 digits"),
        (0, "<![CDATA[5]]>", "a comment or a CDATA section"),
        (0, "5<!-- -->6", "a comment or a CDATA section"),
        (1, "-0.5", "a date or time before the first one"),
        (2, "-1", "a date or time before the first one"),
        (3, "1E9", "a duration of 999,999,999 days or more"),
        (0, "0.28999999999999998", None),  # as Excel writes 0.29
        (0, "799999.99999999988", None),  # the rest of a calculation
        (1, "46351.423726851855", None),
        (3, "-0.5", None),
        (4, "-0.5", None),
    ],
)
def test_values_that_would_be_changed_are_found(style: int, value: str, message: str | None) -> None:
    """Their reader rounds numbers, passes over parts of values and signs of dates, and fails at long durations."""
    file = archive(f'<x:row><x:c s="{style}"><x:v>{value}</x:v></x:c></x:row>', **{"xl/styles.xml": STYLES})
    if message is None:
        assert check_and_find_formatted_cells(file, "Items", finds_errors=False)
        return
    with pytest.raises(CellError, match=message) as found:
        check_and_find_formatted_cells(file, "Items", finds_errors=False)
    assert found.value.cell == "A1"


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_parts_with_one_name_are_found() -> None:
    """Which of them a reader takes is its own choice."""
    file = archive("")
    with zipfile.ZipFile(file, "a") as packed:
        packed.writestr("xl/workbook.xml", WORKBOOK)
    with pytest.raises(CellError, match="two parts with the same name"):
        raise_if_archive_damaged_or_too_large(file)


def test_values_and_empty_texts_are_right() -> None:
    """A formula may give an empty text."""
    rows = '<x:row><x:c><x:f>1+1</x:f><x:v>2</x:v></x:c><x:c t="str"><x:f>A1</x:f><x:v/></x:c><x:c/></x:row>'
    assert check_and_find_formatted_cells(archive(rows), "Items", finds_errors=True) is not None


def test_a_missing_part_is_found() -> None:
    """The sheet is listed, and its cells are not there."""
    with pytest.raises(CellError, match="a part of the file is missing"):
        check_and_find_formatted_cells(archive(""), "Other", finds_errors=True)


def test_other_files_cannot_be_checked() -> None:
    """Neither other archives nor other files."""
    file = BytesIO()
    with zipfile.ZipFile(file, "w") as packed:
        packed.writestr("content.xml", "<a/>")
    raise_if_archive_damaged_or_too_large(file)
    assert not check_and_find_formatted_cells(file, "Items", finds_errors=True)
    raise_if_archive_damaged_or_too_large(BytesIO(b"\xd0\xcf\x11\xe0"))
    assert not check_and_find_formatted_cells(BytesIO(b"\xd0\xcf\x11\xe0"), "Items", finds_errors=True)


@pytest.mark.parametrize(("column", "name"), [(1, "A3"), (26, "Z3"), (27, "AA3"), (702, "ZZ3"), (703, "AAA3")])
def test_cells_have_the_names_of_spreadsheets(column: int, name: str) -> None:
    """Columns are letters, in base 26 without a zero."""
    assert cell_name(3, column) == name
