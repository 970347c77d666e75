"""Columns of fixed-width records: cells by position as text, and numbers as plain decimals.

A number is written without a point, as COBOL's ``PIC 9(7)V99`` and ``PIC S9(7)V99`` are: its digits have implied
decimals. Its sign is a character of its own (SIGN SEPARATE), or overpunched: part of its last or first digit. Packed
and binary numbers (COMP-3, COMP) are bytes: positions then count bytes.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

import polars as pl
from pydantic import Field, model_validator

from crossdock.reading.formats.text_decoding import EXTRA_BYTE_FILLER, MAX_RECORD_BYTES
from crossdock.values.config_base_types import ConfigModel

FixedUsage = Literal["packed", "binary", "binary_little_endian", "hex"]
Sign = Literal["leading", "trailing", "overpunch", "leading_overpunch", "included"]
TEXT = "_text"
"""The column of whole lines."""
RAW = "_raw"
"""The column of whole records as bytes, of the same positions as `TEXT`."""
MAX_POSITION = MAX_RECORD_BYTES >> 4
MAX_LENGTH = 32_767
MAX_NUMBER = 38
_BINARY_LENGTHS: dict[int, tuple[type[pl.DataType], type[pl.DataType]]] = {
    1: (pl.UInt8, pl.Int8),
    2: (pl.UInt16, pl.Int16),
    4: (pl.UInt32, pl.Int32),
    8: (pl.UInt64, pl.Int64),
}

_POSITIVE, _NEGATIVE = bytes(range(0xC0, 0xCA)), bytes(range(0xD0, 0xDA))
_TRANSLATED = "{ABCDEFGHI", "}JKLMNOPQR"
_ASCII_NEGATIVE = "pqrstuvwxy"


class FixedColumn(ConfigModel):
    """One column by its position, in characters."""

    at: Annotated[int, Field(ge=1, le=MAX_POSITION)]
    """The position of its first character, from 1."""
    length: Annotated[int, Field(ge=1, le=MAX_LENGTH)]
    """The number of its characters, with the sign and all padding."""
    padding: Literal["left", "right", "both", "none"] | None = None
    """Where characters fill it up, which are left out; by default right of texts and left of numbers."""
    fill: Annotated[str, Field(min_length=1, max_length=1, pattern=r"^[^\r\n]$")] = " "
    """The character that fills it up. Of a cell with nothing else, one ``0`` remains."""
    decimals: Annotated[int, Field(ge=-31, le=62)] | None = None
    """How many of the last digits come after the point, which is not written; makes the column a number. Negative: how
    many zeros follow the digits."""
    sign: Sign | None = None
    """Where the sign of a number is: ``leading``, ``trailing``, in the last digit (``overpunch``) or the first one
    (``leading_overpunch``); ``included`` in packed and binary numbers. Without it, a number has none."""
    usage: FixedUsage | None = None
    """How bytes that are not text are read: ``packed`` numbers, ``binary`` ones, whose first byte is the highest,
    ``binary_little_endian`` ones, or any bytes as text in ``hex``."""
    digits: Annotated[int, Field(ge=1, le=MAX_NUMBER)] | None = None
    """The most digits of a packed or binary number; by default all that fit."""

    @model_validator(mode="after")
    def _raise_if_settings_conflict(self) -> Self:
        if self.usage is not None or self.digits is not None or self.sign == "included":
            return self._raise_if_usage_settings_conflict()
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

    def _raise_if_usage_settings_conflict(self) -> Self:
        if self.usage is None:
            raise ValueError("digits and sign: included are for packed and binary numbers: declare usage")
        if (self.decimals is None) != (self.usage == "hex"):
            raise ValueError("packed and binary numbers need decimals, which may be 0; hex is not a number")
        if self.sign not in {None, "included"} or (self.sign and self.usage == "hex"):
            raise ValueError("the sign of a packed or binary number is included")
        if self.padding is not None or self.fill != " ":
            raise ValueError("packed and binary numbers, and hex, are not filled up")
        if self.usage.startswith("binary") and self.length not in _BINARY_LENGTHS:
            raise ValueError("a binary number has 1, 2, 4 or 8 bytes")
        if self.usage == "packed" and self.length * 2 > MAX_NUMBER:
            raise ValueError(f"a packed number has at most {MAX_NUMBER // 2} bytes")
        return self

    @property
    def last_position(self) -> int:
        return self.at + self.length - 1

    @property
    def expected_content(self) -> str:
        if self.usage is not None:
            size = "" if self.digits is None else f" of at most {self.digits} digits"
            return f"a {self.usage.partition('_')[0]} number{size}{' and a sign' if self.sign else ' without a minus'}"
        if self.decimals is None:
            return "whole characters"
        signs = {
            "leading": "a sign before them",
            "trailing": "a sign or a space as the last character",
            "leading_overpunch": "an overpunched sign in the first",
            None: "no sign",
        }
        return f"digits with {signs.get(self.sign, 'an overpunched sign')}"


def cell_text_expression(column: FixedColumn, encoding: str, *, in_bytes: bool = False) -> pl.Expr:
    """Return cells as text, and numbers as decimals such as ``-12.34``.

    The result is undefined for the cells that `invalid_cell_expression` finds.
    """
    if column.usage is not None:
        return (
            _packed_number_text_expression(column)
            if column.usage == "packed"
            else _binary_number_text_expression(column)
        )
    raw = (
        _text_slice_expression(column).str.replace_all(EXTRA_BYTE_FILLER, "", literal=True)
        if in_bytes
        else _text_slice_expression(column)
    )
    if column.decimals is None:
        return _unpadded_text_expression(raw, column)
    digits, sign, unit = raw, pl.lit(""), column.length - 1
    if column.sign == "leading_overpunch":
        first, marks = raw.str.slice(0, 1), digits_by_overpunched_character(encoding)
        codes = [f"{digit}-" if negative else digit for digit, negative in marks.values()]
        code = first.replace_strict(list(marks), codes, default=first)
        digits, sign = pl.concat_str(code.str.slice(0, 1), raw.str.slice(1)), code.str.slice(1)
    elif column.sign == "overpunch":
        last, marks = raw.str.slice(unit), digits_by_overpunched_character(encoding)
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
    return pl.when(is_blank).then(pl.lit("")).otherwise(_decimal_text_expression(sign, significant, column.decimals))


def invalid_cell_expression(column: FixedColumn, encoding: str, *, in_bytes: bool = False) -> pl.Expr | None:
    """Return whether a cell breaks its declaration; None for a text column in characters, which may hold anything."""
    if column.usage is not None:
        return (
            _invalid_packed_number_expression(column)
            if column.usage == "packed"
            else _too_many_binary_digits_expression(column)
        )
    if column.decimals is None:
        if not in_bytes:
            return None
        return (pl.col(TEXT).str.slice(column.at - 1, 1) == EXTRA_BYTE_FILLER) | (
            pl.col(TEXT).str.slice(column.last_position, 1) == EXTRA_BYTE_FILLER
        )
    fill = re.escape(column.fill if column.padding != "none" else "0")
    digits = {
        None: f"{fill}*[0-9]+",
        "leading": f"{fill}*[+-]?{fill}*[0-9]+",
        "trailing": f"{fill}*[0-9]+[+ -]",
        "overpunch": f"{fill}*[0-9]*[{re.escape(''.join(digits_by_overpunched_character(encoding)))}]",
        "leading_overpunch": f"[{re.escape(''.join(digits_by_overpunched_character(encoding)))}][0-9]*",
    }[column.sign]
    return ~_text_slice_expression(column).str.contains(f"^(?:{digits}| *)$")


def digits_by_overpunched_character(encoding: str) -> dict[str, tuple[str, bool]]:
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


def _text_slice_expression(column: FixedColumn) -> pl.Expr:
    return pl.col(TEXT).str.slice(column.at - 1, column.length)


def _unpadded_text_expression(raw: pl.Expr, column: FixedColumn) -> pl.Expr:
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


def _decimal_text_expression(sign: pl.Expr, digits: pl.Expr, decimals: int) -> pl.Expr:
    if decimals < 0:
        return pl.when(digits == "").then(pl.lit("0")).otherwise(pl.concat_str(sign, digits, pl.lit("0" * -decimals)))
    number = digits.str.zfill(decimals + 1)
    if not decimals:
        return pl.concat_str(sign, number)
    return pl.concat_str(sign, number.str.head(-decimals), pl.lit("."), number.str.tail(decimals))


def read_whole_number_or_none(column: FixedColumn, data: bytes, encoding: str) -> int | None:
    """Return the whole number that *column* has in the record *data*; None if it has none. For counts of tables."""
    cell_bytes = data[column.at - 1 : column.last_position]
    if len(cell_bytes) < column.length:
        return None
    if column.usage == "packed":
        half_bytes = cell_bytes.hex()
        return int(half_bytes[:-1]) if half_bytes[:-1].isdigit() and half_bytes[-1] in "acef" else None
    if column.usage is not None:
        order: Literal["little", "big"] = "little" if column.usage == "binary_little_endian" else "big"
        return int.from_bytes(cell_bytes, order, signed=column.sign is not None)
    text = cell_bytes.decode(encoding, "replace").strip(" +")
    if column.sign == "overpunch" and text:
        digit, is_negative = digits_by_overpunched_character(encoding).get(text[-1], ("", False))
        text = f"{text[:-1]}{digit}" if digit and not is_negative else ""
    return int(text) if text.isascii() and text.isdigit() else None


def _bytes_slice_expression(column: FixedColumn) -> pl.Expr:
    return pl.col(RAW).bin.slice(column.at - 1, column.length)


def _hex_text_expression(column: FixedColumn) -> pl.Expr:
    return _bytes_slice_expression(column).bin.encode("hex")


def _packed_number_text_expression(column: FixedColumn) -> pl.Expr:
    """Return a packed decimal as text: its half bytes are the digits and the sign.

    B and D are minus; A, C, E and F plus (IBM, z/Architecture Principles of Operation, "Decimal-Number Formats").
    """
    half_bytes = _hex_text_expression(column)
    digits = half_bytes.str.head(-1).str.strip_chars_start("0")
    is_minus = half_bytes.str.ends_with("d") | half_bytes.str.ends_with("b")
    sign = pl.when(is_minus & (digits != "")).then(pl.lit("-")).otherwise(pl.lit(""))
    return _decimal_text_expression(sign, digits, column.decimals or 0)


def _invalid_packed_number_expression(column: FixedColumn) -> pl.Expr:
    fits = column.length * 2 - 1
    digits = min(column.digits or fits, fits)
    signs = "[a-f]" if column.sign else "[acef]"
    return ~_hex_text_expression(column).str.contains(f"^0{{{fits - digits}}}[0-9]{{{digits}}}{signs}$")


def _binary_integer_expression(column: FixedColumn) -> pl.Expr:
    endianness: Literal["little", "big"] = "little" if column.usage == "binary_little_endian" else "big"
    dtype = _BINARY_LENGTHS[column.length][column.sign is not None]
    return _bytes_slice_expression(column).bin.reinterpret(dtype=dtype, endianness=endianness)


def _binary_number_text_expression(column: FixedColumn) -> pl.Expr:
    if column.usage == "hex":
        return _hex_text_expression(column)
    text = _binary_integer_expression(column).cast(pl.String)
    digits = text.str.strip_chars_start("-0")
    sign = pl.when(text.str.starts_with("-")).then(pl.lit("-")).otherwise(pl.lit(""))
    return _decimal_text_expression(sign, digits, column.decimals or 0)


def _too_many_binary_digits_expression(column: FixedColumn) -> pl.Expr | None:
    if column.digits is None or 10**column.digits > 1 << (8 * column.length):
        return None
    number, most = _binary_integer_expression(column), 10**column.digits - 1
    is_more: pl.Expr = number > most
    return is_more | (number < -most) if column.sign else is_more
