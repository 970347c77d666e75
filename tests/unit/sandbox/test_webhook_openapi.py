from __future__ import annotations

import re
from typing import Any

import pytest
from jsonschema_rs import Draft202012Validator
from tests.unit.sandbox.raw import Raw
from tests.unit.sandbox.test_webhook_addresses import GOOD, HOSTILE
from tests.unit.sandbox.webhook_receiver import Receiver, Webhooks

from crossdock.sandbox import api_routes, openapi_schemas
from crossdock.sandbox.webhook_openapi import webhook_path_items
from crossdock.sandbox.webhook_subscriptions import SubscriptionBody


def schema(name: str) -> Draft202012Validator:
    found = openapi_schemas.standalone_schema(name, "http://sandbox.test")
    assert found is not None
    return Draft202012Validator(found)


def test_every_path_and_method_is_described_and_assumed() -> None:
    """The document has the paths and methods that the sandbox finds, and each is marked."""
    described = {
        path: {each for each in item if each in {"get", "post", "patch", "delete"}}
        for path, item in webhook_path_items().items()
    }
    for path, methods in described.items():
        given = re.sub(r"\{\w+\}", "x", path)
        assert all(api_routes.find_webhook_route(each.upper(), given) for each in methods)
    assert sum(map(len, described.values())) == 9
    assert all(
        item["x-assumption"] and all(item[each]["x-assumption"] for each in described[path])
        for path, item in webhook_path_items().items()
    )


def test_the_schema_of_the_input_is_that_of_the_model() -> None:
    """The same members and the same URLs."""
    members = openapi_schemas.component_schemas()["WebhookSubscription"]["properties"]
    assert set(members) == set(SubscriptionBody.model_fields)
    check = schema("WebhookSubscription")
    for urls, accepted in ((GOOD, True), (HOSTILE, False)):
        for url in urls:
            assert check.is_valid({"url": url, "events": ["order.created"]}) is accepted, url


@pytest.mark.parametrize("status", [200, 410, 500])
def test_responses_fit_their_schemas(raw: Raw, status: int) -> None:
    """Subscriptions, with and without a secret, deliveries and attempts, in every state."""
    webhooks = Webhooks(raw)
    with Receiver(lambda _: status) as receiver:
        subscription = webhooks.subscribe(receiver.url)
        path = f"/api/v1/webhooks/subscriptions/{subscription['id']}"
        rotated = raw("POST", f"{path}/rotate-secret").json()
        webhooks.order()
        webhooks.deliver()
    (delivery,) = webhooks.deliveries(subscription)
    found: dict[str, list[Any]] = {
        "WebhookSubscriptionWithSecret": [subscription, rotated],
        "StoredWebhookSubscription": [raw("GET", path).json()],
        "WebhookSubscriptionPage": [raw("GET", "/api/v1/webhooks/subscriptions").json()],
        "WebhookDeliveryPage": [raw("GET", f"{path}/deliveries").json()],
        "WebhookDeliveryWithAttempts": [raw("GET", f"{path}/deliveries/{delivery['id']}").json()],
    }
    for name, bodies in found.items():
        for body in bodies:
            schema(name).validate(body)
