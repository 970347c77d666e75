"""The contract accepts correct streams of many kinds, and says why it cannot judge others."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Literal
from unittest import SkipTest
from zoneinfo import ZoneInfo

import httpx
import pytest
from tests.unit.testing.reference_connector import Orders, OrdersContract, ShopSettings, connector

from crossdock import Context, CustomerDraft, Filter, ProductDraft, RawBatch, Record
from crossdock.sources import Checkpoint, Cursor, PageNumber, windows
from crossdock.testing.contract import StreamContract
from crossdock.testing.http_contract import HttpStreamContract
from crossdock.webhooks import Webhooks, WebhookScheme

FIRST = datetime(2026, 11, 1, tzinfo=UTC)


class StatusById(Orders):
    """Completes orders that are named by the platform's ids."""

    fetches = False
    contributes, namespace = ("status",), "platform"
    matches: Literal["key", "id", "origin"] = "id"

    def to_resource(self, record: Record) -> Any:
        return {"status": f"seen {record.at('/updated_at', str)}"}


class StatusByKey(StatusById):
    matches, namespace = "key", "erp"


class StatusOfTheOrigin(StatusById):
    matches = "origin"
    reads = "platform.order"


class OfStatusById(OrdersContract):
    connector = connector(StatusById)


class OfStatusByKey(OrdersContract):
    connector = connector(StatusByKey)
    given = [("order", "erp")]


class InWindows(Orders):
    """Asks for one month after the other, up to the time of the run."""

    fetches = False

    def pull(  # type: ignore[override]  # it also yields checkpoints
        self, ctx: Context[ShopSettings], since: str | None
    ) -> Iterator[RawBatch | Checkpoint]:
        for window in windows(since, ctx.run.clock.now(), size=timedelta(days=30), first=FIRST):
            params = {"from": window.start.isoformat(), "to": window.end.isoformat()}
            answer = ctx.api.get("/orders", params)
            yield RawBatch.json(answer.items("/orders"), source=answer.address)
            yield window.checkpoint


class InWindowsContract(OrdersContract):
    """The vendor lists what was changed in a window."""

    connector = connector(InWindows)

    def network(self) -> httpx.MockTransport:
        def answer(request: httpx.Request) -> httpx.Response:
            start, end = (datetime.fromisoformat(request.url.params[name]) for name in ("from", "to"))
            found = [
                order
                for page in self.pages
                for order in page["orders"]
                if start <= datetime.fromisoformat(str(order["updated_at"])) < end
            ]
            return httpx.Response(200, text=json.dumps({"orders": found}))

        return httpx.MockTransport(answer)


class Rounded(Orders):
    """Rounds prices to cents, as its shop does."""

    def price(self, value: object) -> Any:
        return round(super().price(value), 2)


class RoundedContract(OrdersContract):
    connector = connector(Rounded)
    decimals = 2


class Nothing(Orders):
    def items(self, orders: list[dict[str, Any]], since: str | None) -> list[dict[str, Any]]:
        return []


TESTS = [name for name in dir(StreamContract) if name.startswith("test_")]

OF_STATEMENTS = {  # they are skipped unless the author states what must come of the example
    "test_drafts_are_as_expected",
    "test_the_example_can_show_bugs",
    "test_webhooks_name_their_records",
}
IN_THIS_PROCESS = [name for name in TESTS if name not in OF_STATEMENTS and not name.endswith("in_every_process")]


def results(case: type[StreamContract], tests: Sequence[str] = TESTS) -> Mapping[str, str]:
    """What tests of the contract say against a case, or why they are skipped."""
    found = {}
    for name in tests:
        try:
            getattr(case(), name)()
        except (AssertionError, SkipTest) as error:
            found[name.removeprefix("test_")] = str(error)
    return found


UNFETCHED = {"a_record_is_fetched_as_it_is_pulled": "the stream fetches no named records"}


@pytest.mark.nightly(but=["OfStatusByKey"])
@pytest.mark.parametrize("case", [OfStatusById, OfStatusByKey], ids=lambda case: case.__name__)
def test_a_contribution_gets_the_records_that_it_completes(case: type[StreamContract]) -> None:
    """Its syncs are tested as those of any other stream."""
    assert results(case, IN_THIS_PROCESS) == UNFETCHED


