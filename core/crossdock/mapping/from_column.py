"""The form of a map that reads a column: as text, converted, or looked up in a table."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    Discriminator,
    Field,
    Strict,
    StrictBool,
    StrictInt,
    StrictStr,
    Tag,
    WithJsonSchema,
    model_validator,
)

from crossdock.config_file import NOT_NULL, ConfigModel, misplaced
from crossdock.errors import RecordError
from crossdock.mapping import convert
from crossdock.mapping.convert import Row
from crossdock.mapping.number_format import DecimalMark, Rounding, Sign, Thousands
from crossdock.scheduling.time_zones import zone_name

Value = Callable[[Row], Any]  # None leaves the member out


def _date_format(layout: str) -> str:
    if "%" not in layout:
        raise ValueError("is not a date format such as %Y-%m-%d")
    try:
        datetime.strptime(datetime(2001, 2, 3, 4, 5, 6, tzinfo=UTC).strftime(layout), layout)  # noqa: DTZ007  a trial
    except (ValueError, TypeError, LookupError, re.error):  # strptime compiles it to a regular expression
        raise ValueError(
            f"{layout!r} is not a valid date format for reading; use each directive, such as %Y, only once"
        ) from None
    return layout


DateFormat = Annotated[str, Field(max_length=100), AfterValidator(_date_format)]


def _one_or_several(value: Any) -> str:
    return "several" if isinstance(value, list | tuple) else "one"


Texts = Annotated[
    Annotated[str, Tag("one")] | Annotated[tuple[str, ...], Tag("several")], Discriminator(_one_or_several)
]
Number = StrictInt | Annotated[Decimal, Strict(), WithJsonSchema({"type": "number"})]
Scalar = StrictStr | StrictBool | Number


class FromColumn(ConfigModel):
    """A column, as text, converted, or looked up in a table. An empty cell leaves the member out."""

    from_: Annotated[str, Field(alias="from")]
    as_: Annotated[Literal["text", "decimal", "integer", "date", "instant", "boolean"], Field(alias="as")] = "text"
    format: DateFormat | None = None
    """The format of a date or instant, as for strptime."""
    timezone: Annotated[str, AfterValidator(zone_name)] | None = None
    """IANA time zone of an instant without offset."""
    decimal_mark: DecimalMark = "."
    thousands: Thousands | None = None
    """The mark between groups of three digits; none by default."""
    sign: Sign | None = None
    """Where a number's sign is: ``leading`` by default."""
    round: Rounding | None = None
    """How digits after the fourth of a decimal are rounded; they are refused by default."""
    true_text: str = "true"
    false_text: str = "false"
    empty: Annotated[Texts | None, NOT_NULL] = None
    """Texts that count as empty too, such as 00000000."""
    table: Annotated[Mapping[str, Scalar], Field(min_length=1)] | None = None
    """The value of each text of the column. Another text rejects the record, unless ``otherwise`` is set."""
    otherwise: Scalar | None = None
    """The value of a text that the table does not list."""
    default: Scalar | None = None
    """The value of an empty cell."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        numeric = self.as_ in {"decimal", "integer"}
        wrong = {
            "thousands": self._thousands_problem() if numeric else "needs as: decimal or as: integer",
            "sign": None if numeric else "needs as: decimal or as: integer",
            "round": None if self.as_ == "decimal" else "needs as: decimal",
            "table": None if self.as_ == "text" else "looks up the text of the column, so `as` cannot be used",
            "otherwise": "needs a table; use default for empty cells" if self.table is None else None,
        }
        for name, problem in wrong.items():
            if problem and getattr(self, name) is not None:
                raise misplaced((name,), problem)
        return self

    def _thousands_problem(self) -> str | None:
        if self.thousands != self.decimal_mark:
            return None
        return f"is the decimal mark too; set decimal_mark, which is {self.decimal_mark!r}"

    def compile(self) -> Value:
        column, read, default = self.from_, self._reader(), self.default
        empty = frozenset([self.empty] if isinstance(self.empty, str) else self.empty or ())
        may_be_blank = self.as_ in {"decimal", "integer"}

        def value(row: Row) -> Any:
            cell = row[column]
            if not cell or cell in empty or (may_be_blank and cell.isspace()):
                return default
            return read(row) if read else cell

        return value

    def _reader(self) -> Value | None:
        column = self.from_
        marks: Any = {"decimal_mark": self.decimal_mark, "thousands": self.thousands, "sign": self.sign or "leading"}
        match self.as_:
            case "text":
                return self._look_up if self.table is not None else None
            case "decimal":
                return lambda row: convert.decimal(row, column, **marks, round=self.round)
            case "integer":
                return lambda row: convert.integer(row, column, **marks)
            case "date":
                return lambda row: convert.day(row, column, layout=self.format or "%Y-%m-%d")
            case "instant":
                return lambda row: convert.instant(row, column, layout=self.format, timezone=self.timezone)
            case "boolean":
                return lambda row: convert.boolean(row, column, true=self.true_text, false=self.false_text)

    def columns(self) -> Iterator[str]:
        yield self.from_

    def _look_up(self, row: Row) -> Scalar:
        found = (self.table or {}).get(row[self.from_] or "", self.otherwise)
        if found is None:
            raise RecordError("bad_value", "is not in the table of the map", pointer=self.from_)
        return found
