"""The contract accepts correct streams of many kinds, and says why it cannot judge others."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Literal
from unittest import SkipTest

import httpx
import pytest
from tests.unit.testing.reference_connector import Orders, OrdersContract, ShopSettings, connector

from crossdock import Context, RawBatch, Record
from crossdock.sources import Checkpoint, windows
from crossdock.testing.contract import StreamContract

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


def results(case: type[StreamContract]) -> Mapping[str, str]:
    """What the tests of the contract for any source say against a case, or why they are skipped."""
    found = {}
    for name in TESTS:
        try:
            getattr(case(), name)()
        except (AssertionError, SkipTest) as error:
            found[name.removeprefix("test_")] = str(error)
    return found


UNFETCHED = {"a_record_is_fetched_as_it_is_pulled": "the stream fetches no named records"}


@pytest.mark.parametrize("case", [OfStatusById, OfStatusByKey], ids=lambda case: case.__name__)
def test_a_contribution_gets_the_records_that_it_completes(case: type[StreamContract]) -> None:
    """Its syncs are tested as those of any other stream."""
    assert results(case) == UNFETCHED


def test_what_cannot_be_judged_is_skipped_with_its_reason() -> None:
    """The summary of pytest shows it."""
    case = type("Case", (OrdersContract,), {"connector": connector(StatusOfTheOrigin)})()
    for name in ("a_second_sync_sends_nothing", "a_sync_continues_after_any_batch"):
        with pytest.raises(SkipTest, match="contributes to the origin of what it reads"):
            getattr(case, f"test_{name}")()


def test_a_stream_in_windows_of_time_reads_its_example() -> None:
    """Runs begin after the latest record of the vendor."""
    assert results(InWindowsContract) == UNFETCHED
    assert InWindowsContract().begins == datetime(2026, 11, 23, 10, tzinfo=UTC)


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
