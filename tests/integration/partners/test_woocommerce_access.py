"""Who may use the fake WooCommerce shop, with PyPI's client `woocommerce` and oauthlib as judges of its OAuth."""

from __future__ import annotations

import base64
import ssl
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
import trustme
import woocommerce
from oauthlib.oauth1 import SIGNATURE_HMAC_SHA256, SIGNATURE_TYPE_QUERY, Client
from tests.partners.partner_transport import transport
from tests.partners.woocommerce.shop import API, FakeShop
from tests.partners.woocommerce.shop_client import ShopClient
from tests.partners.woocommerce.shop_keys import ApiKey
from tests.partners.woocommerce.shop_server import serving_shop
from tests.partners.woocommerce.shop_settings import ShopSettings

from crossdock.testing import ManualClock
from crossdock.values import exact_json

KEY = ApiKey()
HTTP = "http://shop.example"


def wire(shop: FakeShop) -> httpx.Client:
    return httpx.Client(transport=transport(shop))


def told(answer: httpx.Response) -> tuple[int, str, str]:
    body = answer.json()
    return answer.status_code, body["code"], body["message"]


def signed(clock: ManualClock, query: str = "", method: str = "GET", key: ApiKey = KEY, **more: Any) -> str:
    """The address of the list of orders with a signature by oauthlib."""
    given = {"timestamp": str(int(clock.now().timestamp())), **more}
    client = Client(
        key.consumer_key,
        client_secret=key.consumer_secret,
        signature_method=SIGNATURE_HMAC_SHA256,
        signature_type=SIGNATURE_TYPE_QUERY,
        **given,
    )
    url, _, _ = client.sign(f"{HTTP}{API}/orders{query}", http_method=method)
    return str(url)


def test_the_client_from_pypi_reads_and_writes_over_http() -> None:
    """It signs with OAuth 1.0a, repeats parameters in the query, follows the pages, and nothing warns."""
    shop = FakeShop(clock=ManualClock(datetime.now(UTC)))
    tea = shop.catalog.add("Tee", "10.00", sku="0017")
    placed = [shop.orders.place((tea, 1)).id for _ in range(5)]
    with serving_shop(shop) as server:
        client = woocommerce.API(server.url, KEY.consumer_key, KEY.consumer_secret, timeout=60)
        found, page = [], 1
        while True:
            answer = client.get("orders", params={"per_page": 2, "page": page, "orderby": "id", "order": "asc"})
            assert answer.status_code == 200, answer.text
            found += [order["id"] for order in answer.json()]
            if "next" not in answer.links:
                break
            page += 1
        assert (found, page, answer.headers["X-WP-Total"], answer.headers["X-WP-TotalPages"]) == (placed, 3, "5", "3")
        since = {"modified_after": "2020-01-01T00:00:00", "dates_are_gmt": "true", "status": "processing,completed"}
        assert len(client.get("orders", params=since).json()) == 5
        made = client.post(
            "orders", {"line_items": [{"product_id": tea.id, "quantity": 2}], "customer_note": "für Zoë"}
        )
        assert (made.status_code, made.json()["total"], made.json()["customer_note"]) == (201, "23.80", "für Zoë")
        changed = client.put(f"orders/{made.json()['id']}", {"status": "completed"})
        assert (changed.status_code, changed.json()["status"]) == (200, "completed")
        assert client.delete(f"orders/{made.json()['id']}", params={"force": True}).status_code == 200
        assert client.get(f"orders/{made.json()['id']}").status_code == 404
    assert [effect["kind"] for effect in shop.effects] == ["order_created", "order_updated", "order_deleted"]


def test_the_client_from_pypi_uses_basic_over_https(tmp_path: Any) -> None:
    """The same client sends its keys in the header Authorization if the address begins with https."""
    authority, tls = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    shop = FakeShop()
    shop.customers.add("ada@example.com")
    with serving_shop(shop, tls=tls) as server:
        options = {"timeout": 60, "verify_ssl": str(tmp_path / "ca.pem")}
        client = woocommerce.API(server.url, KEY.consumer_key, KEY.consumer_secret, **options)
        assert [customer["email"] for customer in client.get("customers").json()] == ["ada@example.com"]
        ((request, _),) = server.requests
    assert request.headers["authorization"].startswith("Basic ")


@pytest.mark.parametrize(
    "query",
    ["", "?per_page=5&status%5B0%5D=pending&status%5B1%5D=completed", "?modified_after=2026-01-01T00%3A00%3A00"],
)
def test_oauthlib_signs_as_the_shop_expects(query: str) -> None:
    """Also lists and characters that are encoded twice."""
    clock = ManualClock()
    assert wire(FakeShop(clock=clock, site=HTTP)).get(signed(clock, query)).status_code == 200


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"nonce": "used"}, "Invalid nonce - nonce has already been used."),
        ({"timestamp": "1"}, "Invalid timestamp."),
        ({"key": ApiKey("ck_other")}, "Consumer key is invalid."),
        ({"key": ApiKey(consumer_secret="cs_other")}, "Invalid signature - provided signature does not match."),
        ({"method": "POST"}, "Invalid signature - provided signature does not match."),
    ],
)
def test_a_wrong_signature_is_refused(more: dict[str, Any], message: str) -> None:
    """As is one that was used before: a request has to be signed anew when it is repeated."""
    clock = ManualClock()
    http = wire(FakeShop(clock=clock, site=HTTP))
    assert http.get(signed(clock, nonce="used")).status_code == 200
    answer = http.get(signed(clock, **more))
    assert told(answer) == (401, "woocommerce_rest_authentication_error", message)


