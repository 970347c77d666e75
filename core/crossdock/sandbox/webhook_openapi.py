"""The part of the OpenAPI document about webhook subscriptions and deliveries. All of it is assumed."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import Any

import yaml

from crossdock.sandbox.api_routes import SUBSCRIPTIONS
from crossdock.sandbox.permitted_webhook_addresses import MAX_URL, URL_PATTERN
from crossdock.sandbox.webhook_operations import required_webhook_scope

Json = dict[str, Any]

TAG = "Webhooks"

_DATA: Json = yaml.safe_load(files("crossdock.sandbox").joinpath("webhook_openapi.yaml").read_text("utf-8"))
_ASSUMED: Json = {"x-assumption": True}
_WRITES = "400 403 409 413 415 422"
_SUBSCRIPTION = {"id": "$response.body#/id"}


def webhook_schemas() -> Json:
    examples = _DATA["examples"]["by_schema"]
    for schema in _DATA["schemas"].values():
        if "url" in schema["properties"]:
            schema["properties"]["url"] |= {"pattern": URL_PATTERN, "maxLength": MAX_URL}
    return {
        name: {**schema, "additionalProperties": False, "examples": [examples[name]], **_ASSUMED}
        for name, schema in _DATA["schemas"].items()
    }


def webhook_path_items() -> Json:
    one, delivery = f"{SUBSCRIPTIONS}/{{id}}", f"{SUBSCRIPTIONS}/{{id}}/deliveries/{{deliveryId}}"
    create = _operation(
        "createWebhookSubscription", "Subscribe to events", "WebhookSubscriptionWithSecret", _WRITES, 201
    )
    created = create["responses"]["201"]
    created["headers"] |= {"Location": _reference_to_component("headers", "Location")}
    created["links"] = {
        f"{verb}It": {"operationId": f"{verb}WebhookSubscription", "parameters": _SUBSCRIPTION}
        for verb in ("get", "update", "delete")
    }
    listed = _operation("listWebhookSubscription", "List subscriptions", "WebhookSubscriptionPage", "400", method="GET")
    get = _operation(
        "getWebhookSubscription", "Read a subscription", "StoredWebhookSubscription", "400 404", method="GET"
    )
    update = _operation(
        "updateWebhookSubscription", "Change a subscription", "StoredWebhookSubscription", f"404 {_WRITES}"
    )
    delete = _operation("deleteWebhookSubscription", "Delete a subscription", "", "400 404 409 422", 204)
    rotate = _operation("rotateWebhookSecret", "Replace the secret", "WebhookSubscriptionWithSecret", f"404 {_WRITES}")
    rotate["description"] = "The previous secret stays valid for 24 hours; deliveries carry a signature of each."
    deliveries = _operation("listWebhookDelivery", "List deliveries", "WebhookDeliveryPage", "400 404", method="GET")
    read = _operation("getWebhookDelivery", "Read a delivery", "WebhookDeliveryWithAttempts", "400 404", method="GET")
    again = _operation("redeliverWebhook", "Deliver again", "WebhookDeliveryWithAttempts", f"404 {_WRITES}", 202)
    again["description"] = "The event is sent again under its id, now and on the whole schedule."
    pages, key = ("Limit", "Cursor"), ("IdempotencyKey",)
    return {
        SUBSCRIPTIONS: _path_item(
            post={**create, **_parameters(*key), **_body("WebhookSubscription")}, get={**listed, **_parameters(*pages)}
        ),
        one: _path_item(
            "id",
            get=get,
            patch={**update, **_parameters(*key), **_body("WebhookSubscriptionPatch", "application/merge-patch+json")},
            delete={**delete, **_parameters(*key)},
        ),
        f"{one}/rotate-secret": _path_item("id", post={**rotate, **_parameters(*key)}),
        f"{one}/deliveries": _path_item("id", get={**deliveries, **_parameters(*pages)}),
        delivery: _path_item("id", "deliveryId", get=read),
        f"{delivery}/redeliver": _path_item("id", "deliveryId", post={**again, **_parameters(*key)}),
    }


def _path_item(*ids: str, **operations: Json) -> Json:
    members = {"id": _DATA["members"]["id"], "deliveryId": _DATA["members"]["delivery"]["id"]}
    in_path = [
        {"name": each, "in": "path", "required": True, "schema": _without_description(members[each]), **_ASSUMED}
        for each in ids
    ]
    return {**_ASSUMED, "parameters": [_reference_to_component("parameters", "Tenant"), *in_path], **operations}


def _without_description(schema: Mapping[str, Any]) -> Json:
    return {name: value for name, value in schema.items() if name != "description"}


def _operation(name: str, summary: str, schema: str, problems: str, status: int = 200, *, method: str = "POST") -> Json:
    refused = {
        each: _reference_to_component("responses", f"Problem{each}")
        for each in {*problems.split(), "401", "403", "429"}
    }
    always = ("X-Request-Id", "RateLimit", "RateLimit-Policy", *(() if method == "GET" else ("Idempotent-Replayed",)))
    content = _content(schema, "application/json") if schema else {}
    headers = {each: _reference_to_component("headers", each) for each in always}
    done = {**_ASSUMED, "description": f"{summary}: done.", "headers": headers, **content}
    return {
        **_ASSUMED,
        "operationId": name,
        "summary": f"{summary}.",
        "tags": [TAG],
        "security": [{"bearer": [required_webhook_scope(method)]}],
        "responses": {str(status): done, **dict(sorted(refused.items()))},
    }


def _body(schema: str, media_type: str = "application/json") -> Json:
    return {"requestBody": {"required": True, **_content(schema, media_type)}}


def _content(schema: str, media_type: str) -> Json:
    example = _DATA["examples"]["by_schema"][schema]
    return {"content": {media_type: {"schema": _reference_to_component("schemas", schema), "example": example}}}


def _parameters(*names: str) -> Json:
    return {"parameters": [_reference_to_component("parameters", each) for each in names]}


def _reference_to_component(kind: str, name: str) -> Json:
    return {"$ref": f"#/components/{kind}/{name}"}
