"""Example records of a list, from the schemas and examples of its document."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from crossdock.cli.new.openapi_list_proposals import RFC_2822, ListProposal
from crossdock.cli.new.openapi_mapping_proposals import UsedMember
from crossdock.cli.new.openapi_operations_and_members import json_type_instant_or_day, members, yaml_value_as_json
from crossdock.platform.openapi_file import Json, OpenApiDocument
from crossdock.values.field_types import minor_unit_digits

RECORDS = 3
_MOST = 15  # members that no mapping uses
_DEPTH = 3
_LONGEST = 60
_AMOUNT = re.compile(r"\d{1,9}(\.\d{1,4})?")


def example_records(
    document: OpenApiDocument, one: ListProposal, used: Mapping[str, UsedMember]
) -> list[dict[str, Any]]:
    """Return `RECORDS` examples, which differ and have every member that the mapping reads."""
    return [_record(document, one, used, number) for number in range(1, RECORDS + 1)]


def _record(
    document: OpenApiDocument, one: ListProposal, used: Mapping[str, UsedMember], number: int
) -> dict[str, Any]:
    given = one.examples[(number - 1) % len(one.examples)] if one.examples else {}
    schemas = members(document, one.record)
    others = [name for name in schemas if name not in used][:_MOST]
    found = {name: _example_for_unmapped_member(document, schemas[name], given.get(name), name, 0) for name in others}
    found |= {
        name: _example_for_mapped_member(document, each, given.get(name), name, number) for name, each in used.items()
    }
    found[one.key] = number if json_type_instant_or_day(schemas[one.key]) == "integer" else f"{one.resource}-{number}"
    if one.changes:
        day = f"2026-03-0{number}"
        found[one.changes.column] = {
            RFC_2822: f"{('Sun', 'Mon', 'Tue')[number - 1]}, 0{number} Mar 2026 12:00:00 +0000"
        }.get(one.changes.form, f"{day}T12:00:00{'Z' if one.changes.has_offset else ''}")
    return {name: found[name] for name in schemas if name in found}


def _example_for_mapped_member(document: OpenApiDocument, used: UsedMember, given: Any, name: str, number: int) -> Any:
    given = yaml_value_as_json(used.schema.get("example")) if given is None else given
    match used.type:
        case "list":
            element = document.merged_schema(used.schema.get("items"))
            inner = given[0] if isinstance(given, list) and given and isinstance(given[0], dict) else {}
            schemas = members(document, element)
            others = [each for each in schemas if each not in used.elements][:_MOST]
            line = {
                each: _example_for_unmapped_member(document, schemas[each], inner.get(each), each, 1) for each in others
            }
            line |= {
                each: _example_for_mapped_member(document, one, inner.get(each), each, number)
                for each, one in used.elements.items()
            }
            return [line]
        case "number":
            return _example_number(given, json_type_instant_or_day(used.schema), number)
        case "instant":
            return _example_instant(used.schema, number)
        case "currency":
            return given if isinstance(given, str) and _is_currency_code(given.upper()) else "EUR"
    if json_type_instant_or_day(used.schema) == "integer":
        return number
    return given if isinstance(given, str) and 0 < len(given) <= _LONGEST else f"{name} {number}"


def _is_currency_code(code: str) -> bool:
    try:
        minor_unit_digits(code)
    except ValueError:
        return False
    return True


def _example_number(given: Any, kind_of_number: str, number: int) -> Any:
    is_amount = not isinstance(given, bool) and _AMOUNT.fullmatch(str(given))
    value = Decimal(str(given)) if is_amount else Decimal("9.55") + number
    if kind_of_number == "integer":
        return int(value)
    return str(value) if kind_of_number == "string" else value


def _example_instant(schema: Json, number: int) -> str:
    if schema.get("x-form"):
        return f"{('Sun', 'Mon', 'Tue')[number - 1]}, 0{number} Mar 2026 12:00:00 +0000"
    return f"2026-03-0{number}T12:00:00{'Z' if schema.get('x-offset', True) else ''}"


def _example_for_unmapped_member(document: OpenApiDocument, schema: Json, given: Any, name: str, depth: int) -> Any:
    """Return an example that no mapping depends on."""
    for stated in (given, yaml_value_as_json(schema.get("example")), yaml_value_as_json(schema.get("default"))):
        if stated is not None and isinstance(stated, str | int | Decimal | bool):
            return stated
    if isinstance(values := schema.get("enum"), list) and values:
        return yaml_value_as_json(values[0])
    match json_type_instant_or_day(schema):
        case "object":
            inner = list(members(document, schema).items())[:_MOST] if depth < _DEPTH else []
            return {each: _example_for_unmapped_member(document, below, None, each, depth + 1) for each, below in inner}
        case "array":
            element = document.merged_schema(schema.get("items"))
            is_shown = depth < _DEPTH - 1 and element
            return [_example_for_unmapped_member(document, element, None, name, depth + 1)] if is_shown else []
    simple = {
        "integer": 1, "number": Decimal("9.55"), "boolean": True, "instant": "2026-03-01T12:00:00Z",
        "day": "2026-03-01", "string": name,
    }  # fmt: skip
    return simple.get(json_type_instant_or_day(schema))
