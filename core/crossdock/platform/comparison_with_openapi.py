"""Compares an OpenAPI document of the platform with the requests and members of a profile, and proposes settings."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from decimal import Decimal
from difflib import get_close_matches
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from iso3166 import countries_by_alpha2
from iso4217 import Currency
from msgspec import Struct
from pydantic.json_schema import models_json_schema

from crossdock.mapping.resource_types import RESOURCES, make_platform_external_id
from crossdock.platform.openapi_file import (
    METHODS,
    Json,
    OpenApiDocument,
    list_or_empty,
    mapping_or_empty,
    schema_types,
)
from crossdock.platform.platform_config import PATHS, Profile
from crossdock.values.field_types import EXACT_DECIMAL_CONTEXT, MAX_DIGITS_AFTER_POINT, MAX_DIGITS_BEFORE_POINT

_LARGEST = Decimal(10**MAX_DIGITS_BEFORE_POINT)
_STEP = EXACT_DECIMAL_CONTEXT.scaleb(Decimal(1), -MAX_DIGITS_AFTER_POINT)
_MOST = EXACT_DECIMAL_CONTEXT.subtract(_LARGEST, _STEP)
_LEAST = _MOST.copy_negate()
_CODES = {"^[A-Z]{3}$": {each.value for each in Currency}, "^[A-Z]{2}$": set(countries_by_alpha2)}
_SHOWN = 5
_FORMATS = {"date", "date-time", "uuid"}


class DifferenceFromOpenApi(Struct, frozen=True):
    where: str
    what: str
    fix: str = ""
    is_error: bool = True


def document_and_schema_of_sent_record(resource: str) -> tuple[OpenApiDocument, Json]:
    """Return the schema of what is sent to create a record, and the document that it refers to."""
    document = _document_of_sent_models()
    return document, document.merged_schema({"$ref": f"#/$defs/{RESOURCES[resource].wire.__name__}"})


@cache
def _document_of_sent_models() -> OpenApiDocument:
    models = [(kind.wire, "validation") for kind in RESOURCES.values()]
    _, schemas = models_json_schema(models, ref_template="#/$defs/{model}")  # type: ignore[arg-type]  # a wider Literal
    return OpenApiDocument("crossdock", schemas)


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    spelled = {normalized_name(each): each for each in known}
    close = get_close_matches(normalized_name(name), spelled, n=1, cutoff=0.75)
    return spelled[close[0]] if close else None


def normalized_name(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


class MemberComparison:
    def __init__(self, document: OpenApiDocument, where: str) -> None:
        self._document, self._where = document, where
        self._ours = _document_of_sent_models()

    def differences(self, ours: object, theirs: object, place: str = "") -> Iterator[DifferenceFromOpenApi]:
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

    def _object_differences(self, mine: Json, other: Json, place: str) -> Iterator[DifferenceFromOpenApi]:
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

    def _text_differences(self, mine: Json, other: Json, place: str) -> Iterator[DifferenceFromOpenApi]:
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

    def _allowed_value_differences(self, values: set[str], other: Json, place: str) -> Iterator[DifferenceFromOpenApi]:
        stated = [other["const"]] if "const" in other else other.get("enum")
        if not isinstance(stated, list):
            return
        allowed = {str(each) for each in stated if each is not None}
        if refused := sorted(values - allowed):
            more = f" and {len(refused) - _SHOWN} more" if len(refused) > _SHOWN else ""
            yield self._difference_at(place, f"does not accept {', '.join(refused[:_SHOWN])}{more}", is_error=False)
        elif not values:
            yield self._difference_at(place, f"accepts only {', '.join(sorted(allowed)[:_SHOWN])}", is_error=False)

    def _bound_differences(
        self, mine: Json, other: Json, place: str, of: str, unit: str
    ) -> Iterator[DifferenceFromOpenApi]:
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

    def _number_differences(self, other: Json, place: str) -> Iterator[DifferenceFromOpenApi]:
        most, least = _decimal_or_none(other.get("maximum")), _decimal_or_none(other.get("minimum"))
        below, above = _decimal_or_none(other.get("exclusiveMaximum")), _decimal_or_none(other.get("exclusiveMinimum"))
        step = _decimal_or_none(other.get("multipleOf"))
        for text, is_narrower in (
            (f"is at most {most}", most is not None and most < _MOST),
            (f"is at least {least}", least is not None and least > _LEAST),
            (f"is less than {below}", below is not None and below < _LARGEST),
            (f"is more than {above}", above is not None and above > _LARGEST.copy_negate()),
            (
                f"is a multiple of {step}",
                step is not None and (step <= 0 or EXACT_DECIMAL_CONTEXT.remainder(_STEP, step) != 0),
            ),
        ):
            if is_narrower:
                yield self._difference_at(place, f"{text}; other numbers may be sent", is_error=False)

    def _difference_at(self, place: str, what: str, *, is_error: bool = True) -> DifferenceFromOpenApi:
        return DifferenceFromOpenApi(f"{self._where} {place or '/'}", what, is_error=is_error)


def _decimal_or_none(value: Any) -> Decimal | None:
    return Decimal(value) if isinstance(value, int | Decimal) and not isinstance(value, bool) else None


def _longest_sent_value_text(most: Decimal | None) -> str:
    return f"up to {most:,f} may be sent" if most is not None else "more may be sent"


def _matches_pattern(pattern: str, text: str) -> bool:
    try:
        return re.search(pattern, text) is not None
    except re.error:  # a pattern of another dialect proves nothing
        return True


_SENT_HEADERS = frozenset({"accept", "authorization", "content-type", "if-match"})
_LEAST_OVERLAP = 0.5  # of the members, for a path whose name says nothing


def compare_openapi_with_profile(
    document: OpenApiDocument,
    profile: Profile,
    written: Sequence[str],
    looked_up: Collection[str],
    deleted: Collection[str],
) -> list[DifferenceFromOpenApi]:
    comparison = _ProfileComparison(document, profile)
    found = [
        each
        for resource in written
        for each in comparison.resource_differences(
            resource, needs_look_up=resource in looked_up, is_deleted=resource in deleted
        )
    ]
    return list(dict.fromkeys(found))


class _ProfileComparison:
    def __init__(self, document: OpenApiDocument, profile: Profile) -> None:
        self._document, self._profile = document, profile
        self._items = {
            _without_parameter_names(path): (path, item) for path, item in document.paths_with_server_prefixes()
        }
        self._base = urlsplit(profile.base_url).path.rstrip("/")

    def resource_differences(
        self, resource: str, *, needs_look_up: bool, is_deleted: bool
    ) -> Iterator[DifferenceFromOpenApi]:
        """Compare the operations on one resource, at the configured path or else at the proposed one."""
        path = self._profile.resource_path(resource)
        if self._path_item(path) is None:
            proposed = self._proposed_path(resource)
            fix = f"platform.paths.{resource}: {proposed}" if proposed else ""
            yield DifferenceFromOpenApi(f"POST {path}", f"has no such path for {resource}", fix)
            if proposed is None:
                return
            path = proposed
        item = self._path_item(path) or {}
        found = list(self._differences_of_create_operation(resource, path, item))
        yield from found
        below = self._path_item(f"{path}/{{}}") or {}
        if not RESOURCES[resource].write_once:
            said = {(_member_of_difference(each), each.what) for each in found}
            updates = self._update_differences(resource, path, below)
            yield from (each for each in updates if (_member_of_difference(each), each.what) not in said)
        if is_deleted and "delete" not in below:
            yield DifferenceFromOpenApi(f"DELETE {path}/{{id}}", _missing_operation_text(below))
        if self._profile.can_look_up(resource):
            yield from self._look_up_differences(path, item, is_needed=needs_look_up)

    def _path_item(self, path: str) -> Json | None:
        for each in (_without_parameter_names(path), _without_parameter_names(self._base + path)):
            if each in self._items:
                return self._items[each][1]
        return None

    def _operation_or_none(self, item: Json, method: str) -> Json | None:
        return self._document.resolved(mapping_or_empty(item[method])) if method in item else None

    def _differences_of_create_operation(self, resource: str, path: str, item: Json) -> Iterator[DifferenceFromOpenApi]:
        where, create = f"POST {path}", self._operation_or_none(item, "post")
        if create is None:
            yield DifferenceFromOpenApi(where, _missing_operation_text(item))
            return
        yield from self._header_differences(where, item, create)
        body = self._json_body_schema(create)
        if body is None:
            yield DifferenceFromOpenApi(where, "describes no JSON body")
        else:
            yield from MemberComparison(self._document, where).differences(self._schema_of_sent_record(resource), body)
        answered = [
            self._json_body_schema(self._document.resolved(mapping_or_empty(answer)))
            for status, answer in mapping_or_empty(create.get("responses")).items()
            if str(status).startswith("2")
        ]
        for schema in answered:
            members = mapping_or_empty(self._document.merged_schema(schema).get("properties"))
            ids = schema_types(self._document.merged_schema(members.get("id"))) - {"string"}
            if members and "id" not in members:
                known = next((name for name in members if normalized_name(name).endswith("id")), None)
                yield DifferenceFromOpenApi(where, "the response has no id" + (f"; it has {known}" if known else ""))
            elif ids:
                yield DifferenceFromOpenApi(
                    where, f"the id in the response has the type {' or '.join(sorted(ids))}; text is read"
                )

    def _update_differences(self, resource: str, path: str, below: Json) -> Iterator[DifferenceFromOpenApi]:
        where, update = f"PATCH {path}/{{id}}", self._operation_or_none(below, "patch")
        if update is None:
            yield DifferenceFromOpenApi(where, _missing_operation_text(below))
            return
        yield from self._header_differences(where, below, update)
        body = self._json_body_schema(update)
        if body is not None:
            mine = self._schema_of_sent_record(resource)
            always = list_or_empty(self._document.merged_schema(body).get("required"))
            found = MemberComparison(self._document, where).differences({**mine, "required": always}, body)
            yield from found
            if always:
                yield DifferenceFromOpenApi(
                    where, f"requires {', '.join(map(str, always))}; only changed members are sent"
                )

    def _header_differences(self, where: str, item: Json, operation: Json) -> Iterator[DifferenceFromOpenApi]:
        profile = self._profile
        names = {normalized_name(profile.tenant_header): "tenant_header"}
        if profile.idempotency.enabled:
            names[normalized_name(profile.idempotency.header)] = "idempotency.header"
        described = self._required_by_parameter_name(item, operation, "header")
        for name, is_required in described.items():
            if name.lower() in _SENT_HEADERS or normalized_name(name) in names:
                continue
            key = "tenant_header" if "tenant" in name.lower() else "idempotency.header"
            if key == "tenant_header" or "idempoten" in name.lower():
                yield DifferenceFromOpenApi(
                    where, f"has the header {name}, which is not sent", f"platform.{key}: {name}", is_required
                )
            elif is_required:
                yield DifferenceFromOpenApi(where, f"requires the header {name}, which is not sent")

    def _look_up_differences(self, path: str, item: Json, *, is_needed: bool) -> Iterator[DifferenceFromOpenApi]:
        where, look_up = f"GET {path}", self._operation_or_none(item, "get")
        if look_up is None:
            yield DifferenceFromOpenApi(where, _missing_operation_text(item), is_error=is_needed)
            return
        parameter, known = self._profile.lookup.parameter, self._required_by_parameter_name(item, look_up, "query")
        if parameter not in known:
            near = nearest_name(parameter, known) or next((each for each in known if "external" in each.lower()), None)
            fix = f"platform.lookup.parameter: {near}" if near else ""
            yield DifferenceFromOpenApi(where, f"has no parameter {parameter} to look records up", fix, is_needed)

    def _proposed_path(self, resource: str) -> str | None:
        """Return a path that creates such records, by its name or else by its members, relative to the base address."""
        names = {normalized_name(each).removesuffix("s") for each in (resource, PATHS[resource].rpartition("/")[2])}
        creating = {path: item for path, item in self._items.values() if "post" in item and "{" not in path}
        named = [
            path for path in creating if normalized_name(path.rstrip("/").rpartition("/")[2]).removesuffix("s") in names
        ]
        overlaps = {path: self._share_of_sent_members_described(resource, creating[path]) for path in named or creating}
        if not named:
            overlaps = {path: share for path, share in overlaps.items() if share >= _LEAST_OVERLAP}
        if not overlaps:
            return None
        best = max(overlaps, key=lambda path: (overlaps[path], -len(path)))
        return best.removeprefix(self._base)

    def _share_of_sent_members_described(self, resource: str, item: Json) -> float:
        """Return the share of the always sent members that the body of a create has, whatever their spelling."""
        create = self._operation_or_none(item, "post") or {}
        described = mapping_or_empty(
            self._document.merged_schema(self._json_body_schema(create) or {}).get("properties")
        )
        wanted = {normalized_name(name) for name in self._schema_of_sent_record(resource)["required"]} - {"externalid"}
        return len(wanted & set(map(normalized_name, described))) / len(wanted)

    @staticmethod
    def _schema_of_sent_record(resource: str) -> Json:
        return document_and_schema_of_sent_record(resource)[1]

    def _json_body_schema(self, holder: Json) -> object | None:
        inner = self._document.resolved(mapping_or_empty(holder["requestBody"])) if "requestBody" in holder else holder
        for media_type, content in mapping_or_empty(inner.get("content")).items():
            if "json" in str(media_type).lower():
                return mapping_or_empty(content).get("schema") or {}
        return None

    def _required_by_parameter_name(self, item: Json, operation: Json, place: str) -> dict[str, bool]:
        found: dict[str, bool] = {}
        for holder in (item, operation):
            for each in list_or_empty(holder.get("parameters")):
                parameter = self._document.resolved(mapping_or_empty(each))
                if parameter.get("in") == place:
                    found[str(parameter.get("name"))] = parameter.get("required") is True
        return found


def _member_of_difference(difference: DifferenceFromOpenApi) -> str:
    return difference.where.rpartition(" ")[2]


def _without_parameter_names(path: str) -> str:
    return "/".join("{}" if part.startswith("{") else part for part in path.split("/"))


def _missing_operation_text(item: Json) -> str:
    methods = [method.upper() for method in METHODS if method in item]
    return f"is not described; the path has {', '.join(methods)}" if methods else "is not described"
