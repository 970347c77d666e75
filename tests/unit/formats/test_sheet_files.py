"""Sheets that openpyxl writes are read as text, and cells without a certain value are refused with their names."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from io import BytesIO
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openpyxl import Workbook
from openpyxl.worksheet.table import Table
from openpyxl.worksheet.worksheet import Worksheet
from pydantic import ValidationError
from tests.examples import examples
from tests.unit.formats.hostile_sheets import ods, xls, xls_number, xlsb, xlsb_number, xlsb_row
from tests.unit.formats.layouts import Content, layout, read

from crossdock.errors import RefusedError
from crossdock.reading.formats.file_formats import LeniencyCounts, may_be_truncated, read_rows, read_rows_at_lines
from crossdock.reading.formats.xlsx_and_xlsb_archives import add_leading_zeros_of_format, parse_leading_zeros_format

SHEET: dict[str, Any] = {"kind": "sheet"}


def written(rows: list[list[Any]], change: Callable[[Worksheet], object] = lambda _: None, **sheets: str) -> bytes:
    """An xlsx file with these rows; *sheets* are others, by name, with their state."""
    workbook = Workbook()
    sheet = workbook.worksheets[0]
    sheet.title = "Items"
    for row in rows:
        sheet.append(row)
    change(sheet)
    for title, state in sheets.items():
        other = workbook.create_sheet(title, 0)
        other.sheet_state = state
        other.append([title])
        other.append(["x"])
    file = BytesIO()
    workbook.save(file)
    return file.getvalue()


def unpacked(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(parts: dict[str, bytes]) -> bytes:
    file = BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return file.getvalue()


def test_cells_become_text() -> None:
    """Identifiers stay as they are, whole numbers have no point, and times are ISO 8601."""
    row = [
        "0017",
        17,
        12.34,
        5.0,
        1e-7,
        date(2026, 1, 2),
        datetime.fromisoformat("2026-01-02T03:04:05"),
        time(3, 4),
        True,
        None,
    ]
    names = [f"C{number}" for number in range(len(row))]
    found = read(written([names, row, [*row[:-1], timedelta(hours=30)]]), SHEET)
    text = "0017", "17", "12.34", "5", "0.0000001", "2026-01-02", "2026-01-02T03:04:05", "03:04:00", "TRUE"
    assert found.rows() == [(*text, "", 2), (*text, "30:00:00", 3)]


@pytest.mark.parametrize("config", [{}, {"leading_zeros": False}])
def test_midnight_is_a_time_where_the_number_format_shows_one(config: dict[str, Any]) -> None:
    """Its cell has the number of a day, and the number format decides which of the two it is."""
    formats = {
        "dd.mm.yyyy hh:mm:ss": "2026-01-06T00:00:00", "m/d/yy h:mm": "2026-01-06T00:00:00",
        'd" h "mmmm': "2026-01-06", "yyyy-mm-dd": "2026-01-06", "mm-dd-yy": "2026-01-06",
    }  # fmt: skip

    def fill(sheet: Worksheet) -> None:
        for row, number_format in enumerate(formats, 2):
            sheet.cell(row, 1, datetime.fromisoformat("2026-01-06T00:00:00")).number_format = number_format

    assert [row[0] for row in read(written([["AT"]], fill), {**SHEET, **config}).rows()] == list(formats.values())


def test_the_sheet_is_chosen_by_name_or_number() -> None:
    """Hidden sheets are not counted, and are only read by name."""
    data = written([["SKU"], ["0017"]], hidden="hidden", other="visible")
    assert read(data, {**SHEET, "sheet": 2}).rows() == [("0017", 2)]
    assert read(data, {**SHEET, "sheet": "Items"}).rows() == [("0017", 2)]
    assert read(data, {**SHEET, "sheet": "hidden"}).rows() == [("x", 2)]
    for sheet, message in ((3, "has 2 visible sheets"), ("Nowhere", "no sheet 'Nowhere'")):
        with pytest.raises(RefusedError, match=message):
            read(data, {**SHEET, "sheet": sheet})


def test_rows_before_the_header_and_empty_ones_at_the_end_are_left_out() -> None:
    """A report has a title, and formatted cells after its end."""
    data = written([["Stock of 2 January"], ["SKU", "QTY", None], ["0017", 3], ["", ""], [None]])
    assert read(data, {**SHEET, "skip_rows": 1}).rows() == [("0017", "3", 3)]
    found = read(data, {**SHEET, "skip_rows": 2, "header": False, "names": ["A", "B"]}, batch_rows=1)
    assert found.rows() == [("0017", "3", 3)]
    content, form = Content(data), layout(**SHEET, skip_rows=1)
    assert [frame.rows() for frame in read_rows_at_lines(content, form, [3], name="f")] == [[("0017", "3", 3)]]
    assert not may_be_truncated(content, form)


@pytest.mark.parametrize("blank", [1, 3])
def test_blank_first_rows_are_counted_once(blank: int) -> None:
    """skip_rows, leading zeros, messages and the numbers of rows mean the rows that the spreadsheet program shows."""

    def fill(sheet: Worksheet, *others: tuple[int, int]) -> None:
        for row, column in ((blank + 1, 1), (blank + 2, 1), *others):
            sheet.cell(row, column, 17 if row > blank + 1 else "SKU").number_format = "00000"

    config = {**SHEET, "skip_rows": blank}
    assert read(written([], fill), config).rows() == [("00017", blank + 2)]
    without = {**config, "header": False, "names": ["A", "B"], "error_cells": "empty"}
    assert read(xls(xls_number(blank, 1)), without).rows() == [("", "17", blank + 1)]
    with pytest.raises(RefusedError, match=f"^f:Items!B{blank + 2}: a cell beside the columns"):
        read(written([], lambda sheet: fill(sheet, (blank + 2, 2))), config)


HEADER: list[Any] = ["SKU", "QTY"]


@pytest.mark.parametrize(
    ("rows", "config", "expected"),
    [
        ([HEADER, ["a", "=1/0"]], {}, "f:Items!B2: the formula was never calculated"),
        ([HEADER, ["a", "#N/A"]], {}, "f:Items!B2: the cell holds an error"),
        ([HEADER, ["a", 1], [], ["b", 2]], {}, "f:Items!A3: a blank row"),
        ([HEADER, ["a", 1], HEADER, ["b", 2]], {}, "f:Items!A3: the header again"),
        ([HEADER, ["a", 1], HEADER[::-1], [2, "b"]], {}, "f:Items!A3: the header again"),
        ([HEADER, ["a", 1, "x"]], {}, "f:Items!C2: a cell beside the columns"),
        ([["SKU", None, "QTY"], ["a", 1, 2]], {}, "f:Items!A1: header: column 2 has no name"),
        ([["SKU", "SKU"], ["a", 1]], {}, "f:Items!A1: header: columns 1 and 2"),
        ([[]], {}, "f:Items!A1: the header is empty"),
        ([HEADER, ["a", 1]], {"names": ["SKU", "PRICE"]}, "f:Items!A1: the header is not the declared one"),
        ([HEADER, ["a", 1e15]], {}, "f:Items!B2: a number of more than 15 digits"),
        ([HEADER, ["a", 1234567890123.4567]], {"leading_zeros": False}, "f:Items!B2: a number of more than 15 digits"),
    ],
)
def test_a_cell_whose_meaning_is_not_certain_is_refused(
    rows: list[list[Any]], config: dict[str, Any], expected: str
) -> None:
    """With the name of the cell, and without its text."""
    with pytest.raises(RefusedError, match=f"^{expected}"):
        read(written(rows), {**SHEET, **config})


def test_merged_cells_are_refused() -> None:
    """What the empty ones among them mean is not known; above the header they do not matter."""
    data = written([["Stock", None], HEADER, ["a", 1], ["b", 2]], lambda sheet: sheet.merge_cells("A1:B1"))
    assert read(data, {**SHEET, "skip_rows": 1}).height == 2
    data = written([HEADER, ["a", 1], [None, 2]], lambda sheet: sheet.merge_cells("A2:A3"))
    with pytest.raises(RefusedError, match="^f:Items!A2: merged cells"):
        read(data, SHEET)
    cells = b"".join(xlsb_row(row) + xlsb_number(0) for row in range(3))
    config = {**SHEET, "skip_rows": 1, "header": False, "names": ["A"], "error_cells": "empty"}
    assert read(xlsb(cells, merged=(0, 0, 0, 1)), config).height == 2
    with pytest.raises(RefusedError, match="^f:Items!B2: merged cells"):
        read(xlsb(cells, merged=(1, 2, 1, 1)), config)


def test_errors_may_be_read_as_empty_cells() -> None:
    """Only if that is declared."""
    data = written([HEADER, ["a", "#N/A"], ["b", "=1+1"]])
    assert read(data, {**SHEET, "error_cells": "empty"})["QTY"].to_list() == ["", ""]


def test_two_sheets_with_one_name_are_refused() -> None:
    """The library that reads them would read the first one twice."""
    parts = unpacked(written([HEADER, ["a", 1]], Items2="visible"))
    parts["xl/workbook.xml"] = parts["xl/workbook.xml"].replace(b'"Items2"', b'"Items"')
    with pytest.raises(RefusedError, match="^f: there are two sheets 'Items'"):
        read(packed(parts), {**SHEET, "sheet": "*"})


def test_a_number_that_the_old_format_holds_rounded_is_refused() -> None:
    """The rest of a calculation is not: no price has so many decimals."""
    config = {**SHEET, "header": False, "names": ["A"], "error_cells": "empty"}
    assert read(xls(xls_number(0, 0, 0.1 + 0.2)), config).rows() == [("0.30000000000000004", 1)]
    with pytest.raises(RefusedError, match="^f:Items!A1: a number of more than 15 digits"):
        read(xls(xls_number(0, 0, 1234567890123.4567)), config)


def test_a_result_that_was_stored_is_read() -> None:
    """Of a formula, its stored value counts."""
    parts = unpacked(written([HEADER, ["a", "=1+1"]]))
    sheet = parts["xl/worksheets/sheet1.xml"].replace(b"<f>1+1</f><v></v>", b"<f>1+1</f><v>2</v>")
    sheet = sheet.replace(b"<f>1+1</f><v />", b"<f>1+1</f><v>2</v>").replace(b"<f>1+1</f><v/>", b"<f>1+1</f><v>2</v>")
    assert read(packed({**parts, "xl/worksheets/sheet1.xml": sheet}), SHEET)["QTY"].to_list() == ["2"]


def test_every_damaged_file_is_refused() -> None:
    """Cut anywhere, with a wrong byte, empty, or no sheet file at all."""
    data = written([HEADER, *([f"P{number}", number] for number in range(200))])
    for part in (b"", data[:100], data[: len(data) // 2], data[:-1], b"SKU,QTY\n0017,1\n"):
        with pytest.raises(
            RefusedError, match="^f: (cannot be read|a part of the file|the file is text, and no sheet)"
        ):
            read(part, SHEET)
    place = data.index(b"xl/worksheets/sheet1.xml") + 60
    with pytest.raises(RefusedError, match="^f: (cannot be read|a part of the file)"):
        read(data[:place] + bytes([data[place] ^ 255]) + data[place + 1 :], SHEET)


def test_a_document_type_declaration_is_refused() -> None:
    """Entities could expand to gigabytes, or name files of this machine."""
    parts = unpacked(written([HEADER, ["a", 1]]))
    sheet = b'<!DOCTYPE x [<!ENTITY a "aa">]>' + parts["xl/worksheets/sheet1.xml"].partition(b"?>")[2]
    with pytest.raises(RefusedError, match="^f: holds a document type declaration"):
        read(packed({**parts, "xl/worksheets/sheet1.xml": sheet}), SHEET)


def test_a_file_that_unpacks_to_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the reader of sheets unpacks it."""
    with pytest.raises(RefusedError, match="^f: unpacks to more than 1[01] MiB, too much for a file of"):
        read(packed({"xl/a": bytes(11 << 20)}), SHEET)
    monkeypatch.setattr("crossdock.reading.formats.sheet_files.MAX_BYTES", 1_000)
    with pytest.raises(RefusedError, match="^f: a sheet file of more than"):
        read(written([HEADER, ["a", 1]]), SHEET)


