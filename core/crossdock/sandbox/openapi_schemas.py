"""JSON Schemas of everything on the wire, written from the wire models, with the sandbox's own rules put in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from iso3166 import countries_by_alpha2
from iso4217 import Currency
from pydantic.json_schema import models_json_schema

from crossdock.json_schema import DocumentedModel
from crossdock.sandbox import text_rules
from crossdock.sandbox.collections import COLLECTIONS, Collection, Movement
from crossdock.sandbox.openapi_examples import EXAMPLES, MEANINGS, sample_id

Json = dict[str, Any]

ASSUMED: Json = {"x-assumption": True}
TIME: Json = {"type": "string", "format": "date-time"}
_DOCUMENTED = frozenset({"Invoice", "Line"})  # the one request shape that the specification shows
_REFS = "#/components/schemas/"
_ID_OF = {
    "customerId": "cus",
    "productId": "prd",
    "binId": "bin",
    "toBinId": "bin",
    "fromBinId": "bin",
    "lotId": "lot",
    "toLotId": "lot",
    "parentId": "acc",
    "accountId": "acc",
    "invoiceId": "inv",
}
_WHOLE = sorted(each.value for each in Currency if each.exponent == 0)
_WHOLE_PRICE: Json = {"properties": {"unitPrice": {"type": ["integer", "null"]}}}
_WHOLE_LINES: Json = {"properties": {"items": {"items": _WHOLE_PRICE}}}
_NUMBERS = "An exact decimal: at most 15 digits before and 4 after the point. Read and write it as a decimal, no float."
_SHARED: Json = {
    "Exact": {
        "type": "number",
        "exclusiveMinimum": -(10**15),
        "exclusiveMaximum": 10**15,
        "multipleOf": 0.0001,
        "description": _NUMBERS,
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


@cache
def components() -> Json:
    """Every schema by its name, as the OpenAPI document has them."""
    inputs = [each.kind.wire for each in COLLECTIONS.values()]
    models = [(model, "validation") for model in (*inputs, Movement)]
    _, written = models_json_schema(models, ref_template=_REFS + "{model}", schema_generator=DocumentedModel)  # type: ignore[arg-type]  # a wider Literal
    bodies = {name: _object(schema) for name, schema in written["$defs"].items()}
    bodies["Movement"]["properties"]["quantity"] |= {"exclusiveMinimum": 0}  # which the model knows and does not tell
    schemas = {**_SHARED, **bodies, "AddressPatch": _patch(bodies["Address"]), **dict(_others())}
    for collection in COLLECTIONS.values():
        name = collection.kind.wire.__name__
        schemas |= dict(_derived(name, collection, bodies[name]))
        if rule := _whole_rule(bodies[name]):
            schemas[name] = {**bodies[name], **rule}
    return {name: _finished(name, schema) for name, schema in schemas.items()}


def of(name: str, base_url: str) -> Json | None:
    """A schema for itself alone, with all that it refers to; *name* in any spelling: InventoryLot, inventory_lot."""
    spelt = {_bare(each): each for each in components()}
    if (found := spelt.get(_bare(name))) is None:
        return None
    needed = {each: _inside(components()[each]) for each in _reachable(found)}
    about = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": f"{base_url}/schemas/{found}.json"}
    return {**about, "title": found, **_inside(components()[found]), **({"$defs": needed} if needed else {})}


def ref(name: str) -> Json:
    return {"$ref": _REFS + name}


def identifier(prefix: str) -> Json:
    return {"type": "string", "pattern": f"^{prefix}_[0-9a-f]{{25}}$", "examples": [sample_id(prefix)]}


def _bare(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def _finished(name: str, schema: Json) -> Json:
    marks = {} if name in _DOCUMENTED else ASSUMED
    return {**schema, **({"examples": [EXAMPLES[name]]} if name in EXAMPLES else {}), **marks}


def _object(schema: Json) -> Json:
    """A model's schema without generated titles, its members refined."""
    wanted = ("type", "description", "properties", "required", "additionalProperties")
    told = {key: schema[key] for key in wanted if key in schema}
    return {**told, "properties": {name: _member(name, inner) for name, inner in schema["properties"].items()}}


def _member(name: str, schema: Json) -> Json:
    """One member, with what the sandbox asks beyond the model: patterns, exact numbers, closed lists."""
    bare = {key: value for key, value in schema.items() if key not in {"title", "examples", "default"}}
    nullable = "anyOf" in bare
    if nullable:
        inner = next(each for each in bare.pop("anyOf") if each.get("type") != "null")
        bare = {**bare, **inner}
    bare = _refined(name, bare)
    if nullable:
        bare = _or_null(bare)
    default = schema.get("default")
    told = {"description": MEANINGS[name]} if name in MEANINGS else {}
    return {**bare, **told, **({} if default is None else {"default": default})}


def _refined(name: str, schema: Json) -> Json:
    if name in _ID_OF:
        return identifier(_ID_OF[name])
    if name in {"currency", "country"}:
        return ref(name.capitalize())
    if schema.get("type") == "number":
        return ref("Exact")
    if schema.get("type") == "array":
        return {**schema, "items": {key: value for key, value in schema["items"].items() if key != "title"}}
    if schema.get("type") == "string" and not {"format", "enum"} & set(schema):
        return {**schema, "pattern": text_rules.pattern(name)}
    return schema


def _or_null(schema: Json) -> Json:
    """The same or null, which means: not there."""
    if "$ref" in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    return {**schema, "type": [schema["type"], "null"]}


def _not_null(schema: Json) -> Json:
    if "anyOf" in schema:
        return {**schema["anyOf"][0], **{key: value for key, value in schema.items() if key != "anyOf"}}
    one = schema["type"][0] if isinstance(schema.get("type"), list) else schema.get("type")
    return {**schema, **({"type": one} if one else {})}


