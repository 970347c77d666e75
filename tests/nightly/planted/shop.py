"""A shop that lists orders by the time of their change, in pages, in windows of time or by a config, and their bugs."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Literal

import httpx
from tests.nightly.planted.bugs import Bug

from crossdock import (
    Connector,
    Context,
    LineDraft,
    OrderDraft,
    RawBatch,
    Record,
    RecordError,
    Reference,
    SecretRef,
    Stream,
)
from crossdock.config.project.connections_and_bound_streams import load_connector
from crossdock.errors import CrossdockError
from crossdock.resources import ShippingAddress
from crossdock.sources import BearerAuth, Checkpoint, Cursor, HttpSettings, windows
from crossdock.testing.contract import StreamContract
from crossdock.testing.http_contract import HttpStreamContract
from crossdock.values import exact_json
from crossdock.webhooks import Hint, Webhook, Webhooks, WebhookScheme, WebhookSettings

FIRST = datetime(2026, 11, 1, tzinfo=UTC)


def order(number: int, created: str, changed: str, region: str | None, *lines: tuple[str, int, Any]) -> dict[str, Any]:
    """An order as the shop lists it."""
    return {
        "id": number, "customer_id": 70 + number, "created_at": created, "updated_at": changed,
        "address": {"name": "Ada", "street": "Gasse 1", "city": "Bern", "region": region, "country": "CH"},
        "lines": [{"sku": sku, "quantity": count, "price": price} for sku, count, price in lines],
    }  # fmt: skip


PAGES = [
    {"orders": [
        order(1, "2026-11-01T00:30:00+01:00", "2026-11-03T19:00:00Z", "BE", ("0017", 2, "24.95"), ("0018", 1, 0.25)),
        order(2, "2026-11-02T10:00:00+01:00", "2026-11-04T00:00:00Z", None, ("0018", 1, "9.05")),
    ]},
    {"orders": [
        order(3, "2026-11-02T11:00:00+01:00", "2026-11-04T00:00:00Z", "VD", ("0019", 3, "1.75"), ("0017", 5, "24.95")),
        order(4, "2026-11-03T10:00:00+01:00", "2026-11-04T05:55:00Z", "BE", ("0017", 1, "22.15")),
    ]},
]  # fmt: skip
EXPECTED = {
    1: {
        "customerId": Reference("customer", "71"),
        "currency": "CHF",
        "placedAt": "2026-10-31T23:30:00Z",
        "items": [
            {"productId": Reference("product", "0017"), "quantity": 2, "unitPrice": Decimal("24.95")},
            {"productId": Reference("product", "0018"), "quantity": 1, "unitPrice": Decimal("0.25")},
        ],
        "shippingAddress": {"name": "Ada", "city": "Bern", "region": "BE", "country": "CH"},
    },
    2: {"shippingAddress": {"region": None}},
    3: {"items": [{}, {}]},
    4: {"customerId": Reference("customer", "74")},
}


class ShopSettings(HttpSettings):
    """One shop."""

    kind: Literal["shop"]
    token: SecretRef
    webhooks: WebhookSettings | None = None


class Mapped(Stream[ShopSettings]):
    """The mapping, a method for each part of it."""

    name, resource, key = "orders", "order", ("id",)

    def to_resource(self, record: Record) -> OrderDraft:
        return OrderDraft(
            customer_id=Reference("customer", record.identifier("/customer_id")),
            currency="CHF",
            placed_at=self.placed_at(record),
            items=tuple(self.line(line) for line in self.lines(record)),
            shipping_address=self.address(record),
        )

    def line(self, line: Any) -> LineDraft:
        product = Reference("product", line.at("/sku", str))
        return LineDraft(product_id=product, quantity=self.quantity(line), unit_price=self.price(line))

    def lines(self, record: Record) -> Sequence[Any]:
        return record.each("/lines")

    def quantity(self, line: Any) -> Decimal:
        found: Decimal = line.decimal("/quantity")
        return found

    def price(self, line: Any) -> Decimal:
        found: Decimal = line.decimal("/price")
        return found

    def placed_at(self, record: Record) -> datetime:
        return record.instant("/created_at")

    def address(self, record: Record) -> ShippingAddress:
        street, city, country = (record.at(f"/address/{each}", str) for each in ("street", "city", "country"))
        name, region = (record.at(f"/address/{each}", str, default=None) for each in ("name", "region"))
        return ShippingAddress(name=name, line1=street, city=city, region=region, country=country)


class Paged(Mapped):
    """Page after page, each with a checkpoint."""

    def params(self, since: str | None) -> dict[str, str]:
        return {"updated_since": since or "", "sort": "updated_at"}

    def rows(self, orders: list[Any], since: str | None) -> list[Any]:
        return orders

    def reached(self, orders: list[Any]) -> str | None:
        texts = [each.get("updated_at") for each in orders if isinstance(each, dict)]
        return max((text for text in texts if isinstance(text, str) and text.startswith("20")), default=None)

    def pull(self, ctx: Context[ShopSettings], since: str | None) -> Iterator[RawBatch | Checkpoint]:
        for page in ctx.api.pages("/orders", self.params(since)):
            orders = page.items("/orders")
            yield RawBatch.json(self.rows(orders, since), source=page.address)
            if (reached := self.reached(orders)) is not None:
                yield Checkpoint(reached)

    def fetch(self, ctx: Context[ShopSettings], keys: Sequence[tuple[str, ...]]) -> Iterator[RawBatch]:
        for (key,) in keys:
            answer = ctx.api.get(f"/orders/{key}")
            yield RawBatch.json([answer.body], source=answer.address)


class Charged(Paged):
    """The fees of each order are a list of their own, and further lines of it."""

    def fees(self, ctx: Context[ShopSettings], number: int) -> list[Any]:
        return [each for page in ctx.api.pages(f"/orders/{number}/fees") for each in page.items("/fees")]

    def charged(self, ctx: Context[ShopSettings], order: Any) -> Any:
        number = order.get("id") if isinstance(order, dict) else None
        return {**order, "fees": self.fees(ctx, number)} if type(number) is int else order

    def pull(self, ctx: Context[ShopSettings], since: str | None) -> Iterator[RawBatch | Checkpoint]:
        for page in ctx.api.pages("/orders", self.params(since)):
            orders = page.items("/orders")
            yield RawBatch.json([self.charged(ctx, each) for each in orders], source=page.address)
            if (reached := self.reached(orders)) is not None:
                yield Checkpoint(reached)

    def fetch(self, ctx: Context[ShopSettings], keys: Sequence[tuple[str, ...]]) -> Iterator[RawBatch]:
        for (key,) in keys:
            answer = ctx.api.get(f"/orders/{key}")
            yield RawBatch.json([self.charged(ctx, answer.body)], source=answer.address)

    def lines(self, record: Record) -> Sequence[Any]:
        return [*record.each("/lines"), *record.each("/fees", default=())]


class Unsorted(Paged):
    """The shop lists changes in any order, so that the cursor is stored at the end of a run."""

    cursor = Cursor(column="updated_at", as_="instant", sorted=False)

    def params(self, since: str | None) -> dict[str, str]:
        return {} if since is None else {"updated_since": since}

    def reached(self, orders: list[Any]) -> None:
        """No batch says how far was read."""


class Windowed(Mapped):
    """Six hours after the other, so that most windows are empty."""

    size, overlap = timedelta(hours=6), timedelta(minutes=10)

    def pull(self, ctx: Context[ShopSettings], since: str | None) -> Iterator[RawBatch | Checkpoint]:
        for window in windows(since, ctx.run.clock.now(), size=self.size, first=FIRST, overlap=self.overlap):
            params = {"from": self.begin(window).isoformat(), "to": window.end.isoformat()}
            yield from self.read(ctx, params, window)

    def begin(self, window: Any) -> datetime:
        start: datetime = window.start
        return start

    def read(self, ctx: Context[ShopSettings], params: Any, window: Any) -> Iterator[RawBatch | Checkpoint]:
        answer = ctx.api.get("/orders", params)
        yield RawBatch.json(answer.items("/orders"), source=answer.address)
        yield window.checkpoint


def shop(stream: type[Mapped], hints: Any = None) -> Connector[ShopSettings]:
    scheme = WebhookScheme(
        signature_header="X-Signature", id_header="X-Id", timestamp_header=None, signed_content="{id}.{body}", prefix=""
    )

    def received(own: ShopSettings) -> Webhooks[ShopSettings]:
        return Webhooks([scheme], [], hints, topics=("order.changed",))

    return Connector(
        name="shop",
        title="A shop",
        settings=ShopSettings,
        streams=lambda _: (stream(),),
        api=lambda own: own.api(auth=BearerAuth(own.token)),
        webhooks=received if hints else None,
    )


class _OfTheShop(StreamContract):
    settings = {"base_url": "https://shop.example", "token": "env:SHOP_TOKEN"}
    environment = {"SHOP_TOKEN": "token-of-the-tests"}
    stream = "orders"
    expects = EXPECTED
    given = [("customer", "shop"), ("product", "shop")]


class PagedCase(_OfTheShop, HttpStreamContract):
    """Orders in pages."""

    connector = shop(Paged)
    pages = PAGES

    def transport(self, pages: Sequence[Any]) -> httpx.MockTransport:
        def answer(request: httpx.Request) -> httpx.Response:
            name = request.url.path.removeprefix("/orders/")
            for one in (each for page in pages for each in page["orders"]):
                if isinstance(one, dict) and str(one.get("id")) == name:
                    return httpx.Response(200, text=json.dumps(one, default=str))
            number = int(request.url.params.get("page", "1"))
            link = f'<{request.url.copy_set_param("page", number + 1)}>; rel="next"'
            headers = {"link": link} if number < len(pages) else {}
            return httpx.Response(200, text=json.dumps(pages[number - 1], default=str), headers=headers)

        return httpx.MockTransport(answer)


FEES = {4: [{"sku": "wrapping", "quantity": 1, "price": "1.95"}, {"sku": "freight", "quantity": 1, "price": "4.90"}]}


class UsingCase(PagedCase):
    """Orders in pages, of which the shop shows more than the mapping reads."""

    connector = shop(type("Using", (Paged,), {"uses": ("customer_id", "created_at", "address", "lines")}))


class ChargedCase(PagedCase):
    """Orders in pages, with requests for their fees."""

    connector = shop(Charged)
    cursor_param = "updated_since"

    def transport(self, pages: Sequence[Any]) -> httpx.MockTransport:
        orders = super().transport(pages)

        def answer(request: httpx.Request) -> httpx.Response:
            number, _, below = request.url.path.removeprefix("/orders/").partition("/")
            if below != "fees":
                return orders.handle_request(request)
            return httpx.Response(200, json={"fees": FEES.get(int(number), [])})

        return httpx.MockTransport(answer)


class UnsortedCase(PagedCase):
    """Orders in pages, in any order."""

    connector = shop(Unsorted)
    cursor_param = "updated_since"


class WindowedCase(_OfTheShop):
    """Orders in windows: the shop lists what was changed in one."""

    connector = shop(Windowed)

    def network(self) -> httpx.MockTransport:
        def answer(request: httpx.Request) -> httpx.Response:
            start, end = (datetime.fromisoformat(request.url.params[name]) for name in ("from", "to"))
            found = [
                one
                for page in PAGES
                for one in page["orders"]
                if start <= datetime.fromisoformat(one["updated_at"]) < end
            ]
            return httpx.Response(200, text=json.dumps({"orders": found}))

        return httpx.MockTransport(answer)


def hinted(webhook: Webhook) -> Iterator[Hint]:
    if webhook.topic.startswith("order."):
        for each in webhook.each("/orders"):
            yield Hint("orders", (each.identifier("/id"),))


class HookedCase(PagedCase):
    """Orders that webhooks name."""

    connector = shop(Paged, hinted)
    webhooks = [("order.changed", {"orders": [{"id": 3, "customer_id": 73}, {"id": 4, "customer_id": 74}]}, ["3", "4"])]


LINE = {
    "productId": {"ref": "product", "key": "sku"},
    "quantity": {"from": "quantity", "as": "decimal"},
    "unitPrice": {"from": "price", "as": "decimal"},
}
ADDRESS = {
    "name": "address.name", "line1": "address.street", "city": "address.city", "region": "address.region",
    "country": "address.country",
}  # fmt: skip
MAP: dict[str, Any] = {
    "customerId": {"ref": "customer", "key": "customer_id"},
    "currency": {"const": "CHF"},
    "placedAt": {"from": "created_at", "as": "instant"},
    "items": {"of": "lines", "each": LINE},
    "shippingAddress": {"object": ADDRESS},
}


def declared(*, pagination: str = "link_header", **changed: Any) -> dict[str, Any]:
    """Settings of a connection that reads the shop by a config, with some keys of the stream changed."""
    stream = {
        "path": "/orders",
        "params": {"updated_since": "{since}", "sort": "updated_at"},
        "records": "orders",
        "mode": "incremental",
        "cursor": {"column": "updated_at", "as": "instant"},
        "key": ["id"],
        "resource": "order",
        "map": MAP,
    }
    return {
        "base_url": "https://shop.example",
        "auth": {"kind": "bearer", "token": "env:SHOP_TOKEN"},
        "pagination": {"kind": pagination},
        "streams": {"orders": stream | changed},
    }


class DeclaredCase(PagedCase):
    """Orders by a config."""

    connector = load_connector("http_json")
    settings = declared()
    given = [("customer", "http_json"), ("product", "http_json")]


# ---- bugs of the mapping, which each kind can have


def with_stream(case: type[StreamContract], **methods: Any) -> type[StreamContract]:
    """The case with other methods of its stream; its message names the class of the stream, ``Bug``."""
    base = next(type(each) for each in case.connector.streams(None))
    return type("Case", (case,), {"connector": shop(type("Bug", (base,), methods))})


def _swallowed(self: Any, line: Any) -> Decimal:
    try:
        found: Decimal = line.decimal("/quantity")
    except RecordError:
        return Decimal(0)
    return found


def _float(self: Any, line: Any) -> Decimal:
    return Decimal(str(round(float(str(line.decimal("/price"))), 4)))


def _without_region(self: Any, record: Record) -> ShippingAddress:
    return Mapped.address(self, record).model_copy(update={"region": None})


MAPPING: Mapping[str, tuple[dict[str, Any], str, str, bool]] = {
    "a price divided by 100": (
        {"price": lambda self, line: Mapped.price(self, line) / 100}, "drafts_are_as_expected", "unitPrice", True),
    "decimals lost in a float": ({"price": _float}, "numbers_are_exact", "Bug.to_resource", False),
    "an amount rounded": (
        {"price": lambda self, line: round(Mapped.price(self, line), 1)}, "numbers_are_exact", "set decimals", False),
    "a bad number that becomes 0": (
        {"quantity": _swallowed}, "a_bad_number_is_never_another_number", "Bug.to_resource", False),
    "a time in another zone": (
        {"placed_at": lambda self, record: Mapped.placed_at(self, record) + timedelta(hours=5)},
        "drafts_are_as_expected", "placedAt", True),
    "part of an address left out": ({"address": _without_region}, "drafts_are_as_expected", "region", True),
    "a list that is cut": (
        {"lines": lambda self, record: record.each("/lines")[:2]}, "no_element_of_a_long_list_is_left_out",
        "/lines", False),
    "a KeyError of the mapping": (
        {"lines": lambda self, record: [record.part(f"/lines/{at}") for at, _ in enumerate(record.json()["lines"])]},
        "drift_of_a_record_never_breaks_the_mapping", "raise RecordError", False),
    "the time of the run in a draft": (
        {"placed_at": lambda self, record: datetime.now(UTC)}, "the_mapping_is_pure", "no clock", False),
}  # fmt: skip


# ---- bugs of reading in pages


def _pull_of_one_page(self: Any, ctx: Any, since: str | None) -> Iterator[Any]:
    for number, item in enumerate(Paged.pull(self, ctx, since)):
        if number < 2:
            yield item


def _swallowing(self: Any, ctx: Any, since: str | None) -> Iterator[Any]:
    try:
        yield from Paged.pull(self, ctx, since)
    except CrossdockError:
        return


def _own_client(self: Any, ctx: Any, since: str | None) -> Iterator[Any]:
    """A client of its own that takes any answer for a page."""
    number = 1
    with httpx.Client(transport=ctx.run.transport, base_url="https://shop.example") as client:
        while True:
            answer = client.get("/orders", params={**self.params(since), "page": number})
            orders = exact_json.loads(answer.content).get("orders", []) if answer.status_code == 200 else []
            yield RawBatch.json(orders, source=f"page {number}")
            if "link" not in answer.headers:
                return
            number += 1


def _checkpoint_first(self: Any, ctx: Any, since: str | None) -> Iterator[Any]:
    for page in [*ctx.api.pages("/orders", self.params(since))]:
        orders = page.items("/orders")
        yield Checkpoint(self.reached(orders))
        yield RawBatch.json(orders, source=page.address)


def _random(self: Any, orders: list[Any], since: str | None) -> list[Any]:
    return [{**each, "id": uuid.uuid4().hex} for each in orders]


def _numbered(self: Any, orders: list[Any], since: str | None) -> list[Any]:
    return [{**each, "id": number} if isinstance(each, dict) else each for number, each in enumerate(orders)]


def _of_another_system(self: Any, line: Any) -> LineDraft:
    product = Reference("product", line.at("/sku", str), "erp")
    return Mapped.line(self, line).model_copy(update={"product_id": product})


ALWAYS_LATEST = "2026-11-04T05:55:00Z"
READING: Sequence[tuple[str, dict[str, Any], str, str]] = [
    ("a page left out", {"pull": _pull_of_one_page}, "every_record_of_every_page_is_read", "Bug.pull"),
    ("a record left out", {"rows": lambda self, orders, _: orders[:-1]}, "every_record_of_every_page_is_read",
     "Bug.pull"),
    ("an error swallowed", {"pull": _swallowing}, "faults_of_the_network_lose_nothing_silently", "catch no error"),
    ("429 taken for an empty page", {"pull": _own_client}, "throttling_is_survived", "Bug.pull"),
    ("a cursor ahead of what was read", {"reached": lambda *_: ALWAYS_LATEST},
     "a_cursor_is_not_ahead_of_what_was_read", "Bug.pull"),
    ("a checkpoint before its batch", {"pull": _checkpoint_first}, "a_sync_continues_after_any_batch", "Bug.pull"),
    ("the cursor not used", {"params": lambda *_: {"sort": "updated_at"}},
     "the_cursor_is_used_and_its_value_read_again", "since"),
    ("records at the edge of a cursor lost",
     {"rows": lambda self, orders, since: [each for each in orders if str(each.get("updated_at")) > (since or "")]},
     "the_cursor_is_used_and_its_value_read_again", "Bug.pull"),
    ("a change that is not noticed", {"uses": ("customer_id", "created_at", "address")},
     "every_change_of_a_draft_is_noticed", "Bug.uses"),
    ("random keys", {"rows": _random}, "a_second_run_reads_the_same", "random"),
    ("keys by position", {"rows": _numbered}, "keys_do_not_depend_on_the_order", "position"),
    ("a reference to records that nobody writes", {"line": _of_another_system},
     "references_lead_to_records_that_are_written", "Bug.to_resource needs product erp:"),
]  # fmt: skip


# ---- bugs of requests about one order


def _first_answer(self: Any, ctx: Any, number: int) -> list[Any]:
    found: list[Any] = ctx.api.get(f"/orders/{number}/fees").items("/fees")
    return found


def _free_of_charge(self: Any, ctx: Any, number: int) -> list[Any]:
    try:
        return Charged.fees(self, ctx, number)
    except CrossdockError:
        return []


CHARGES: Sequence[tuple[str, dict[str, Any], str, str]] = [
    ("a list that is cut", {"fees": _first_answer}, "lists_of_other_requests_are_read_to_their_end", "Bug.pull"),
    ("an error swallowed", {"fees": _free_of_charge}, "faults_of_the_network_lose_nothing_silently", "Bug.pull"),
    ("the cursor's value not sent", {"params": lambda self, since: {"changed": "yes"} if since else {}},
     "the_cursor_is_used_and_its_value_read_again", "Bug.pull: no request contains the cursor"),
    ("a misspelt parameter of the cursor", {"params": lambda self, since: {"update_since": since or ""}},
     "the_cursor_is_used_and_its_value_read_again", "updated_since, as cursor_param of the test says"),
]  # fmt: skip


# ---- bugs of the cursor of a source that does not sort


USED = "the_cursor_is_used_and_its_value_read_again"
UNSORTED: Sequence[tuple[str, dict[str, Any], str, str]] = [
    ("the cursor not used", {"params": lambda *_: {}}, USED, "Bug.pull: the cursor changes no request"),
    ("a misspelt parameter of the cursor", {"params": lambda self, since: {"update_since": since} if since else {}},
     USED, "updated_since, as cursor_param of the test says"),
    ("a time that does not depend on the cursor",
     {"params": lambda self, since: {"updated_since": "2026-11-04T00:00:00Z"} if since else {}}, USED,
     "Bug.pull: no request contains the cursor"),
]  # fmt: skip


# ---- bugs of reading in windows


class _Ahead(Windowed):
    def read(self, ctx: Any, params: Any, window: Any) -> Iterator[Any]:
        batch, _ = super().read(ctx, params, window)
        yield batch
        yield Checkpoint((window.end + timedelta(days=1)).isoformat())


class _AtTheTimeOfTheRun(Windowed):
    def read(self, ctx: Any, params: Any, window: Any) -> Iterator[Any]:
        batch, _ = super().read(ctx, params, window)
        yield batch
        yield Checkpoint(ctx.run.clock.now().isoformat())


class _NoOverlap(Windowed):
    overlap = timedelta()


class _Gap(Windowed):
    def begin(self, window: Any) -> datetime:
        start: datetime = window.start + timedelta(seconds=1)
        return start


class _Reversed(Windowed):
    def read(self, ctx: Any, params: Any, window: Any) -> Iterator[Any]:
        yield from reversed([*super().read(ctx, params, window)])


class _LastWindowLeftOut(Windowed):
    def pull(self, ctx: Any, since: str | None) -> Iterator[Any]:
        until = datetime(2026, 11, 4, tzinfo=UTC)
        for window in windows(since, min(until, ctx.run.clock.now()), size=self.size, first=FIRST):
            yield from self.read(ctx, {"from": window.start.isoformat(), "to": window.end.isoformat()}, window)


class _WithTheWindow(Windowed):
    def read(self, ctx: Any, params: Any, window: Any) -> Iterator[Any]:
        answer = ctx.api.get("/orders", params)
        rows = [{**each, "window": params["from"]} for each in answer.items("/orders")]
        yield RawBatch.json(rows, source=answer.address)
        yield window.checkpoint

    def address(self, record: Record) -> ShippingAddress:
        return super().address(record).model_copy(update={"region": record.at("/window", str)})


WINDOWS: Sequence[tuple[str, type[Windowed], str, str, bool]] = [
    ("a cursor ahead of what was read", _Ahead, "no_checkpoint_is_ahead_of_what_was_asked_for", "_Ahead.pull", False),
    ("a cursor ahead of what was read", _AtTheTimeOfTheRun, "no_checkpoint_is_ahead_of_what_was_asked_for",
     "_AtTheTimeOfTheRun.pull", False),
    ("an overlap of 0", _NoOverlap, "a_record_that_the_source_shows_late_is_read", "_NoOverlap.pull", False),
    ("records at the edge of a window lost", _Gap, "a_sync_continues_after_any_batch", "_Gap", False),
    ("a checkpoint before its batch", _Reversed, "a_sync_continues_after_any_batch", "_Reversed.pull", False),
    ("a window left out", _LastWindowLeftOut, "drafts_are_as_expected", "_LastWindowLeftOut.pull", True),
    ("what differs from run to run in a draft", _WithTheWindow, "a_second_sync_sends_nothing", "_WithTheWindow.pull",
     False),
]  # fmt: skip


# ---- bugs of webhooks


def _fetched(change: Any) -> dict[str, Any]:
    def fetch(self: Any, ctx: Any, keys: Sequence[tuple[str, ...]]) -> Iterator[RawBatch]:
        for (key,) in keys:
            answer = ctx.api.get(f"/orders/{key}")
            yield from (RawBatch.json([body], source=answer.address) for body in change(answer.body))

    return {"fetch": fetch}


def _of_customer(webhook: Webhook) -> Iterator[Hint]:
    for each in webhook.each("/orders"):
        yield Hint("orders", (each.identifier("/customer_id"),))


def _of_the_first(webhook: Webhook) -> Iterator[Hint]:
    yield Hint("orders", (webhook.identifier("/orders/0/id"),))


def _of_another_stream(webhook: Webhook) -> Iterator[Hint]:
    for each in webhook.each("/orders"):
        yield Hint("customers", (each.identifier("/id"),))


def _of_another_topic(webhook: Webhook) -> Iterator[Hint]:
    if webhook.topic == "orders":
        yield from hinted(webhook)


def _unguarded(webhook: Webhook) -> Iterator[Hint]:
    for each in webhook.body["orders"]:
        yield Hint("orders", (str(each["id"]),))


def _cut(webhook: Webhook) -> Iterator[Hint]:
    for each in webhook.each("/orders"):
        yield Hint("orders", (each.identifier("/id")[1:] or "0",))


def hooked(hints: Any = hinted, **methods: Any) -> type[PagedCase]:
    return type("Case", (HookedCase,), {"connector": shop(type("Bug", (Paged,), methods), hints)})


NAMES, FETCHED = "webhooks_name_their_records", "a_record_is_fetched_as_it_is_pulled"
HOOKS: Sequence[tuple[str, type[PagedCase], str, str]] = [
    ("a webhook that names another record", hooked(_of_customer), NAMES, "_of_customer"),
    ("a webhook that names another record", hooked(_cut), NAMES, "_cut"),
    ("a webhook that names another record", hooked(_of_another_stream), NAMES, "_of_another_stream"),
    ("a webhook of which a part is ignored", hooked(_of_the_first), NAMES, "_of_the_first"),
    ("a webhook of which a part is ignored", hooked(_of_another_topic), NAMES, "order.changed"),
    ("a KeyError of a webhook", hooked(_unguarded), NAMES, "_unguarded"),
    ("rows of `fetch` that are not those of `pull`", hooked(**_fetched(lambda body: [{**body, "links": {}}])), FETCHED,
     "Bug.fetch"),
    ("a list that is cut", hooked(**_fetched(lambda body: [{**body, "lines": body["lines"][:1]}])), FETCHED,
     "Bug.fetch"),
    ("a record that `fetch` does not read", hooked(**_fetched(lambda body: [])), FETCHED, "Bug.fetch"),
    ("a record of a webhook that `fetch` does not read",
     hooked(**_fetched(lambda body: [body] if body["id"] < 3 else [])), NAMES, "Bug.fetch"),
    ("a foreign record believed", hooked(**_fetched(lambda body: [{**PAGES[0]["orders"][1], "id": body["id"]}])),
     FETCHED, "Bug.fetch"),
]  # fmt: skip


# ---- bugs of a config


def declared_case(**changed: Any) -> type[PagedCase]:
    return type("Case", (DeclaredCase,), {"settings": declared(**changed)})


def mapped(**members: Any) -> type[PagedCase]:
    return declared_case(map=MAP | members)


def priced(**price: Any) -> type[PagedCase]:
    return mapped(items={"of": "lines", "each": LINE | {"unitPrice": {"from": "price", "as": "decimal"} | price}})


CONFIGS: Sequence[tuple[str, type[PagedCase], str, str, bool]] = [
    ("a page left out", declared_case(pagination="single_page"), "every_record_of_every_page_is_read", "link_header",
     False),
    ("a price divided by 100", priced(factor=Decimal("0.01")), "drafts_are_as_expected", "unitPrice", True),
    ("a member read from another place",
     mapped(items={"of": "lines", "each": LINE | {"quantity": {"from": "price", "as": "decimal"}}}),
     "drafts_are_as_expected", "quantity", True),
    ("a time in another zone", mapped(placedAt={"from": "updated_at", "as": "instant"}), "drafts_are_as_expected",
     "placedAt", True),
    ("part of an address left out",
     mapped(shippingAddress={"object": {each: path for each, path in ADDRESS.items() if each != "region"}}),
     "drafts_are_as_expected", "region", True),
    ("a member read from another place", mapped(currency={"const": "EUR"}), "drafts_are_as_expected", "currency", True),
    ("an overlap of 0", declared_case(cursor={"column": "updated_at", "as": "instant", "overlap_s": 0}),
     "a_record_that_the_source_shows_late_is_read", "overlap_s", False),
    ("a record left out", declared_case(skip={"foreign": {"field": "address.region", "empty": True}}),
     "drafts_are_as_expected", "'2'", True),
    ("a member read from another place", mapped(customerId={"ref": "customer", "key": "id"}), "drafts_are_as_expected",
     "customerId", True),
    ("keys that are not those of the records", declared_case(key=["customer_id"]), "drafts_are_as_expected", "'1'",
     True),
]  # fmt: skip

BUGS = [
    *(Bug(what, kind, with_stream(case, **methods), test, says, stated)
      for kind, case in (("pages", PagedCase), ("windows", WindowedCase))
      for what, (methods, test, says, stated) in MAPPING.items()),
    *(Bug(what, "pages", with_stream(PagedCase, **methods), test, says) for what, methods, test, says in READING),
    *(Bug(what, "pages", with_stream(ChargedCase, **methods), test, says) for what, methods, test, says in CHARGES),
    *(Bug(what, "pages in any order", with_stream(UnsortedCase, **methods), test, says)
      for what, methods, test, says in UNSORTED),
    *(Bug(what, "windows", type("Case", (WindowedCase,), {"connector": shop(stream)}), test, says, stated)
      for what, stream, test, says, stated in WINDOWS),
    *(Bug(what, "webhooks", case, test, says) for what, case, test, says in HOOKS),
    *(Bug(what, "config", case, test, says, stated) for what, case, test, says, stated in CONFIGS),
]  # fmt: skip
CORRECT = (PagedCase, UsingCase, ChargedCase, UnsortedCase, WindowedCase, HookedCase, DeclaredCase)
