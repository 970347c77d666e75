"""Compares the sent members with those that an OpenAPI document describes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from difflib import get_close_matches
from functools import cache
from typing import Any

from iso3166 import countries_by_alpha2
from iso4217 import Currency
from msgspec import Struct
from pydantic.json_schema import models_json_schema

from crossdock.mapping.resource_types import RESOURCES, make_platform_external_id
from crossdock.platform.openapi_file import Json, OpenApi, list_or_empty, mapping_or_empty, schema_types
from crossdock.values.field_types import MAX_DIGITS_AFTER_POINT, MAX_DIGITS_BEFORE_POINT
from crossdock.values.fixed_decimal_contexts import EXACT

_LARGEST = Decimal(10**MAX_DIGITS_BEFORE_POINT)
_STEP = EXACT.scaleb(Decimal(1), -MAX_DIGITS_AFTER_POINT)
_MOST = EXACT.subtract(_LARGEST, _STEP)
_LEAST = _MOST.copy_negate()
_CODES = {"^[A-Z]{3}$": {each.value for each in Currency}, "^[A-Z]{2}$": set(countries_by_alpha2)}
_SHOWN = 5
_FORMATS = {"date", "date-time", "uuid"}


class Difference(Struct, frozen=True):
    where: str
    what: str
    fix: str = ""
    is_error: bool = True


def document_and_wire_model_schema(resource: str) -> tuple[OpenApi, Json]:
    """Return the schema of what is sent to create a record, and the document that it refers to."""
    document = _sent_schemas()
    return document, document.merged_schema({"$ref": f"#/$defs/{RESOURCES[resource].wire.__name__}"})


@cache
def _sent_schemas() -> OpenApi:
    models = [(kind.wire, "validation") for kind in RESOURCES.values()]
    _, schemas = models_json_schema(models, ref_template="#/$defs/{model}")  # type: ignore[arg-type]  # a wider Literal
    return OpenApi("crossdock", schemas)


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    spelled = {normalized_name(each): each for each in known}
    close = get_close_matches(normalized_name(name), spelled, n=1, cutoff=0.75)
    return spelled[close[0]] if close else None


def normalized_name(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


class MemberComparison:
    def __init__(self, document: OpenApi, where: str) -> None:
        self._document, self._where = document, where
        self._ours = _sent_schemas()

    def differences(self, ours: object, theirs: object, place: str = "") -> Iterator[Difference]:
        mine, other = self._ours.merged_schema(ours), self._document.merged_schema(theirs)
        allowed, kind = schema_types(other), next(iter(schema_types(mine) - {"null"}), "")
        if allowed and kind not in allowed and not (kind == "integer" and "number" in allowed):
            wanted = " or ".join(sorted(allowed - {"null"}))
            yield self._difference_at(place, f"the type is {wanted}; a value of type {kind} is sent")
            return
        if kind == "object":
            yield from self._object_differences(mine, other, place)
        elif kind == "array":
            yield from self._bound_differences(mine, other, place, "Items", "items")
            yield from self.differences(mine.get("items"), other.get("items"), f"{place}/0")
        elif kind == "string":
            yield from self._text_differences(mine, other, place)
        elif kind == "number":
            yield from self._number_differences(other, place)

    def _object_differences(self, mine: Json, other: Json, place: str) -> Iterator[Difference]:
        members, described = mapping_or_empty(mine.get("properties")), mapping_or_empty(other.get("properties"))
        always, is_closed = set(mine.get("required") or ()), other.get("additionalProperties") is False
        unknown = [name for name in members if name not in described]
        for name in unknown if described or is_closed else ():
            known = nearest_name(name, [each for each in described if each not in members])
            called = f"; it describes {known}" if known else ""
            said = "is not accepted" if is_closed else "is not described"
            yield self._difference_at(f"{place}/{name}", f"{said}{called}", is_error=is_closed and name in always)
        for name in map(str, list_or_empty(other.get("required"))):
            if mapping_or_empty(described.get(name)).get("readOnly") is True or name in always:
                continue
            rest = "it is sent only if it is mapped" if name in members else "it is never sent"
            yield self._difference_at(f"{place}/{name}", f"is required; {rest}", is_error=name not in members)
        for name, schema in members.items():
            if name in described:
                yield from self.differences(schema, described[name], f"{place}/{name}")

    def _text_differences(self, mine: Json, other: Json, place: str) -> Iterator[Difference]:
        codes = _CODES.get(str(mine.get("pattern")))
        if codes is None and "format" not in mine and "enum" not in mine:
            yield from self._bound_differences(mine, other, place, "Length", "characters")
        values = set(map(str, mine.get("enum") or codes or ()))
        yield from self._allowed_value_differences(values, other, place)
        stated, own = other.get("format"), mine.get("format")
        if stated in _FORMATS and stated != own and not place.endswith("Id") | place.endswith("/externalId"):
            yield self._difference_at(place, f"the format is {stated}; {own or 'any text'} is sent")
        pattern = other.get("pattern")
        samples = values or (
            {make_platform_external_id("wms", "C%2F0017"), make_platform_external_id("wms", "7")}
            if place == "/externalId"
            else ()
        )
        if isinstance(pattern, str) and (refused := [each for each in samples if not _matches_pattern(pattern, each)]):
            yield self._difference_at(place, f"must match {pattern}; {min(refused)!r} does not")

    def _allowed_value_differences(self, values: set[str], other: Json, place: str) -> Iterator[Difference]:
        stated = [other["const"]] if "const" in other else other.get("enum")
        if not isinstance(stated, list):
            return
        allowed = {str(each) for each in stated if each is not None}
        if refused := sorted(values - allowed):
            more = f" and {len(refused) - _SHOWN} more" if len(refused) > _SHOWN else ""
            yield self._difference_at(place, f"does not accept {', '.join(refused[:_SHOWN])}{more}", is_error=False)
        elif not values:
            yield self._difference_at(place, f"accepts only {', '.join(sorted(allowed)[:_SHOWN])}", is_error=False)

    def _bound_differences(self, mine: Json, other: Json, place: str, of: str, unit: str) -> Iterator[Difference]:
        most, least = _decimal_or_none(other.get(f"max{of}")), _decimal_or_none(other.get(f"min{of}"))
        sent_most, sent_least = (
            _decimal_or_none(mine.get(f"max{of}")),
            _decimal_or_none(mine.get(f"min{of}")) or Decimal(0),
        )
        if most is not None and (sent_most is None or most < sent_most):
            yield self._difference_at(
                place, f"has at most {most:f} {unit}; {_longest_sent_value_text(sent_most)}", is_error=False
            )
        if least is not None and least > sent_least:
            yield self._difference_at(
                place, f"has at least {least:f} {unit}; {sent_least:f} may be sent", is_error=False
            )

    def _number_differences(self, other: Json, place: str) -> Iterator[Difference]:
        most, least = _decimal_or_none(other.get("maximum")), _decimal_or_none(other.get("minimum"))
        below, above = _decimal_or_none(other.get("exclusiveMaximum")), _decimal_or_none(other.get("exclusiveMinimum"))
        step = _decimal_or_none(other.get("multipleOf"))
        for text, is_narrower in (
            (f"is at most {most}", most is not None and most < _MOST),
            (f"is at least {least}", least is not None and least > _LEAST),
            (f"is less than {below}", below is not None and below < _LARGEST),
            (f"is more than {above}", above is not None and above > _LARGEST.copy_negate()),
            (f"is a multiple of {step}", step is not None and (step <= 0 or EXACT.remainder(_STEP, step) != 0)),
        ):
            if is_narrower:
                yield self._difference_at(place, f"{text}; other numbers may be sent", is_error=False)

    def _difference_at(self, place: str, what: str, *, is_error: bool = True) -> Difference:
        return Difference(f"{self._where} {place or '/'}", what, is_error=is_error)


def _decimal_or_none(value: Any) -> Decimal | None:
    return Decimal(value) if isinstance(value, int | Decimal) and not isinstance(value, bool) else None


def _longest_sent_value_text(most: Decimal | None) -> str:
    return f"up to {most:,f} may be sent" if most is not None else "more may be sent"


def _matches_pattern(pattern: str, text: str) -> bool:
    try:
        return re.search(pattern, text) is not None
    except re.error:  # a pattern of another dialect proves nothing
        return True