def test_two_streams_that_write_the_same_records_are_told() -> None:
    """A config with both is refused, so that none of them can be used."""

    class Guests(Orders):
        name = "guests"

    both = replace(connector(Orders), streams=lambda _: (Orders(), Guests()))
    test = "no_other_stream_writes_the_same_records"
    told = results(type("Case", (OrdersContract,), {"connector": both}), [f"test_{test}"])
    assert "shop.guests and shop.orders both write order in namespace 'shop'; set namespace" in told[test]


def test_what_cannot_be_judged_is_skipped_with_its_reason() -> None:
    """The summary of pytest shows it."""
    case = type("Case", (OrdersContract,), {"connector": connector(StatusOfTheOrigin)})()
    for name in ("a_second_sync_sends_nothing", "a_sync_continues_after_any_batch"):
        with pytest.raises(SkipTest, match="contributes to the origin of what it reads"):
            getattr(case, f"test_{name}")()


@pytest.mark.nightly
def test_a_stream_in_windows_of_time_reads_its_example() -> None:
    """Runs begin after the latest record of the vendor."""
    assert results(InWindowsContract, IN_THIS_PROCESS) == UNFETCHED
    assert InWindowsContract().run_start == datetime(2026, 11, 23, 10, tzinfo=UTC)


def test_the_time_of_runs_can_be_declared() -> None:
    """A stream that reads nothing at that time fails, and the message says what to do."""

    class TooEarly(InWindowsContract):
        now = FIRST - timedelta(days=1)

    found = results(TooEarly)
    assert {*found} == {name.removeprefix("test_") for name in TESTS}
    for message in found.values():
        assert message.startswith("InWindows.pull yields no record in a run at 2026-10-31T00:00:00Z")
        assert "set now to a time after them" in message


def test_no_test_passes_for_a_stream_without_records() -> None:
    """An empty example proves nothing."""
    case = type("Case", (OrdersContract,), {"connector": connector(Nothing)})
    assert {*results(case)} == {name.removeprefix("test_") for name in TESTS}


def test_amounts_may_be_rounded_as_the_source_rounds_them() -> None:
    """If the test says so; a float is found nevertheless."""
    RoundedContract().test_numbers_are_exact()

    class Float(Rounded):
        def price(self, value: object) -> Any:
            return Decimal(str(round(float(str(value)), 2)))

    with pytest.raises(AssertionError, match="loses digits"):
        type("Case", (RoundedContract,), {"connector": connector(Float)})().test_numbers_are_exact()


# ---- pages of JSON


class OtherMembers(Orders):
    """Rows are of this stream alone: members are renamed, added, left out and counted."""

    fetches = False
    key = ("order",)

    def items(self, orders: list[dict[str, Any]], since: str | None) -> list[dict[str, Any]]:
        return [
            {"order": order.get("id"), "customer": order.get("customer"), "created_at": order.get("created_at"),
             "lines": order.get("lines"), "shop": "main"}
            for order in orders
        ]  # fmt: skip


class OtherMembersContract(OrdersContract):
    connector = connector(OtherMembers)


class ExplodedContract(OrdersContract):
    """Each line is a row, and the key has two parts."""

    class Lines(Orders):
        fetches = False
        resource: Any = "product"
        key: Any = ("id", "lines.sku")

        def pull(self, ctx: Context[ShopSettings], since: str | None) -> Iterator[RawBatch]:
            for page in ctx.api.pages("/orders", self.params(since)):
                yield RawBatch.json(page.items("/orders"), source=page.address, explode="lines")

        def to_resource(self, record: Record) -> Any:
            code = f"{record.key}"
            return ProductDraft(sku=code, name=record.at("/lines/sku", str))

    connector = connector(Lines)
    filters_on = ("lines",)


class OfOneChannel(Orders):
    fetches = False

    def items(self, orders: list[dict[str, Any]], since: str | None) -> list[dict[str, Any]]:
        def is_ours(order: dict[str, Any]) -> bool:
            customer = order.get("customer")
            return isinstance(customer, dict) and customer.get("id") != 8

        return [order for order in orders if is_ours(order)]


class OfOneChannelContract(OrdersContract):
    """Orders of another customer are left out in `pull`."""

    connector = connector(OfOneChannel)
    filters_on = ("customer.id",)


