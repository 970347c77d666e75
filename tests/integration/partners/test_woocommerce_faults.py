"""What clients get from the fake WooCommerce shop when PHP, a plugin or the connection fails, on the wire."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest
import trustme
from tests.partners.partner_server import Fault, PartnerServer, serving
from tests.partners.woocommerce.shop import API, FakeShop
from tests.partners.woocommerce.shop_faults import Faulty, ShopFault
from tests.partners.woocommerce.shop_keys import ApiKey
from tests.partners.woocommerce.shop_server import serving_shop
from tests.waiting import eventually

from crossdock.pacing.answer_headers import retry_after_s

KEYS = (ApiKey().consumer_key, ApiKey().consumer_secret)


@pytest.fixture(scope="module")
def tls() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """The contexts of a server and of clients that trust it."""
    authority, server = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(server)
    client = ssl.create_default_context()
    authority.configure_trust(client)
    return server, client


@contextmanager
def at_work(tls: tuple[ssl.SSLContext, ssl.SSLContext]) -> Iterator[tuple[FakeShop, Faulty, httpx.Client]]:
    """A shop with two orders, what spoils its answers, and a client over HTTPS."""
    shop = FakeShop()
    faulty = Faulty(shop)
    for _ in range(2):
        shop.orders.create({})
    try:
        with serving_shop(shop, faulty, tls[0]) as server:
            url = f"{server.url}{API}"
            with httpx.Client(base_url=url, auth=KEYS, verify=tls[1], trust_env=False, timeout=60) as http:
                yield shop, faulty, http
    finally:
        faulty.released.set()


@pytest.mark.parametrize(
    ("fault", "status", "wait_s"),
    [("critical_error", 500, None), ("maintenance", 503, 600), ("too_many_requests", 429, 30)],
)
def test_a_page_in_place_of_an_answer(
    tls: tuple[ssl.SSLContext, ssl.SSLContext], fault: ShopFault, status: int, wait_s: float | None
) -> None:
    """HTML with the status of an error, nothing is carried out, and the next request is answered."""
    with at_work(tls) as (shop, faulty, http):
        faulty.plan(fault)
        answer = http.post("/orders", json={})
        assert (answer.status_code, answer.headers["content-type"]) == (status, "text/html; charset=UTF-8")
        assert (retry_after_s(answer.headers), answer.text.startswith("<!DOCTYPE html>")) == (wait_s, True)
        assert shop.effects == []
        assert http.get("/orders").status_code == 200


def test_a_critical_error_may_come_afterwards(tls: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    """A plugin that fails when the order is stored already: the page is the same, and the order exists."""
    with at_work(tls) as (shop, faulty, http):
        faulty.plan("late_critical_error")
        assert http.post("/orders", json={}).status_code == 500
        assert [effect["kind"] for effect in shop.effects] == ["order_created"]


def test_a_warning_before_the_json(tls: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    """The status is 200, also of a creation, the type is that of a page, and the JSON comes after HTML."""
    with at_work(tls) as (shop, faulty, http):
        faulty.plan("notice")
        answer = http.post("/orders", json={})
        assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=UTF-8")
        with pytest.raises(ValueError):
            answer.json()
        assert json.loads(answer.text[answer.text.index("{") :])["id"] == shop.effects[0]["id"]


def test_something_else_in_place_of_a_list(tls: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    """Null, or an object with the indexes of the list as names; the headers are those of a page of the list."""
    with at_work(tls) as (shop, faulty, http):
        faulty.plan("null")
        faulty.plan("object")
        first, second = http.get("/orders"), http.get("/orders")
        assert (first.json(), first.headers["x-wp-total"]) == (None, "2")
        assert [(name, order["id"]) for name, order in second.json().items()] == [
            (str(2 * index), number) for index, number in enumerate(sorted(shop.orders.orders, reverse=True))
        ]


def test_a_body_is_cut(tls: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    """By PHP, whose answer is complete for HTTP, or by the connection, whose answer is not."""
    with at_work(tls) as (_, faulty, http):
        faulty.plan("cut_json")
        with pytest.raises(ValueError):
            http.get("/orders").json()
        faulty.plan("cut_body")
        with pytest.raises(httpx.RemoteProtocolError):
            http.get("/orders")
        assert len(http.get("/orders").json()) == 2


def test_a_slow_answer_waits_until_it_is_released(tls: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    """A client that waits less loses the answer to a write that is carried out."""
    with at_work(tls) as (shop, faulty, http):
        faulty.plan("slow", lambda request: request.method == "POST")
        with pytest.raises(httpx.ReadTimeout):
            http.post("/orders", json={}, timeout=httpx.Timeout(60, read=0.05))
        eventually(lambda: bool(shop.effects))
        faulty.released.set()
        assert len(http.get("/orders").json()) == len(shop.orders.orders) == 3
        assert [effect["kind"] for effect in shop.effects] == ["order_created"]


def test_faults_are_planned_for_some_requests(tls: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    """As often as planned, and only for those that are chosen."""
    with at_work(tls) as (_, faulty, http):
        faulty.plan("maintenance", lambda request: request.param("page") == "2", times=2)
        answers = [http.get("/orders", params={"page": page}).status_code for page in (1, 2, 2, 2)]
        assert answers == [200, 503, 503, 200]


@pytest.mark.parametrize(("fault", "effects"), [("lost_answer", 1), ("refused", 0), ("throttled", 0)])
def test_the_faults_of_all_partners(fault: Fault, effects: int) -> None:
    """An answer can be lost after or before the request is carried out; too many requests get the plugin's page."""
    shop = FakeShop()
    server = PartnerServer(shop, faults={fault: 1.0})
    with serving(server), httpx.Client(base_url=f"{server.url}{API}", auth=KEYS, trust_env=False, timeout=60) as http:
        if fault == "throttled":
            assert http.post("/orders", json={}).status_code == 429
        else:
            with pytest.raises(httpx.RemoteProtocolError):
                http.post("/orders", json={})
    assert len(shop.effects) == effects