def test_a_cell_far_from_the_others_is_named() -> None:
    """The reader would hold every place between them; a place that is only formatted does not count."""
    far = written([HEADER, ["a", 1]], lambda sheet: sheet.cell(1_048_576, 300, "x"))
    with pytest.raises(RefusedError, match="^f:Items!KN1048576: a cell far from the others"):
        read(far, SHEET)
    formatted = written([HEADER, ["a", 1]], lambda sheet: setattr(sheet["XFD1048576"], "number_format", "0.00"))
    assert read(formatted, SHEET).height == 1


def test_what_is_read_comes_in_short_batches() -> None:
    """Few long rows are as much as many short ones."""
    frames = list(read_rows(Content(written([HEADER, *([["a" * 30_000, 1]] * 150)])), layout(**SHEET), name="f"))
    assert [frame.height for frame in frames] == [140, 10]


def test_an_old_excel_file_must_declare_that_errors_are_not_found() -> None:
    """Its cells cannot be checked; then it is read as others are."""
    data, config = xls(xls_number(0, 0, 12.5)), {**SHEET, "header": False, "names": ["PRICE"]}
    with pytest.raises(RefusedError, match="^f: errors in cells can only be found in xlsx and ods files"):
        read(data, config)
    assert read(data, {**config, "error_cells": "empty"}).rows() == [("12.5", 1)]


