"""Columns that order the rows of a record, and positions: texts that sort as their values do.

A position is stored with each record, so its form never changes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from crossdock.mapping import convert
from crossdock.mapping.convert import Row
from crossdock.mapping.from_column import DateFormat
from crossdock.values import exact_json
from crossdock.values.config_base_types import ConfigModel, finding_about_key
from crossdock.values.field_types import MAX_DIGITS_AFTER_POINT, MAX_DIGITS_BEFORE_POINT
from crossdock.values.fixed_decimal_contexts import EXACT
from crossdock.values.time_format_parsing import Ambiguous, TimeFormat
from crossdock.values.time_zones import check_zone_name

KIND_LENGTH = 8
_SHIFT = 10 ** (MAX_DIGITS_BEFORE_POINT + MAX_DIGITS_AFTER_POINT)  # makes every number positive


class OrderBy(ConfigModel):
    """A column that orders the rows of a record, and what its text means. An empty cell is the oldest."""

    column: str
    """The column or, of the cursor of an API, the dotted path of the member."""
    as_: Annotated[Literal["text", "instant", "decimal", "integer"], Field(alias="as")] = "text"
    """What it holds, by which its values are compared."""
    format: DateFormat | None = None
    """The format of an instant, as in a map; ISO 8601 by default."""
    timezone: Annotated[str, AfterValidator(check_zone_name)] | None = None
    """IANA time zone of an instant without offset."""
    ambiguous: Ambiguous | None = None
    """What is read of a local time that occurs twice, or never, as in a map. Default: ``reject``; of the cursor of an
    API ``earlier``, so that records are read again and none is missed."""
    hour_24: bool | None = None
    """Whether the time 24:00 is the end of a day, as in a map; refused by default."""

    @model_validator(mode="after")
    def _check_options_of_instant(self) -> Self:
        for name in ("format", "timezone", "ambiguous", "hour_24"):
            if getattr(self, name) is not None and self.as_ != "instant":
                raise finding_about_key((name,), "needs as: instant")
        return self

    def position(self, row: Row) -> str:
        """Return text that sorts as the values of the column do."""
        cell = row.get(self.column)  # a record of an earlier version may lack it
        if not cell:
            return ""
        match self.as_:
            case "text":
                return cell
            case "instant":
                moment, fraction = self._time_format.parse_instant_and_fraction(cell, self.column)
                return _sortable_instant_text(moment, fraction)
            case "decimal":
                return _sortable_number_text(convert.decimal(row, self.column))
            case "integer":
                return _sortable_number_text(Decimal(convert.integer(row, self.column)))

    @property
    def _time_format(self) -> TimeFormat:
        return TimeFormat(self.format, self.timezone, self.ambiguous, self.hour_24)


def as_order_by(order_by: Sequence[str | OrderBy] | None) -> list[OrderBy]:
    return [OrderBy(column=item) if isinstance(item, str) else item for item in order_by or ()]


def position_prefix_from_order_hash(columns: Sequence[OrderBy]) -> str:
    """Return the prefix of a position, empty for text. Positions with different prefixes are not comparable."""
    if all(item.as_ == "text" for item in columns):
        return ""
    declarations = [item.model_dump(by_alias=True, exclude_none=True) for item in columns]
    return f"\x1e{hashlib.sha256(exact_json.dumps(declarations)).hexdigest()[:KIND_LENGTH]}\x1f"


def _sortable_instant_text(moment: datetime, fraction: str) -> str:
    return f"{moment.replace(tzinfo=None).isoformat(timespec='seconds')}.{fraction:0<9}Z"


def _sortable_number_text(number: Decimal) -> str:
    """Format the number as twenty digits that sort as numbers do, including negative ones."""
    return f"{int(EXACT.scaleb(number, MAX_DIGITS_AFTER_POINT)) + _SHIFT:020}"
