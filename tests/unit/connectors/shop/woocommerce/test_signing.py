"""Requests over plain http are signed as RFC 5849 says; oauthlib is the reference."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oauthlib.oauth1 import SIGNATURE_HMAC_SHA256, SIGNATURE_TYPE_QUERY, Client
from tests.partners.partner_transport import transport
from tests.partners.woocommerce.shop import API, FakeShop

from crossdock.testing import ManualClock
from crossdock.testing.sandbox_syncs import write_private_file
from crossdock.values.config_base_types import Secret
from crossdock_connectors.shop.woocommerce.settings import OAuth1Auth, oauth_signature

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=12)


@given(st.dictionaries(TEXT.filter(bool), TEXT, max_size=6))
def test_signatures_are_those_of_oauthlib(params: dict[str, str]) -> None:
    """Whatever the parameters are."""
    client = Client(
        "ck",
        "cs+/ä",
        signature_method=SIGNATURE_HMAC_SHA256,
        signature_type=SIGNATURE_TYPE_QUERY,
        nonce="n",
        timestamp="1",
    )
    address = "http://shop.example/wp-json/wc/v3/orders"
    own = {name: value for name, value in params.items() if not name.startswith("oauth_")}
    signed, _, _ = client.sign(f"{address}?{urlencode(own)}" if own else address)
    pairs = parse_qsl(httpx.URL(signed).query.decode(), keep_blank_values=True)
    made = oauth_signature("GET", address, [pair for pair in pairs if pair[0] != "oauth_signature"], "cs+/ä")
    assert made == dict(pairs)["oauth_signature"]


@pytest.fixture
def auth(tmp_path: Path) -> OAuth1Auth:
    def secret(name: str, text: str) -> Any:
        return Secret(write_private_file(tmp_path / name, text), tmp_path)

    return OAuth1Auth(secret("key", "ck_fake"), secret("secret", "cs_fake"))


def test_each_attempt_has_its_own_nonce(auth: OAuth1Auth) -> None:
    """The same request is accepted again and again, and so is one to an address that was signed before."""
    shop = FakeShop(clock=auth.clock, site="http://shop.example")
    with httpx.Client(transport=transport(shop), auth=auth, base_url=shop.site, trust_env=False) as client:
        first = client.get(f"{API}/orders", params={"status": "any", "search": "ä +&=%/~"})
        assert first.status_code == 200, first.text
        assert client.get(f"{API}/orders", params={"status": "any"}).status_code == 200
        assert client.get(first.request.url).status_code == 200


def test_the_time_is_that_of_the_run(auth: OAuth1Auth) -> None:
    """A shop whose clock is an hour ahead refuses the signature."""
    auth.clock, ahead = ManualClock(), ManualClock()
    ahead.advance(3_600)
    shop = FakeShop(clock=ahead, site="http://shop.example")
    with httpx.Client(transport=transport(shop), auth=auth, base_url=shop.site, trust_env=False) as client:
        assert "Invalid timestamp" in client.get(f"{API}/orders").text