def test_an_opendocument_sheet_is_read() -> None:
    """As xlsx files are, errors included; blank first rows count, and those at the end are left out."""
    value = '<table:table-cell office:value-type="float" office:value="{}"><text:p>shown</text:p></table:table-cell>'
    text = '<table:table-cell office:value-type="string"><text:p>{}</text:p></table:table-cell>'
    blank = '<table:table-row table:number-rows-repeated="{}"><table:table-cell/></table:table-row>'
    rows = [text.format("SKU") + text.format("PRICE"), text.format("0017") + value.format("12.50")]
    table = "".join(f"<table:table-row>{row}</table:table-row>" for row in rows)
    data = ods(blank.format(2) + table + blank.format(1_000_000))
    assert read(data, {**SHEET, "skip_rows": 2}).rows() == [("0017", "12.5", 4)]
    with pytest.raises(RefusedError, match="^f:Items!A3: the header is not the declared one"):
        read(data, {**SHEET, "skip_rows": 2, "names": ["A"]})


def test_the_total_row_of_a_table_is_no_row() -> None:
    """Excel adds up the rows above it: it would be a record with the key Total and all of the stock."""
    rows: list[list[Any]] = [["SKU", "QTY"], ["a", 1], ["b", 2], ["Total", 3]]

    def as_table(sheet: Worksheet) -> None:
        sheet.add_table(Table(displayName="Stock", ref="A1:B4", totalsRowCount=1))

    counted = LeniencyCounts()
    content = Content(written(rows, as_table, More="visible"))
    found = read_rows(content, layout(**SHEET, sheet="Items"), name="f", leniencies=counted)
    assert pl.concat(found).rows() == [("a", "1", 2), ("b", "2", 3)]
    assert "1 total row of tables left out" in str(counted)
    assert read(written(rows, More="visible"), {**SHEET, "sheet": "Items"}).height == 3


