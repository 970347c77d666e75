"""The OpenAPI 3.1 document of the platform's API. What the specification does not show is marked `x-assumption`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from crossdock.sandbox import json_codec, openapi_schemas, read_operations
from crossdock.sandbox.access_control import SCOPES, required_scope
from crossdock.sandbox.api_keys import SLUG, TENANT
from crossdock.sandbox.openapi_examples import EXAMPLES
from crossdock.sandbox.openapi_schemas import ASSUMED, TIME, identifier
from crossdock.sandbox.resource_paths import COLLECTIONS, Collection
from crossdock.sandbox.rfc3339 import INSTANT
from crossdock.serving.problem_responses import MEDIA_TYPE

Json = dict[str, Any]

KEY_PATTERN = '^("[ -~]{1,255}"|[!#-~]([ -~]{0,253}[!-~])?)$'

_ABOUT = """An emulation of the integration platform on your own machine.

Everything marked `x-assumption` is assumed: the specification does not show it. Amounts and quantities are JSON
numbers with an exact decimal meaning: read and write them as decimals, never as floats. Unknown members are refused."""
_TEXT: Json = {"type": "string"}
_SINCE: Json = {**TIME, "pattern": f"^{INSTANT.pattern}$", "examples": ["2026-11-20T00:00:00Z"]}
_LIMIT: Json = {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100}
_KEY: Json = {"type": "string", "pattern": KEY_PATTERN, "examples": ["5f0c6b1e"]}
_SLUG: Json = {"type": "string", "pattern": f"^{SLUG.pattern}$", "examples": [TENANT]}
_CURSOR: Json = {"type": "string", "pattern": f"^{read_operations.CURSOR.pattern}$"}
_KEY_ABOUT = "Requests with the same key are executed once; the response is kept for 24 hours."
_PARAMETERS: Json = {
    name: {"name": wire, "in": place, "description": about, "schema": schema, **({} if name == "Tenant" else ASSUMED)}
    for name, wire, place, schema, about in (
        ("Tenant", "x-tenant-slug", "header", _SLUG, "The tenant of the request."),
        ("IdempotencyKey", "Idempotency-Key", "header", _KEY, _KEY_ABOUT),
        ("IfMatch", "If-Match", "header", _TEXT, "Apply the change only if the entity tag is still this one."),
        ("Limit", "limit", "query", _LIMIT, "Maximum number of items on a page."),
        ("Cursor", "cursor", "query", _CURSOR, "The `nextCursor` of the previous page."),
        ("UpdatedSince", "updatedSince", "query", _SINCE, "Only resources changed after this time."),
        ("ExternalId", "externalId", "query", _TEXT, "Only the resource with this externalId."),
    )
}
_PARAMETERS["Tenant"]["required"] = True
_HEADERS: Json = {
    name: {**ASSUMED, "description": about, "schema": schema}
    for name, schema, about in (
        ("Location", _TEXT, "Path of the new resource."),
        ("ETag", _TEXT, "The version, for If-Match."),
        ("Idempotent-Replayed", {"const": "true"}, "Present if this is the kept response of an earlier request."),
        ("X-Request-Id", _TEXT, "Identifier of the request in the sandbox's logs."),
        ("RateLimit", _TEXT, "Remaining quota (draft-ietf-httpapi-ratelimit-headers-10; the dialect is an option)."),
        ("RateLimit-Policy", _TEXT, "Size of the token bucket, and the seconds in which it fills."),
        ("Retry-After", {"type": "integer", "minimum": 1}, "Seconds to wait."),
        ("WWW-Authenticate", _TEXT, "The challenge: a bearer credential, or a scope (RFC 6750)."),
    )
}
_PROBLEMS: dict[str, tuple[str, ...]] = {
    "400": ("The request or its JSON is malformed.",),
    "401": ("No valid bearer credential.", "WWW-Authenticate"),
    "403": ("The credential belongs to another tenant, or lacks the scope.", "WWW-Authenticate"),
    "404": ("There is no such resource.",),
    "409": (
        "The externalId is taken, the resource can no longer change, or a request with this key is in progress.",
        "Retry-After",
    ),
    "412": ("If-Match names another version.",),
    "413": ("The body is too long.",),
    "415": ("The media type is not supported.",),
    "422": ("The body is invalid, refers to a missing resource, or the Idempotency-Key belongs to another request.",),
    "429": ("The request quota is exhausted.", "Retry-After"),
}
_WRITES = "400 409 413 415 422"
_GUARDS = ("IdempotencyKey", "IfMatch")
_BEARER: Json = {
    "type": "http",
    "scheme": "bearer",
    "description": "An API key, created by `crossdock sandbox keys new`. Scopes, assumed: "
    + ", ".join(f"`{each}`" for each in SCOPES)
    + ". Writing includes reading.",
}


@cache
def document() -> Json:
    return {
        "openapi": "3.1.1",
        "info": {"title": "Integration platform (sandbox)", "version": "1.0.0", "description": _ABOUT},
        "servers": [{"url": "/", "description": "The sandbox that serves this document."}],
        "tags": [{"name": _tag(each), **ASSUMED} for each in COLLECTIONS.values()],
        "paths": {path: item for each in COLLECTIONS.values() for path, item in _paths(each)},
        "webhooks": {event: _webhook(name, about) for name, (event, _, about) in openapi_schemas.EVENTS.items()},
        "security": [{"bearer": []}],
        "components": {
            "securitySchemes": {"bearer": _BEARER},
            "parameters": _PARAMETERS,
            "headers": _HEADERS,
            "responses": {f"Problem{status}": _problem(*about) for status, about in _PROBLEMS.items()},
            "schemas": openapi_schemas.components(),
        },
    }


def _paths(collection: Collection) -> Iterator[tuple[str, Json]]:
    name, resource = collection.kind.wire.__name__, collection.kind.name
    noun, tenant = _noun(collection), {"$ref": "#/components/parameters/Tenant"}
    filters = ["Limit", "Cursor", "UpdatedSince", *(["ExternalId"] if collection.kind.has_external_id else [])]
    stored = _response("The resource as stored.", f"Stored{name}", "ETag")
    created = _response("The resource as stored.", f"Stored{name}", "Location", "ETag", "Idempotent-Replayed")
    page = _response("A page in the order of last change.", f"{name}Page")
    operations = _Operations(collection)
    create = operations.new(f"create{name}", f"Create {noun}", {"201": {**created, "links": _links(name)}}, _WRITES)
    create |= _with_body(name, _GUARDS[:1])
    if resource == "invoice":
        del create["x-assumption"]
        create["description"] = "With `autoPostLedger` it is posted to the general ledger in the same operation."
    update = operations.new(f"update{name}", f"Change {noun}", {"200": stored}, f"404 412 {_WRITES}")
    update |= _with_body(f"{name}Patch", _GUARDS, "application/merge-patch+json")
    lists = operations.new(f"list{name}", f"List {_tag(collection).lower()}", {"200": page}, "400", "GET")
    lists |= _parameters(filters)
    get = operations.new(f"get{name}", f"Read {noun}", {"200": stored}, "404", "GET")
    delete = operations.new(f"delete{name}", f"Delete {noun}", {"204": _response("Deleted.")}, "400 404 409 412 422")
    delete |= _parameters(_GUARDS)
    about = {"description": "The id from the response to the creation.", **ASSUMED}
    resource_id = {"name": "id", "in": "path", "required": True, "schema": identifier(collection.prefix), **about}
    below = {**ASSUMED, "parameters": [tenant, resource_id]}
    yield collection.path, {"parameters": [tenant], "post": create, "get": lists}
    yield f"{collection.path}/{{id}}", {**below, "get": get, "patch": update, "delete": delete}
    for path, method, operation in _below_resource(operations, resource, stored):
        yield f"{collection.path}/{{id}}/{path}", {**below, method: operation}


def _below_resource(operations: _Operations, resource: str, stored: Json) -> Iterator[tuple[str, str, Json]]:
    """The actions, and the entries of a ledger account."""
    if resource == "invoice":
        approve = operations.new("approveInvoice", "Approve an invoice", {"200": stored}, f"404 412 {_WRITES}")
        approve["description"] = "Can be repeated: an approved invoice is returned as it is, without a second effect."
        yield "approve", "post", {**approve, **_parameters(_GUARDS)}
    if resource == "inventory_lot":
        moved = _response("The movement.", "StoredMovement", "Idempotent-Replayed")
        move = operations.new("moveInventoryLot", "Move stock of a lot", {"201": moved}, f"404 412 {_WRITES}")
        yield "movements", "post", {**move, **_with_body("Movement", _GUARDS)}
    if resource == "ledger_account":
        page = _response("A page, oldest entry first.", "EntryPage")
        entries = operations.new("listEntry", "List the entries of an account", {"200": page}, "400 404", "GET")
        yield "entries", "get", {**entries, **_parameters(["Limit", "Cursor"])}


class _Operations:
    """Builds the operations of one collection."""

    def __init__(self, collection: Collection) -> None:
        self._tag, self._resource = _tag(collection), collection.kind.name

    def new(self, name: str, summary: str, success: Json, problems: str, method: str = "POST") -> Json:
        """An operation without parameters and body."""
        statuses = f"401 403 429 {problems}".split()
        refused = {each: {"$ref": f"#/components/responses/Problem{each}"} for each in statuses}
        scope = {"security": [{"bearer": [required_scope(self._resource, method)]}]}
        about = {"operationId": name, "summary": f"{summary}.", "tags": [self._tag], **scope}
        return {**ASSUMED, **about, "responses": {**success, **dict(sorted(refused.items()))}}


def _with_body(schema: str, parameters: Sequence[str], media_type: str = json_codec.MEDIA_TYPE) -> Json:
    return {**_parameters(parameters), "requestBody": {"required": True, **_content(media_type, schema)}}


def _tag(collection: Collection) -> str:
    return f"{collection.kind.name.replace('_', ' ').capitalize()}s"


def _noun(collection: Collection) -> str:
    """The name of the resource with its article."""
    noun = collection.kind.name.replace("_", " ")
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def _parameters(names: Sequence[str]) -> Json:
    return {"parameters": [{"$ref": f"#/components/parameters/{each}"} for each in names]}


def _response(description: str, schema: str = "", *headers: str) -> Json:
    always = ("X-Request-Id", "RateLimit", "RateLimit-Policy")
    fields = {each: {"$ref": f"#/components/headers/{each}"} for each in (*headers, *always)}
    content = _content(json_codec.MEDIA_TYPE, schema) if schema else {}
    return {**ASSUMED, "description": description, "headers": fields, **content}


def _problem(description: str, *headers: str) -> Json:
    response = _response(description, "", *headers)
    return {**response, "content": {MEDIA_TYPE: {"schema": openapi_schemas.ref("Problem")}}}


def _content(media_type: str, schema: str) -> Json:
    return {"content": {media_type: {"schema": openapi_schemas.ref(schema), "example": EXAMPLES[schema]}}}


def _links(name: str) -> Json:
    """OpenAPI links from a created resource to the operations on it."""
    found = {"id": "$response.body#/id"}
    return {f"{verb}It": {"operationId": f"{verb}{name}", "parameters": found} for verb in ("get", "update", "delete")}


def _webhook(name: str, about: str) -> Json:
    """A delivery from the platform to a subscriber (Standard Webhooks 1.0)."""
    signature = "`v1,` and the base64 HMAC-SHA256 of `{id}.{timestamp}.{body}`; several are separated by spaces."
    headers = [
        {"name": wire, "in": "header", "required": True, "schema": _TEXT, "description": description, **ASSUMED}
        for wire, description in (
            ("webhook-id", "The same for every attempt to deliver an event."),
            ("webhook-timestamp", "Seconds since the epoch."),
            ("webhook-signature", signature),
        )
    ]
    responses = {"2XX": {"description": "Accepted."}, "410": {"description": "Ends the subscription."}}
    body = {"required": True, **_content(json_codec.MEDIA_TYPE, name)}
    facts = {"operationId": f"on{name}", "summary": about, "security": []}
    return {**ASSUMED, "post": {**ASSUMED, **facts, "parameters": headers, "requestBody": body, "responses": responses}}
