"""The contract finds what is lost of lists that are requested for one record, and a cursor that is not sent."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import httpx
import pytest

from crossdock import Connector, Context, LineDraft, OrderDraft, RawBatch, Record, RecordError, Reference, Stream
from crossdock.errors import CrossdockError
from crossdock.sources import Cursor, HttpSettings
from crossdock.testing.cursors_and_times_in_requests import contains_cursor_or_slightly_earlier
from crossdock.testing.http_contract import HttpStreamContract
from crossdock.testing.lists_in_answers import path_of_only_object_list

PAGES = [
    {"orders": [{"id": 1, "customer": 7, "at": "2026-11-01T10:00:00Z"}]},
    {"orders": [{"id": 2, "customer": 8, "at": "2026-11-02T10:00:00Z"}]},
]
PRODUCTS = {"1": [{"sku": "0017", "count": 1}, {"sku": "0018", "count": 2}], "2": [{"sku": "0019", "count": 3}]}


class ShopSettings(HttpSettings):
    kind: Literal["shop"]


class Orders(Stream[ShopSettings]):
    """Orders, each with its lines, which are a list of their own."""

    name, resource, key = "orders", "order", ("id",)
    cursor = Cursor(column="at", as_="instant")

    def asked(self, since: str | None) -> dict[str, str | None]:
        return {"changed_since": since}

    def products(self, ctx: Context[ShopSettings], order: Any) -> list[Any]:
        pages = ctx.api.pages(f"/orders/{order['id']}/products")
        return [each for page in pages for each in page.items("/products")]

    def pull(self, ctx: Context[ShopSettings], since: str | None) -> Iterator[RawBatch]:
        for page in ctx.api.pages("/orders", self.asked(since)):
            rows = [{**each, "lines": self.products(ctx, each)} for each in page.items("/orders")]
            yield RawBatch.json(rows, source=page.address)

    def to_resource(self, record: Record) -> OrderDraft:
        freight = LineDraft(product_id=Reference("product", "freight"), quantity=1, unit_price=5)
        items = tuple(
            LineDraft(
                product_id=Reference("product", line.at("/sku", str)), quantity=line.decimal("/count"), unit_price=1
            )
            for line in record.each("/lines")
        )
        customer = Reference("customer", record.identifier("/customer"))
        return OrderDraft(
            customer_id=customer, currency="EUR", placed_at=record.instant("/at"), items=(*items, freight)
        )


def shop(stream: type[Orders]) -> Connector[ShopSettings]:
    return Connector("shop", "A shop", ShopSettings, streams=lambda _: (stream(),), api=lambda own: own.api())


class OrdersCase(HttpStreamContract):
    connector = shop(Orders)
    settings = {"base_url": "https://shop.example"}
    stream = "orders"
    pages = PAGES

    def transport(self, pages: Sequence[Any]) -> httpx.MockTransport:
        def answer(request: httpx.Request) -> httpx.Response:
            found = request.url.path.removeprefix("/orders").strip("/").split("/")
            number = int(request.url.params.get("page", "1"))
            if found != [""]:
                listed = PRODUCTS.get(found[0], [])
                return httpx.Response(200, text=json.dumps({"products": listed, "meta": {"total": len(listed)}}))
            link = f'<{request.url.copy_set_param("page", number + 1)}>; rel="next"'
            headers = {"link": link} if number < len(pages) else {}
            return httpx.Response(200, text=json.dumps(pages[number - 1]), headers=headers)

        return httpx.MockTransport(answer)


def case(stream: type[Orders], **attributes: Any) -> type[OrdersCase]:
    return type("Case", (OrdersCase,), {"connector": shop(stream), **attributes})


class Expanding(Orders):
    """Reads them with `ApiClient.expand`."""

    def pull(self, ctx: Context[ShopSettings], since: str | None) -> Iterator[RawBatch]:
        for page in ctx.api.pages("/orders", self.asked(since)):
            path = "/orders/{id}/products"
            rows = ctx.api.expand(page.items("/orders"), path, into="lines", records="/products")
            yield RawBatch.json(rows, source=page.address)


class OneAnswer(Orders):
    """Reads one answer, whatever follows."""

    def products(self, ctx: Context[ShopSettings], order: Any) -> list[Any]:
        return ctx.api.get(f"/orders/{order['id']}/products", {"limit": 50}).items("/products")


class FullPages(Orders):
    """Reads until a page is not full."""

    def products(self, ctx: Context[ShopSettings], order: Any) -> list[Any]:
        found = list[Any]()
        for number in range(1, 10):
            page = ctx.api.get(f"/orders/{order['id']}/products", {"limit": 50, "page": number}).items("/products")
            found += page
            if len(page) < 50:
                break
        return found


class Refusing(OneAnswer):
    """Does not read what follows, and says so of the record."""

    def products(self, ctx: Context[ShopSettings], order: Any) -> list[Any]:
        page = ctx.api.get(f"/orders/{order['id']}/products", {"limit": 50})
        return [{}] if page.at("/meta/total") > len(page.items("/products")) else page.items("/products")


class Suppressing(Orders):
    """Takes any error for an order without lines."""

    def products(self, ctx: Context[ShopSettings], order: Any) -> list[Any]:
        try:
            return super().products(ctx, order)
        except CrossdockError:
            return []


class Telling(Suppressing):
    """Takes any error for an order without lines, which is a dead letter."""

    def to_resource(self, record: Record) -> OrderDraft:
        if not record.at("/lines", list):
            raise RecordError("bad_value", "the lines of the order could not be read", pointer="/lines")
        return super().to_resource(record)


class Counting(Suppressing):
    """Takes any error for an order without lines, and counts it in the report."""

    def to_resource(self, record: Record) -> OrderDraft:
        if not record.at("/lines", list):
            record.count("lines left out")
        return super().to_resource(record)


class WithoutCursor(Orders):
    def asked(self, since: str | None) -> dict[str, str | None]:
        return {"changed_only": "true" if since else None}


class OtherParameter(Orders):
    def asked(self, since: str | None) -> dict[str, str | None]:
        return {"changed_sinc": since}


LISTS, FAULTS = "lists_of_other_requests_are_read_to_their_end", "faults_of_the_network_lose_nothing_silently"
CURSOR = "the_cursor_is_used_and_its_value_read_again"


def failure(made: type[OrdersCase], test: str) -> str:
    try:
        getattr(made(), f"test_{test}")()
    except AssertionError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("made", "test", "says"),
    [
        (case(OneAnswer), LISTS, "OneAnswer.pull: the list that /orders/1/products answers with is read without"),
        (case(Suppressing), FAULTS, "Suppressing.pull: request 4 (/orders/2/products) answered with 429"),
        (case(WithoutCursor), CURSOR, "WithoutCursor.pull: no request contains the cursor 2026-11-02T10:00:00Z"),
        (
            case(OtherParameter, cursor_param="changed_since"), CURSOR,
            "OtherParameter.pull: no request has the cursor in changed_since",
        ),
    ],
)  # fmt: skip
def test_a_seeded_bug_is_found(made: type[OrdersCase], test: str, says: str) -> None:
    """The message names the method and the request."""
    assert says in failure(made, test)


@pytest.mark.nightly(but=["pages", "refused"])
@pytest.mark.parametrize(
    "made",
    [
        case(Orders),
        case(Expanding),
        case(OneAnswer, whole_lists=("/orders/*/products",)),
        case(FullPages),
        case(Refusing),
        case(Telling),
        case(Counting),
    ],
    ids=["pages", "expanded", "documented as whole", "full pages", "refused", "told", "counted"],
)
def test_what_reads_everything_or_says_what_lacks_is_accepted(made: type[OrdersCase]) -> None:
    """However it asks for more. A 404 may say that a record has no such part."""
    assert [failure(made, test) for test in (LISTS, FAULTS, CURSOR)] == [""] * 3


def test_records_are_expanded_whatever_members_they_lack() -> None:
    """One without an id needs no request, and does not end reading."""
    bad = "one_bad_record_does_not_end_reading"
    assert failure(case(Expanding), bad) == ""
    assert "pull raised KeyError" in failure(case(Orders), bad)


def test_a_parameter_that_is_not_stated_is_a_gap() -> None:
    """A misspelt one would not be seen."""
    gap = "cursor_param is not set: a misspelt parameter"
    gaps = [[*case(Orders, cursor_param=name)().other_gaps()] for name in (None, "changed_since")]
    assert [any(gap in each for each in found) for found in gaps] == [True, False]


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ([{"sku": "A"}], ()),
        ({"products": [{"sku": "A"}], "meta": {"total": 1}, "limit": 50}, ("products",)),
        ({"data": {"products": [{"sku": "A"}]}, "has_more": False}, ("data", "products")),
        ({"id": 7, "lines": [{"sku": "A"}]}, None),
        ({"order": {"id": 7, "lines": [{"sku": "A"}]}}, None),
        ({"token": "abc"}, None),
        ([1, 2], None),
    ],
)
def test_a_list_is_told_apart_from_a_record_that_has_one(body: Any, place: Any) -> None:
    """An order with its lines is no list of lines."""
    assert path_of_only_object_list(body) == place


@pytest.mark.parametrize(
    ("url", "body", "cursor", "is_there"),
    [
        ("https://a.example/x?since=2026-11-02T10%3A00%3A00Z", b"", "2026-11-02T10:00:00Z", True),
        ("https://a.example/x?since=1793613600", b"", "2026-11-02T10:00:00Z", True),
        ("https://a.example/x?q=date_modified%3A%3E2026-11-02", b"", "2026-11-02T10:00:00Z", True),
        ("https://a.example/x?since=2026-11-02T09:50:00Z", b"", "2026-11-02T10:00:00Z", True),
        ("https://a.example/x?since=2026-10-02T10:00:00Z", b"", "2026-11-02T10:00:00Z", False),
        ("https://a.example/x?since=2026-11-02T11:00:00Z", b"", "2026-11-02T10:00:00Z", False),
        ("https://a.example/x", b'{"variables": {"since": "2026-11-02T10:00:00Z"}}', "2026-11-02T10:00:00Z", True),
        ("https://a.example/x?since=02.11.2026+12:00", b"", "2026-11-02T10:00:00Z", True),
        ("https://a.example/x?since=Mon,+02+Nov+2026+10:00:00+%2B0000", b"", "2026-11-02T10:00:00Z", True),
        ("https://a.example/x?since=20261102100000", b"", "2026-11-02T10:00:00Z", True),
        ("https://a.example/x?since=03.10.2026+12:00", b"", "2026-11-02T10:00:00Z", False),
        ("https://a.example/x?since=2026-11-02T10:00:00Z", b"", "1793613600", True),
        ("https://a.example/x?from=4000", b"", "5000", True),
        ("https://a.example/x?from=6000", b"", "5000", False),
        ("https://a.example/x?token=abc", b"", "abc", True),
    ],
)
def test_a_request_contains_a_cursor_in_any_form(url: str, body: bytes, cursor: str, *, is_there: bool) -> None:
    """A time may be written in another way, and may be earlier, so that what is shown late is read."""
    assert contains_cursor_or_slightly_earlier(("GET", url, body), cursor) == is_there