class SkippedContract(OrdersContract):
    """A filter of the stream counts what it leaves out."""

    class Skipping(Orders):
        fetches = False
        skip = {"others": Filter.model_validate({"not": {"field": "customer.id", "one_of": ["7", "9"]}})}

    connector = connector(Skipping)


class UnpagedContract(OrdersContract):
    """Everything is listed at once."""

    pages = [{"orders": [order for page in OrdersContract.pages for order in page["orders"]]}]
    is_paged = False


class GroupedContract(OrdersContract):
    """All orders of a customer are one record, also if they are on two pages."""

    class Grouped(Orders):
        fetches = False
        mode: Any = "snapshot"
        resource: Any = "customer"
        key = group_by = ("customer.id",)

        def newest(self, orders: list[dict[str, Any]]) -> str | None:
            return None

        def to_resource(self, record: Record) -> Any:
            return CustomerDraft(name="; ".join(row.at("/created_at", str) for row in record.each_row()))

    connector = connector(Grouped)
    expects = {
        "7": {"name": "2026-11-01T10:00:00+01:00; 2026-11-02T11:00:00+01:00"},
        "8": {"name": "2026-11-02T10:00:00+01:00"},
    }


class NumberedContract(OrdersContract):
    """The cursor is a number, so that 10 is later than 9."""

    class Numbered(Orders):
        fetches = False

        def newest(self, orders: list[dict[str, Any]]) -> str | None:
            numbers = [order["id"] for order in orders if isinstance(order.get("id"), int)]
            return str(max(numbers)) if numbers else None

    connector = connector(Numbered)
    pages = [
        {"orders": [{**order, "id": number} for number, order in enumerate(page["orders"], first)]}
        for first, page in zip((8, 10), OrdersContract.pages, strict=True)
    ]


class SortedContract(OrdersContract):
    """The cursor is declared, and the shop sorts by it."""

    class Sorted(Orders):
        fetches = False
        cursor = Cursor(column="updated_at", as_="instant")

        def newest(self, orders: list[dict[str, Any]]) -> str | None:
            return None

    connector = connector(Sorted)


DATED = [
    ["Thu, 05 Nov 2026 09:00:00 +0000", "Thu, 05 Nov 2026 23:30:00 -0500"],
    ["Fri, 06 Nov 2026 10:00:01 +0000", "Fri, 06 Nov 2026 11:00:00 +0000"],
]


class DatedContract(OrdersContract):
    """The times of changes do not sort as texts, and the pages say how many they are."""

    class Dated(Orders):
        fetches = False
        cursor = Cursor(column="updated_at", as_="instant", format="%a, %d %b %Y %H:%M:%S %z")

        def pull(self, ctx: Context[ShopSettings], since: str | None) -> Iterator[RawBatch]:
            pages = PageNumber("/orders", pages="/pages")
            for page in ctx.api.pages("/orders", {"changed_from": since}, paginator=pages):
                yield RawBatch.json(page.items("/orders"), source=page.address, key=["id"])

    connector = connector(Dated)
    pages = [
        {"orders": [{**order, "updated_at": text} for order, text in zip(page["orders"], texts, strict=True)]}
        for page, texts in zip(OrdersContract.pages, DATED, strict=True)
    ]

    def transport(self, pages: Sequence[Any]) -> httpx.MockTransport:
        def answer(request: httpx.Request) -> httpx.Response:
            number, listed = int(request.url.params.get("page", "1")), [page for page in pages if page["orders"]]
            orders = listed[number - 1]["orders"] if number <= len(listed) else []
            return httpx.Response(200, text=json.dumps({"orders": orders, "pages": len(listed)}, default=str))

        return httpx.MockTransport(answer)


LOCAL = [["2026-07-20T10:00:00", "2026-07-21T10:00:00"], ["2026-07-21T10:00:00", "2026-07-22T10:00:00"]]


class LocalContract(OrdersContract):
    """The shop has times without an offset, in its own zone, and is asked for those; it sorts by them."""

    class Local(Orders):
        fetches, zone = False, ZoneInfo("America/Chicago")
        cursor = Cursor(column="updated_at", as_="instant", timezone="America/Chicago")

        def params(self, since: str | None) -> dict[str, str]:
            if since is None:
                return {}
            return {"changed_from": f"{datetime.fromisoformat(since).astimezone(self.zone):%Y-%m-%dT%H:%M:%S}"}

        def newest(self, orders: list[dict[str, Any]]) -> str | None:
            return None

    connector = connector(Local)
    cursor_param = "changed_from"
    pages = [
        {"orders": [{**order, "updated_at": text} for order, text in zip(page["orders"], texts, strict=True)]}
        for page, texts in zip(OrdersContract.pages, LOCAL, strict=True)
    ]


