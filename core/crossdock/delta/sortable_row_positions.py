"""Positions in columns, and times and numbers whose order as text is not their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import polars as pl

from crossdock.errors import RecordError, RefusedError
from crossdock.mapping.row_order_and_cursors import KIND_LENGTH, OrderBy, position_prefix_from_order_hash
from crossdock.values.raw_rows_and_records import (
    LINE,
    cells_of_column,
    column_expression_by_exact_name,
    column_expressions_by_exact_names,
)

_SEPARATOR = "\x1f"  # sorts before every printable character
_ZONE = "(?:Z|[+-][0-9]{2}:?[0-9]{2})"
_CLOCK = "[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)?"
_TIME = f"^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}([T ]){_CLOCK}({_ZONE})$"
_USUAL = (
    "^(?<day>(?:19|20)[0-9]{2}-[0-9]{2}-[0-9]{2})[T ](?<clock>[0-9]{2}:[0-9]{2}:[0-5][0-9])"
    "(?:[.,](?<fraction>[0-9]{1,9}))?(?:Z|(?<sign>[+-])(?<hours>[01][0-9]):?(?<minutes>[0-5][0-9]))$"
)
_NUMBER = r"([^0-9\x00-\x1f]{0,8})(0*[1-9][0-9]*)(?:[.,][0-9]+)?"  # zero comes first as text, too
"""A number, also behind letters or with decimals: R10, 10.5. Its groups are what is before it, and its whole digits."""
_MONTH = (
    "(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:t(?:ember)?)?|oct(?:ober)?"
    "|nov(?:ember)?|dec(?:ember)?)"
)
_UNSORTABLE = "|".join(
    (
        "^[0-9]{1,2}[./-][0-9]{1,2}[./-][0-9]{4}(?:[^0-9]|$)",  # 30.11.2026, 11/30/2026
        f"(?i)^(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,? +)?(?:[0-9]{{1,2}}[-./ ]*)?{_MONTH}[-./, ]+[0-9]",
        r"(?i)[0-9]:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)? ?[ap]\.?m\.?$",  # 4:00 PM
        "^[0-9]{4}[./-](?:[0-9][./-]|[0-9]{2}[./-][0-9](?:[^0-9]|$))",  # 2026-9-1
        "^[0-9]{4}[./-][0-9]{2}[./-][0-9]{2}[T ]+[0-9]:",  # 2026-11-30 9:05
    )
)
"""Times that do not sort as text, whatever the others are."""
_HINT = (
    "declare what the column holds: order_by: [{column: COLUMN, as: instant}], with format and timezone if it is not in"
    " ISO 8601, or as: integer or decimal; columns: {COLUMN: {strip_prefix: R}} removes what precedes a number"
)


def sortable_text_of_rows(columns: Sequence[OrderBy], frame: pl.DataFrame) -> pl.Expr:
    """Compute the text that orders rows; null if a cell does not convert. NUL is replaced for PostgreSQL."""
    parts = [sortable_text_of_column(item, frame) for item in columns]
    joined = pl.concat_str(
        [pl.lit(position_prefix_from_order_hash(columns)) + parts[0], *parts[1:]], separator=_SEPARATOR
    )
    return joined.str.replace_all("\0", "\x01", literal=True)


def sortable_text_of_column(item: OrderBy, frame: pl.DataFrame) -> pl.Expr:
    """Compute the text that orders rows by one column, which is comparable only with others of that column."""
    column = cells_of_column(frame, item.column)
    if item.as_ == "text":
        return column_expression_by_exact_name(item.column).fill_null("")
    usual = (
        _instants_in_usual_notation(column) if item.as_ == "instant" and item.format is None else [None] * len(column)
    )
    cells = zip(usual, column.to_list(), strict=True)
    return pl.lit(pl.Series([found or _position(item, cell) for found, cell in cells], dtype=pl.String))


def _instants_in_usual_notation(column: pl.Series) -> list[str | None]:
    """Convert usual notations of instants as `OrderBy.position` does, in fast columns; None for other text."""
    parts = column.str.extract_groups(_USUAL).struct.unnest()
    local = (parts["day"] + " " + parts["clock"]).str.to_datetime("%Y-%m-%d %H:%M:%S", strict=False)
    minutes = parts["hours"].cast(pl.Int64) * 60 + parts["minutes"].cast(pl.Int64)
    signed = pl.select(pl.when(parts["sign"] == "-").then(-minutes).otherwise(minutes)).to_series().fill_null(0)
    utc = local - (signed * 60_000_000).cast(pl.Duration("us"))
    fraction = parts["fraction"].fill_null("").str.pad_end(9, "0")
    found: list[str | None] = (utc.dt.strftime("%Y-%m-%dT%H:%M:%S") + "." + fraction + "Z").to_list()
    return found


def _position(item: OrderBy, cell: str | None) -> str | None:
    try:
        return item.position({item.column: cell})
    except RecordError:
        return None


def comparable_positions_expression(one: str, other: str) -> pl.Expr:
    """Return whether two positions were made by the same ``order_by``. Those of text always are."""
    kinds = (pl.col(name).str.extract(f"^(\x1e[0-9a-f]{{{KIND_LENGTH}}})").fill_null("") for name in (one, other))
    return next(kinds) == next(kinds)


def differing_notations_expression(one: str, other: str) -> pl.Expr:
    """Return whether two positions have times with different UTC offsets, or begin with numbers of different length."""

    def zones(name: str) -> pl.Expr:
        times = pl.col(name).str.extract_all(_CLOCK + _ZONE)
        return times.list.eval(pl.element().str.extract(f"({_ZONE})$")).list.join(" ")

    def number(name: str, group: int) -> pl.Expr:
        kind = f"(?:\x1e[0-9a-f]{{{KIND_LENGTH}}}{_SEPARATOR})?"
        return pl.col(name).str.extract(f"^{kind}{_NUMBER}(?:{_SEPARATOR}|$)", group)

    differing_zones = (zones(one) != zones(other)) & (zones(one) != "") & (zones(other) != "")
    differing_lengths = number(one, 2).str.len_bytes() != number(other, 2).str.len_bytes()
    is_alike = number(one, 1) == number(other, 1)
    return differing_zones | (is_alike & differing_lengths).fill_null(value=False)


def notation_differs_from_stored_error(where: str) -> RefusedError:
    message = "order_by compares text, which has another UTC offset or number of digits than the one of the state"
    return RefusedError(message, where=where, hint=_HINT, code="order_incomparable")


class TextNotations:
    """Checks that the times, and the numbers, in each column that is compared as text have one notation in all input of
    a run.
    """

    def __init__(self, columns: Sequence[OrderBy]) -> None:
        self._columns = [item.column for item in columns if item.as_ == "text"]
        self._first: dict[tuple[str, str, str], tuple[str, str]] = {}  # by column, kind and text before it

    def check(self, source: str, frame: pl.DataFrame) -> None:
        for column in self._columns:
            text = column_expression_by_exact_name(column)
            for line in frame.filter(text.str.contains(_UNSORTABLE))[LINE].head(1):
                message = f"column {column!r} has a time that does not sort as text"
                self._raise_error(message, f"{source}:{line}")
            self._check_kind("times", column, source, frame.filter(text.str.contains(_TIME)), _time_notation(text))
            numbers = frame.filter(text.str.contains(f"^{_NUMBER}$"))
            written = pl.concat_str(
                text.str.extract(f"^{_NUMBER}$", 1), text.str.extract(f"^{_NUMBER}$", 2).str.replace_all("[0-9]", "0")
            )
            self._check_kind("numbers", column, source, numbers, written)

    def _check_kind(self, kind: str, column: str, source: str, found: pl.DataFrame, notation: pl.Expr) -> None:
        notations = found.select(notation.alias(column), LINE)
        for written, line in notations.unique(
            column_expressions_by_exact_names([column]), keep="first", maintain_order=True
        ).iter_rows():
            before = written.rstrip("0") if kind == "numbers" else ""  # only alike numbers are compared as such
            first, place = self._first.setdefault((column, kind, before), (written, f"{source}:{line}"))
            if first != written:
                message = f"column {column!r} has {kind} written as {written} and, at {place}, as {first}"
                self._raise_error(message, f"{source}:{line}")

    @staticmethod
    def _raise_error(message: str, where: str) -> NoReturn:
        message = f"{message}, and order_by compares text"
        raise RefusedError(message, where=where, hint=_HINT, code="order_incomparable")


def _time_notation(text: pl.Expr) -> pl.Expr:
    """Return the notation of a time. With an offset, the number of its digits does not matter; before ``Z`` it does."""
    with_offset = text.str.replace(_TIME, "0000-00-00${1}00:00:00${2}")
    return pl.when(text.str.ends_with("Z")).then(text.str.replace_all("[0-9]", "0")).otherwise(with_offset)
