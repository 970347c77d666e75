"""The seven resources: where they are, what they refer to, and what fits them.

The number and time rules here stand before the wire models and know nothing of their code, so that a mistake in either
is caught by the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any
from urllib.parse import quote

from iso4217 import Currency
from pydantic import Field, ValidationError

from crossdock.field_types import Exact, PlatformId
from crossdock.resources import RESOURCES, ResourceModel, ResourceName, ResourceType
from crossdock.sandbox import text_rules
from crossdock.sandbox.problem_answers import Finding, ProblemError


@dataclass(frozen=True, slots=True)
class Collection:
    """One resource on the wire: made and listed at *path*, one at ``{path}/{id}``, its ids begin with *prefix*.

    The members that are *given* to it are the platform's; nobody else may write them.
    """

    kind: ResourceType
    path: str
    prefix: str
    given: Sequence[str] = ("id", "createdAt", "updatedAt")


_GIVEN_TO_INVOICES = ("id", "createdAt", "updatedAt", "status", "total")
COLLECTIONS: Mapping[str, Collection] = {
    each.path: each
    for each in (
        Collection(RESOURCES["invoice"], "/api/v1/finance/invoices", "inv", _GIVEN_TO_INVOICES),
        Collection(RESOURCES["ledger_account"], "/api/v1/finance/ledger-accounts", "acc"),
        Collection(RESOURCES["customer"], "/api/v1/sales/customers", "cus"),
        Collection(RESOURCES["order"], "/api/v1/sales/orders", "ord"),
        Collection(RESOURCES["product"], "/api/v1/catalog/products", "prd"),
        Collection(RESOURCES["inventory_lot"], "/api/v1/inventory/lots", "lot"),
        Collection(RESOURCES["warehouse_bin"], "/api/v1/warehouse/bins", "bin"),
    )
}
_REFERENCES: Mapping[str, ResourceName] = {
    "customerId": "customer",
    "productId": "product",
    "binId": "warehouse_bin",
    "toBinId": "warehouse_bin",
    "parentId": "ledger_account",
}


Place = tuple[int | str, ...]  # the names and numbers that lead to a member

_LIMIT, _SMALLEST = 10**15, Decimal("0.0001")
_WHOLE_CURRENCIES = [each.value for each in Currency if each.exponent == 0]
DAY = re.compile(r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])", re.ASCII)
_TIME = r"T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)"
INSTANT = re.compile(DAY.pattern + _TIME, re.ASCII)
_FORMS = {
    "placedAt": (INSTANT, "must be an RFC 3339 time with a zone"),
    **dict.fromkeys(("receivedOn", "expiresOn"), (DAY, "must be a date like 2026-01-31")),
}


class Movement(ResourceModel):
    """Movement input (assumed)."""

    to_bin_id: PlatformId
    quantity: Annotated[Exact, Field(gt=0)]


class Nothing(ResourceModel):
    """The body of an action that needs none: left out, or an empty object."""


def instant_text(moment: datetime) -> str:
    """RFC 3339 in UTC, of fixed width, so that text order is time order."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def references(body: Mapping[str, Any], pointer: str = "#") -> Iterator[tuple[str, ResourceName, str]]:
    """Pointer, resource and id of everything that a checked body refers to."""
    for name, resource in _REFERENCES.items():
        if name in body:
            yield f"{pointer}/{name}", resource, body[name]
    for index, item in enumerate(body.get("items", ())):
        yield from references(item, f"{pointer}/items/{index}")


def check(model: type[ResourceModel], body: Any) -> dict[str, Any]:
    """Check a body as a whole; 422 with a pointer to everything that is wrong.

    It comes back as it is stored: exact numbers untouched, null members left out, the model's defaults filled in.
    """
    if findings := _findings(model, body):
        raise ProblemError(422, "The body does not fit the resource.", findings=findings)
    optional = (each for each in model.model_fields.values() if not each.is_required())
    defaults = {str(each.alias): each.default for each in optional if each.default is not None}
    return {**defaults, **_without_null(body)}


def _findings(model: type[ResourceModel], body: Any) -> list[Finding]:
    if not isinstance(body, dict):
        return [("#", "must be an object")]
    if faults := list(_faults(body, (), whole=body.get("currency") in _WHOLE_CURRENCIES)):
        return faults
    try:
        model.model_validate(body, by_alias=True, by_name=False)
    except ValidationError as error:
        return findings_of(error)
    return []


def findings_of(error: ValidationError) -> list[Finding]:
    """What a model finds wrong, without what only follows: a list is not too short because a line of it is bad."""
    found = {each["loc"]: each["msg"].removeprefix("Value error, ") for each in error.errors(include_input=False)}
    outer = {place[:depth] for place in found for depth in range(1, len(place))}
    return [(_pointer(place), wrong) for place, wrong in found.items() if place not in outer]


def _faults(value: Any, above: Place, *, whole: bool) -> Iterator[Finding]:
    """Numbers and times that break a rule; every number of these resources is an amount or a quantity."""
    for name, inner in value.items() if isinstance(value, dict) else enumerate(value):
        place = (*above, name)
        if isinstance(inner, dict | list):
            yield from _faults(inner, place, whole=whole)
        elif isinstance(inner, int | Decimal) and not fits(inner):
            yield _pointer(place), "must have at most 15 digits before and 4 after the point"
        elif whole and name == "unitPrice" and isinstance(inner, Decimal) and inner % 1:
            yield _pointer(place), "has decimals, which its currency has not"
        elif isinstance(inner, str) and not text_rules.is_clean(str(name), inner):
            yield _pointer(place), "holds a character that prints nothing: a control, zero-width or direction character"
        elif name in _FORMS and inner is not None and not (isinstance(inner, str) and _FORMS[name][0].fullmatch(inner)):
            yield _pointer(place), _FORMS[name][1]


def fits(number: int | Decimal) -> bool:
    # Comparing is exact for every number, and quantizing for every number of so few digits.
    return -_LIMIT < number < _LIMIT and number == Decimal(number).quantize(_SMALLEST)


def _pointer(place: Place) -> str:
    """A JSON pointer to a place, with what a URI fragment may not hold percent-encoded."""
    return "/".join(["#", *(quote(str(name).replace("~", "~0").replace("/", "~1"), safe="") for name in place)])


def _without_null(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_null(inner) for name, inner in value.items() if inner is not None}
    return [_without_null(inner) for inner in value] if isinstance(value, list) else value
