"""Whether a body is one of the seven resources: the wire model, and number and time rules written apart from it.

The rules here stand before the model and know nothing of its code, so that a mistake in either is caught by the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from iso4217 import Currency
from pydantic import ValidationError

from crossdock.resources import ResourceModel
from crossdock.sandbox.answers import Finding, ProblemError

WHOLE_DIGITS = 15
DECIMAL_PLACES = 4

_DATE = r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"
_TIME = r"([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)"
_TEXT_FORMS = {
    "placedAt": (re.compile(f"{_DATE}T{_TIME}", re.ASCII), "must be an RFC 3339 time with a zone"),
    "receivedOn": (re.compile(_DATE, re.ASCII), "must be a date like 2026-01-31"),
    "expiresOn": (re.compile(_DATE, re.ASCII), "must be a date like 2026-01-31"),
}


def instant(text: str) -> bool:
    """Whether *text* is an RFC 3339 time with a zone (the day itself may still not exist)."""
    return _TEXT_FORMS["placedAt"][0].fullmatch(text) is not None


def check(model: type[ResourceModel], body: Any) -> dict[str, Any]:
    """Check a body as a whole.

    Returns:
        The body as it is stored: exact numbers untouched, null members left out, the model's defaults filled in.

    Raises:
        ProblemError: With 422 and a pointer to everything that is wrong.
    """
    if not isinstance(body, dict):
        raise _unfit([Finding("#", "must be an object")])
    if findings := list(_bad_numbers(body, "#")) or [*_bad_texts(body), *_bad_amounts(body)]:
        raise _unfit(findings)
    try:
        model.model_validate(body, by_alias=True, by_name=False)
    except ValidationError as error:
        raise _unfit(_findings(error)) from None
    return {**_defaults(model), **_without_null(body)}


def _unfit(findings: list[Finding]) -> ProblemError:
    return ProblemError(422, "The body does not fit the resource.", findings=findings)


def _findings(error: ValidationError) -> list[Finding]:
    """What the model found, without what only follows: a list is not too short because a line of it is bad."""
    found = {each["loc"]: each["msg"].removeprefix("Value error, ") for each in error.errors(include_input=False)}
    inner = {place[:depth] for place in found for depth in range(1, len(place))}
    return [Finding(_pointer(place), message) for place, message in found.items() if place not in inner]


def _pointer(place: tuple[int | str, ...]) -> str:
    return "#" + "".join(f"/{_token(each)}" for each in place)


def _token(name: int | str) -> str:
    """One reference token, with what a URI fragment may not hold percent-encoded."""
    escaped = str(name).replace("~", "~0").replace("/", "~1").encode()
    safe = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~"
    return "".join(chr(byte) if byte in safe else f"%{byte:02X}" for byte in escaped)


def _bad_numbers(value: Any, pointer: str) -> Iterator[Finding]:
    """Every number of these resources is an amount or a quantity, wherever it stands."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _bad_numbers(inner, f"{pointer}/{_token(name)}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _bad_numbers(inner, f"{pointer}/{index}")
    elif isinstance(value, int | Decimal) and not isinstance(value, bool) and not _fits(Decimal(value)):
        yield Finding(pointer, f"must have at most {WHOLE_DIGITS} digits before and {DECIMAL_PLACES} after the point")


def _fits(number: Decimal) -> bool:
    _, digits, exponent = number.as_tuple()
    figures = "".join(map(str, digits)).lstrip("0")
    significant = figures.rstrip("0")
    if not significant or not isinstance(exponent, int):
        return not significant
    lowest = exponent + len(figures) - len(significant)
    return lowest >= -DECIMAL_PLACES and len(figures) + exponent <= WHOLE_DIGITS


def _bad_texts(body: Mapping[str, Any]) -> Iterator[Finding]:
    for name, (form, message) in _TEXT_FORMS.items():
        value = body.get(name)
        if value is not None and not (isinstance(value, str) and form.fullmatch(value)):
            yield Finding(f"#/{name}", message)


def _bad_amounts(body: Mapping[str, Any]) -> Iterator[Finding]:
    """A currency without a minor unit has no decimals."""
    code = body.get("currency")
    if not isinstance(code, str) or not _is_whole(code):
        return
    items = body.get("items")
    places = [("#/unitPrice", body)]
    places += [(f"#/items/{n}/unitPrice", item) for n, item in enumerate(items if isinstance(items, list) else ())]
    for pointer, holder in places:
        price = holder.get("unitPrice") if isinstance(holder, dict) else None
        if isinstance(price, Decimal) and price % 1:
            yield Finding(pointer, "has decimals, which its currency has not")


def _is_whole(code: str) -> bool:
    try:
        return bool(Currency(code).exponent == 0)
    except ValueError:
        return False


def _without_null(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_null(inner) for name, inner in value.items() if inner is not None}
    return [_without_null(inner) for inner in value] if isinstance(value, list) else value


def _defaults(model: type[ResourceModel]) -> dict[str, Any]:
    fields = model.model_fields.items()
    return {
        field.alias or name: field.default
        for name, field in fields
        if not field.is_required() and field.default is not None
    }
