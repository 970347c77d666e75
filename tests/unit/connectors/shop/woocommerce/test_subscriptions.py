"""Webhooks of a WooCommerce shop, by its API."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from tests.partners.partner_server import PartnerRequest
from tests.partners.partner_transport import transport
from tests.partners.woocommerce.shop import FakeShop
from tests.partners.woocommerce.shop_keys import ApiKey

from crossdock.config.project.connections_and_bound_streams import load_connector
from crossdock.errors import RemoteError, UnauthorizedError
from crossdock.testing import context
from crossdock.values.config_base_types import Secret
from crossdock_connectors.shop.woocommerce.lists_and_records_by_id import WooContext
from crossdock_connectors.shop.woocommerce.webhooks import WooCommerceSubscriptions

HOOK = "https://hooks.example/shop"
API = WooCommerceSubscriptions(Secret("env:HOOK_SECRET", Path()))


@pytest.fixture(autouse=True)
def _secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WOO_KEY", ApiKey().consumer_key)
    monkeypatch.setenv("WOO_SECRET", ApiKey().consumer_secret)
    monkeypatch.setenv("HOOK_SECRET", "s3cret")


def opened(shop: FakeShop, network: httpx.BaseTransport | None = None, key: str = "env:WOO_KEY") -> WooContext:
    given = {"base_url": shop.site, "consumer_key": key, "consumer_secret": "env:WOO_SECRET", "page_size": 2}
    return context(load_connector("woocommerce"), given, transport=network or transport(shop))


def test_webhooks_are_created_listed_and_removed() -> None:
    """All pages are listed, whatever the status; removing twice is no error."""
    shop = FakeShop()
    ctx = opened(shop)
    topics = ["order.created", "order.updated", "order.deleted", "product.updated", "customer.updated"]
    made = [API.create(ctx, topic, HOOK) for topic in topics]
    shop.webhooks.webhooks[int(made[0].id)].members["status"] = "disabled"
    assert [(each.topic, each.address, each.active) for each in API.listed(ctx)] == [
        (topic, HOOK, number > 0) for number, topic in enumerate(topics)
    ]
    API.remove(ctx, made[1])
    API.remove(ctx, made[1])
    assert len(list(API.listed(ctx))) == 4


def test_the_secret_of_the_connection_signs() -> None:
    """The shop gets the secret, and no answer or subscription shows it."""
    shop = FakeShop()
    made = API.create(opened(shop), "order.updated", HOOK)
    assert shop.webhooks.webhooks[int(made.id)].members["secret"] == "s3cret"
    assert made.secret is None


@pytest.mark.parametrize("lost", [1, 3, 5])
def test_lost_answers_leave_one_webhook(lost: int) -> None:
    """The shop accepts the same webhook again; the extra ones are removed."""
    shop = FakeShop()
    left = iter(range(lost))

    def loses(request: PartnerRequest) -> bool:
        return request.method == "POST" and next(left, None) is not None

    ctx = opened(shop, transport(shop, loses))
    made = API.create(ctx, "order.updated", HOOK)
    assert list(API.listed(ctx)) == [made]


def test_a_refusal_has_the_reason_of_the_shop() -> None:
    """A topic that the shop does not know."""
    with pytest.raises(RemoteError, match="Webhook topic must be valid"):
        API.create(opened(FakeShop()), "order", HOOK)


def test_a_wrong_key_is_unauthorized(monkeypatch: pytest.MonkeyPatch) -> None:
    """The credentials are refused before anything is created."""
    monkeypatch.setenv("OTHER", "ck_other")
    with pytest.raises(UnauthorizedError):
        API.create(opened(FakeShop(), key="env:OTHER"), "order.updated", HOOK)
