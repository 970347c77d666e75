"""Typed access to JSON by pointer: of records, and of the elements of their lists."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeVar, overload

from pydantic import BaseModel, ValidationError

from crossdock.errors import RecordError
from crossdock.values import exact_json, json_paths
from crossdock.values.field_types import minor_unit_digits_or_none
from crossdock.values.json_paths import MISSING
from crossdock.values.time_formats_and_zones import UNIX, Ambiguous, TimeFormat

J = TypeVar("J", str, bool, int, Decimal, list[Any], dict[str, Any])
D = TypeVar("D")
M = TypeVar("M", bound=BaseModel)
_DECIMALS = 4  # of the numbers in drafts


class JsonAccess(ABC):
    """A value that was read as JSON. Every method raises `RecordError` with the pointer, and without the value."""

    __slots__ = ()

    @property
    @abstractmethod
    def _json_document(self) -> Any:
        """The value at which pointers begin."""

    @abstractmethod
    def _full_pointer(self, pointer: str) -> str:
        """Return *pointer* as it is in the object that was read."""

    @overload
    def at(self, pointer: str, kind: type[J]) -> J: ...
    @overload
    def at(self, pointer: str, kind: type[J], *, default: D) -> J | D: ...
    def at(self, pointer: str, kind: type[Any], *, default: Any = MISSING) -> Any:
        """Return the value at *pointer*.

        Args:
            pointer: RFC 6901, such as ``/customer/id`` or ``/lines/0/sku``.
            kind: ``str``, ``bool``, ``int``, ``Decimal`` (which takes whole numbers too), ``list`` or ``dict``.
            default: Returned if the value is missing or null.
        """
        value = json_paths.value_at_pointer_refusing_wrong_containers(
            self._json_document, pointer, format_pointer=self._full_pointer
        )
        if default is not MISSING and (value is None or value is MISSING):
            return default
        return json_paths.require_json_type(value, kind, self._full_pointer(pointer))

    @overload
    def identifier(self, pointer: str) -> str: ...
    @overload
    def identifier(self, pointer: str, *, default: D) -> str | D: ...
    def identifier(self, pointer: str, *, default: Any = MISSING) -> Any:
        """Return the identifier at *pointer*: a text that is not empty, or the text of a whole number.

        Args:
            default: Returned if the value is missing, null or an empty text.
        """
        value = json_paths.value_at_pointer_refusing_wrong_containers(
            self._json_document, pointer, format_pointer=self._full_pointer
        )
        if default is not MISSING and (value is None or value is MISSING or value == ""):
            return default
        if type(value) is int:
            return str(value)
        text: str = json_paths.require_json_type(value, str, self._full_pointer(pointer))
        if not text:
            raise RecordError("bad_value", "is empty", pointer=self._full_pointer(pointer))
        return text

    @overload
    def decimal(self, pointer: str, *, minor_units: int | str = 0, divided_by: Decimal | int = 1) -> Decimal: ...
    @overload
    def decimal(
        self, pointer: str, *, minor_units: int | str = 0, divided_by: Decimal | int = 1, default: D
    ) -> Decimal | D: ...
    def decimal(
        self, pointer: str, *, minor_units: int | str = 0, divided_by: Decimal | int = 1, default: Any = MISSING
    ) -> Any:
        """Return the exact number at *pointer*, a JSON number or text: ``19.90`` or ``"19.90"``.

        Args:
            minor_units: Digits after the decimal point if the source counts cents or the like: with 2, ``1990`` and
                ``"1990"`` are 19.90, and ``19.90`` is an error. A currency stands for its digits (ISO 4217), and so
                does a JSON pointer to one, such as ``/price/currency``.
            divided_by: For the price of a unit where the source has only that of a line: its quantity. A quotient with
                more than four decimals is an error.
            default: Returned if the value is missing, null or an empty text.
        """
        value = json_paths.value_at_pointer_refusing_wrong_containers(
            self._json_document, pointer, format_pointer=self._full_pointer
        )
        if default is not MISSING and (value is None or value is MISSING or value == ""):
            return default
        number = json_paths.parse_exact_number(
            value, self._full_pointer(pointer), self._minor_unit_digits(pointer, minor_units)
        )
        return number if divided_by == 1 else _quotient(number, divided_by, self._full_pointer(pointer))

    def _minor_unit_digits(self, pointer: str, minor_units: int | str) -> int:
        if isinstance(minor_units, int):
            return minor_units
        code = self.at(minor_units, str) if minor_units.startswith("/") else minor_units
        digits = minor_unit_digits_or_none(code)
        if digits is None:
            message = "is in a currency that has no minor units (ISO 4217)"
            raise RecordError("bad_value", message, pointer=self._full_pointer(pointer))
        return digits

    @overload
    def day(self, pointer: str, *, layout: str | None = None) -> date: ...
    @overload
    def day(self, pointer: str, *, layout: str | None = None, default: D) -> date | D: ...
    def day(self, pointer: str, *, layout: str | None = None, default: Any = MISSING) -> Any:
        """Return the day at *pointer*.

        Args:
            layout: A format of `datetime.strptime`, such as ``%Y%m%d``; None for ISO 8601, ``2026-03-01``.
            default: Returned if the value is missing, null or an empty text.
        """
        text = self._text(pointer, default)
        return default if text is None else TimeFormat(layout).parse_day(text, self._full_pointer(pointer))

    @overload
    def instant(
        self,
        pointer: str,
        *,
        layout: str | None = None,
        timezone: str | None = None,
        ambiguous: Ambiguous | None = None,
    ) -> datetime: ...
    @overload
    def instant(
        self,
        pointer: str,
        *,
        layout: str | None = None,
        timezone: str | None = None,
        ambiguous: Ambiguous | None = None,
        default: D,
    ) -> datetime | D: ...
    def instant(
        self,
        pointer: str,
        *,
        layout: str | None = None,
        timezone: str | None = None,
        ambiguous: Ambiguous | None = None,
        default: Any = MISSING,
    ) -> Any:
        """Return the instant at *pointer*, in UTC.

        Args:
            layout: A format of `datetime.strptime`; ``unix`` or ``unix_ms``, which may be numbers; None for ISO 8601,
                ``2026-03-01T05:00:00+01:00``.
            timezone: The IANA zone of texts without an offset, which are refused otherwise.
            ambiguous: See `crossdock.convert.instant`.
            default: Returned if the value is missing, null or an empty text.
        """
        text = self._text(pointer, default, or_number=layout in UNIX)
        times = TimeFormat(layout, timezone, ambiguous)
        return default if text is None else times.parse_instant(text, self._full_pointer(pointer))

    def _text(self, pointer: str, default: Any, *, or_number: bool = False) -> str | None:
        """Return the text at *pointer*; None if it is missing or empty, and there is a *default*."""
        value = (
            json_paths.value_at_pointer_refusing_wrong_containers(
                self._json_document, pointer, format_pointer=self._full_pointer
            )
            if or_number
            else None
        )
        if type(value) in {int, Decimal}:
            return json_paths.json_value_as_column_text(value)
        if default is MISSING:
            return self.at(pointer, str)
        return self.at(pointer, str, default=None) or None

    def each(self, pointer: str, *, default: Sequence[Any] = MISSING) -> list[JsonElement]:
        """Return the elements of the list at *pointer*, or *default* if there is none. They have the same methods.

        A list beside which ``pageInfo``, ``totalCount`` or the like tell of more elements is a `RecordError`.
        """
        elements = self.at(pointer, list, default=default)
        if elements is not default and json_paths.is_list_at_path_cut(self._json_document, pointer):
            raise RecordError("bad_value", json_paths.LIST_CUT_MESSAGE, pointer=self._full_pointer(pointer))
        return [
            JsonElement(element, f"{self._full_pointer(pointer)}/{index}") for index, element in enumerate(elements)
        ]

    def place(self, pointer: str) -> str:
        """Return *pointer* as it is in the object that was read, for a `RecordError`."""
        return self._full_pointer(pointer)

    def part(self, pointer: str) -> JsonElement:
        """Return the object at *pointer*, which has the same methods."""
        return JsonElement(self.at(pointer, dict), self._full_pointer(pointer))

    def parse(self, model: type[M]) -> M:
        """Parse the whole value as a pydantic *model*. A `RecordError` has the pointers of the first errors."""
        try:
            return model.model_validate(self._json_document)
        except ValidationError as error:
            (pointer, message), *more = json_paths.validation_error_pointers_and_messages(error, self._json_document)
            others = [f"{self._full_pointer(place)}: {text}" if place else text for place, text in more]
            raise RecordError("bad_value", "; ".join([message, *others]), pointer=self._full_pointer(pointer)) from None


def _quotient(number: Decimal, divisor: Decimal | int, pointer: str) -> Decimal:
    if not divisor:
        raise RecordError("bad_value", "cannot be divided by 0", pointer=pointer)
    found = Fraction(number) / Fraction(divisor) * 10**_DECIMALS
    if found.denominator != 1:
        message = f"cannot be divided into a number with {_DECIMALS} decimals"
        raise RecordError("bad_value", message, pointer=pointer)
    return Decimal(exact_json.decimal_text(Decimal(f"{found.numerator}E-{_DECIMALS}")))


class JsonElement(JsonAccess):
    """A part of something that was read as JSON, such as an element of a list. *value* is the part itself."""

    __slots__ = ("_pointer", "value")

    def __init__(self, value: Any, pointer: str) -> None:
        self.value, self._pointer = value, pointer

    @property
    def _json_document(self) -> Any:
        return self.value

    def _full_pointer(self, pointer: str) -> str:
        return self._pointer + pointer
