"""Validation of request bodies: numbers, dates and text first, then the wire model of the resource.

The rules for numbers and dates are independent of the wire models' code, so that each finds mistakes in the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from functools import cache
from typing import Annotated, Any, TypeVar
from urllib.parse import quote

from iso4217 import Currency
from pydantic import BaseModel, Field, ValidationError

from crossdock.resources import ResourceModel
from crossdock.sandbox.problem_errors import Finding, ProblemError
from crossdock.sandbox.rfc3339 import DATE_PATTERN, INSTANT_PATTERN
from crossdock.values.field_types import Exact, PlatformId
from crossdock.values.json_paths import escaped_pointer_part

M = TypeVar("M", bound=BaseModel)
_Path = tuple[int | str, ...]  # the member names and list indexes that lead to a member

REFERENCES: Mapping[str, str] = {  # members that name another resource, in inputs or in responses
    "customerId": "customer",
    "productId": "product",
    **dict.fromkeys(("binId", "toBinId", "fromBinId"), "warehouse_bin"),
    **dict.fromkeys(("lotId", "toLotId"), "inventory_lot"),
    **dict.fromkeys(("parentId", "accountId"), "ledger_account"),
    "invoiceId": "invoice",
}
_LIMIT, _SMALLEST = 10**15, Decimal("0.0001")
WHOLE_CURRENCIES = sorted(each.value for each in Currency if each.exponent == 0)
_FORMS = {
    "placedAt": (INSTANT_PATTERN, "must be an RFC 3339 time with a zone"),
    **dict.fromkeys(("receivedOn", "expiresOn"), (DATE_PATTERN, "must be a date like 2026-01-31")),
}
# Characters that print nothing are refused: two texts that look equal are equal.
_CONTROLS = r"\u0000-\u001f\u007f-\u009f"
_CONTROLS_IN_LINES = r"\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f"  # without tab, line feed, carriage return
_INVISIBLE = r"\u200b\u2028-\u202e\u2060-\u206f\ufeff"  # zero-width, separators, changes of direction
_JOINERS = r"\u200c-\u200f"  # names in Persian or Hindi are misspelt without them; codes never need them
_MULTILINE = frozenset({"description"})
_PROSE = frozenset({"name", "line1", "line2", "city", "region"})


class Movement(ResourceModel):
    """Movement input (assumed)."""

    to_bin_id: PlatformId
    quantity: Annotated[Exact, Field(gt=0)]


class EmptyBody(ResourceModel):
    """The body of an action without input: an empty object."""


def validated_body(model: type[ResourceModel], body: Any) -> dict[str, Any]:
    """Return the body as it is stored: with exact numbers, without null members, and with the model's defaults."""
    if findings := _find_mistakes_in_body(model, body):
        raise ProblemError(422, "The body does not match the schema of the resource.", findings=findings)
    optional = (each for each in model.model_fields.values() if not each.is_required())
    defaults = {str(each.alias): each.default for each in optional if each.default is not None}
    return {**defaults, **_without_null_members(body)}


def references_in_body(body: Mapping[str, Any], pointer: str = "#") -> Iterator[tuple[str, str, str]]:
    for name, resource in REFERENCES.items():
        if name in body:
            yield f"{pointer}/{name}", resource, body[name]
    for index, item in enumerate(body.get("items", ())):
        yield from references_in_body(item, f"{pointer}/items/{index}")


def parse_body_as_model(model: type[M], body: bytes) -> M:
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        if error.errors()[0]["type"] == "json_invalid":
            raise ProblemError(400, "The body is not JSON.") from None
        raise ProblemError(
            422, "The body does not match the schema.", findings=_validation_error_findings(error)
        ) from None


def has_allowed_digits(number: int | Decimal) -> bool:
    """Return whether a number has at most 15 digits before and 4 after the point."""
    # Comparing is exact for every number, and quantizing for every number of so few digits.
    return -_LIMIT < number < _LIMIT and number == Decimal(number).quantize(_SMALLEST)


def text_pattern_of_member(member: str) -> str:
    """Return the regular expression of a *member*'s text, valid in JSON Schema and in Python."""
    if member in _MULTILINE:
        return f"^[^{_CONTROLS_IN_LINES}{_INVISIBLE}]*$"
    return f"^[^{_CONTROLS}{_INVISIBLE}{'' if member in _PROSE else _JOINERS}]*$"


def _find_mistakes_in_body(model: type[ResourceModel], body: Any) -> list[Finding]:
    if not isinstance(body, dict):
        return [("#", "must be an object")]
    if found := list(_find_mistakes_in_values(body, (), whole=body.get("currency") in WHOLE_CURRENCIES)):
        return found
    try:
        model.model_validate(body, by_alias=True, by_name=False)
    except ValidationError as error:
        return _validation_error_findings(error)
    return []


def _validation_error_findings(error: ValidationError) -> list[Finding]:
    found = {each["loc"]: each["msg"].removeprefix("Value error, ") for each in error.errors(include_input=False)}
    outer = {path[:depth] for path in found for depth in range(1, len(path))}
    return [(_json_pointer(path), wrong) for path, wrong in found.items() if path not in outer]


def _find_mistakes_in_values(value: Any, above: _Path, *, whole: bool) -> Iterator[Finding]:
    for name, inner in value.items() if isinstance(value, dict) else enumerate(value):
        path = (*above, name)
        if isinstance(inner, dict | list):
            yield from _find_mistakes_in_values(inner, path, whole=whole)
        elif isinstance(inner, int | Decimal) and not has_allowed_digits(inner):
            yield _json_pointer(path), "must have at most 15 digits before and 4 after the point"
        elif whole and name == "unitPrice" and isinstance(inner, Decimal) and inner % 1:
            yield _json_pointer(path), "must be a whole number: the currency has no minor unit"
        elif isinstance(inner, str) and not _has_allowed_characters(str(name), inner):
            yield _json_pointer(path), "must not contain control, zero-width or direction characters"
        elif name in _FORMS and inner is not None and not (isinstance(inner, str) and _FORMS[name][0].fullmatch(inner)):
            yield _json_pointer(path), _FORMS[name][1]


def _has_allowed_characters(member: str, text: str) -> bool:
    return _compiled_pattern(member if member in _MULTILINE | _PROSE else "").fullmatch(text) is not None


@cache
def _compiled_pattern(member: str) -> re.Pattern[str]:
    return re.compile(text_pattern_of_member(member))


def _json_pointer(path: _Path) -> str:
    return "/".join(["#", *(quote(escaped_pointer_part(str(name)), safe="") for name in path)])


def _without_null_members(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_null_members(inner) for name, inner in value.items() if inner is not None}
    return [_without_null_members(inner) for inner in value] if isinstance(value, list) else value
