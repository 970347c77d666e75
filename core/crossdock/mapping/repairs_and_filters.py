"""Repairs of columns, and filters of rows. Keys, filters and fingerprints see the repaired text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Literal, Self
from urllib.parse import unquote

import polars as pl
from pydantic import ConfigDict, Field, model_validator

from crossdock.mapping.convert import Row
from crossdock.printable import BLANKS
from crossdock.values.config_base_types import ConfigModel, GivenText
from crossdock.values.json_paths import at_path, column_text
from crossdock.values.raw_rows_and_records import column_expression_by_exact_name

MAX_ZFILL = 100
_LINE_BREAKS = "[\r\n\u0085\u2028\u2029]+"
MAX_DEPTH = 5
"""The nesting depth of conditions."""
_COMPARISONS = ("equals", "one_of", "starts_with", "ends_with", "empty")
_KEYS = [*(("field", name) for name in _COMPARISONS), ("not",), ("any",), ("all",)]


def _percent_decoded(text: str) -> str:
    """Decode percent-encoding, but return *text* if it is not UTF-8: replacement characters could merge two ids."""
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        return text


class Repair(ConfigModel):
    """Changes to the text of one column, in the order of these fields."""

    decode: Literal["percent"] | None = None
    """``percent`` decodes the percent-encoding of URLs, as some ids have it: ``a%2Fb`` is ``a/b``."""
    strip: Literal["both", "left", "right"] | None = None
    """Remove white space of any kind, and characters without a width."""
    line_breaks: GivenText = None
    """The text that takes the place of the line breaks inside of a cell, such as a space; several count as one."""
    strip_prefix: GivenText = None
    """Text that is removed once from the beginning."""
    strip_suffix: GivenText = None
    """Text that is removed once from the end."""
    null: GivenText = None
    """A text that means empty, such as NULL; the cell becomes empty."""
    zfill: Annotated[int, Field(ge=1, le=MAX_ZFILL)] | None = None
    """How many digits a cell of digits alone has, with zeros before it."""
    table: Mapping[str, str] | None = None
    """The text that takes the place of each of these texts; any other stays. An empty text stands for null as well."""

    def expression(self, column: str) -> pl.Expr:
        text = column_expression_by_exact_name(column)
        if self.decode:
            text = text.map_elements(_percent_decoded, return_dtype=pl.String)
        if self.strip:
            ways = {"both": text.str.strip_chars, "left": text.str.strip_chars_start, "right": text.str.strip_chars_end}
            text = ways[self.strip](BLANKS)
        if self.line_breaks is not None:
            text = text.str.replace_all(_LINE_BREAKS, self.line_breaks.replace("$", "$$"))
        if self.strip_prefix:
            text = text.str.strip_prefix(self.strip_prefix)
        if self.strip_suffix:
            text = text.str.strip_suffix(self.strip_suffix)
        if self.null is not None:
            text = pl.when(text == self.null).then(pl.lit("")).otherwise(text)
        if self.zfill is not None:
            text = pl.when(text.str.contains("^[0-9]+$")).then(text.str.pad_start(self.zfill, "0")).otherwise(text)
        if self.table is not None:
            text = (text.fill_null("") if "" in self.table else text).replace(self.table)
        return text.alias(column)


class Filter(ConfigModel):
    """A condition on a row: one comparison of *field*, or one combination of other conditions.

    An empty cell and a null are the same text, the empty one.
    """

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": list(keys)} for keys in _KEYS]})

    field: str | None = None
    """The column that the condition tests, with exactly one of the comparisons ``equals``, ``one_of``, ``starts_with``,
    ``ends_with`` and ``empty``."""
    equals: GivenText = None
    """Rows whose field is this text."""
    one_of: tuple[str, ...] | None = None
    """Rows whose field is one of these texts."""
    starts_with: GivenText = None
    """Rows whose field begins with this text."""
    ends_with: GivenText = None
    """Rows whose field ends with this text."""
    empty: bool | None = None
    """``true``: rows whose field is empty; ``false``: rows whose field is not empty. Blanks alone are empty, too."""
    not_: Annotated[Filter | None, Field(alias="not")] = None
    """Rows that do not meet this condition."""
    any: Annotated[tuple[Filter, ...], Field(min_length=1)] | None = None
    """Rows that meet at least one of these conditions."""
    all: Annotated[tuple[Filter, ...], Field(min_length=1)] | None = None
    """Rows that meet all of these conditions."""

    @model_validator(mode="after")
    def _check_one_condition(self) -> Self:
        given = [name for name in _COMPARISONS if getattr(self, name) is not None]
        combined = [value for value in (self.not_, self.any, self.all) if value is not None]
        if (self.field is None) is bool(given) or len(given) + len(combined) != 1:
            raise ValueError(f"give field and one of {', '.join(_COMPARISONS)}; or one of not, any, all")
        if self._depth() > MAX_DEPTH:
            raise ValueError(f"conditions are nested more than {MAX_DEPTH} levels deep")
        return self

    def _depth(self) -> int:
        return 1 + max((inner._depth() for inner in self._inner_conditions()), default=0)  # noqa: SLF001  of the same class

    def _inner_conditions(self) -> tuple[Filter, ...]:
        return (self.not_,) if self.not_ is not None else (self.any or self.all or ())

    def columns(self) -> Iterator[str]:
        if self.field is not None:
            yield self.field
        for inner in self._inner_conditions():
            yield from inner.columns()

    def if_all_is_read(self, unread: Callable[[str], Filter | None]) -> Filter:
        """Return this condition for rows of which each column that it tests was read.

        *unread* returns the condition for rows that lack a column only because it could not be read; None for others.
        """
        lacking = [Filter(not_=each) for column in self.columns() if (each := unread(column)) is not None]
        return Filter.model_construct(all=(self, *lacking)) if lacking else self  # deeper than a config may nest them

    def json_predicate(self) -> Callable[[Any], bool]:
        """Return a function that says whether a JSON value meets the condition. Fields are dotted paths."""
        meets, columns = self.predicate(), tuple(self.columns())
        return lambda value: meets({column: column_text(at_path(value, column)) for column in columns})

    def expression(self) -> pl.Expr:
        """Return an expression that is true for rows that meet the condition, and never null."""
        if inner := [each.expression() for each in self._inner_conditions()]:
            if self.not_ is not None:
                return ~inner[0]
            return pl.any_horizontal(inner) if self.any else pl.all_horizontal(inner)
        return self._comparison_expression(column_expression_by_exact_name(self.field or "").fill_null(""))

    def _comparison_expression(self, text: pl.Expr) -> pl.Expr:
        if self.equals is not None:
            return text == self.equals
        if self.one_of is not None:
            return text.is_in(list(self.one_of))
        if self.starts_with is not None:
            return text.str.starts_with(self.starts_with)
        if self.ends_with is not None:
            return text.str.ends_with(self.ends_with)
        return (text.str.strip_chars(BLANKS) == "") == self.empty

    def predicate(self) -> Callable[[Row], bool]:
        """Return the condition on one row, equivalent to `expression`."""
        if inner := [each.predicate() for each in self._inner_conditions()]:
            if self.not_ is not None:
                return lambda row: not inner[0](row)
            combined = any if self.any else all
            return lambda row: combined(condition(row) for condition in inner)
        compare, field = self._comparison_predicate(), self.field or ""
        return lambda row: compare(row[field] or "")

    def _comparison_predicate(self) -> Callable[[str], bool]:
        for wanted, compare in (
            (self.equals, str.__eq__),
            (self.starts_with, str.startswith),
            (self.ends_with, str.endswith),
        ):
            if wanted is not None:
                return lambda text: compare(text, wanted)
        if self.one_of is not None:
            return frozenset(self.one_of).__contains__
        return lambda text: (text.strip(BLANKS) == "") is self.empty


def name_of_first_matching_filter(filters: Mapping[str, Filter]) -> pl.Expr:
    """Return the name of the first filter that matches a row; null for rows that stay."""
    chain: pl.Expr = pl.lit(None, dtype=pl.String)
    for name, condition in reversed(list(filters.items())):
        chain = pl.when(condition.expression()).then(pl.lit(name)).otherwise(chain)
    return chain
