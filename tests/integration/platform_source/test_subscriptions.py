"""Subscriptions to the webhooks of a sandbox, as a connection of kind platform makes them."""

from __future__ import annotations

import httpx
import pytest
from tests.integration.platform_source.reading import COPIES, Reading

from crossdock.errors import RefusedError, RemoteError, UnauthorizedError
from crossdock.runs.platform_source import CONNECTOR
from crossdock.runs.platform_source.settings import PlatformSourceSettings
from crossdock.runs.platform_source.webhooks import PlatformContext, PlatformSubscriptions
from crossdock.testing import context

HOOK = "https://hooks.example/erp"
API = PlatformSubscriptions()


class Network(httpx.BaseTransport):
    """The network, which loses the answers to the first *lost* requests with POST."""

    def __init__(self, lost: int = 0) -> None:
        self._lost, self._inner = lost, httpx.HTTPTransport()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answer = self._inner.handle_request(request)
        if request.method == "POST" and self._lost:
            self._lost -= 1
            answer.close()
            raise httpx.ReadError("the answer was lost", request=request)
        return answer

    def close(self) -> None:
        self._inner.close()


def opened(erp: Reading, network: httpx.BaseTransport, *, keys: bool = True) -> PlatformContext:
    profile = {} if keys else {"idempotency": {"enabled": False}, "after_ambiguous": "park"}
    (connection,) = erp.configure({"products": COPIES}, platform=profile).connections
    assert isinstance(connection.settings, PlatformSourceSettings)
    return context(CONNECTOR, connection.settings, transport=network, folder=erp.folder)


def test_subscriptions_are_created_listed_and_removed(erp: Reading) -> None:
    """Creating tells the secret, listing does not; removing twice is no error."""
    ctx = opened(erp, Network())
    made = [API.create(ctx, topic, HOOK) for topic in ("order.created", "invoice.approved")]
    assert all(each.secret and each.secret.startswith("whsec_") for each in made)
    listed = list(API.listed(ctx))
    assert [(each.topic, each.address, each.active, each.secret) for each in listed] == [
        ("invoice.approved", HOOK, True, None),
        ("order.created", HOOK, True, None),
    ]
    API.remove(ctx, made[0])
    API.remove(ctx, made[0])
    assert [each.id for each in API.listed(ctx)] == [made[1].id]


def test_one_subscription_has_several_events(erp: Reading) -> None:
    """They have one secret; in whichever order the platform lists them, the subscription is found again."""
    ctx, topic = opened(erp, Network()), "invoice.approved,order.created"
    made = API.create(ctx, topic, HOOK)
    assert made.topic == topic
    assert made.secret
    again = API.create(ctx, topic, HOOK)
    assert (again.id, again.secret) == (made.id, None)
    body = {"url": HOOK, "events": ["order.created", "invoice.approved"]}
    ctx.api.request("POST", "/api/v1/webhooks/subscriptions", json=body)
    assert [each.topic for each in API.listed(ctx)] == [topic, topic]


def test_a_lost_answer_is_answered_again_with_the_secret(erp: Reading) -> None:
    """A request that is sent again has the same idempotency key."""
    ctx = opened(erp, Network(2))
    made = API.create(ctx, "order.created", HOOK)
    assert made.secret
    assert [each.id for each in API.listed(ctx)] == [made.id]


def test_without_idempotency_keys_the_copies_are_removed(erp: Reading) -> None:
    """Of three subscriptions the one stays whose secret is known."""
    ctx = opened(erp, Network(2), keys=False)
    made = API.create(ctx, "order.created", HOOK)
    assert made.secret
    assert [each.id for each in API.listed(ctx)] == [made.id]


def test_if_all_answers_are_lost_nothing_is_left(erp: Reading) -> None:
    """No subscription stays whose secret nobody knows."""
    ctx = opened(erp, Network(5))
    with pytest.raises(RemoteError, match="failed 5 times"):
        API.create(ctx, "order.created", HOOK)
    assert list(API.listed(ctx)) == []


def test_a_refusal_has_the_reason_of_the_platform(erp: Reading) -> None:
    """An event that the platform does not know."""
    with pytest.raises(RemoteError, match="HTTP 422"):
        API.create(opened(erp, Network()), "order.eaten", HOOK)


def test_a_wrong_key_is_unauthorized(erp: Reading) -> None:
    """The credentials are refused before anything is created."""
    ctx = opened(erp, Network())
    (erp.folder / "platform-key").write_text("other", encoding="utf-8")
    with pytest.raises(UnauthorizedError):
        API.create(ctx, "order.created", HOOK)


def test_an_answer_without_a_secret_is_refused(erp: Reading) -> None:
    """A subscription that nobody can verify is not kept."""
    made = {"id": "whs_1", "url": HOOK, "events": ["order.created"], "status": "enabled"}
    removed: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        if request.method == "DELETE":
            removed.append(request.url.path)
            return httpx.Response(204)
        is_there = posted and not removed
        posted.extend([True] if request.method == "POST" else [])
        return httpx.Response(200, json=made if request.method == "POST" else {"data": [made] if is_there else []})

    posted: list[bool] = []
    ctx = opened(erp, httpx.MockTransport(answer))
    with pytest.raises(RefusedError, match="has no secret of the new subscription"):
        API.create(ctx, "order.created", HOOK)
    assert removed == ["/api/v1/webhooks/subscriptions/whs_1"]
