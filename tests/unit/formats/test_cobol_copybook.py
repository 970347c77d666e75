"""Copybooks: what their entries say, where columns are, and what is refused with its line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from tests.unit.formats.layouts import fixed_width

from crossdock.reading.formats.cobol_copybook import CopybookError, Picture, parse_copybook, parse_picture
from crossdock.reading.formats.fixed_width_layout import FixedWidthFormat

FREE = {"source": "free"}


def form(folder: Path, text: str, *, copybook: dict[str, Any] | None = None, **more: Any) -> FixedWidthFormat:
    """A layout of the copybook *text*."""
    (folder / "C.cpy").write_text(text, encoding="utf-8")
    described = {"file": folder / "C.cpy", **(FREE if copybook is None else copybook)}
    return fixed_width(**{"kind": "fixed_width", "encoding": "cp037", "line_end": "rdw", "copybook": described, **more})


def places(layout: FixedWidthFormat) -> dict[str, tuple[int, int]]:
    return {
        name: (column.at, column.length)
        for name, column in layout.record_types_with_columns[layout.type_to_read].columns.items()
    }


@pytest.mark.parametrize(
    ("text", "picture"),
    [
        ("X(10)", Picture(10)),
        ("XXX", Picture(3)),
        ("A(3)9", Picture(4)),
        ("S9(7)V99", Picture(9, 9, 2, signed=True)),
        ("9(3)v9(4)", Picture(7, 7, 4)),
        ("S9(3)PP", Picture(3, 3, -2, signed=True)),
        ("VPP9(3)", Picture(3, 3, 5)),
        ("PP9(3)", Picture(3, 3, 5)),
        ("99V", Picture(2, 2, 0)),
        ("Z(4)9V99", Picture(7, 7, 2)),
        ("$$,$$9.99CR", Picture(11, edited=True)),
        ("99/99/9999", Picture(10, edited=True)),
    ],
)
def test_pictures_say_how_long_an_item_is_and_where_its_point_is(text: str, picture: Picture) -> None:
    """Repetition, the implied point, scaling and editing."""
    assert parse_picture(text, 1) == picture


@pytest.mark.parametrize("text", ["N(4)", "G(4)", "9(4", "9S", "9V9V9", "P9P", "9(32)", "1(8)", "ZZ9V99+", ""])
def test_a_picture_that_cannot_be_read_is_refused(text: str) -> None:
    """National, DBCS and bit items, and pictures that no compiler takes."""
    with pytest.raises(CopybookError, match="picture"):
        parse_picture(text, 1)


FIXED = """\
000100******************************************************************
000200* STOCK OF A WAREHOUSE, ONE RECORD FOR EACH ITEM.
000300******************************************************************
000400 01  STOCK-RECORD.                                                STOCK001
000500     05  KEY-PART.                                                STOCK002
000600         10  SKU            PIC X(6).                             STOCK003
000700     05  STATE              PIC X     VALUE 'A. B'.               STOCK004
000800         88  ACTIVE         VALUE 'A', 'B'.
000900         88  GONE           VALUES ARE 'X' THRU 'Z'.
001000/
001100     05  QUANTITIES         USAGE IS COMP-3.
001200         10  ON-HAND        PIC S9(5).
001300         10  RESERVED       PICTURE IS S9(4)
001400                            VALUE ZERO.
001500     05  FILLER             PIC X(3).
           EJECT
       66  ALIAS RENAMES SKU.
           05  SMALL              PIC S9(4) COMP.
           05  MIDDLE             PIC S9(9) BINARY.
           05  LARGE              PIC 9(10) COMP-4.
      D    05  DEBUGGED           PIC X(99).
           05  PRICE              PIC S9(5)V99
                                  SIGN IS LEADING SEPARATE CHARACTER.
           05  *> a comment
               BALANCE            PIC S9(3) SIGN LEADING.
           05  LAST-ONE           PIC X(2) JUSTIFIED RIGHT
                                  BLANK WHEN ZERO.