def _derived(name: str, collection: Collection, schema: Json) -> Iterator[tuple[str, Json]]:
    """What the platform makes of an input: the stored resource, its merge patch, a page of them."""
    members: Json = schema["properties"]
    own = {"id": identifier(collection.prefix), "createdAt": TIME, "updatedAt": TIME, "total": {"type": "number"}}
    own["status"] = {"type": "string", "enum": ["draft", "approved"]}
    given = {each: {**own[each], "description": MEANINGS[each]} for each in collection.given}
    if "status" in given:
        given["status"]["description"] = "An approved invoice is neither changed nor deleted."
    always = [each for each, inner in members.items() if each in schema["required"] or "default" in inner]
    kept = {each: _without_default(_not_null(inner)) for each, inner in members.items()}
    stored = {"type": "object", "description": f"{name}, as it is stored.", "properties": {**kept, **given}}
    yield f"Stored{name}", {**stored, "required": [*always, *given], "additionalProperties": False}
    yield f"{name}Patch", _patch(schema)
    yield f"{name}Page", _page(f"Stored{name}")


def _patch(schema: Json) -> Json:
    """What changes an input: nothing must be named, and an address need not be whole either."""
    about = "JSON merge patch (RFC 7396): what is named changes, null removes, objects are merged, lists replaced."
    members = {name: _without_default(inner) for name, inner in schema["properties"].items()}
    for name, inner in members.items():
        if "anyOf" in inner:
            parts = [ref("AddressPatch") if each == ref("Address") else each for each in inner["anyOf"]]
            members[name] = {**inner, "anyOf": parts}
    return {"type": "object", "description": about, "properties": members, "additionalProperties": False}


def _without_default(schema: Json) -> Json:
    return {key: value for key, value in schema.items() if key != "default"}


def _page(name: str) -> Json:
    rows = {"type": "array", "items": ref(name), "description": MEANINGS["data"]}
    cursor = {"type": ["string", "null"], "description": MEANINGS["nextCursor"]}
    return _closed({"data": rows, "nextCursor": cursor})


def _closed(members: Json, *optional: str, description: str = "") -> Json:
    told = {each: {**inner, **_meaning(each, inner)} for each, inner in members.items()}
    required = [each for each in members if each not in optional]
    about = {"description": description} if description else {}
    return {"type": "object", **about, "properties": told, "required": required, "additionalProperties": False}


def _meaning(name: str, schema: Json) -> Json:
    return {} if "description" in schema or name not in MEANINGS else {"description": MEANINGS[name]}


def _others() -> Iterator[tuple[str, Json]]:
    """What no wire model describes: movements and entries as they are stored, problems, events."""
    names = ("lotId", "toLotId", "fromBinId", "toBinId")
    moved = {each: identifier(_ID_OF[each]) for each in names}
    moved = {"id": identifier("mov"), **moved, "quantity": ref("Exact"), "createdAt": TIME}
    yield "StoredMovement", _closed(moved, "fromBinId", description="What was moved, from where, to where.")
    entry = {each: identifier(_ID_OF[each]) for each in ("accountId", "invoiceId")}
    side = {"type": "string", "enum": ["debit", "credit"]}
    entry = {"id": identifier("ent"), **entry, "side": side, "amount": {"type": "number", "minimum": 0}}
    yield "Entry", _closed({**entry, "currency": ref("Currency"), "at": TIME}, description="One side of a posting.")
    yield "EntryPage", _page("Entry")
    finding = _closed({"pointer": {"type": "string"}, "detail": {"type": "string"}})
    problem: Json = {each: {"type": "string"} for each in ("type", "title", "detail")}
    problem |= {
        "status": {"type": "integer", "description": "The HTTP status."},
        "errors": {"type": "array", "items": finding},
    }
    yield "Problem", _closed(problem, "errors", description="Why a request was refused (RFC 9457).")
    for name, (event, data, about) in EVENTS.items():
        members = {"type": {"type": "string", "const": event}, "timestamp": TIME, "data": {**ref(data), **_EVENT_DATA}}
        yield name, _closed(members, description=about)


_EVENT_DATA: Json = {"description": "What it is about, as it is stored."}
EVENTS: Mapping[str, tuple[str, str, str]] = {
    "OrderCreated": ("order.created", "StoredOrder", "An order was created."),
    "InventoryLotMoved": ("inventory.lot_moved", "StoredMovement", "Stock of a lot was moved to another bin."),
    "InvoiceApproved": ("invoice.approved", "StoredInvoice", "An invoice was approved."),
}


def _whole_rule(schema: Json) -> Json:
    """Where prices must be whole because their currency has no minor unit."""
    members: Mapping[str, Any] = schema["properties"]
    then = _WHOLE_LINES if "items" in members else _WHOLE_PRICE if "unitPrice" in members else None
    if then is None:
        return {}
    return {"if": {"properties": {"currency": {"enum": _WHOLE}}, "required": ["currency"]}, "then": then}


def _reachable(name: str) -> list[str]:
    """The names of all schemas that the one with this *name* refers to."""
    found: dict[str, None] = {}
    waiting = [components()[name]]
    while waiting:
        for each in _references(waiting.pop()):
            if each not in found:
                found[each] = None
                waiting.append(components()[each])
    return sorted(found)


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(target := value.get("$ref"), str):
            yield target.removeprefix(_REFS)
        value = list(value.values())
    for inner in value if isinstance(value, list) else ():
        yield from _references(inner)


def _inside(value: Any) -> Any:
    """The same with its references pointing into ``$defs``."""
    if isinstance(value, dict):
        return {key: _inside(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_inside(inner) for inner in value]
    return value.replace(_REFS, "#/$defs/") if isinstance(value, str) else value