class AskedInUtc(LocalContract.Local):
    """A bug: five hours of changes are never read."""

    zone = ZoneInfo("UTC")


def test_local_times_are_asked_for_in_the_zone_of_the_cursor() -> None:
    """Those of UTC would be later there."""
    case = type("Case", (LocalContract,), {"connector": connector(AskedInUtc)})
    tests = "the_cursor_is_used_and_its_value_read_again", "a_record_that_the_source_shows_late_is_read"
    found = results(case, [f"test_{each}" for each in tests])
    assert "no request contains the cursor" in found[tests[0]]
    assert "it asks for later records only" in found[tests[1]]


class UnsortedContract(OrdersContract):
    """The shop lists changes in any order, so that a cursor is stored at the end of a run only."""

    class Unsorted(Orders):
        fetches = False
        cursor = Cursor(column="updated_at", as_="instant", sorted=False)

        def params(self, since: str | None) -> dict[str, str]:
            return {"updated_since": datetime.fromisoformat(since).isoformat()} if since else {}

        def newest(self, orders: list[dict[str, Any]]) -> str | None:
            return None

    connector = connector(Unsorted)
    cursor_param = "updated_since"


HTTP_TESTS = [name for name in vars(HttpStreamContract) if name.startswith("test_")]
CORRECT: Mapping[type[HttpStreamContract], Mapping[str, str]] = {
    OtherMembersContract: {},
    ExplodedContract: dict.fromkeys(
        ("a_cursor_is_not_ahead_of_what_was_read", "the_cursor_is_used_and_its_value_read_again"),
        "no batch of the example has a cursor or a checkpoint, and no cursor sorts the source",
    ),
    OfOneChannelContract: {},
    SkippedContract: {},
    GroupedContract: dict.fromkeys(
        ("a_cursor_is_not_ahead_of_what_was_read", "the_cursor_is_used_and_its_value_read_again"),
        "no batch of the example has a cursor or a checkpoint, and no cursor sorts the source",
    ),
    UnpagedContract: {
        "a_record_that_moves_while_paging_is_read_in_its_last_form": "the API answers with everything at once"
    },
    NumberedContract: {},
    SortedContract: {},
    DatedContract: {},
    LocalContract: {},
    UnsortedContract: {
        "a_cursor_is_not_ahead_of_what_was_read": "no batch of the example has a cursor or a checkpoint, and no cursor "
        "sorts the source"
    },
}


@pytest.mark.nightly(but=["ExplodedContract", "GroupedContract"])
@pytest.mark.parametrize("case", CORRECT, ids=lambda case: case.__name__)
def test_rows_need_not_be_what_the_api_lists(case: type[HttpStreamContract]) -> None:
    """Nothing is lost by pages, cursors or errors."""
    assert results(case, HTTP_TESTS) == CORRECT[case]


class LastOfAPageLost(OtherMembers):
    def items(self, orders: list[dict[str, Any]], since: str | None) -> list[dict[str, Any]]:
        return super().items(orders, since)[:-1]


class FirstPageAlone(OtherMembers):
    def pull(self, ctx: Context[ShopSettings], since: str | None) -> Iterator[RawBatch]:
        yield next(iter(super().pull(ctx, since)))


class FirstFormKept(OtherMembers):
    def __init__(self) -> None:
        self.seen: set[Any] = set()

    def items(self, orders: list[dict[str, Any]], since: str | None) -> list[dict[str, Any]]:
        new = [order for order in orders if order.get("id") not in self.seen]
        self.seen |= {order.get("id") for order in new}
        return super().items(new, since)


class LastOfAChannelLost(OfOneChannel):
    def items(self, orders: list[dict[str, Any]], since: str | None) -> list[dict[str, Any]]:
        return super().items(orders[:-1], since)