"""


def test_the_fixed_form_is_read_as_a_compiler_reads_it(tmp_path: Path) -> None:
    """Sequence numbers, columns after 72, comments, debugging lines, levels 66 and 88 and values say nothing."""
    layout = form(tmp_path, FIXED, copybook={})
    assert places(layout) == {
        "SKU": (1, 6), "STATE": (7, 1), "ON-HAND": (8, 3), "RESERVED": (11, 3), "SMALL": (17, 2), "MIDDLE": (19, 4),
        "LARGE": (23, 8), "PRICE": (31, 8), "BALANCE": (39, 3), "LAST-ONE": (42, 2),
    }  # fmt: skip
    columns = layout.record_types_with_columns["rows"].columns
    assert [columns[name].usage for name in ("ON-HAND", "SMALL", "PRICE")] == ["packed", "binary", None]
    assert [columns[name].sign for name in ("ON-HAND", "LARGE", "PRICE", "BALANCE")] == [
        "included", None, "leading", "leading_overpunch",
    ]  # fmt: skip
    assert (columns["LAST-ONE"].padding, columns["RESERVED"].digits, layout.record_length("rows")) == ("left", 4, 43)


def test_a_literal_may_be_continued_on_the_next_line(tmp_path: Path) -> None:
    """It ends in the text after the hyphen's quote."""
    first = "       05  A  PIC X(3) VALUE 'LONG. TEXT".ljust(72) + "COMMENT8"
    text = f"{first}\n      -    'ENDS HERE. '.\n       05  B  PIC X.\n"
    assert places(form(tmp_path, text, copybook={})) == {"A": (1, 3), "B": (4, 1)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("01 R.\n 05 A PIC N(4).", "C.cpy:2: the picture N"),
        ("01 R.\n 05 A.", "C.cpy:2: A has neither a picture nor items"),
        ("01 R.\n 05 A PIC X(2)", "C.cpy:2: the last entry has no period"),
        ("01 R.\n 05 A PIC X\n 05 B PIC X.", "C.cpy:3: '05' is not a clause"),
        ("01 R.\n COPY OTHER.", "C.cpy:2: COPY is not executed"),
        ("01 R.\n 05 A PIC 9(4) COMP SYNC.", "C.cpy:2: A is SYNCHRONIZED"),
        ("01 R.\n 05 A COMP-1.", "C.cpy:2: A is a float"),
        ("01 R.\n 05 A POINTER.", "C.cpy:2: USAGE POINTER is not read"),
        ("01 R.\n 05 A PIC 9(4) COMP-5.", "C.cpy:2: A is COMP-5: declare native_byte_order"),
        ("01 R.\n 05 A PIC X(4) COMP-3.", "C.cpy:2: A is not a number"),
        ("01 R.\n 05 A PIC 9(19) COMP.", "C.cpy:2: A is binary with more than 18 digits"),
        ("01 R.\n 05 A PIC X.\n 05 B REDEFINES C PIC X.", "C.cpy:3: B redefines C, which does not precede it"),
        ("01 R.\n 05 A PIC X.\n 05 B REDEFINES A PIC 9.", "C.cpy:3: A, B share bytes: name the one"),
        ("01 R.\n 05 T OCCURS 1 TO 4 DEPENDING ON N.\n 10 A PIC X.", "C.cpy:2: T depends on N, which is not before"),
        ("01 R.\n 05 T OCCURS 1 TO 4.\n 10 A PIC X.", "C.cpy:2: OCCURS with TO needs DEPENDING ON"),
        ("01 R.\n 05 T OCCURS 0.\n 10 A PIC X.", "C.cpy:2: OCCURS 0 TO 0 is impossible"),
        ("01 R.\n 05 T OCCURS 99999.\n 10 A PIC X.", "more than 4,096 columns"),
        (
            "01 R.\n 05 FILLER OCCURS 99999. 10 FILLER PIC X(9) OCCURS 99999.",
            "C.cpy:1: a record of 89,998,200,009 bytes",
        ),
        ("01 R.\n 05 A PIC X(40000).", "C.cpy:2: A has 40,000 bytes, more than 32,767"),
        ("01 R.\n 05 A PIC X.\n 05 A PIC X.", "C.cpy:3: A is twice in one group"),
        ("01 R.\n 05 A PIC X.\n  10 B PIC X.", "C.cpy:3: A has a picture"),
        ("01 R.\n 05 A PIC X VALUE 'B.", "C.cpy:2: a literal without its end"),
        ("SELECT F.", "C.cpy:1: 'SELECT' where a level number"),
        ("*> nothing", "C.cpy:1: no data description"),
        ("01 R.\n 05 A PIC", "C.cpy:2: the last entry has no period"),
        ("01 R.\n 05 A PIC.", "C.cpy:2: the entry ends in the middle of a clause"),
    ],
)
def test_a_copybook_that_cannot_be_read_is_refused_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    """So that its author finds the entry."""
    with pytest.raises(ValidationError) as raised:
        form(tmp_path, text)
    assert message in str(raised.value)


