"""JSON Schemas of everything on the wire, generated from the wire models and extended by the sandbox's own rules. The
examples and the descriptions of members are in a YAML file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import yaml
from iso3166 import countries_by_alpha2
from iso4217 import Currency
from pydantic.json_schema import models_json_schema

from crossdock.sandbox import webhook_openapi
from crossdock.sandbox.api_routes import COLLECTIONS, Collection
from crossdock.sandbox.body_validation import REFERENCES, WHOLE_CURRENCIES, Movement, text_pattern_of_member
from crossdock.values.schema_descriptions_from_docstrings import SchemaGeneratorWithDescriptions

_TEXT = files("crossdock.sandbox").joinpath("openapi_examples.yaml").read_text("utf-8")
_DATA: Mapping[str, Mapping[str, Any]] = yaml.safe_load(_TEXT)
_AT = "2026-11-20T09:30:00.000000Z"

DESCRIPTIONS: Mapping[str, str] = _DATA["descriptions"]
INPUTS: Mapping[str, Mapping[str, Any]] = _DATA["inputs"]
_STORED = {
    f"Stored{name}": {**body, **_DATA["added"][name], "createdAt": _AT, "updatedAt": _AT}
    for name, body in INPUTS.items()
}
_OTHERS = _DATA["others"]
EXAMPLES: Mapping[str, Any] = {
    **INPUTS,
    **_STORED,
    **_OTHERS,
    **{f"{name}Page": {"data": [_STORED[f"Stored{name}"]], "nextCursor": None} for name in INPUTS},
    "EntryPage": {"data": [_OTHERS["Entry"]], "nextCursor": None},
    "OrderCreated": {"type": "order.created", "timestamp": _AT, "data": _STORED["StoredOrder"]},
    "InventoryLotMoved": {"type": "inventory.lot_moved", "timestamp": _AT, "data": _OTHERS["StoredMovement"]},
    "InvoiceApproved": {
        "type": "invoice.approved",
        "timestamp": _AT,
        "data": {**_STORED["StoredInvoice"], "status": "approved"},
    },
}


def sample_id(prefix: str) -> str:
    return f"{prefix}_19a8b2c3d014be07c9d52f1a3"


Json = dict[str, Any]

ASSUMED: Json = {"x-assumption": True}
TIME: Json = {"type": "string", "format": "date-time"}
DECIMAL: Json = {"type": "number", "format": "decimal"}  # of the OpenAPI format registry: an exact number
_DOCUMENTED = frozenset({"Invoice", "Line"})  # the one request schema that the specification shows
_SHOWN = frozenset({"type", "properties", "required", "items", "description", "examples"})  # what it shows of them
_REFS = "#/components/schemas/"
_ID_PREFIXES = {each.kind.name: each.prefix for each in COLLECTIONS.values()}
_WHOLE_PRICE: Json = {"properties": {"unitPrice": {"type": ["integer", "null"]}}}
_WHOLE_LINES: Json = {"properties": {"items": {"items": _WHOLE_PRICE}}}
_SHARED: Json = {
    "Exact": {
        **DECIMAL,
        "exclusiveMinimum": -(10**15),
        "exclusiveMaximum": 10**15,
        "multipleOf": 0.0001,
        "description": "An exact decimal: at most 15 digits before and 4 after the point. Use a decimal type.",
    },
    "Currency": {
        "type": "string",
        "enum": sorted(each.value for each in Currency),
        "description": "ISO 4217 currency code. The specification does not list the allowed ones.",
    },
    "Country": {
        "type": "string",
        "enum": sorted(countries_by_alpha2),
        "description": "ISO 3166-1 alpha-2 country code.",
    },
}
EVENTS: Mapping[str, tuple[str, str, str]] = {
    "OrderCreated": ("order.created", "StoredOrder", "An order was created."),
    "InventoryLotMoved": ("inventory.lot_moved", "StoredMovement", "Stock of a lot was moved to another bin."),
    "InvoiceApproved": ("invoice.approved", "StoredInvoice", "An invoice was approved."),
}


ADDRESSES = ("Address", "ShippingAddress")


@cache
def component_schemas() -> Json:
    inputs = [each.kind.wire for each in COLLECTIONS.values()]
    models = [(model, "validation") for model in (*inputs, Movement)]
    _, generated = models_json_schema(
        models,  # type: ignore[arg-type]  # a wider Literal
        ref_template=_REFS + "{model}",
        schema_generator=SchemaGeneratorWithDescriptions,
    )
    bodies = {name: _object_schema(schema) for name, schema in generated["$defs"].items()}
    bodies["Movement"]["properties"]["quantity"] |= {"exclusiveMinimum": 0}  # a rule that the generator omits
    patches = {f"{name}Patch": _patch_schema(bodies[name]) for name in ADDRESSES}
    schemas = {**_SHARED, **bodies, **patches, **dict(_schemas_without_wire_model())}
    for collection in COLLECTIONS.values():
        name = collection.kind.wire.__name__
        schemas |= dict(_stored_patch_and_page_schemas(name, collection, bodies[name]))
        schemas[name] = {**bodies[name], **_whole_price_rule_by_currency(bodies[name])}
    return {
        **{name: _with_assumption_and_example(name, schema) for name, schema in schemas.items()},
        **webhook_openapi.webhook_schemas(),
    }


def standalone_schema(name: str, base_url: str) -> Json | None:
    """Return a self-contained schema. *name* may have any spelling: InventoryLot, inventory_lot, inventory-lot."""
    names = {_comparable_schema_name(each): each for each in component_schemas()}
    if (found := names.get(_comparable_schema_name(name))) is None:
        return None
    about = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": f"{base_url}/schemas/{found}.json"}
    schema = {**about, "title": found, **component_schemas()[found]}
    if needed := _names_of_referenced_schemas(found):
        schema["$defs"] = {each: component_schemas()[each] for each in sorted(needed)}
    local: Json = json.loads(json.dumps(schema).replace(_REFS, "#/$defs/"))
    return local


def schema_reference(name: str) -> Json:
    return {"$ref": _REFS + name}


def id_schema(prefix: str) -> Json:
    return {"type": "string", "pattern": f"^{prefix}_[0-9a-f]{{25}}$", "examples": [sample_id(prefix)]}


def _referenced_id_schema(member: str) -> Json:
    return id_schema(_ID_PREFIXES[REFERENCES[member]])


def _comparable_schema_name(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def _names_of_referenced_schemas(name: str) -> set[str]:
    found: set[str] = set()
    waiting = [name]
    while waiting:
        new = set(re.findall(rf'"{_REFS}(\w+)"', json.dumps(component_schemas()[waiting.pop()]))) - found
        found |= new
        waiting += new
    return found


def _with_assumption_and_example(name: str, schema: Json) -> Json:
    marked = _with_assumed_keywords_marked(schema) if name in _DOCUMENTED else {**schema, **ASSUMED}
    return {**marked, **({"examples": [EXAMPLES[name]]} if name in EXAMPLES else {})}


def _with_assumed_keywords_marked(schema: Json) -> Json:
    """Return a documented schema. ``x-assumption`` lists the assumed keywords of it and of its members."""
    members = {name: _with_assumed_keywords_marked(inner) for name, inner in schema.get("properties", {}).items()}
    assumed = [each for each in schema if each not in _SHOWN or (each == "type" and isinstance(schema[each], list))]
    return {
        **schema,
        **({"properties": members} if members else {}),
        **({"x-assumption": sorted(assumed)} if assumed else {}),
    }


def _object_schema(schema: Json) -> Json:
    kept_keys = ("type", "description", "properties", "required", "additionalProperties")
    kept = {key: schema[key] for key in kept_keys if key in schema}
    return {**kept, "properties": {name: _member_schema(name, inner) for name, inner in schema["properties"].items()}}


def _member_schema(name: str, schema: Json) -> Json:
    kept = {key: value for key, value in schema.items() if key not in {"title", "examples", "default"}}
    nullable = "anyOf" in kept
    if nullable:
        inner = next(each for each in kept.pop("anyOf") if each.get("type") != "null")
        kept = {**kept, **inner}
    kept = _refined_member_schema(name, kept)
    if nullable:
        kept = _nullable_schema(kept)
    default = schema.get("default")
    description = {"description": DESCRIPTIONS[name]} if name in DESCRIPTIONS else {}
    return {**kept, **description, **({} if default is None else {"default": default})}


def _refined_member_schema(name: str, schema: Json) -> Json:
    if name in REFERENCES:
        return _referenced_id_schema(name)
    if name in {"currency", "country"}:
        return schema_reference(name.capitalize())
    if schema.get("type") == "number":
        return schema_reference("Exact")
    if schema.get("type") == "array":
        return {**schema, "items": {key: value for key, value in schema["items"].items() if key != "title"}}
    if schema.get("type") == "string" and not {"format", "enum"} & set(schema):
        return {**schema, "pattern": text_pattern_of_member(name)}
    return schema


def _nullable_schema(schema: Json) -> Json:
    """Return the schema or null, which stands for an absent member."""
    if "$ref" in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    return {**schema, "type": [schema["type"], "null"]}


def _non_nullable_schema(schema: Json) -> Json:
    if "anyOf" in schema:
        return {**schema["anyOf"][0], **{key: value for key, value in schema.items() if key != "anyOf"}}
    if isinstance(schema.get("type"), list):
        return {**schema, "type": schema["type"][0]}
    return schema


def _stored_patch_and_page_schemas(name: str, collection: Collection, schema: Json) -> Iterator[tuple[str, Json]]:
    members: Json = schema["properties"]
    own = {"id": id_schema(collection.prefix), "createdAt": TIME, "updatedAt": TIME, "total": DECIMAL}
    own["status"] = {"type": "string", "enum": ["draft", "approved"]}
    read_only = {each: {**own[each], "description": DESCRIPTIONS[each]} for each in collection.read_only}
    if "status" in read_only:
        read_only["status"]["description"] = "An approved invoice cannot be changed or deleted."
    always = [each for each, inner in members.items() if each in schema["required"] or "default" in inner]
    kept = {each: _without_default(_non_nullable_schema(inner)) for each, inner in members.items()}
    stored = {"type": "object", "description": f"{name} as stored.", "properties": {**kept, **read_only}}
    yield f"Stored{name}", {**stored, "required": [*always, *read_only], "additionalProperties": False}
    yield f"{name}Patch", _patch_schema(schema)
    yield f"{name}Page", _page_schema(f"Stored{name}")


def _patch_schema(schema: Json) -> Json:
    about = "JSON merge patch (RFC 7396): null removes a member, objects are merged, lists are replaced."
    members = {name: _without_default(inner) for name, inner in schema["properties"].items()}
    for name, inner in members.items():
        if "anyOf" in inner:
            patches = {schema_reference(each)["$ref"]: schema_reference(f"{each}Patch") for each in ADDRESSES}
            parts = [patches.get(each.get("$ref"), each) for each in inner["anyOf"]]
            members[name] = {**inner, "anyOf": parts}
    return {"type": "object", "description": about, "properties": members, "additionalProperties": False}


def _without_default(schema: Json) -> Json:
    return {key: value for key, value in schema.items() if key != "default"}


def _page_schema(name: str) -> Json:
    return _closed_object_schema(
        {"data": {"type": "array", "items": schema_reference(name)}, "nextCursor": {"type": ["string", "null"]}}
    )


def _closed_object_schema(members: Json, *optional: str, description: str = "") -> Json:
    described = {each: {**inner, **_description_if_missing(each, inner)} for each, inner in members.items()}
    required = [each for each in members if each not in optional]
    about = {"description": description} if description else {}
    return {"type": "object", **about, "properties": described, "required": required, "additionalProperties": False}


def _description_if_missing(name: str, schema: Json) -> Json:
    return {} if "description" in schema or name not in DESCRIPTIONS else {"description": DESCRIPTIONS[name]}


def _schemas_without_wire_model() -> Iterator[tuple[str, Json]]:
    lots_and_bins = {each: _referenced_id_schema(each) for each in ("lotId", "toLotId", "fromBinId", "toBinId")}
    movement = {"id": id_schema("mov"), **lots_and_bins, "quantity": schema_reference("Exact"), "createdAt": TIME}
    yield "StoredMovement", _closed_object_schema(movement, "fromBinId", description="A movement as stored.")
    entry = {
        "id": id_schema("ent"),
        **{each: _referenced_id_schema(each) for each in ("accountId", "invoiceId")},
        "side": {"type": "string", "enum": ["debit", "credit"]},
        "amount": {**DECIMAL, "minimum": 0},
        "currency": schema_reference("Currency"),
        "at": TIME,
    }
    yield "Entry", _closed_object_schema(entry, description="One side of a posting.")
    yield "EntryPage", _page_schema("Entry")
    finding = _closed_object_schema({"pointer": {"type": "string"}, "detail": {"type": "string"}})
    problem: Json = {
        **{each: {"type": "string"} for each in ("type", "title", "detail")},
        "status": {"type": "integer", "description": "The HTTP status."},
        "errors": {"type": "array", "items": finding},
    }
    yield "Problem", _closed_object_schema(problem, "errors", description="Why a request was refused (RFC 9457).")
    for name, (event, data, about) in EVENTS.items():
        resource = {**schema_reference(data), "description": "The resource as stored."}
        members = {"type": {"type": "string", "const": event}, "timestamp": TIME, "data": resource}
        yield name, _closed_object_schema(members, description=about)


def _whole_price_rule_by_currency(schema: Json) -> Json:
    members: Mapping[str, Any] = schema["properties"]
    then = _WHOLE_LINES if "items" in members else _WHOLE_PRICE if "unitPrice" in members else None
    if then is None:
        return {}
    return {"if": {"properties": {"currency": {"enum": WHOLE_CURRENCIES}}, "required": ["currency"]}, "then": then}