def test_a_header_that_a_sender_adds_is_no_row() -> None:
    """In whatever notation it has the declared names, it would be a record with the key SKU."""
    config = {**SHEET, "header": False, "skip_rows": 1, "names": ["sku", "unit_price"]}
    with pytest.raises(RefusedError, match="^f:Items!A2: the first row is a header"):
        read(written([["Stock"], ["SKU", "Unit price"], ["17", 5]]), config)
    assert read(written([["Stock"], ["17", 5], ["SKU", "Unit price"]]), config).height == 2


def test_a_sheet_without_a_header_needs_names() -> None:
    """Columns are never numbered."""
    with pytest.raises(ValidationError, match="needs names"):
        layout(**SHEET, header=False)


@settings(deadline=None, max_examples=examples(60))
@given(
    st.lists(
        st.tuples(
            st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Co", "Cn"]), min_size=1, max_size=20)
            .map(lambda text: f"a{text}z")
            .filter(lambda text: "_x" not in text),
            st.integers(-(10**14), 10**14),
            st.decimals(-9999, 9999, places=2),
        ),
        max_size=30,
    )
)
def test_values_survive_being_written_and_read(rows: list[tuple[str, int, Any]]) -> None:
    """Texts and whole numbers are the same, and decimals have the same value."""
    found = read(written([["T", "N", "D"], *map(list, rows)]), SHEET).rows()
    assert [(text, int(number)) for text, number, _, _ in found] == [(text, number) for text, number, _ in rows]
    assert [type(price)(text) for (_, _, price), (_, _, text, _) in zip(rows, found, strict=True)] == [
        price for *_, price in rows
    ]


