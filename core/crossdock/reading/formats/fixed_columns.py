"""Columns of fixed-width records: cells by position as text, and numbers as plain decimals.

A number is written without a point, as COBOL's ``PIC 9(7)V99`` and ``PIC S9(7)V99`` are: its digits have implied
decimals. Its sign is a character of its own (SIGN SEPARATE), or overpunched: part of its last digit.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

import polars as pl
from pydantic import Field, model_validator

from crossdock.reading.formats.text_decoding import MAX_RECORD_BYTES
from crossdock.reading.formats.text_encodings import FILLER
from crossdock.values.config_models import ConfigModel

TEXT = "_text"
"""The column of whole lines."""
MAX_POSITION = MAX_RECORD_BYTES >> 4
MAX_NUMBER = 38

_POSITIVE, _NEGATIVE = bytes(range(0xC0, 0xCA)), bytes(range(0xD0, 0xDA))
_TRANSLATED = "{ABCDEFGHI", "}JKLMNOPQR"
_ASCII_NEGATIVE = "pqrstuvwxy"


class FixedColumn(ConfigModel):
    """One column by its position, in characters."""

    at: Annotated[int, Field(ge=1, le=MAX_POSITION)]
    """The position of its first character, from 1."""
    length: Annotated[int, Field(ge=1, le=32_767)]
    """The number of its characters, with the sign and all padding."""
    padding: Literal["left", "right", "both", "none"] | None = None
    """Where characters fill it up, which are left out; by default right of texts and left of numbers."""
    fill: Annotated[str, Field(min_length=1, max_length=1, pattern=r"^[^\r\n]$")] = " "
    """The character that fills it up. Of a cell with nothing else, one ``0`` remains."""
    decimals: Annotated[int, Field(ge=0, le=18)] | None = None
    """How many of the last digits come after the point, which is not written; makes the column a number."""
    sign: Literal["leading", "trailing", "overpunch"] | None = None
    """Where the sign of a number is; without it, a number has none."""

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.sign is not None and self.decimals is None:
            raise ValueError("sign is for numbers: declare decimals, which may be 0")
        if self.decimals is None:
            return self
        if self.padding in {"right", "both"}:
            raise ValueError("a number is padded on the left, or not at all")
        if self.length > MAX_NUMBER:
            raise ValueError(f"a number has at most {MAX_NUMBER} characters")
        if self.sign in {"leading", "trailing"} and self.length == 1:
            raise ValueError("a number with a sign of its own has at least 2 characters")
        if re.fullmatch("[1-9+-]", self.fill):
            raise ValueError("a number cannot be filled up with a digit from 1 to 9 or a sign")
        return self

    @property
    def end(self) -> int:
        return self.at + self.length - 1

    @property
    def described(self) -> str:
        if self.decimals is None:
            return "whole characters"
        signs = {
            "leading": "a sign before them",
            "trailing": "a sign or a space as the last character",
            None: "no sign",
        }
        return f"digits with {signs.get(self.sign, 'an overpunched sign')}"


def cell(column: FixedColumn, encoding: str, *, in_bytes: bool = False) -> pl.Expr:
    """Return cells as text, and numbers as decimals such as ``-12.34``; undefined for the cells that `is_odd` finds."""
    raw = _raw(column).str.replace_all(FILLER, "", literal=True) if in_bytes else _raw(column)
    if column.decimals is None:
        return _without_padding(raw, column)
    digits, sign, unit = raw, pl.lit(""), column.length - 1
    if column.sign == "overpunch":
        last, marks = raw.str.slice(unit), overpunches(encoding)
        codes = [f"{digit}-" if negative else digit for digit, negative in marks.values()]
        code = last.replace_strict(list(marks), codes, default=last)
        digits, sign = pl.concat_str(raw.str.slice(0, unit), code.str.slice(0, 1)), code.str.slice(1)
    elif column.sign == "trailing":
        digits, sign, unit = raw.str.slice(0, unit), raw.str.slice(unit).str.strip_chars("+ "), unit - 1
    elif column.sign == "leading":
        sign = pl.when(raw.str.contains("-", literal=True)).then(pl.lit("-")).otherwise(pl.lit(""))
    significant = digits.str.strip_chars_start(f"{column.fill}0+-")
    sign = pl.when(significant == "").then(pl.lit("")).otherwise(sign)  # zero has no sign
    is_blank = raw.str.slice(unit, 1) == " "
    return pl.when(is_blank).then(pl.lit("")).otherwise(_decimal(sign, significant, column.decimals))


def is_odd(column: FixedColumn, encoding: str, *, in_bytes: bool = False) -> pl.Expr | None:
    """Return whether a cell breaks its declaration; None for a text column in characters, which may hold anything."""
    if column.decimals is None:
        if not in_bytes:
            return None
        return (pl.col(TEXT).str.slice(column.at - 1, 1) == FILLER) | (pl.col(TEXT).str.slice(column.end, 1) == FILLER)
    fill = re.escape(column.fill if column.padding != "none" else "0")
    digits = {
        None: f"{fill}*[0-9]+",
        "leading": f"{fill}*[+-]?{fill}*[0-9]+",
        "trailing": f"{fill}*[0-9]+[+ -]",
        "overpunch": f"{fill}*[0-9]*[{re.escape(''.join(overpunches(encoding)))}]",
    }[column.sign]
    return ~_raw(column).str.contains(f"^(?:{digits}| *)$")


def overpunches(encoding: str) -> dict[str, tuple[str, bool]]:
    """Map each character that can be the last of an overpunched number to its digit and whether it is negative.

    In EBCDIC, the zone of the last byte is C for plus, D for minus and F for none (IBM, z/Architecture Principles of
    Operation, "Decimal-Number Formats": zoned). Files that were translated to ASCII have what cp037 shows for these
    bytes; compilers for ASCII may write p to y for negative digits instead (GnuCOBOL, ``-fsign=ASCII``).
    """
    zones = {str(digit): (str(digit), False) for digit in range(10)}
    if "0".encode(encoding) == b"\xf0":
        positive, negative = _POSITIVE.decode(encoding), _NEGATIVE.decode(encoding)
    else:
        positive, negative = _TRANSLATED
        zones |= {mark: (str(digit), True) for digit, mark in enumerate(_ASCII_NEGATIVE)}
    zones |= {mark: (str(digit), False) for digit, mark in enumerate(positive)}
    return zones | {mark: (str(digit), True) for digit, mark in enumerate(negative)}


def _raw(column: FixedColumn) -> pl.Expr:
    return pl.col(TEXT).str.slice(column.at - 1, column.length)


def _without_padding(raw: pl.Expr, column: FixedColumn) -> pl.Expr:
    match column.padding or "right":
        case "left":
            text = raw.str.strip_chars_start(column.fill)
        case "right":
            text = raw.str.strip_chars_end(column.fill)
        case "both":
            text = raw.str.strip_chars(column.fill)
        case _:
            return raw
    return text if column.fill != "0" else pl.when(text == "").then(pl.lit("0")).otherwise(text)


def _decimal(sign: pl.Expr, digits: pl.Expr, decimals: int) -> pl.Expr:
    number = digits.str.zfill(decimals + 1)
    if not decimals:
        return pl.concat_str(sign, number)
    return pl.concat_str(sign, number.str.head(-decimals), pl.lit("."), number.str.tail(decimals))
