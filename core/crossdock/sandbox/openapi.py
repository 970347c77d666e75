"""The OpenAPI 3.1 document, written from the wire models. What the specification does not show says so itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

from pydantic.json_schema import models_json_schema

from crossdock.sandbox.answers import PROBLEM_MEDIA_TYPE
from crossdock.sandbox.routes import COLLECTIONS, Collection

Json = dict[str, Any]

ASSUMED: Json = {"x-assumption": True}
_DOCUMENTED = ("Invoice", "Line")
_OWN: Json = {
    "id": {"type": "string"},
    "createdAt": {"type": "string", "format": "date-time"},
    "updatedAt": {"type": "string", "format": "date-time"},
}
_PROBLEMS = {
    "400": "The request or its JSON is malformed.",
    "401": "No known bearer credential.",
    "403": "The credential is not one of this tenant.",
    "404": "There is no such resource.",
    "409": "The externalId is taken, or a request under this Idempotency-Key is still running.",
    "412": "If-Match names another version.",
    "413": "The body is too long.",
    "415": "The media type is not accepted.",
    "422": "The body does not fit the resource, refers to nothing, or the Idempotency-Key stands for another request.",
    "429": "The request quota is used up.",
}


@cache
def document_bytes() -> bytes:
    return json.dumps(document()).encode()


def document() -> Json:
    """Build the whole document."""
    return {
        "openapi": "3.1.1",
        "info": {
            "title": "Integration platform (sandbox)",
            "version": "1",
            "description": "Everything marked x-assumption is assumed: the specification does not show it.",
        },
        "paths": dict(_paths()),
        "security": [{"bearer": []}],
        "components": {
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
            "parameters": _parameters(),
            "headers": _headers(),
            "responses": {f"Problem{status}": _problem(status) for status in _PROBLEMS},
            "schemas": _schemas(),
        },
    }


def _paths() -> Iterator[tuple[str, Json]]:
    for collection in COLLECTIONS.values():
        yield (
            collection.path,
            {
                "parameters": [_ref("parameters", "Tenant")],
                "post": _create(collection),
                "get": _list(collection),
            },
        )
        yield (
            f"{collection.path}/{{id}}",
            {
                **ASSUMED,
                "parameters": [_ref("parameters", "Tenant"), _ref("parameters", "Id")],
                **dict(_member_operations(collection)),
            },
        )


def _create(collection: Collection) -> Json:
    model = collection.model.__name__
    documented = collection.resource == "invoice"
    stored = _answer(f"The stored {collection.resource}.", f"Stored{model}", "Location", "ETag")
    return {
        **({} if documented else ASSUMED),
        "operationId": f"create{model}",
        "summary": f"Create a {collection.resource}.",
        "parameters": [_ref("parameters", "IdempotencyKey")],
        "requestBody": _body("application/json", model),
        "responses": {"201": stored, **_refusals("400", "401", "403", "409", "413", "415", "422", "429")},
    }


def _list(collection: Collection) -> Json:
    model = collection.model.__name__
    names = ["Limit", "Cursor", "UpdatedSince", *(["ExternalId"] if collection.has_external_id else [])]
    return {
        **ASSUMED,
        "operationId": f"list{model}",
        "summary": "A page in the order of last change.",
        "parameters": [_ref("parameters", name) for name in names],
        "responses": {"200": _answer("A page.", f"{model}Page"), **_refusals("400", "401", "403", "429")},
    }


def _member_operations(collection: Collection) -> Iterator[tuple[str, Json]]:
    model = collection.model.__name__
    stored = _answer(f"The stored {collection.resource}.", f"Stored{model}", "ETag")
    changing = [_ref("parameters", "IdempotencyKey"), _ref("parameters", "IfMatch")]
    always = ("401", "403", "404", "429")
    yield "get", {**ASSUMED, "operationId": f"get{model}", "responses": {"200": stored, **_refusals(*always)}}
    yield (
        "patch",
        {
            **ASSUMED,
            "operationId": f"update{model}",
            "parameters": changing,
            "requestBody": _body("application/merge-patch+json", f"{model}Patch"),
            "responses": {"200": stored, **_refusals(*always, "400", "409", "412", "413", "415", "422")},
        },
    )
    gone = {**ASSUMED, "description": "It is gone.", "headers": _rate_headers()}
    yield (
        "delete",
        {
            **ASSUMED,
            "operationId": f"delete{model}",
            "parameters": changing,
            "responses": {"204": gone, **_refusals(*always, "400", "409", "412", "422")},
        },
    )


def _ref(section: str, name: str) -> Json:
    return {"$ref": f"#/components/{section}/{name}"}


def _body(media_type: str, schema: str) -> Json:
    return {"required": True, "content": {media_type: {"schema": _ref("schemas", schema)}}}


def _answer(description: str, schema: str, *headers: str) -> Json:
    return {
        **ASSUMED,
        "description": description,
        "headers": {**_rate_headers(), **{name: _ref("headers", name) for name in headers}},
        "content": {"application/json": {"schema": _ref("schemas", schema)}},
    }


def _refusals(*statuses: str) -> Json:
    return {status: _ref("responses", f"Problem{status}") for status in statuses}


def _rate_headers() -> Json:
    return {name: _ref("headers", name) for name in ("RateLimit", "RateLimit-Policy")}


def _problem(status: str) -> Json:
    headers = {**_rate_headers(), **({"Retry-After": _ref("headers", "Retry-After")} if status == "429" else {})}
    content = {PROBLEM_MEDIA_TYPE: {"schema": _ref("schemas", "Problem")}}
    return {**ASSUMED, "description": _PROBLEMS[status], "headers": headers, "content": content}


def _headers() -> Json:
    text: Json = {**ASSUMED, "schema": {"type": "string"}}
    names = ("Location", "ETag", "RateLimit", "RateLimit-Policy")
    return {**dict.fromkeys(names, text), "Retry-After": {**ASSUMED, "schema": {"type": "integer", "minimum": 1}}}


def _parameters() -> Json:
    text: Json = {"type": "string"}
    limit = {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100}
    key = {"type": "string", "minLength": 1, "maxLength": 255}
    return {
        "Tenant": {"name": "x-tenant-slug", "in": "header", "required": True, "schema": text},
        "Id": {**ASSUMED, "name": "id", "in": "path", "required": True, "schema": text},
        "IdempotencyKey": {**ASSUMED, "name": "Idempotency-Key", "in": "header", "schema": key},
        "IfMatch": {**ASSUMED, "name": "If-Match", "in": "header", "schema": text},
        "Limit": {**ASSUMED, "name": "limit", "in": "query", "schema": limit},
        "Cursor": {**ASSUMED, "name": "cursor", "in": "query", "schema": text},
        "UpdatedSince": {**ASSUMED, "name": "updatedSince", "in": "query", "schema": _OWN["createdAt"]},
        "ExternalId": {**ASSUMED, "name": "externalId", "in": "query", "schema": text},
    }


def _schemas() -> Json:
    models = [collection.model for collection in COLLECTIONS.values()]
    _, written = models_json_schema([(m, "validation") for m in models], ref_template="#/components/schemas/{model}")
    schemas: Json = written["$defs"]
    for collection in COLLECTIONS.values():
        schemas.update(_derived(collection.model.__name__, schemas[collection.model.__name__]))
    finding = {"type": "object", "properties": {"pointer": {"type": "string"}, "detail": {"type": "string"}}}
    members: Json = {name: {"type": "string"} for name in ("type", "title", "detail")}
    members |= {"status": {"type": "integer"}, "errors": {"type": "array", "items": finding}}
    required = ["type", "title", "status", "detail"]
    schemas["Problem"] = {"type": "object", "properties": members, "required": required}
    return {name: schema if name in _DOCUMENTED else {**schema, **ASSUMED} for name, schema in schemas.items()}


def _derived(name: str, schema: Json) -> Iterator[tuple[str, Json]]:
    """What the platform makes of an input: the stored resource, its merge patch, a page of them."""
    stored = {**schema, "title": f"Stored{name}", "description": f"{name} as it is stored."}
    stored["properties"] = {**schema["properties"], **_OWN}
    stored["required"] = [*schema["required"], *_OWN]
    yield f"Stored{name}", stored
    patch = {**schema, "title": f"{name}Patch", "description": "JSON merge patch: null removes."}
    patch["properties"] = {
        member: {"anyOf": [{key: value for key, value in inner.items() if key != "default"}, {"type": "null"}]}
        for member, inner in schema["properties"].items()
    }
    del patch["required"]
    yield f"{name}Patch", patch
    rows = {"type": "array", "items": _ref("schemas", f"Stored{name}")}
    page = {"data": rows, "nextCursor": {"type": ["string", "null"]}}
    yield f"{name}Page", {"type": "object", "properties": page, "required": ["data", "nextCursor"]}
