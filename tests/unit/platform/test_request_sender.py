from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import httpx
import pytest

from crossdock.client import Client, ProblemError, Product
from crossdock.errors import RemoteError, UnavailableError
from crossdock.testing.manual_clock import ManualClock
from crossdock.values import exact_json

PRODUCT = Product(external_id="p", sku="0017", name="Lamp", unit_price=Decimal("9.50"))
STORED = {**PRODUCT.payload(), "id": "prd_1", "createdAt": "2026-01-01T00:00:00Z", "updatedAt": "2026-01-01T00:00:00Z"}
CREATED = httpx.Response(201, content=exact_json.dumps({**STORED, "addedLater": {"a": 1}}))


def client(
    answer: Callable[[httpx.Request], httpx.Response], clock: ManualClock, key_header: str | None = "Idempotency-Key"
) -> Client:
    transport = httpx.MockTransport(answer)
    return Client(
        "https://api.example.com",
        "acme",
        "t",
        transport=transport,
        clock=clock,
        idempotency_header=key_header,
        attempts=3,
    )


@pytest.mark.parametrize(
    ("status", "headers", "key_header", "requests"),
    [
        (429, {}, "Idempotency-Key", 3),
        (429, {}, None, 3),
        (503, {}, "Idempotency-Key", 3),
        (503, {}, None, 1),
        (409, {"retry-after": "1"}, "Idempotency-Key", 3),
        (409, {}, "Idempotency-Key", 1),
        (500, {}, "Idempotency-Key", 1),
        (302, {"location": "https://elsewhere.example"}, "Idempotency-Key", 1),
        (422, {"retry-after": "1"}, "Idempotency-Key", 1),
    ],
)
def test_a_write_is_repeated_only_where_it_is_safe(
    status: int, headers: dict[str, str], key_header: str | None, requests: int
) -> None:
    """With the same bytes and the same key; without keys only after 429, and never after a redirect."""
    sent: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        return httpx.Response(status, headers=headers)

    with pytest.raises(ProblemError) as error:
        client(answer, ManualClock(), key_header).products.create(PRODUCT)
    assert error.value.status == status
    assert len(sent) == requests
    assert len({(each.content, each.headers.get("Idempotency-Key")) for each in sent}) == 1
    assert ("Idempotency-Key" in sent[0].headers) is (key_header is not None)


def test_the_pause_is_at_least_what_the_platform_asks_for() -> None:
    """Retry-After is obeyed, with a little more so that many clients do not come back at once."""
    answers = iter([httpx.Response(429, headers={"Retry-After": "7"}), CREATED])
    clock = ManualClock()
    assert client(lambda _: next(answers), clock).products.create(PRODUCT).unit_price == Decimal("9.50")
    assert 7 <= clock.monotonic() <= 7.5


@pytest.mark.parametrize("body", [b"<html>", b"{", b'{"a": NaN}', b"[]", b"{}", b'{"id": 7}', b"null", b""])
def test_an_answer_that_cannot_be_read_is_an_error(body: bytes) -> None:
    """A success with any other body is a `RemoteError`, and no traceback of a parser."""
    with pytest.raises(RemoteError):
        client(lambda _: httpx.Response(200, content=body), ManualClock()).products.get("prd_1")
    with pytest.raises(RemoteError):
        list(client(lambda _: httpx.Response(200, content=body), ManualClock()).products.list())


def test_a_list_whose_cursors_form_a_circle_ends() -> None:
    """A cursor that was asked for before is an error and not an endless loop."""
    cursors = iter(["a", "b", "a"])

    def answer(_: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json={"data": [], "nextCursor": next(cursors)})

    with pytest.raises(RemoteError, match="one that was read"):
        list(client(answer, ManualClock()).products.list())


def test_a_list_that_names_the_same_page_again_ends() -> None:
    """A cursor that does not advance is an error and not an endless loop."""
    page = b'{"data": [], "nextCursor": "a"}'
    with pytest.raises(RemoteError, match="no next page"):
        list(client(lambda _: httpx.Response(200, content=page), ManualClock()).products.list())


@pytest.mark.parametrize("key", ["", 'a"b', "a\\b", "ä", "a\nb", "k" * 256])
def test_an_impossible_key_is_refused(key: str) -> None:
    """It is refused before anything is sent."""
    with pytest.raises(ValueError, match="idempotency key"):
        client(lambda _: CREATED, ManualClock()).products.create(PRODUCT, idempotency_key=key)


@pytest.mark.parametrize("resource_id", ["", ".", "..", "a\nb", "x" * 65])
def test_an_impossible_id_is_refused(resource_id: str) -> None:
    """An id cannot name another path."""
    with pytest.raises(ValueError, match="an id is"):
        client(lambda _: CREATED, ManualClock()).products.delete(resource_id)


def test_a_change_is_checked_before_it_is_sent() -> None:
    """Unknown fields, floats and texts for numbers are refused."""
    products = client(lambda _: CREATED, ManualClock()).products
    for wrong in ({"unitPrice": 1}, {"unit_price": 9.5}, {"unit_price": "9.5"}, {"sku": None}, {"name": ""}):
        with pytest.raises(ValueError, match="Product has no field|validation error"):
            products.update("prd_1", wrong)


def test_a_read_is_repeated_without_a_key() -> None:
    """A read that got no answer is sent again, and the error after the last attempt names the request."""
    clock = ManualClock()

    def fail(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused", request=request)

    with pytest.raises(UnavailableError, match="GET /api/v1/catalog/products/prd_1"):
        client(fail, clock).products.get("prd_1")
    assert clock.monotonic() > 0