def test_a_signature_needs_all_its_parameters() -> None:
    """The answer names those that are missing; SHA-1 is a method too, others are not."""
    clock = ManualClock()
    http = wire(FakeShop(clock=clock, site=HTTP))
    answer = http.get(f"{HTTP}{API}/orders?oauth_consumer_key=ck_fake&oauth_nonce=1&oauth_timestamp=1")
    missing = "Missing OAuth parameters oauth_signature, oauth_signature_method"
    assert told(answer) == (401, "woocommerce_rest_authentication_missing_parameter", missing)
    plain = signed(clock).replace("HMAC-SHA256", "PLAINTEXT")
    assert told(http.get(plain))[2] == "Invalid signature - signature method is invalid."


def test_links_repeat_the_signature_and_cannot_be_followed() -> None:
    """``rel="next"`` has the parameters of the request, OAuth's included, so that its nonce is used."""
    clock = ManualClock()
    shop = FakeShop(clock=clock, site=HTTP)
    for _ in range(2):
        shop.customers.add("ada@example.com")
        shop.orders.create({})
    http = wire(shop)
    answer = http.get(signed(clock, "?per_page=1"))
    following = answer.links["next"]["url"]
    assert "oauth_signature=" in following
    assert told(http.get(following))[:2] == (401, "woocommerce_rest_authentication_error")


def test_a_site_with_another_address_refuses_every_signature() -> None:
    """WordPress signs with the address that it has for itself, which may differ behind a proxy."""
    clock = ManualClock()
    http = wire(FakeShop(clock=clock, site="http://www.shop.example"))
    assert told(http.get(signed(clock)))[2] == "Invalid signature - provided signature does not match."


def basic(name: str, secret: str) -> dict[str, str]:
    return {"authorization": "Basic " + base64.b64encode(f"{name}:{secret}".encode()).decode()}


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({}, "woocommerce_rest_cannot_view"),
        (basic("ck_other", "cs_fake"), "woocommerce_rest_cannot_view"),
        ({"authorization": "Basic !"}, "woocommerce_rest_cannot_view"),
        ({"authorization": "Bearer ck_fake"}, "woocommerce_rest_cannot_view"),
        (basic("ck_fake", "cs_other"), "woocommerce_rest_authentication_error"),
    ],
)
def test_wrong_keys_are_refused(headers: dict[str, str], code: str) -> None:
    """By 401 with one of two codes: only a wrong secret is called an error of authentication."""
    shop = FakeShop()
    assert told(wire(shop).get(f"{shop.site}{API}/orders", headers=headers))[:2] == (401, code)


def test_keys_are_not_accepted_in_clear() -> None:
    """Basic over plain HTTP is as no keys at all."""
    answer = wire(FakeShop(site=HTTP)).get(f"{HTTP}{API}/orders", headers=basic("ck_fake", "cs_fake"))
    assert told(answer)[:2] == (401, "woocommerce_rest_cannot_view")


@pytest.mark.parametrize(("accepted", "status"), [(False, 401), (True, 200)])
def test_keys_in_the_query_are_refused_by_default(accepted: bool, status: int) -> None:
    """A shop whose server loses the header Authorization accepts them, over HTTPS."""
    shop = FakeShop(ShopSettings(query_keys=accepted))
    keys = urlencode({"consumer_key": "ck_fake", "consumer_secret": "cs_fake"})
    assert wire(shop).get(f"{shop.site}{API}/orders?{keys}").status_code == status


def test_keys_may_only_read_or_only_write() -> None:
    """What they may not is 401, as for unknown keys, and nothing is carried out."""
    reader, writer = ApiKey("ck_reader", permissions="read"), ApiKey("ck_writer", permissions="write")
    shop = FakeShop(keys=[reader, writer])
    order = shop.orders.create({})
    for key, method, path in (
        (reader, "PUT", f"orders/{order.id}"),
        (reader, "POST", "orders"),
        (writer, "GET", "orders"),
    ):
        answer = ShopClient(shop, key).ask(method, path, {} if method != "GET" else None)
        assert told(answer)[:2] == (401, "woocommerce_rest_authentication_error")
    assert shop.effects == []
    assert ShopClient(shop, reader).ids("orders") == [order.id]
    assert ShopClient(shop, writer).write("PUT", f"orders/{order.id}", {})["id"] == order.id


def test_a_user_without_the_right_is_forbidden() -> None:
    """Good keys of a user who may not manage the shop: 403."""
    shop = FakeShop(keys=[ApiKey(manages=False)])
    client = ShopClient(shop)
    assert client.refused("GET", "orders") == (403, "woocommerce_rest_cannot_view")
    assert client.refused("POST", "orders", {}) == (403, "woocommerce_rest_cannot_create")


def test_carriers_are_public() -> None:
    """The list of carriers needs no keys."""
    shop = FakeShop()
    answer = wire(shop).get(f"{shop.site}/wp-json/wc-shipment-tracking/v3/shipment-trackings/providers")
    assert set(exact_json.loads(answer.content)["Global"]) == {"USPS", "DHL"}
