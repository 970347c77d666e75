"""Subscriptions to ShipBob's webhooks, by its API."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.partners.partner_server import PartnerRequest
from tests.partners.partner_transport import transport
from tests.partners.shipbob import ShipBob
from tests.partners.shipbob_client import CHANNELS, LOCATIONS

from crossdock.config.project.connections_and_bound_streams import load_connector
from crossdock.errors import ConfigError, RefusedError, RemoteError
from crossdock.testing import ManualClock, context
from crossdock.values.config_base_types import Secret
from crossdock_connectors.threepl.shipbob.stream_base_and_list_pages import ShipBobContext
from crossdock_connectors.threepl.shipbob.webhooks import ShipBobSubscriptions

HOOK = "https://hooks.example/3pl"
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
API = ShipBobSubscriptions(Secret("env:HOOK_SECRET", Path()))
SETTINGS: Mapping[str, Any] = {
    "base_url": "http://localhost:9/2026-01",
    "token": "env:BOB_TOKEN",
    "owner": "10",
    "channel": 1,
    "orders": {"namespace": "shop"},
    "product_namespace": "shop",
}


@pytest.fixture(autouse=True)
def _secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOB_TOKEN", "ours")
    monkeypatch.setenv("HOOK_SECRET", SECRET)


@pytest.fixture
def fake() -> ShipBob:
    return ShipBob({"ours": [1, 2], "rival": [3]}, CHANNELS, LOCATIONS, now=ManualClock().now)


def opened(network: httpx.BaseTransport) -> ShipBobContext:
    return context(load_connector("shipbob"), SETTINGS, transport=network)


def test_subscriptions_are_created_listed_and_removed(fake: ShipBob) -> None:
    """Those of other tokens are not listed; removing twice is no error."""
    ctx = opened(transport(fake))
    made = [API.create(ctx, topic, HOOK) for topic in ("order.shipped", "order.shipment.on_hold")]
    assert [(each.topic, each.address, each.active) for each in API.listed(ctx)] == [
        ("order.shipped", HOOK, True),
        ("order.shipment.on_hold", HOOK, True),
    ]
    API.remove(ctx, made[0])
    API.remove(ctx, made[0])
    assert [each.id for each in API.listed(ctx)] == [made[1].id]


def test_all_pages_are_listed(fake: ShipBob, monkeypatch: pytest.MonkeyPatch) -> None:
    """More subscriptions than a page has."""
    monkeypatch.setattr("crossdock_connectors.threepl.shipbob.webhooks.PAGE_SIZE", 2)
    ctx = opened(transport(fake))
    made = [API.create(ctx, "order.shipped", f"{HOOK}/{number}") for number in range(5)]
    assert [each.id for each in API.listed(ctx)] == [each.id for each in made]


def test_our_secret_signs(fake: ShipBob) -> None:
    """There is nothing that the user must store."""
    made = API.create(opened(transport(fake)), "order.shipped", HOOK)
    assert made.secret is None


def test_a_secret_that_shipbob_makes_is_told() -> None:
    """If ShipBob took another secret than ours, the user must know it."""
    made = {"id": "5", "topics": ["order.shipped"], "url": HOOK, "secret": "whsec_other"}

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json=made if request.method == "POST" else {"items": [], "next": None})

    assert API.create(opened(httpx.MockTransport(answer)), "order.shipped", HOOK).secret == "whsec_other"


@pytest.mark.parametrize("secret", ["s3cret", "whsec_c2hvcnQ=", f"{SECRET}AAAA"])
def test_a_secret_that_shipbob_does_not_accept_is_refused(
    fake: ShipBob, monkeypatch: pytest.MonkeyPatch, secret: str
) -> None:
    """The error says how to make one, and does not show it."""
    monkeypatch.setenv("HOOK_SECRET", secret)
    with pytest.raises(ConfigError, match="openssl rand -base64 24") as error:
        API.create(opened(transport(fake)), "order.shipped", HOOK)
    assert secret not in str(error.value)


@pytest.mark.parametrize("lost", [1, 3, 5])
def test_lost_answers_leave_one_subscription(fake: ShipBob, lost: int) -> None:
    """ShipBob accepts the same subscription again; the extra ones are removed."""
    left = iter(range(lost))

    def loses(request: PartnerRequest) -> bool:
        return request.method == "POST" and next(left, None) is not None

    ctx = opened(transport(fake, loses))
    made = API.create(ctx, "order.shipped", HOOK)
    assert [each.id for each in API.listed(ctx)] == [made.id]


def test_an_unknown_topic_is_refused(fake: ShipBob) -> None:
    """ShipBob's refusal is the user's error."""
    with pytest.raises(RemoteError, match="HTTP 400"):
        API.create(opened(transport(fake)), "order.eaten", HOOK)


def test_a_list_that_is_none_is_refused() -> None:
    """Bad data is an error with its place."""
    network = httpx.MockTransport(lambda _: httpx.Response(200, json={"items": [{"id": "1"}], "next": None}))
    with pytest.raises(RefusedError, match="has a subscription without"):
        list(API.listed(opened(network)))
