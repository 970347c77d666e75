"""Cells that look damaged: decoded wrongly, converted by a spreadsheet, or with accents as separate characters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import polars as pl
from msgspec import Struct

from crossdock.values.raw_rows_and_records import LINE, cells_of_column, column_expression_by_exact_name

Damage = Literal["encoding", "spreadsheet", "not_nfc"]
DAMAGE_TEXTS: dict[Damage, str] = {
    "encoding": "was read in a wrong encoding, as in MÃ¼ller",
    "spreadsheet": "was changed by a spreadsheet, as in 4.00638E+12, 1-Mar or #REF!",
    "not_nfc": "has accents as separate characters, as Macs write them (Unicode NFD)",
}
# what continues a character in UTF-8, as characters of Latin-1 or Windows-1252
_CONTINUES = r"[\u0080-\u00bf\u0152\u0153\u0160\u0161\u0178\u017d\u017e\u0192\u02c6\u02dc\u2013-\u203a\u20ac\u2122]"
_NO_QUOTES = _CONTINUES.replace(r"\u0080-\u00bf", r"\u0080-\u00ba\u00bc-\u00bf").replace(
    r"\u2013-\u203a", r"\u2013\u2014\u201a\u201e-\u203a"
)
WRONG_ENCODING_PATTERN = "|".join(
    (
        r"\ufffd|\u00ef\u00bf\u00bd|\u00ef\u00bb\u00bf",  # a replaced character, also one that was read wrongly again
        rf"[\u00c2\u00c3]{_CONTINUES}|[\u00c4\u00c5]{_NO_QUOTES}",  # of Western and Central Europe
        rf"(?:[\u00ce-\u00d1]{_CONTINUES}){{2}}|(?:[\u00e3-\u00e9]{_CONTINUES}{{2}}){{2}}",  # Greek, Cyrillic, Asian
        r"\u00e2[\u0080\u20ac]|\u00f0[\u009f\u0178]",  # punctuation, emojis
        r"[\u251c\u252c][^\x00-\x7f]",  # as DOS reads it
        r"\u221a[\u00a0-\u00ff\u2020\u2022\u2122\u2202-\u2265]",  # as Macs read it
        r"^[^/=]*\p{L}\?\p{Ll}[^/=]*$",  # M?ller
    )
)
_MONTHS = (
    "[Jj](?:an|anv|un|uin|uil|ul)|[Ff](?:eb|\u00e9vr)|[Mm](?:ar|ars|\u00e4r|rz|ay|ai|ag)|[Aa](?:pr|vr|br|ug|go|o\u00fbt)"
    "|[Ss](?:ep|ept|et)|[Oo](?:ct|kt|tt)|[Nn]ov|[Dd](?:ec|ez|ic|\u00e9c)|[Ee]ne|[Gg](?:en|iu)|[Ll]ug"
)
_ERRORS = "#(?:REF!|VALUE!|DIV/0!|NAME\\?|NUM!|NULL!|N/A|WERT!|BEZUG!|ZAHL!|NV)|#{3,}"
SPREADSHEET_DAMAGE_PATTERN = (
    rf"^(?:[0-9](?:[.,][0-9]+)?[Ee]\+[0-9]{{2,3}}|[0-9][.,][0-9]+[Ee][0-9]{{1,3}}|[0-9]{{1,2}}(?:-|\. )(?:{_MONTHS})"
    rf"|(?:{_MONTHS})-[0-9]{{2}}|{_ERRORS}|[1-9][0-9]{{14}}0+)$"
)
_MARKS = r"[\u0300-\u036f\u3099\u309a\u1160-\u11ff]"  # of Latin, Greek, Cyrillic, Japanese and Korean letters
_PATTERNS: dict[Damage, str] = {
    "encoding": WRONG_ENCODING_PATTERN,
    "spreadsheet": SPREADSHEET_DAMAGE_PATTERN,
    "not_nfc": _MARKS,
}
_MOST = 95  # percent of the numbers of a column that have the same length if a few have lost their zeros
_SHORTEST = 5


class Suspicion(Struct, frozen=True):
    """Cells of one column with one kind of damage; *line* is that of the first."""

    column: str
    damage: Damage
    cells: int
    line: int

    def __str__(self) -> str:
        number = "1 cell" if self.cells == 1 else f"{self.cells:,} cells"
        return f"column {self.column!r}: {number} with text that {DAMAGE_TEXTS[self.damage]}, first in line {self.line}"


def find_suspicious_cells_by_column(frame: pl.DataFrame, columns: Sequence[str]) -> Iterator[Suspicion]:
    names = [(name, damage) for name in columns for damage in _PATTERNS]
    if not names or not frame.height:
        return
    found = frame.select(
        column_expression_by_exact_name(name).str.contains(_PATTERNS[damage]).fill_null(value=False).alias(str(number))
        for number, (name, damage) in enumerate(names)
    )
    for number, sum_of_cells in enumerate(found.sum().row(0)):
        if not sum_of_cells:
            continue
        name, damage = names[number]
        cells = frame[[LINE, name]].filter(found[str(number)])
        if damage == "not_nfc":  # not all have a form in one character
            cells = cells.filter(
                column_expression_by_exact_name(name) != column_expression_by_exact_name(name).str.normalize("NFC")
            )
        if cells.height:
            yield Suspicion(name, damage, cells.height, cells[LINE][0])


def lost_leading_zero_warnings(frame: pl.DataFrame, columns: Sequence[str]) -> Iterator[str]:
    """Yield the *columns* whose numbers nearly all have the same length, with a few shorter ones."""
    for name in columns:
        cells = cells_of_column(frame, name)
        digits = cells.filter(cells.str.contains("^[0-9]+$"))
        lengths = digits.str.len_chars()
        if not len(digits) or digits.str.starts_with("0").any():
            continue
        usual = int(lengths.mode().max())  # type: ignore[arg-type]  # of numbers
        short = int((lengths < usual).sum())
        if usual >= _SHORTEST and short and int((lengths == usual).sum()) * 100 >= _MOST * len(digits):
            shorter = f"{short:,} of {len(digits):,} numbers are shorter than {usual} digits"
            yield f"column {name!r}: {shorter}; zeros may be lost"