@pytest.mark.parametrize(
    ("bug", "case", "test"),
    [
        (LastOfAPageLost, OtherMembersContract, "every_record_of_every_page_is_read"),
        (FirstPageAlone, OtherMembersContract, "every_record_of_every_page_is_read"),
        (FirstFormKept, OtherMembersContract, "a_record_that_moves_while_paging_is_read_in_its_last_form"),
        (LastOfAChannelLost, OfOneChannelContract, "every_record_of_every_page_is_read"),
        (OfOneChannel, OrdersContract, "every_record_of_every_page_is_read"),
        (OfOneChannel, OrdersContract, "one_bad_record_does_not_end_reading"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_what_is_lost_is_found_in_other_rows(bug: type[Orders], case: type[HttpStreamContract], test: str) -> None:
    """Also if no row is what the API lists; a filter that is not declared is a loss."""
    with pytest.raises(AssertionError):
        getattr(type("Case", (case,), {"connector": connector(bug)})(), f"test_{test}")()


class SinceMisspelt(UnsortedContract.Unsorted):
    def params(self, since: str | None) -> dict[str, str]:
        return {"update_since": since} if since else {}


class SinceIgnored(UnsortedContract.Unsorted):
    def params(self, since: str | None) -> dict[str, str]:
        return {}


class LatestDayAlone(UnsortedContract.Unsorted):
    """What changed within a day, wherever the run before ended."""

    def params(self, since: str | None) -> dict[str, str]:
        return {"updated_since": "2026-11-21T12:00:00Z"} if since else {}


class EdgeDropped(UnsortedContract.Unsorted):
    def items(self, orders: list[dict[str, Any]], since: str | None) -> list[dict[str, Any]]:
        return [each for each in orders if since is None or each["updated_at"] != "2026-11-22T10:00:00Z"]


USED = "the_cursor_is_used_and_its_value_read_again"


@pytest.mark.parametrize(
    ("bug", "says"),
    [
        (SinceMisspelt, "no request has the cursor in updated_since, as cursor_param of the test says"),
        (SinceIgnored, "the cursor changes no request"),
        (LatestDayAlone, "no request contains the cursor 2026-11-20T10:00:00Z or a time before it"),
        (EdgeDropped, "a record whose value equals the cursor is not read again"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_the_cursor_of_a_source_that_does_not_sort_is_tested(bug: type[Orders], says: str) -> None:
    """With the value that a run stores at its end."""
    case = type("Case", (UnsortedContract,), {"connector": connector(bug)})
    assert says in results(case, [f"test_{USED}"])[USED]


def test_a_cursor_gets_its_value_as_runs_do() -> None:
    """Also if the source writes times in another form: as ISO 8601 in UTC."""

    class Parsed(DatedContract.Dated):
        def pull(self, ctx: Context[ShopSettings], since: str | None) -> Iterator[RawBatch]:
            return super().pull(ctx, since and datetime.fromisoformat(since).isoformat())

    assert results(type("Case", (DatedContract,), {"connector": connector(Parsed)}), [f"test_{USED}"]) == {}


@pytest.mark.parametrize(("column", "is_told"), [("created_at", True), ("updated_at", False)])
def test_a_cursor_of_another_time_than_that_of_changes_is_a_gap(column: str, is_told: bool) -> None:
    """No request shows by which time the source lists."""
    cursor = Cursor(column=column, as_="instant", sorted=False)
    stream = type("Created", (UnsortedContract.Unsorted,), {"cursor": cursor})
    name = "the_example_can_show_bugs"
    found = results(type("Case", (UnsortedContract,), {"connector": connector(stream)}), [f"test_{name}"])[name]
    assert ("updated_at is later than the cursor created_at" in found) == is_told


@pytest.mark.parametrize(
    ("fetches", "says"),
    [(False, "the stream fetches no named records"), (True, "webhooks is not set: no webhook shows")],
)
def test_webhooks_that_cannot_be_judged_are_skipped_with_the_reason(fetches: bool, says: str) -> None:
    """A stream without `fetch` is named by none."""
    scheme = WebhookScheme(
        signature_header="X-S", id_header="X-I", timestamp_header=None, signed_content="{body}", prefix=""
    )
    stream = type("Hooked", (Orders,), {"fetches": fetches})
    hooked = replace(
        connector(stream), webhooks=lambda _: Webhooks([scheme], [], lambda _: iter(()), topics=("order",))
    )
    name = "webhooks_name_their_records"
    assert says in results(type("Case", (OrdersContract,), {"connector": hooked}), [f"test_{name}"])[name]
