"""Repairs of columns and filters of rows, declared as data and applied to whole columns.

Repairs come before key, filters and fingerprint, so that all of them see the same text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Self

import polars as pl
from pydantic import model_validator

from crossdock.config_file import ConfigModel, GivenText


class Repair(ConfigModel):
    """Changes to the text of one column, in the order of these fields."""

    strip: Literal["both", "left", "right"] | None = None
    """Remove white space."""
    strip_prefix: GivenText = None
    """Removed once where the text begins with it."""
    strip_suffix: GivenText = None
    """Removed once where the text ends with it."""
    null: GivenText = None
    """A text that means empty, such as NULL; the cell becomes empty."""

    def expression(self, column: str) -> pl.Expr:
        text = pl.col(column)
        if self.strip:
            ways = {"both": text.str.strip_chars, "left": text.str.strip_chars_start, "right": text.str.strip_chars_end}
            text = ways[self.strip]()
        if self.strip_prefix:
            text = text.str.strip_prefix(self.strip_prefix)
        if self.strip_suffix:
            text = text.str.strip_suffix(self.strip_suffix)
        if self.null is not None:
            text = pl.when(text == self.null).then(pl.lit("")).otherwise(text)
        return text.alias(column)


class Filter(ConfigModel):
    """Rows to leave out: those whose *field* meets the one given condition."""

    field: str
    equals: GivenText = None
    one_of: tuple[str, ...] | None = None
    starts_with: GivenText = None
    ends_with: GivenText = None
    empty: bool | None = None
    """True: rows where the field is empty; false: rows where it is not."""

    @model_validator(mode="after")
    def _one_condition(self) -> Self:
        conditions = self.equals, self.one_of, self.starts_with, self.ends_with, self.empty
        if sum(value is not None for value in conditions) != 1:
            raise ValueError("give one of equals, one_of, starts_with, ends_with, empty")
        return self

    def columns(self) -> tuple[str, ...]:
        """The columns that it looks at."""
        return (self.field,)

    def expression(self) -> pl.Expr:
        """True for rows to leave out; never null."""
        text = pl.col(self.field).fill_null("")
        if self.equals is not None:
            return text == self.equals
        if self.one_of is not None:
            return text.is_in(list(self.one_of))
        if self.starts_with is not None:
            return text.str.starts_with(self.starts_with)
        if self.ends_with is not None:
            return text.str.ends_with(self.ends_with)
        return (text == "") if self.empty else (text != "")


def first_match(filters: Mapping[str, Filter]) -> pl.Expr:
    """The name of the first filter that matches a row; null for rows that stay."""
    chain: pl.Expr = pl.lit(None, dtype=pl.String)
    for name, condition in reversed(list(filters.items())):
        chain = pl.when(condition.expression()).then(pl.lit(name)).otherwise(chain)
    return chain