def test_a_number_has_the_zeros_that_its_cell_shows() -> None:
    """Only where the number format is nothing but digits and what is between them; other cells are as stored."""

    def formats(sheet: Worksheet) -> None:
        for place, form in (("A2", "00000"), ("A3", "000\\-00\\-0000"), ("A4", "00000;-00000"), ("A5", '"A-"0000')):
            sheet[place].number_format = form
        for place in ("B2", "B3", "B4"):
            sheet[place].number_format = "00000"
        for place, form in (("A6", "#,##0"), ("A7", "0"), ("A8", "0000.00"), ("A9", "yyyy-mm-dd")):
            sheet[place].number_format = form

    numbers: list[Any] = [17, 123456789, 17, 171717, 17, 17, 17, 46000]
    rows = [["A", "B"], *zip(numbers, ["x", -17, 17.5, 1, 1, 1, 1, 1], strict=True)]
    data = written([list(row) for row in rows], formats)
    shown = ["00017", "123-45-6789", "00017", "A-171717", "17", "17", "17", "2025-12-09"]
    found = read(data, {**SHEET, "error_cells": "empty"})
    assert found["A"].to_list() == shown
    assert found["B"].to_list() == ["x", "-17", "17.5", *["1"] * 5]
    assert read(data, {**SHEET, "leading_zeros": False})["A"].to_list()[:4] == ["17", "123456789", "17", "171717"]


@pytest.mark.parametrize(
    ("code", "texts"),
    [
        ("[Red]00000", ["00000", "00017", "123456"]),
        ("00000_)", ["00000", "00017", "123456"]),
        ("* 00000_-;[Color 5]-00000", ["00000", "00017", "123456"]),
        ("#00000", ["00000", "00017", "123456"]),
        ("0##", ["000", "017", "123456"]),
        ("00,000", ["00000", "00017", "123456"]),
        ("00000.", ["00000", "00017", "123456"]),
        ("(000) 000.##", ["(000) 000", "(000) 017", "(123) 456"]),
        ("[>99999]00000-0000;00000", ["00000", "00017", "00012-3456"]),
        ("[<10]00;[<100]000;0000", ["00", "017", "123456"]),
        ('00000;-00000;"none";@', [None, "00017", "123456"]),
        ('"A;"00;@', ["A;00", "A;17", "A;123456"]),
        *(
            (code, [None] * 3)
            for code in ("0000,", "00%", "0000.00", "00.#0", "##-00", "00/00/00", "[h]:00", "000E+00")
        ),
        *(
            (code, [None] * 3)
            for code in ("#,##0.00_);[Red](#,##0.00)", "[DBNum1]000", "General", "@", "0", "0;-00", "")
        ),
    ],
)
def test_number_formats_show_zeros_in_many_ways(code: str, texts: list[str | None]) -> None:
    """Colours, widths, tests and separators change no digit; a format that shows another number is not followed."""
    sections, numbers = parse_leading_zeros_format(code) or (), (0, 17, 123456)
    found = [add_leading_zeros_of_format(number, sections) if sections else number for number in numbers]
    assert found == [text or number for text, number in zip(texts, numbers, strict=True)]


def test_several_sheets_are_one_table() -> None:
    """Their rows are numbered on; empty sheets are passed over by "*", and another header refuses the file."""

    def more(sheet: Worksheet) -> None:
        assert sheet.parent is not None
        for title, rows in (("Empty", []), ("Last", [["SKU"], ["0018"], ["0019"]]), ("Hidden", [["SKU"], ["0020"]])):
            other = sheet.parent.create_sheet(title)
            other.sheet_state = "hidden" if title == "Hidden" else "visible"
            for row in rows:
                other.append(row)

    data, wanted = written([["SKU"], ["0017"]], more), [("0017", 2), ("0018", 4), ("0019", 5)]
    for sheet in ("*", ["Items", 3]):
        assert read(data, {**SHEET, "sheet": sheet}).rows() == wanted
    content, form = Content(data), layout(**SHEET, sheet="*")
    assert [frame.rows() for frame in read_rows_at_lines(content, form, [4], name="f")] == [[("0018", 4)]]
    with pytest.raises(RefusedError, match="^f:other!A1: the header is not"):
        read(written([["SKU"], ["0017"]], other="visible"), {**SHEET, "sheet": ["Items", "other"]})


def test_sheets_that_are_not_read_are_counted_where_none_is_declared() -> None:
    """The rows of a second sheet would be lost without a word, and so would those of one that is hidden among all."""
    several = written([["SKU"], ["0017"]], other="visible", hidden="hidden")
    single = written([["SKU"], ["0017"]], hidden="hidden")
    for data, config, said in (
        (several, {}, "1 other sheet not read"),
        (several, {"sheet": 1}, ""),
        (single, {"sheet": "*"}, "1 hidden sheet not read"),
    ):
        leniencies = LeniencyCounts()
        list(read_rows(Content(data), layout(**SHEET, **config), name="f", leniencies=leniencies))
        assert str(leniencies) == said