@pytest.mark.parametrize("text", ["01 R.\n  05 A PIC X.\n", "  01 R.\n    05 A PIC X.\n"])
def test_free_text_in_the_fixed_form_is_refused(tmp_path: Path, text: str) -> None:
    """Its first six columns would be left out, and its level numbers with them."""
    with pytest.raises(ValidationError, match="C.cpy:[12]: .*(free|level number.*fixed form)"):
        form(tmp_path, text, copybook={})


def test_a_missing_copybook_is_an_error_of_the_config() -> None:
    """It is named with its path."""
    with pytest.raises(ValidationError, match=r"gone\.cpy cannot be read: No such file"):
        fixed_width(kind="fixed_width", encoding="cp037", copybook={"file": "gone.cpy"})


def test_items_that_share_bytes_are_chosen_by_their_names_or_those_inside(tmp_path: Path) -> None:
    """The following item comes after the longest of them."""
    text = """01 R. 05 DAY-TEXT PIC X(8). 05 FILLER REDEFINES DAY-TEXT. 10 YEAR PIC 9(4). 10 MONTH PIC 9(2).
      05 NEXT-ONE PIC X."""
    chosen = {**FREE, "items": ["year"]}
    assert places(form(tmp_path, text, copybook=chosen)) == {"YEAR": (1, 4), "MONTH": (5, 2), "NEXT-ONE": (9, 1)}
    with pytest.raises(ValidationError, match="several of them"):
        form(tmp_path, text, copybook={**FREE, "items": ["YEAR", "DAY-TEXT"]})
    with pytest.raises(ValidationError, match="no items that share bytes are named NOBODY"):
        form(tmp_path, text, copybook={**FREE, "items": ["YEAR", "NOBODY"]})


def test_records_of_level_01_share_bytes(tmp_path: Path) -> None:
    """As below one file description."""
    text = "01 HEAD. 05 A PIC X(2). 01 DETAIL. 05 B PIC X(9)."
    assert places(form(tmp_path, text, copybook={**FREE, "items": ["DETAIL"]})) == {"B": (1, 9)}


def test_tables_are_numbered_columns_and_equal_names_have_their_groups(tmp_path: Path) -> None:
    """Tables in tables have two subscripts, names that occur twice the group before them."""
    text = """01 R. 05 SHIP. 10 CITY PIC X(3). 05 BILL. 10 CITY PIC X(3).
      05 T OCCURS 2 TIMES INDEXED BY I. 10 A PIC X. 10 B OCCURS 2 PIC 9."""
    assert places(form(tmp_path, text)) == {
        "SHIP.CITY": (1, 3), "BILL.CITY": (4, 3), "A(1)": (7, 1), "B(1,1)": (8, 1), "B(1,2)": (9, 1),
        "A(2)": (10, 1), "B(2,1)": (11, 1), "B(2,2)": (12, 1),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"encoding": "utf-8"}, "an encoding of one byte for each character"),
        ({"encoding": "shift_jis"}, "an encoding of one byte for each character"),
        ({"count": "characters"}, "positions in binary records count bytes"),
        ({"columns": {"A": {"at": 1, "length": 1}}}, "give either copybook or columns"),
        ({"blank_lines": "skip"}, "not for binary records"),
        ({"copybook": {"rows": "NOBODY"}}, "there is no table NOBODY; those outside of other tables are T"),
        ({"length": 99}, "the length varies with the table T"),
        ({"line_end": "line_feed"}, "may look like line ends"),
    ],
)
def test_what_does_not_fit_a_copybook_is_an_error_of_the_config(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    """Encodings of several bytes, counted characters, two sources of columns."""
    text = "01 R. 05 N PIC 9 COMP-3. 05 T OCCURS 0 TO 2 DEPENDING ON N. 10 A PIC X."
    with pytest.raises(ValidationError, match=message):
        form(tmp_path, text, **{**change, "copybook": {**FREE, **change.get("copybook", {})}})


def test_any_text_is_read_or_refused() -> None:
    """No cut of a copybook raises anything else."""
    for end in range(len(FIXED)):
        line = 1
        try:
            parse_copybook(FIXED[:end], "fixed")
        except CopybookError as error:
            line = error.line
        assert 1 <= line <= FIXED.count("\n") + 1
