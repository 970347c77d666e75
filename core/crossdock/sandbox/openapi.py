"""The OpenAPI 3.1 document, written from the wire models. What the specification does not show says so itself."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from pydantic.json_schema import models_json_schema

from crossdock.sandbox.problems import MEDIA_TYPE
from crossdock.sandbox.resources import COLLECTIONS, Collection

Json = dict[str, Any]

_ASSUMED: Json = {"x-assumption": True}
_TEXT: Json = {"type": "string"}
_TIME: Json = {"type": "string", "format": "date-time"}
_KEY: Json = {"type": "string", "minLength": 1, "maxLength": 255}
_LIMIT: Json = {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100}
_OWN: Json = {"id": _TEXT, "createdAt": _TIME, "updatedAt": _TIME}
_PARAMETERS: Json = {
    "Tenant": {"name": "x-tenant-slug", "in": "header", "required": True, "schema": _TEXT},
    "Id": {**_ASSUMED, "name": "id", "in": "path", "required": True, "schema": _TEXT},
    "IdempotencyKey": {**_ASSUMED, "name": "Idempotency-Key", "in": "header", "schema": _KEY},
    "IfMatch": {**_ASSUMED, "name": "If-Match", "in": "header", "schema": _TEXT},
    "Limit": {**_ASSUMED, "name": "limit", "in": "query", "schema": _LIMIT},
    "Cursor": {**_ASSUMED, "name": "cursor", "in": "query", "schema": _TEXT},
    "UpdatedSince": {**_ASSUMED, "name": "updatedSince", "in": "query", "schema": _TIME},
    "ExternalId": {**_ASSUMED, "name": "externalId", "in": "query", "schema": _TEXT},
}
_HEADERS: Json = {
    **{name: {**_ASSUMED, "schema": _TEXT} for name in ("Location", "ETag", "RateLimit", "RateLimit-Policy")},
    "Retry-After": {**_ASSUMED, "schema": {"type": "integer", "minimum": 1}},
}
_PROBLEMS = {
    "400": ["The request or its JSON is malformed."],
    "401": ["No known bearer credential."],
    "403": ["The credential is not one of this tenant."],
    "404": ["There is no such resource."],
    "409": ["The externalId is taken, or a request under this Idempotency-Key is still running."],
    "412": ["If-Match names another version."],
    "413": ["The body is too long."],
    "415": ["The media type is not accepted."],
    "422": ["The body does not fit, refers to nothing, or the Idempotency-Key stands for another request."],
    "429": ["The request quota is used up.", "Retry-After"],
}


@cache
def document() -> Json:
    about = "Everything marked x-assumption is assumed: the specification does not show it."
    return {
        "openapi": "3.1.1",
        "info": {"title": "Integration platform (sandbox)", "version": "1", "description": about},
        "paths": {path: item for each in COLLECTIONS.values() for path, item in _paths(each)},
        "security": [{"bearer": []}],
        "components": {
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
            "parameters": _PARAMETERS,
            "headers": _HEADERS,
            "responses": {
                f"Problem{status}": _answer(text, "Problem", *headers, media_type=MEDIA_TYPE)
                for status, (text, *headers) in _PROBLEMS.items()
            },
            "schemas": dict(_schemas()),
        },
    }


def _paths(collection: Collection) -> Iterator[tuple[str, Json]]:
    name, tenant, one = collection.kind.wire.__name__, _ref("parameters", "Tenant"), _ref("parameters", "Id")
    filters = ["Limit", "Cursor", "UpdatedSince", *(["ExternalId"] if collection.kind.has_external_id else [])]
    guards, listed = ["IdempotencyKey", "IfMatch"], _answer("A page in the order of last change.", f"{name}Page")
    made, stored = (_answer("As it is stored.", f"Stored{name}", *more, "ETag") for more in (["Location"], []))
    create = _operation(f"create{name}", {"201": made}, "400 409 413 415 422", guards[:1])
    create["requestBody"] = {"required": True, **_content("application/json", name)}
    if collection.kind.name == "invoice":
        del create["x-assumption"]
    update = _operation(f"update{name}", {"200": stored}, "400 404 409 412 413 415 422", guards)
    update["requestBody"] = {"required": True, **_content("application/merge-patch+json", f"{name}Patch")}
    lists = _operation(f"list{name}", {"200": listed}, "400", filters)
    get = _operation(f"get{name}", {"200": stored}, "404", [])
    delete = _operation(f"delete{name}", {"204": _answer("It is gone.")}, "400 404 409 412 422", guards)
    member = {"parameters": [tenant, one], "get": get, "patch": update, "delete": delete}
    yield collection.path, {"parameters": [tenant], "post": create, "get": lists}
    yield f"{collection.path}/{{id}}", {**_ASSUMED, **member}


def _operation(name: str, answer: Json, refusals: str, parameters: list[str]) -> Json:
    refused = {status: _ref("responses", f"Problem{status}") for status in f"401 403 429 {refusals}".split()}
    listed = [_ref("parameters", each) for each in parameters]
    return {**_ASSUMED, "operationId": name, "parameters": listed, "responses": {**answer, **refused}}


def _answer(description: str, schema: str = "", *headers: str, media_type: str = "application/json") -> Json:
    told = {name: _ref("headers", name) for name in (*headers, "RateLimit", "RateLimit-Policy")}
    content = _content(media_type, schema) if schema else {}
    return {**_ASSUMED, "description": description, "headers": told, **content}


def _content(media_type: str, schema: str) -> Json:
    return {"content": {media_type: {"schema": _ref("schemas", schema)}}}


def _ref(section: str, name: str) -> Json:
    return {"$ref": f"#/components/{section}/{name}"}


def _schemas() -> Iterator[tuple[str, Json]]:
    models = [each.kind.wire for each in COLLECTIONS.values()]
    _, written = models_json_schema([(m, "validation") for m in models], ref_template="#/components/schemas/{model}")
    schemas: Json = written["$defs"]
    for model in models:
        schemas |= _derived(model.__name__, schemas[model.__name__])
    problem = {"type": _TEXT, "title": _TEXT, "status": {"type": "integer"}, "detail": _TEXT}
    errors = {"type": "array", "items": {"type": "object", "properties": {"pointer": _TEXT, "detail": _TEXT}}}
    schemas["Problem"] = {"type": "object", "properties": {**problem, "errors": errors}, "required": list(problem)}
    for name, schema in schemas.items():
        yield name, schema if name in {"Invoice", "Line"} else {**schema, **_ASSUMED}


def _derived(name: str, schema: Json) -> Json:
    """What the platform makes of an input: the stored resource, its merge patch, a page of them."""
    members, rows = schema["properties"], {"type": "array", "items": _ref("schemas", f"Stored{name}")}
    stored = {**schema, "title": f"Stored{name}", "description": f"{name} as it is stored."}
    stored |= {"properties": {**members, **_OWN}, "required": [*schema["required"], *_OWN]}
    patch = {**schema, "title": f"{name}Patch", "description": "JSON merge patch: null removes."}
    bare = {each: {key: value for key, value in inner.items() if key != "default"} for each, inner in members.items()}
    patch["properties"] = {each: {"anyOf": [inner, {"type": "null"}]} for each, inner in bare.items()}
    del patch["required"]
    page = {"data": rows, "nextCursor": {"type": ["string", "null"]}}
    page = {"type": "object", "properties": page, "required": list(page)}
    return {f"Stored{name}": stored, f"{name}Patch": patch, f"{name}Page": page}
