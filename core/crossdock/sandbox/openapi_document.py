"""The OpenAPI 3.1 document, written from the wire models. What the specification does not show says so itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from crossdock.sandbox import openapi_schemas, read_requests
from crossdock.sandbox.access_control import SCOPES, scope_of
from crossdock.sandbox.api_keys import SLUG, TENANT
from crossdock.sandbox.collections import COLLECTIONS, INSTANT, Collection
from crossdock.sandbox.openapi_examples import EXAMPLES
from crossdock.sandbox.openapi_schemas import ASSUMED, TIME, identifier
from crossdock.serving.problem_responses import MEDIA_TYPE

Json = dict[str, Any]

KEY_PATTERN = '^("[ -~]{1,255}"|[!#-~]([ -~]{0,253}[!-~])?)$'

_ABOUT = """An emulation of the integration platform, on your own machine.

Everything marked `x-assumption` is assumed: the specification does not show it. Amounts and quantities are JSON
numbers with an exact decimal meaning: read and write them as decimals, never as floats. Unknown members are refused."""
_TEXT: Json = {"type": "string"}
_SINCE: Json = {**TIME, "pattern": f"^{INSTANT.pattern}$", "examples": ["2026-11-20T00:00:00Z"]}
_LIMIT: Json = {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100}
_KEY: Json = {"type": "string", "pattern": KEY_PATTERN, "examples": ["5f0c6b1e"]}
_SLUG: Json = {"type": "string", "pattern": f"^{SLUG.pattern}$", "examples": [TENANT]}
_CURSOR: Json = {"type": "string", "pattern": f"^{read_requests.CURSOR.pattern}$"}
_PARAMETERS: Json = {
    name: {"name": wire, "in": place, "description": about, "schema": schema, **({} if name == "Tenant" else ASSUMED)}
    for name, wire, place, schema, about in (
        ("Tenant", "x-tenant-slug", "header", _SLUG, "The tenant that the request is made against."),
        (
            "IdempotencyKey",
            "Idempotency-Key",
            "header",
            _KEY,
            "One request under one key: its answer is kept 24 hours.",
        ),
        ("IfMatch", "If-Match", "header", _TEXT, "Do it only if this is still the entity tag."),
        ("Limit", "limit", "query", _LIMIT, "How many a page holds at most."),
        ("Cursor", "cursor", "query", _CURSOR, "The `nextCursor` of the page before."),
        ("UpdatedSince", "updatedSince", "query", _SINCE, "Only what changed after this instant."),
        ("ExternalId", "externalId", "query", _TEXT, "Only the one with this externalId."),
    )
}
_PARAMETERS["Tenant"]["required"] = True
_HEADERS: Json = {
    name: {**ASSUMED, "description": about, "schema": schema}
    for name, schema, about in (
        ("Location", _TEXT, "Where the new resource is."),
        ("ETag", _TEXT, "The version, for If-Match."),
        ("Idempotent-Replayed", {"const": "true"}, "Present when this is the kept answer of an earlier request."),
        ("X-Request-Id", _TEXT, "The request's name in the sandbox's witnesses."),
        ("RateLimit", _TEXT, "What is left (draft-ietf-httpapi-ratelimit-headers-10); other dialects can be chosen."),
        ("RateLimit-Policy", _TEXT, "The bucket's size, and the seconds that fill it."),
        ("Retry-After", {"type": "integer", "minimum": 1}, "Seconds to wait."),
        ("WWW-Authenticate", _TEXT, "What is needed: a bearer credential, or a scope (RFC 6750)."),
    )
}
_PROBLEMS: dict[str, tuple[str, ...]] = {
    "400": ("The request or its JSON is malformed.",),
    "401": ("No known bearer credential.", "WWW-Authenticate"),
    "403": ("The credential is not one of this tenant, or lacks the scope.", "WWW-Authenticate"),
    "404": ("There is no such resource.",),
    "409": ("The externalId is taken, the resource is settled, or a request under this key is running.", "Retry-After"),
    "412": ("If-Match names another version.",),
    "413": ("The body is too long.",),
    "415": ("The media type is not accepted.",),
    "422": ("The body does not fit, refers to nothing, or the Idempotency-Key stands for another request.",),
    "429": ("The request quota is used up.", "Retry-After"),
}
_WRITES = "400 409 413 415 422"


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
            "responses": {f"Problem{status}": _problem(*told) for status, told in _PROBLEMS.items()},
            "schemas": openapi_schemas.components(),
        },
    }


_BEARER: Json = {
    "type": "http",
    "scheme": "bearer",
    "description": "An API key, as `crossdock sandbox keys new` makes it; OAuth tokens come later. Scopes, assumed: "
    + ", ".join(f"`{each}`" for each in SCOPES)
    + ". Writing includes reading.",
}


def _paths(collection: Collection) -> Iterator[tuple[str, Json]]:
    name, resource = collection.kind.wire.__name__, collection.kind.name
    noun, tenant = name_of(collection), {"$ref": "#/components/parameters/Tenant"}
    filters = ["Limit", "Cursor", "UpdatedSince", *(["ExternalId"] if collection.kind.has_external_id else [])]
    guards = ["IdempotencyKey", "IfMatch"]
    stored = _answer("As it is stored.", f"Stored{name}", "ETag")
    made = _answer("As it is stored.", f"Stored{name}", "Location", "ETag", "Idempotent-Replayed")
    listed = _answer("A page in the order of last change.", f"{name}Page")
    operations = _Operations(collection)
    create = operations.made(f"create{name}", f"Create {noun}", {"201": {**made, "links": _links(name)}}, _WRITES)
    create |= operations.taking(name, guards[:1])
    if resource == "invoice":
        del create["x-assumption"]
        create["description"] = "With `autoPostLedger` it is posted to the general ledger in the same operation."
    update = operations.made(f"update{name}", f"Change {noun}", {"200": stored}, f"404 412 {_WRITES}")
    update |= operations.taking(f"{name}Patch", guards, "application/merge-patch+json")
    lists = operations.made(f"list{name}", f"List {_tag(collection).lower()}", {"200": listed}, "400", "GET")
    lists |= _given(filters)
    get = operations.made(f"get{name}", f"Read {noun}", {"200": stored}, "404", "GET")
    delete = operations.made(f"delete{name}", f"Delete {noun}", {"204": _answer("It is gone.")}, "400 404 409 412 422")
    delete |= _given(guards)
    about = {"description": "Its id, as the answer to its creation told it.", **ASSUMED}
    one = {"name": "id", "in": "path", "required": True, "schema": identifier(collection.prefix), **about}
    below = {**ASSUMED, "parameters": [tenant, one]}
    yield collection.path, {"parameters": [tenant], "post": create, "get": lists}
    yield f"{collection.path}/{{id}}", {**below, "get": get, "patch": update, "delete": delete}
    for path, method, operation in _below_one(operations, resource, stored):
        yield f"{collection.path}/{{id}}/{path}", {**below, method: operation}


def _below_one(operations: _Operations, resource: str, stored: Json) -> Iterator[tuple[str, str, Json]]:
    """The actions, and what is listed below one resource."""
    guards = ["IdempotencyKey", "IfMatch"]
    if resource == "invoice":
        approve = operations.made("approveInvoice", "Approve an invoice", {"200": stored}, f"404 412 {_WRITES}")
        approve["description"] = (
            "It can be repeated: an approved invoice is answered as it is, without a second effect."
        )
        yield "approve", "post", {**approve, **_given(guards)}
    if resource == "inventory_lot":
        moved = _answer("The movement.", "StoredMovement", "Idempotent-Replayed")
        move = operations.made("moveInventoryLot", "Move stock of a lot", {"201": moved}, f"404 412 {_WRITES}")
        yield "movements", "post", {**move, **operations.taking("Movement", guards)}
    if resource == "ledger_account":
        page = _answer("A page, oldest entry first.", "EntryPage")
        entries = operations.made("listEntry", "List the entries of an account", {"200": page}, "400 404", "GET")
        yield "entries", "get", {**entries, **_given(["Limit", "Cursor"])}


class _Operations:
    """Writes the operations of one collection."""

    def __init__(self, collection: Collection) -> None:
        self._tag, self._resource = _tag(collection), collection.kind.name

    def made(self, name: str, summary: str, answer: Json, refusals: str, method: str = "POST") -> Json:
        """An operation without parameters and body."""
        refused = {
            each: {"$ref": f"#/components/responses/Problem{each}"} for each in f"401 403 429 {refusals}".split()
        }
        scope = {"security": [{"bearer": [scope_of(self._resource, method)]}]}
        told = {"operationId": name, "summary": f"{summary}.", "tags": [self._tag], **scope}
        return {**ASSUMED, **told, "responses": {**answer, **dict(sorted(refused.items()))}}

    @staticmethod
    def taking(schema: str, parameters: Sequence[str], media_type: str = "application/json") -> Json:
        """What an operation with a body adds."""
        return {**_given(parameters), "requestBody": {"required": True, **_content(media_type, schema)}}


def _tag(collection: Collection) -> str:
    return f"{collection.kind.name.replace('_', ' ').capitalize()}s"


def name_of(collection: Collection) -> str:
    """A collection's resource with its article, as it stands in a sentence."""
    noun = collection.kind.name.replace("_", " ")
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def _given(parameters: Sequence[str]) -> Json:
    return {"parameters": [{"$ref": f"#/components/parameters/{each}"} for each in parameters]}


