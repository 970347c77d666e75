"""The contract accepts a correct connector, and finds seeded bugs."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from unittest import SkipTest

import pytest
from tests.unit.testing.reference_connector import PAGES, Orders, OrdersContract, ShopSettings, connector, passes

from crossdock import Context, Filter, ProductDraft, RawBatch, Record, Reference
from crossdock.errors import CrossdockError, RefusedError, UnavailableError
from crossdock.sources import Cursor


class TestReference(OrdersContract):
    """The contract itself, inherited as authors do."""


class FirstPageOnly(Orders):
    def pull(self, ctx: Context[ShopSettings], since: str | None) -> Iterator[RawBatch]:
        yield next(iter(super().pull(ctx, since)))


class LastRecordOfAPageDropped(Orders):
    def items(self, orders: list[dict[str, Any]], since: str | None) -> list[dict[str, Any]]:
        return orders[:-1]


class FloatMoney(Orders):
    def price(self, value: object) -> Any:
        return float(str(value))


class MoneyThroughFloat(Orders):
    def price(self, value: object) -> Any:
        return Decimal(str(round(float(str(value)), 4)))


class SwallowedError(Orders):
    def pull(self, ctx: Context[ShopSettings], since: str | None) -> Iterator[RawBatch]:
        try:
            yield from super().pull(ctx, since)
        except CrossdockError:
            return


class RandomKey(Orders):
    def items(self, orders: list[dict[str, Any]], since: str | None) -> list[dict[str, Any]]:
        return [{**order, "id": uuid.uuid4().hex} for order in orders]


class KeyByPosition(Orders):
    key = ("position",)

    def pull(self, ctx: Context[ShopSettings], since: str | None) -> Iterator[RawBatch]:
        number = 0
        for batch in super().pull(ctx, since):
            frame = batch.load().rename({"id": "position"})
            places = [str(number + index) for index in range(frame.height)]
            number += frame.height
            yield RawBatch(batch.source, frame.with_columns(position=_texts(places)), batch.cursor)


def _texts(values: list[str]) -> Any:
    import polars as pl

    return pl.Series(values, dtype=pl.String)


class FetchedWithLinks(Orders):
    def fetch(self, ctx: Context[ShopSettings], keys: Sequence[tuple[str, ...]]) -> Iterator[RawBatch]:
        for (key,) in keys:
            order = ctx.api.get(f"/orders/{key}").body
            yield RawBatch.json([{**order, "links": {"self": f"/orders/{key}"}}], source=f"order {key}")


class FetchedNothing(Orders):
    def fetch(self, ctx: Context[ShopSettings], keys: Sequence[tuple[str, ...]]) -> Iterator[RawBatch]:
        yield from ()


class WrongDraft(Orders):
    def to_resource(self, record: Record) -> Any:
        return ProductDraft(sku=record.key, name="x")


class MappingWithState(Orders):
    customers: dict[str, Any] = {}

    def to_resource(self, record: Record) -> Any:
        draft = super().to_resource(record)
        first = self.customers.setdefault(str(draft.customer_id.key), record.key)
        return draft.model_copy(
            update={"customer_id": type(draft.customer_id)("customer", f"{first}-{len(self.customers)}")}
        )


class MissingMember(Orders):
    def to_resource(self, record: Record) -> Any:
        record.json()["customer"]["id"]
        return super().to_resource(record)


class CursorOfAMissingMember(Orders):
    def newest(self, orders: list[dict[str, Any]]) -> str | None:
        return max(str(order["updated_at"]) for order in orders)


class CursorTooEarly(Orders):
    def newest(self, orders: list[dict[str, Any]]) -> str | None:
        return "2026-11-22T10:00:00Z"


class CursorIgnored(Orders):
    def params(self, since: str | None) -> dict[str, str]:
        return {}


class AskedFromLater(Orders):
    """The cursor moves at the end of a list only, so that no batch shows it."""

    cursor = Cursor(column="updated_at", as_="instant", sorted=False)

    def newest(self, orders: list[dict[str, Any]]) -> str | None:
        return None

    def params(self, since: str | None) -> dict[str, str]:
        return super().params(since and since.replace("2026", "2027"))


class BoundaryLost(Orders):
    def items(self, orders: list[dict[str, Any]], since: str | None) -> list[dict[str, Any]]:
        return [order for order in orders if str(order.get("updated_at")) > (since or "") or since is None]


class SeenBefore(Orders):
    def pull(self, ctx: Context[ShopSettings], since: str | None) -> Iterator[RawBatch]:
        self.seen: set[str] = set()
        yield from super().pull(ctx, since)

    def items(self, orders: list[dict[str, Any]], since: str | None) -> list[dict[str, Any]]:
        fresh = [order for order in orders if str(order.get("id")) not in self.seen]
        self.seen |= {str(order.get("id")) for order in orders}
        return fresh


class LocalTime(Orders):
    def placed_at(self, order: dict[str, Any]) -> datetime:
        return super().placed_at(order).replace(tzinfo=None).astimezone()


class ClockInMapping(Orders):
    def placed_at(self, order: dict[str, Any]) -> datetime:
        return datetime.now(UTC)


class TokenPrinted(Orders):
    def params(self, since: str | None) -> dict[str, str]:
        print("reading", self.token)
        return super().params(since)

    def pull(self, ctx: Context[ShopSettings], since: str | None) -> Iterator[RawBatch]:
        self.token = ctx.settings.token.reveal()
        yield from super().pull(ctx, since)


class TokenLogged(Orders):
    def pull(self, ctx: Context[ShopSettings], since: str | None) -> Iterator[RawBatch]:
        logging.getLogger("shop").debug("token %s", ctx.settings.token.reveal())
        yield from super().pull(ctx, since)


class TokenInSource(Orders):
    def pull(self, ctx: Context[ShopSettings], since: str | None) -> Iterator[RawBatch]:
        for batch in super().pull(ctx, since):
            yield RawBatch(f"{batch.source}?token={ctx.settings.token.reveal()}", batch.rows, batch.cursor)


class UnknownMemberRefused(Orders):
    def to_resource(self, record: Record) -> Any:
        if set(record.json()) - {"id", "customer", "created_at", "updated_at", "lines"}:
            raise ValueError("unknown member")
        return super().to_resource(record)


class TokenInError(Orders):
    def pull(self, ctx: Context[ShopSettings], since: str | None) -> Iterator[RawBatch]:
        try:
            yield from super().pull(ctx, since)
        except CrossdockError as error:
            raise RefusedError(f"{error} with {ctx.settings.token.reveal()}") from error


class OutageSwallowed(Orders):
    def pull(self, ctx: Context[ShopSettings], since: str | None) -> Iterator[RawBatch]:
        try:
            yield from super().pull(ctx, since)
        except UnavailableError:
            return


class MoneyTruncated(Orders):
    def price(self, value: object) -> Any:
        return super().price(value).quantize(Decimal("0.01"))


class MoneyConvertedUnchecked(Orders):
    def price(self, value: object) -> Any:
        return Decimal(str(value))


class NullsDropped(Orders):
    def items(self, orders: list[dict[str, Any]], since: str | None) -> list[dict[str, Any]]:
        return [order for order in orders if order.get("customer")]


BUGS: dict[type[Orders], str] = {
    FirstPageOnly: "every_record_of_every_page_is_read",
    LastRecordOfAPageDropped: "every_record_of_every_page_is_read",
    FloatMoney: "the_example_is_read_and_mapped",
    MoneyThroughFloat: "numbers_are_exact",
    SwallowedError: "faults_of_the_network_lose_nothing_silently",
    RandomKey: "a_second_run_reads_the_same",
    KeyByPosition: "keys_do_not_depend_on_the_order",
    FetchedWithLinks: "a_record_is_fetched_as_it_is_pulled",
    FetchedNothing: "a_record_is_fetched_as_it_is_pulled",
    WrongDraft: "the_example_is_read_and_mapped",
    MappingWithState: "the_mapping_is_pure",
    MissingMember: "drift_of_a_record_never_breaks_the_mapping",
    UnknownMemberRefused: "drift_of_a_record_never_breaks_the_mapping",
    CursorOfAMissingMember: "one_bad_record_does_not_end_reading",
    CursorTooEarly: "a_cursor_is_not_ahead_of_what_was_read",
    CursorIgnored: "the_cursor_is_used_and_its_value_read_again",
    AskedFromLater: "a_record_that_the_source_shows_late_is_read",
    BoundaryLost: "the_cursor_is_used_and_its_value_read_again",
    SeenBefore: "a_record_that_moves_while_paging_is_read_in_its_last_form",
    LocalTime: "the_mapping_is_pure",
    ClockInMapping: "the_mapping_is_pure",
    TokenPrinted: "the_example_is_read_and_mapped",
    TokenLogged: "the_example_is_read_and_mapped",
    TokenInError: "faults_of_the_network_lose_nothing_silently",
    OutageSwallowed: "faults_of_the_network_lose_nothing_silently",
    MoneyTruncated: "numbers_are_exact",
    MoneyConvertedUnchecked: "drift_of_a_record_never_breaks_the_mapping",
    NullsDropped: "one_bad_record_does_not_end_reading",
    TokenInSource: "the_example_is_read_and_mapped",
}


def test_a_stream_that_does_not_fetch_is_skipped() -> None:
    """Its test neither passes nor fails."""

    class Unfetched(Orders):
        fetches = False

    with pytest.raises(SkipTest):
        passes(Unfetched, "a_record_is_fetched_as_it_is_pulled")


@pytest.mark.nightly(
    but=[
        "FirstPageOnly",
        "MoneyThroughFloat",
        "SwallowedError",
        "RandomKey",
        "FetchedNothing",
        "WrongDraft",
        "MappingWithState",
        "CursorTooEarly",
        "CursorIgnored",
        "UnknownMemberRefused",
    ]
)
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_a_seeded_bug_is_found(bug: type[Orders]) -> None:
    """The test of the contract that is meant for it fails, and only because of the bug."""
    assert not passes(bug, BUGS[bug])
    assert passes(Orders, BUGS[bug])


def namespaces(given: object, reference: Reference | None = None) -> str:
    """What the test of references says about orders, with products that are referred to in one way."""

    class Referring(Orders):
        def to_resource(self, record: Record) -> Any:
            draft = super().to_resource(record)
            return draft if reference is None else draft.model_copy(update={"customer_id": reference})

    case = type("Case", (OrdersContract,), {"connector": connector(Referring), "given": given})
    try:
        case().test_references_lead_to_records_that_are_written()
    except SkipTest as said:
        return f"skipped: {said}"
    except AssertionError as failed:
        return f"failed: {failed}"
    return ""


def test_references_that_no_stream_serves_are_said() -> None:
    """Without a statement the test is skipped with the names; what contradicts a statement fails."""
    own, erp = [("customer", "shop"), ("product", "shop")], Reference("customer", "A", "erp")
    said = namespaces(None)
    assert said.startswith("skipped: Referring.to_resource needs customer shop:")
    assert said.endswith(f"state it: given = {own}")
    assert namespaces(own) == namespaces([*own, ("customer", "erp")], erp) == ""
    assert namespaces(own, erp).startswith("failed: Referring.to_resource needs customer erp:A, and no stream of this")


class NewestOrderSkipped(Orders):
    """The cursor is that of an order that a filter leaves out."""

    skip = {"newest": Filter(field="id", equals="4")}

    def newest(self, orders: list[dict[str, Any]]) -> str | None:
        return None

    cursor = Cursor(column="updated_at", as_="instant")


def test_a_record_that_a_filter_leaves_out_need_not_be_read_again() -> None:
    """Its value may be that of the cursor."""
    assert passes(NewestOrderSkipped, "the_cursor_is_used_and_its_value_read_again")


class CustomerOfThePlatform(Orders):
    def to_resource(self, record: Record) -> Any:
        return super().to_resource(record).model_copy(update={"customer_id": "cus_unknown"})


def test_open_records_are_shown_with_their_reasons() -> None:
    """An author sees which member the platform refuses, and why."""
    case = type("Case", (OrdersContract,), {"connector": connector(CustomerOfThePlatform)})
    with pytest.raises(AssertionError, match=r"open after a sync: 4 rejected: .*customerId") as failed:
        case().test_a_second_sync_sends_nothing()
    assert str(failed.value).count("customerId") == 3


class NewestFirst(Orders):
    """The source lists the newest change first and has no filter: reading ends at an order from before the cursor."""

    cursor = Cursor(column="updated_at", as_="instant", sorted=False)

    def pull(self, ctx: Context[ShopSettings], since: str | None) -> Iterator[RawBatch]:
        for page in ctx.api.pages("/orders"):
            orders = page.body["orders"]
            yield RawBatch.json(orders, source=page.address)
            if since is not None and self.is_over(orders, since):
                return

    def is_over(self, orders: list[dict[str, Any]], since: str) -> bool:
        return any(str(order.get("updated_at")) < since for order in orders)


class OverAfterAPage(NewestFirst):
    """Whatever the cursor is."""

    def is_over(self, orders: list[dict[str, Any]], since: str) -> bool:
        return True


class OverTooEarly(NewestFirst):
    """An order with the time of the cursor may come after it."""

    def is_over(self, orders: list[dict[str, Any]], since: str) -> bool:
        return any(str(order.get("updated_at")) <= since for order in orders)


@pytest.mark.parametrize(
    ("stream", "pages", "is_right"),
    [
        (NewestFirst, [[4, 3], [2, 1]], True),
        (NewestFirst, [[4], [3], [2], [1]], True),
        (OverAfterAPage, [[4, 3], [2, 1]], False),
        (OverTooEarly, [[4], [3], [2], [1]], True),
        (OverTooEarly, [[3], [2], [1]], False),
    ],
)
def test_reading_may_end_at_a_record_from_before_the_cursor(
    stream: type[Orders], pages: list[list[int]], is_right: bool
) -> None:
    """A source without a filter by changes is not asked for the cursor; all records from it on must be read."""
    orders = {order["id"]: order for page in PAGES for order in page["orders"]}
    newest_first = [{"orders": [orders[number] for number in page]} for page in pages]
    made = type("Case", (OrdersContract,), {"connector": connector(stream), "pages": newest_first})
    with nullcontext() if is_right else pytest.raises(AssertionError, match="is not read again, or a later one"):
        made().test_the_cursor_is_used_and_its_value_read_again()
