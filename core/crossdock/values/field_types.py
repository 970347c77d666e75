"""Types of the resources' fields: exact numbers, currencies, countries, texts; and exact arithmetic.

The arithmetic does not depend on the thread's decimal context, which the code of any author may change.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime
from decimal import ROUND_HALF_EVEN, Context, Decimal, DivisionByZero, Inexact, InvalidOperation, Overflow, localcontext
from functools import cache, reduce
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime, BeforeValidator, Field, StrictStr, WithJsonSchema

EXACT_DECIMAL_CONTEXT = Context(prec=60, traps=[Inexact, InvalidOperation])  # a product has at most 38 digits
_USUAL = Context(28, ROUND_HALF_EVEN, -999_999, 999_999, 1, 0, [], [InvalidOperation, DivisionByZero, Overflow])


def exact_decimal_sum(values: Iterable[Decimal]) -> Decimal:
    return reduce(EXACT_DECIMAL_CONTEXT.add, values, Decimal())


def use_default_decimal_context() -> AbstractContextManager[Context]:
    """Compute with 28 digits in the block, as Python does by default."""
    return localcontext(_USUAL)


MAX_DIGITS_BEFORE_POINT = 15
MAX_DIGITS_AFTER_POINT = 4
MAX_ID_LENGTH = 64


def _check_exact_number(value: object) -> Decimal:
    """Check an amount or quantity: exact, finite, at most 15 digits before and 4 after the point."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise ValueError("must be an exact number")  # noqa: TRY004  pydantic reports only ValueError
    number = Decimal(value)
    if not number.is_finite():
        raise ValueError("must be finite")
    sign, digits, exponent = number.as_tuple()  # normalize() would round to the context's 28 digits
    assert isinstance(exponent, int)
    if -MAX_DIGITS_AFTER_POINT <= exponent <= 0 and len(digits) + exponent <= MAX_DIGITS_BEFORE_POINT:
        return number  # the usual case; trailing zeros are kept
    significant = "".join(map(str, digits)).rstrip("0")
    exponent += len(digits) - len(significant)
    if significant and -exponent > MAX_DIGITS_AFTER_POINT:
        raise ValueError(f"has more than {MAX_DIGITS_AFTER_POINT} digits after the decimal point")
    if significant and len(significant) + exponent > MAX_DIGITS_BEFORE_POINT:
        raise ValueError(f"has more than {MAX_DIGITS_BEFORE_POINT} digits before the decimal point")
    if not significant:
        return Decimal(0)
    return Decimal((sign, tuple(map(int, significant)), exponent))  # without zeros that could take gigabytes


@cache
def minor_unit_digits_or_value_error(code: str) -> int | None:
    """Return the digits after the point of an ISO 4217 currency; None where the standard has none, as for gold."""
    from iso4217 import Currency as Iso4217  # noqa: PLC0415  it reads its tables when it is imported

    exponent: int | None = Iso4217(code).exponent
    return exponent


def minor_unit_digits_or_none(code: str) -> int | None:
    """Return the digits after the decimal point of a currency; None for other text, and if it has no minor units."""
    with suppress(ValueError):
        return minor_unit_digits_or_value_error(code)
    return None


def _check_currency(code: str) -> str:
    try:
        minor_unit_digits_or_value_error(code)
    except ValueError:
        raise ValueError(f"{code!r} is not an ISO 4217 currency code") from None
    return code


def _check_country(code: str) -> str:
    from iso3166 import countries_by_alpha2  # noqa: PLC0415  it makes its tables when it is imported

    if code not in countries_by_alpha2:
        raise ValueError(f"{code!r} is not an ISO 3166-1 alpha-2 country code")
    return code


def integer_if_whole(value: object) -> object:
    """Convert a decimal without a fraction to an integer. Other values are left to pydantic."""
    if isinstance(value, Decimal) and value.is_finite() and value == value.to_integral_value():
        return int(value)
    return value


def is_valid_target_id(text: str) -> bool:
    """Return whether *text* has 1 to 64 printable characters and is not a dot segment (RFC 3986, 5.2.4)."""
    return 1 <= len(text) <= MAX_ID_LENGTH and text.isprintable() and text not in {".", ".."}


def _check_target_id(text: str) -> str:
    if not is_valid_target_id(text):
        raise ValueError(f"must be 1 to {MAX_ID_LENGTH} printable characters, not '.' or '..'")
    return text


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("is outside the years 1 to 9999 in UTC") from None


Exact = Annotated[
    Decimal,
    BeforeValidator(_check_exact_number),
    WithJsonSchema({"type": "number", "description": "Exact: at most 15 digits before and 4 after the point."}),
]
"""An exact number, `Decimal` or `int`: at most 15 digits before and 4 after the point."""
Instant = Annotated[AwareDatetime, AfterValidator(_in_utc)]
"""A time with an offset, kept in UTC."""
Currency = Annotated[StrictStr, Field(pattern="^[A-Z]{3}$", examples=["EUR"]), AfterValidator(_check_currency)]
"""A currency code of ISO 4217."""
Country = Annotated[StrictStr, Field(pattern="^[A-Z]{2}$", examples=["DE"]), AfterValidator(_check_country)]
"""A country code of ISO 3166-1, alpha-2."""
Code = Annotated[StrictStr, Field(min_length=1, max_length=100)]
"""A text of 1 to 100 characters."""
Text = Annotated[StrictStr, Field(min_length=1, max_length=500)]
"""A text of 1 to 500 characters."""
LongText = Annotated[StrictStr, Field(max_length=10_000)]
"""A text of at most 10,000 characters."""
PlatformId = Annotated[StrictStr, Field(min_length=1, max_length=MAX_ID_LENGTH), AfterValidator(_check_target_id)]
"""An id that the platform assigned: 1 to 64 printable characters."""
MAX_EXTERNAL_ID = 500
ExternalId = Annotated[StrictStr, Field(min_length=1, max_length=MAX_EXTERNAL_ID)]
"""An external id: 1 to 500 characters."""
Personal = Annotated[Text, Field(json_schema_extra={"x-personal": True})]
"""A `Text` that is personal data."""
Units = Annotated[
    int, BeforeValidator(integer_if_whole), Field(ge=1, le=2**31 - 1, strict=True), WithJsonSchema({"type": "integer"})
]
"""A whole number of units, at least one."""