def _answer(description: str, schema: str = "", *headers: str) -> Json:
    told = {each: {"$ref": f"#/components/headers/{each}"} for each in (*headers, *_ALWAYS)}
    content = _content("application/json", schema) if schema else {}
    return {**ASSUMED, "description": description, "headers": told, **content}


_ALWAYS = ("X-Request-Id", "RateLimit", "RateLimit-Policy")


def _problem(description: str, *headers: str) -> Json:
    answer = _answer(description, "", *headers)
    return {**answer, "content": {MEDIA_TYPE: {"schema": openapi_schemas.ref("Problem")}}}


def _content(media_type: str, schema: str) -> Json:
    return {"content": {media_type: {"schema": openapi_schemas.ref(schema), "example": EXAMPLES[schema]}}}


def _links(name: str) -> Json:
    """What can be done with a resource just made."""
    found = {"id": "$response.body#/id"}
    return {f"{verb}It": {"operationId": f"{verb}{name}", "parameters": found} for verb in ("get", "update", "delete")}


def _webhook(name: str, about: str) -> Json:
    """A delivery by the platform to a subscriber (Standard Webhooks 1.0)."""
    headers = [
        {"name": wire, "in": "header", "required": True, "schema": _TEXT, "description": about, **ASSUMED}
        for wire, about in (
            ("webhook-id", "Stays the same when a delivery is repeated."),
            ("webhook-timestamp", "Seconds since the epoch."),
            (
                "webhook-signature",
                "`v1,` and the base64 HMAC-SHA256 of `{id}.{timestamp}.{body}`; several with blanks.",
            ),
        )
    ]
    answers = {"2XX": {"description": "Taken."}, "410": {"description": "The subscription is to end."}}
    body = {"required": True, **_content("application/json", name)}
    told = {"operationId": f"on{name}", "summary": about, "security": []}
    return {**ASSUMED, "post": {**ASSUMED, **told, "parameters": headers, "requestBody": body, "responses": answers}}
