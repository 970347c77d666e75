"""The credentials of a Shopify app: tokens that Shopify grants to a client id and secret."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from pydantic import ValidationError
from tests.partners.partner_transport import transport
from tests.partners.shopify.app_tokens import Refusal
from tests.partners.shopify.reading import shop_context
from tests.partners.shopify.site import Site

from crossdock.errors import UnauthorizedError
from crossdock.reading.sources.account_owner_consent import BrowserConsentAttempt
from crossdock.sources import AuthorizationCodeAuth
from crossdock_connectors.shop.shopify import queries
from crossdock_connectors.shop.shopify.check import check
from crossdock_connectors.shop.shopify.requests_and_complete_lists import ShopifyContext, request_graphql
from crossdock_connectors.shop.shopify.settings import ShopifySettings

APP = {"token": None, "client_id": "env:APP_ID", "client_secret": "env:APP_SECRET"}


@pytest.fixture(name="site")
def _site(monkeypatch: pytest.MonkeyPatch) -> Site:
    site = Site(token="shpat_of_another_app")
    monkeypatch.setenv("APP_ID", site.shop.app.client_id)
    monkeypatch.setenv("APP_SECRET", site.shop.app.client_secret)
    return site


def read(ctx: ShopifyContext) -> Any:
    return request_graphql(ctx, queries.SHOP).at("/data/shop/name")


def test_a_token_is_granted_and_renewed_before_its_day_ends(site: Site) -> None:
    """One token serves all requests of a day's first four fifths."""
    ctx = shop_context(site, **APP)
    for hours in (0, 18, 2):
        site.clock.advance(hours * 3600)
        assert read(ctx) == "Lampen & Stühle"
    assert site.shop.app.granted == 2


def test_a_token_that_was_withdrawn_is_replaced_once(site: Site) -> None:
    """As after an update of the app; the request is sent again."""
    ctx = shop_context(site, **APP)
    read(ctx)
    site.shop.app.expire()
    assert read(ctx) == "Lampen & Stühle"
    assert site.shop.app.granted == 2


@pytest.mark.parametrize(
    ("refusal", "text"),
    [
        ("app_not_installed", "the app is not installed in this shop: release"),
        ("shop_not_permitted", "the app and the shop belong to different organizations"),
    ],
)
def test_the_check_says_why_no_token_is_granted(site: Site, refusal: Refusal, text: str) -> None:
    """Shopify's page for people becomes a sentence with what to do."""
    site.shop.app.refusing = refusal
    with pytest.raises(UnauthorizedError, match=text) as failed:
        list(check(shop_context(site, **APP)))
    assert site.shop.app.client_secret not in str(failed.value)


@pytest.mark.parametrize(
    ("name", "text"), [("APP_ID", "knows no app with this client_id"), ("APP_SECRET", "client_secret is wrong")]
)
def test_a_wrong_id_or_secret(site: Site, monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> None:
    """The one that is wrong is named and not shown."""
    monkeypatch.setenv(name, "canary")
    with pytest.raises(UnauthorizedError, match=text) as failed:
        read(shop_context(site, **APP))
    assert "canary" not in str(failed.value)


@pytest.mark.parametrize(
    "given",
    [{}, {"client_id": "env:A"}, {"client_secret": "env:A"}, {"token": "env:T", "client_secret": "env:A"}],
    ids=str,
)
def test_one_kind_of_credential_is_configured(given: dict[str, Any]) -> None:
    """A token, or a client id with its secret."""
    with pytest.raises(ValidationError, match=r"is missing|cannot be used with client_id"):
        ShopifySettings.model_validate({"kind": "shopify", "base_url": "https://lamps.myshopify.com", **given})


def test_a_public_app_that_the_merchant_gave_access(site: Site, tmp_path: Path) -> None:
    """Its tokens of an hour are renewed; Shopify forgives a refresh token whose successor was lost."""
    tokens = tmp_path / "tokens" / "shop.json"
    public = {**APP, "app": "public", "scopes": ["read_orders", "read_products"], "tokens": str(tokens)}
    with pytest.raises(UnauthorizedError, match="crossdock connect"):
        read(shop_context(site, **public))
    api = replace(shop_context(site, **public).settings.declared_api(), transport=transport(site.shop))
    assert isinstance(api.auth, AuthorizationCodeAuth)
    api.auth.clock = site.clock
    attempt = BrowserConsentAttempt(api, api.auth, "http://127.0.0.1:1/callback")
    asked = parse_qs(urlsplit(attempt.address).query)
    assert (asked["scope"], urlsplit(attempt.address).path) == (["read_orders,read_products"], "/admin/oauth/authorize")
    site.shop.app.code = "code-1"
    assert attempt.take_answer_if_state_matches(
        urlencode({"code": "code-1", "shop": "lamps.myshopify.com", "state": asked["state"][0]})
    )
    attempt.exchange_code_and_store_tokens()
    earlier = tokens.read_bytes()
    for _ in range(2):
        site.clock.advance(3600)
        assert read(shop_context(site, **public)) == "Lampen & Stühle"
        lost, earlier = earlier, tokens.read_bytes()
    tokens.write_bytes(lost)
    site.clock.advance(3600)
    assert read(shop_context(site, **public)) == "Lampen & Stühle"
    assert site.shop.app.granted == 4
