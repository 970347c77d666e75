"""The OpenAPI 3.1 document of the platform's API. What the specification does not show is marked `x-assumption`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from crossdock.sandbox import openapi_schemas, read_operations, strict_json, webhook_openapi
from crossdock.sandbox.api_keys import SLUG_PATTERN
from crossdock.sandbox.api_routes import COLLECTIONS, Collection
from crossdock.sandbox.openapi_schemas import ASSUMED, EXAMPLES, id_schema
from crossdock.sandbox.rfc3339 import INSTANT_PATTERN
from crossdock.sandbox.scopes import SCOPES, required_scope, scope_description
from crossdock.values.serving.http_server import MEDIA_TYPE

Json = dict[str, Any]

KEY_PATTERN = '^("[ -~]{1,255}"|[!#-~]([ -~]{0,253}[!-~])?)$'

_ABOUT = """An emulation of the integration platform on your own machine.

Everything marked `x-assumption: true` is assumed: the specification does not show it. In the documented request it is a
list of the keywords that are assumed. Amounts and quantities are JSON numbers with an exact decimal meaning and the
format `decimal`: read and write them as decimals, never as floats. Unknown members are refused."""
_COMPONENTS: Json = yaml.safe_load(files("crossdock.sandbox").joinpath("openapi_components.yaml").read_text("utf-8"))
_PATTERNS = {
    "Tenant": f"^{SLUG_PATTERN.pattern}$",
    "IdempotencyKey": KEY_PATTERN,
    "Cursor": f"^{read_operations.CURSOR_PATTERN.pattern}$",
    "UpdatedSince": f"^{INSTANT_PATTERN.pattern}$",
}
_WRITES = "400 409 413 415 422"
_GUARDS = ("IdempotencyKey", "IfMatch")
_NARROWING = (
    "Writing includes reading. `accounts:CODE:ACCESS` and `bins:EXTERNAL_ID:ACCESS` are for one record."
    " `invoices:write` is sufficient to post to the ledger, unless scopes of the credential name single accounts: then"
    " both accounts of the posting must be among those that it may write."
)
_BEARER: Json = {
    "type": "http",
    "scheme": "bearer",
    "description": "An API key, created by `crossdock sandbox keys new`. Scopes, assumed: "
    + ", ".join(f"`{each}`" for each in SCOPES)
    + f". {_NARROWING}",
}
_OAUTH2: Json = {
    "type": "oauth2",
    "description": "An access token of a client, created by `crossdock sandbox clients new`. "
    "The specification shows neither grant type nor addresses.",
    "flows": {
        "clientCredentials": {"tokenUrl": "/oauth/token", "scopes": {each: scope_description(each) for each in SCOPES}}
    },
    **ASSUMED,
}


@cache
def build_openapi_document() -> Json:
    return {
        "openapi": "3.1.1",
        "info": {"title": "Integration platform (sandbox)", "version": "1.0.0", "description": _ABOUT},
        "servers": [{"url": "/", "description": "The sandbox that serves this document."}],
        "tags": [{"name": each, **ASSUMED} for each in (*map(_tag_name, COLLECTIONS.values()), webhook_openapi.TAG)],
        "paths": {
            **{path: item for each in COLLECTIONS.values() for path, item in _paths(each)},
            **webhook_openapi.webhook_path_items(),
        },
        "webhooks": {event: _webhook(name, about) for name, (event, _, about) in openapi_schemas.EVENTS.items()},
        "security": [{"bearer": []}, {"oauth2": []}],
        "components": {
            "securitySchemes": {"bearer": _BEARER, "oauth2": _OAUTH2},
            "parameters": {name: _parameter(name, each) for name, each in _COMPONENTS["parameters"].items()},
            "headers": {name: {**ASSUMED, **each} for name, each in _COMPONENTS["headers"].items()},
            "responses": {f"Problem{status}": _problem(**each) for status, each in _COMPONENTS["problems"].items()},
            "schemas": openapi_schemas.component_schemas(),
        },
    }


def _paths(collection: Collection) -> Iterator[tuple[str, Json]]:
    name, resource = collection.kind.wire.__name__, collection.kind.name
    noun, tenant = _noun_with_article(collection), {"$ref": "#/components/parameters/Tenant"}
    filters = ["Limit", "Cursor", "UpdatedSince", *(["ExternalId"] if collection.kind.has_external_id else [])]
    stored = _response("The resource as stored.", f"Stored{name}", "ETag")
    created = _response("The resource as stored.", f"Stored{name}", "Location", "ETag", "Idempotent-Replayed")
    page = _response("A page in the order of last change.", f"{name}Page")
    create = _operation(
        collection, f"create{name}", f"Create {noun}", {"201": {**created, "links": _links(name)}}, _WRITES
    )
    create |= _body_and_parameters(name, _GUARDS[:1])
    if resource == "invoice":
        del create["x-assumption"]
        create["description"] = "With `autoPostLedger` it is posted to the general ledger in the same operation."
    update = _operation(collection, f"update{name}", f"Change {noun}", {"200": stored}, f"404 412 {_WRITES}")
    update |= _body_and_parameters(f"{name}Patch", _GUARDS, "application/merge-patch+json")
    lists = _operation(collection, f"list{name}", f"List {_tag_name(collection).lower()}", {"200": page}, "400", "GET")
    lists |= _parameters(filters)
    get = _operation(collection, f"get{name}", f"Read {noun}", {"200": stored}, "404", "GET")
    delete = _operation(
        collection, f"delete{name}", f"Delete {noun}", {"204": _response("Deleted.")}, "400 404 409 412 422"
    )
    delete |= _parameters(_GUARDS)
    about = {"description": "The id from the response to the creation.", **ASSUMED}
    resource_id = {"name": "id", "in": "path", "required": True, "schema": id_schema(collection.prefix), **about}
    below = {**ASSUMED, "parameters": [tenant, resource_id]}
    yield collection.path, {"parameters": [tenant], "post": create, "get": lists}
    yield f"{collection.path}/{{id}}", {**below, "get": get, "patch": update, "delete": delete}
    for path, method, operation in _subresource_operations(collection, stored):
        yield f"{collection.path}/{{id}}/{path}", {**below, method: operation}


def _subresource_operations(collection: Collection, stored: Json) -> Iterator[tuple[str, str, Json]]:
    resource = collection.kind.name
    if resource == "invoice":
        approve = _operation(collection, "approveInvoice", "Approve an invoice", {"200": stored}, f"404 412 {_WRITES}")
        approve["description"] = "Can be repeated: an approved invoice is returned as it is, without a second effect."
        yield "approve", "post", {**approve, **_parameters(_GUARDS)}
    if resource == "inventory_lot":
        moved = _response("The movement.", "StoredMovement", "Idempotent-Replayed")
        move = _operation(collection, "moveInventoryLot", "Move stock of a lot", {"201": moved}, f"404 412 {_WRITES}")
        yield "movements", "post", {**move, **_body_and_parameters("Movement", _GUARDS)}
    if resource == "ledger_account":
        page = _response("A page, oldest entry first.", "EntryPage")
        entries = _operation(collection, "listEntry", "List the entries of an account", {"200": page}, "400 404", "GET")
        yield "entries", "get", {**entries, **_parameters(["Limit", "Cursor"])}


def _operation(
    collection: Collection, name: str, summary: str, success: Json, problems: str, method: str = "POST"
) -> Json:
    statuses = f"401 403 429 {problems}".split()
    refused = {each: {"$ref": f"#/components/responses/Problem{each}"} for each in statuses}
    scope = required_scope(collection.kind.name, method)
    about = {"operationId": name, "summary": f"{summary}.", "tags": [_tag_name(collection)]}
    responses = {**success, **dict(sorted(refused.items()))}
    return {**ASSUMED, **about, "security": [{"bearer": [scope]}, {"oauth2": [scope]}], "responses": responses}


def _body_and_parameters(schema: str, parameters: Sequence[str], media_type: str = strict_json.MEDIA_TYPE) -> Json:
    return {**_parameters(parameters), "requestBody": {"required": True, **_content(media_type, schema)}}


def _tag_name(collection: Collection) -> str:
    return f"{collection.kind.name.replace('_', ' ').capitalize()}s"


def _noun_with_article(collection: Collection) -> str:
    noun = collection.kind.name.replace("_", " ")
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def _parameters(names: Sequence[str]) -> Json:
    return {"parameters": [{"$ref": f"#/components/parameters/{each}"} for each in names]}


def _response(description: str, schema: str = "", *headers: str) -> Json:
    always = ("X-Request-Id", "RateLimit", "RateLimit-Policy")
    fields = {each: {"$ref": f"#/components/headers/{each}"} for each in (*headers, *always)}
    content = _content(strict_json.MEDIA_TYPE, schema) if schema else {}
    return {**ASSUMED, "description": description, "headers": fields, **content}


def _parameter(name: str, parameter: Json) -> Json:
    pattern = {"pattern": _PATTERNS[name]} if name in _PATTERNS else {}
    mark = {} if name == "Tenant" else ASSUMED
    return {**parameter, "schema": {**parameter["schema"], **pattern}, **mark}


def _problem(description: str, headers: Sequence[str] = ()) -> Json:
    response = _response(description, "", *headers)
    return {**response, "content": {MEDIA_TYPE: {"schema": openapi_schemas.schema_reference("Problem")}}}


def _content(media_type: str, schema: str) -> Json:
    return {"content": {media_type: {"schema": openapi_schemas.schema_reference(schema), "example": EXAMPLES[schema]}}}


def _links(name: str) -> Json:
    found = {"id": "$response.body#/id"}
    return {f"{verb}It": {"operationId": f"{verb}{name}", "parameters": found} for verb in ("get", "update", "delete")}


def _webhook(name: str, about: str) -> Json:
    common = {"in": "header", "required": True, "schema": {"type": "string"}, **ASSUMED}
    headers = [{"name": each, "description": text, **common} for each, text in _COMPONENTS["webhook_headers"].items()]
    responses = {"2XX": {"description": "Accepted."}, "410": {"description": "Ends the subscription."}}
    body = {"required": True, **_content(strict_json.MEDIA_TYPE, name)}
    facts = {"operationId": f"on{name}", "summary": about, "security": []}
    return {**ASSUMED, "post": {**ASSUMED, **facts, "parameters": headers, "requestBody": body, "responses": responses}}
