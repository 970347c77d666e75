"""Findings about the cells of a column: characters, numbers and dates that a migration should check."""

from __future__ import annotations

from typing import Literal, get_args

import polars as pl

from crossdock.reading.formats.suspicious_cells import SPREADSHEET, WRONG_ENCODING
from crossdock.values.field_types import MAX_DIGITS_AFTER_POINT, MAX_DIGITS_BEFORE_POINT

Finding = Literal[
    "outer_blanks",  # blanks or tabs before or after the text
    "control",  # control characters, such as line breaks
    "damaged",  # U+FFFD, or UTF-8 that was read as Windows-1252 or Latin-1
    "spreadsheet",  # what a spreadsheet made of a number or text: 4.00638E+12, 1-Mar, #REF!
    "invisible",  # no-break or zero-width blanks, soft hyphens, marks of direction
    "not_nfc",  # accents as characters of their own, so that equal texts differ
    "number_out_of_range",  # more digits than the platform takes
    "date_out_of_range",  # before 1900 or after 2100
    "date_impossible",  # 0000-00-00, 31 February
]
FINDINGS: tuple[Finding, ...] = get_args(Finding)

_BEFORE, _AFTER = MAX_DIGITS_BEFORE_POINT, MAX_DIGITS_AFTER_POINT
_FIRST_YEAR, _LAST_YEAR = 1900, 2100
_WHOLE = r"^[+-]?[0-9]+$"
_DECIMAL = r"^[+-]?[0-9]*[.,][0-9]+$"
_TOO_LONG = rf"^[+-]?0*[1-9][0-9]{{{_BEFORE},}}(?:[.,]|$)|[.,][0-9]{{{_AFTER}}}[0-9]*[1-9]"
_DAY = r"^([0-9]{1,4}[-/.][0-9]{1,2}[-/.][0-9]{1,4})(?:[ T].*)?$"
_DAY_PARTS = r"^([0-9]+)[-/.]([0-9]+)[-/.]([0-9]+)$"
_CONTROL = r"[\x00-\x1f\x7f-\x9f]"
_INVISIBLE = r"[\u00a0\u00ad\u061c\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff]"

VALUE, COUNT, PLACE, STRIPPED, CHARACTERS = "value", "count", "place", "stripped", "characters"
"""The columns of a frame with one row for each different value: its text, the number of cells with it, the place of the
first, the text without outer blanks, and the number of characters.
"""
WHOLE, DECIMAL, DAY, ASCII = "whole", "decimal", "day", "ascii"


def with_cell_classes(values: pl.LazyFrame) -> pl.LazyFrame:
    """Add the columns `STRIPPED`, `CHARACTERS`, `WHOLE`, `DECIMAL`, `DAY` and `ASCII`, and some findings."""
    value, stripped = pl.col(VALUE), pl.col(STRIPPED)
    characters = value.str.len_chars().alias(CHARACTERS)
    return values.with_columns(value.str.strip_chars().alias(STRIPPED)).with_columns(
        characters,
        stripped.str.contains(_WHOLE).alias(WHOLE),
        stripped.str.contains(_DECIMAL).alias(DECIMAL),
        stripped.str.extract(_DAY).alias(DAY),
        (value.str.len_bytes() == characters).alias(ASCII),
        (value.str.len_bytes() != stripped.str.len_bytes()).alias("outer_blanks"),
        value.str.contains(_CONTROL).alias("control"),
    )


def findings(values: pl.DataFrame) -> dict[Finding, pl.DataFrame]:
    """Return the rows of *values*, which `with_cell_classes` has made, by finding; for dates, one row for each day."""
    numbers = values.filter((pl.col(WHOLE) | pl.col(DECIMAL)) & (pl.col(CHARACTERS) > _AFTER))
    special, days = values.filter(~pl.col(ASCII)), dates(values)
    value, possible = pl.col(VALUE), pl.col("date").is_not_null()
    return {
        "outer_blanks": values.filter("outer_blanks"),
        "control": values.filter("control"),
        "damaged": special.filter(value.str.contains(WRONG_ENCODING)),
        "spreadsheet": values.filter(pl.col(STRIPPED).str.contains(SPREADSHEET)),
        "invisible": special.filter(value.str.contains(_INVISIBLE)),
        "not_nfc": special.filter(value != value.str.normalize("NFC")),
        "number_out_of_range": numbers.filter(pl.col(STRIPPED).str.contains(_TOO_LONG)),
        "date_out_of_range": days.filter(~pl.col("date").dt.year().is_between(_FIRST_YEAR, _LAST_YEAR)),
        "date_impossible": days.filter(~possible),
    }


def dates(values: pl.DataFrame) -> pl.DataFrame:
    """Return the days in *values*: `VALUE`, `COUNT`, `PLACE`, and ``date``, null if the calendar has no such day.

    A day is ``2027-03-01``, ``01.03.2027`` or with slashes, with or without a time. If day and month could be swapped,
    it is possible if one of the two dates is.
    """
    days = (
        values.filter(pl.col(DAY).is_not_null())
        .group_by(pl.col(DAY).alias(VALUE))
        .agg(pl.col(COUNT).sum(), pl.col(PLACE).min())
    )
    parts = pl.col(VALUE).str.extract_groups(_DAY_PARTS)
    first, second, third = (parts.struct.field(str(number)) for number in (1, 2, 3))
    year_first, year_last = first.str.len_chars() == 4, third.str.len_chars() == 4
    in_order = _date(first, second, third)
    turned = pl.coalesce(_date(third, second, first), _date(third, first, second))
    day = pl.when(year_first).then(in_order).when(year_last).then(turned)
    return days.filter(year_first != year_last).with_columns(day.alias("date"))


def _date(year: pl.Expr, month: pl.Expr, day: pl.Expr) -> pl.Expr:
    return pl.concat_str([year, month.str.zfill(2), day.str.zfill(2)], separator="-").str.to_date(
        "%Y-%m-%d", strict=False
    )
