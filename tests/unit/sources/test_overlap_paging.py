"""A list that is cut by position and changes while it is read is read as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.errors import RefusedError
from crossdock.reading.sources.list_completeness_evidence import DoubtfulListError
from crossdock.reading.sources.run_context import SourceContext
from crossdock.runs.imported_file_log import EmptyIntakeLog
from crossdock.sources import Api, ApiAnswer, ApiClient, OverlappingPages
from crossdock.testing.manual_clock import ManualClock
from crossdock.values.run_progress_and_messages import SilentProgress

BASE = "https://shop.example/api"


@dataclass
class ChangingList:
    """A list sorted by change. Before each page something happens; equal changes have another order on each page.

    Attributes:
        changes: The last change of each record, by its id.
        events: What happens before each page: ids of records that change, or are removed if they are negative.
        most_equal: As many records have the same change at most.
    """

    changes: dict[int, int]
    events: list[list[int]] = field(default_factory=list)
    most_equal: int = 3
    seed: int = 0
    asked: list[dict[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = Random(self.seed)

    def handle(self, request: httpx.Request) -> httpx.Response:
        for event in self.events.pop(0) if self.events else ():
            self.happens(event)
        asked = dict(request.url.params)
        self.asked.append(asked)
        rows = sorted(self.changes, key=lambda each: (self.changes[each], self.rng.random()))
        start, size = int(asked["offset"]), int(asked["limit"])
        page = [{"id": each, "changed": self.changes[each]} for each in rows[start : start + size]]
        return httpx.Response(200, json=page, headers={"X-Total": str(len(rows))})

    def happens(self, event: int) -> None:
        if abs(event) not in self.changes:
            return
        del self.changes[abs(event)]
        if event > 0:
            latest = max([*self.changes.values(), 0])
            same = sum(each == latest for each in self.changes.values())
            self.changes[event] = latest + (same >= self.most_equal)


def pages(handler: Callable[[httpx.Request], httpx.Response], size: int = 8, overlap: int = 2) -> Iterator[ApiAnswer]:
    run = SourceContext(ManualClock(), SilentProgress(), EmptyIntakeLog(), Path(), Path(), Path())
    api = ApiClient(Api(BASE, transport=httpx.MockTransport(handler)), run)
    paginator = OverlappingPages(change="changed", total="X-Total", size=size, overlap=overlap)
    return api.pages("/orders", paginator=paginator)


def read(handler: Callable[[httpx.Request], httpx.Response], size: int = 8, overlap: int = 2) -> list[dict[str, Any]]:
    return [record for page in pages(handler, size, overlap) for record in page.items("")]


@given(
    number=st.integers(0, 60),
    events=st.lists(st.lists(st.integers(-60, 60), max_size=12), max_size=30),
    size=st.integers(5, 12),
    overlap=st.integers(1, 10),
    seed=st.integers(0, 1_000),
)
def test_nothing_is_lost(number: int, events: list[list[int]], size: int, overlap: int, seed: int) -> None:
    """Whatever changes or is removed between pages, and whichever of equal changes comes first: all that is there at
    the end was read as it is then."""
    shop = ChangingList({each: (each + 2) // 3 for each in range(1, number + 1)}, events, seed=seed)
    found = {record["id"]: record["changed"] for record in read(shop.handle, size, overlap)}
    assert shop.changes.items() <= found.items()


def test_a_list_that_stands_still_is_read_in_few_requests() -> None:
    """Each page but the first has as many old records as the pages overlap."""
    shop = ChangingList({each: each for each in range(100)})
    read(shop.handle, size=25, overlap=5)
    assert [asked["offset"] for asked in shop.asked] == ["0", "20", "40", "60", "80"]


def test_equal_changes_on_a_whole_page_are_read_in_the_apis_order() -> None:
    """A page on which all have the same change is followed by the next; this relies on the API's order."""
    shop = ChangingList(dict.fromkeys(range(50), 1))
    shop.rng.random = lambda: 0.0  # type: ignore[method-assign]  # equal changes by id
    assert {record["id"] for record in read(shop.handle)} == set(range(50))


def test_a_page_of_strangers_is_not_trusted() -> None:
    """If all records of the last page have gone, the list is read again from further before."""
    shop = ChangingList({each: each for each in range(1, 41)}, [[], [-each for each in range(1, 9)]])
    assert {record["id"] for record in read(shop.handle)} == set(range(1, 41))
    assert [asked["offset"] for asked in shop.asked][:4] == ["0", "6", "2", "0"]


def test_a_list_that_never_stands_still_is_refused() -> None:
    """Reading ends with the reason instead of for ever."""
    rounds = [[*range(1, 41)] for _ in range(200)]
    with pytest.raises(RefusedError, match="changes so fast that it was begun again 5 times"):
        read(ChangingList({each: each for each in range(1, 41)}, rounds, most_equal=1).handle)


def answering(*bodies: Any, total: str | None = "99") -> Callable[[httpx.Request], httpx.Response]:
    left = list(bodies)
    headers = {} if total is None else {"X-Total": total}
    return lambda _: httpx.Response(200, json=left.pop(0) if len(left) > 1 else left[0], headers=headers)


def standing_still(rows: list[dict[str, Any]]) -> Callable[[httpx.Request], httpx.Response]:
    """Answers of a list that does not change, in pages of as many rows as are asked for."""

    def handle(request: httpx.Request) -> httpx.Response:
        start, size = int(request.url.params["offset"]), int(request.url.params["limit"])
        return httpx.Response(200, json=rows[start : start + size], headers={"X-Total": str(len(rows))})

    return handle


ROWS = [{"id": each, "changed": each} for each in range(8)]


@pytest.mark.parametrize(
    ("handler", "message"),
    [
        pytest.param(answering(ROWS), "is the page before it once more", id="the offset is ignored"),
        pytest.param(answering(ROWS[::-1]), "is not sorted by changed", id="the order is ignored"),
        pytest.param(answering([{"id": 1}]), "no record has id and changed", id="another list"),
        pytest.param(answering([]), "has 0 of 99 records", id="nothing, although there is something"),
        pytest.param(answering(ROWS[:1]), "has 1 of 99 records", id="pages of one record"),
        pytest.param(answering(ROWS, total=None), "has no header X-Total", id="the number was removed"),
        pytest.param(answering(ROWS, total="many"), "has no header X-Total", id="no number"),
        pytest.param(answering({"0": ROWS[0]}), "has no list at the top", id="an object"),
        pytest.param(answering(None), "has no list at the top", id="null"),
    ],
)
def test_what_is_no_such_list_is_refused(handler: Callable[[httpx.Request], httpx.Response], message: str) -> None:
    """Each says what is wrong."""
    with pytest.raises(RefusedError, match=message):
        read(handler)


@pytest.mark.parametrize("hidden", [{1}, {20}, {40}, {39, 40}, {7, 8, 9, 25}])
@pytest.mark.parametrize("size", [8, 15, 100])
def test_a_record_that_is_counted_and_on_no_page_keeps_no_others(hidden: set[int], size: int) -> None:
    """The shop counts records that it cannot show: the others are given, and the list is in doubt."""
    shop = ChangingList({each: each for each in range(1, 41)})

    def handle(request: httpx.Request) -> httpx.Response:
        answer = shop.handle(request)
        shown = [record for record in answer.json() if record["id"] not in hidden]
        return httpx.Response(200, json=shown, headers={"X-Total": "40"})

    given = set[int]()
    with pytest.raises(DoubtfulListError, match=f"the list ended after {40 - len(hidden)} of 40 records"):
        for page in pages(handle, size):
            given |= {record["id"] for record in page.items("")}
    assert given == set(range(1, 41)) - hidden
    assert len(shop.asked) < 50


def test_a_page_of_records_without_a_change_is_read() -> None:
    """Some have no time of a change: null at the beginning of the list, or no such member later."""
    rows = [{"id": each, "changed": None} for each in range(1, 13)] + [{"id": each} for each in range(20, 32)]
    rows.insert(12, {"id": 13, "changed": 1})
    assert {record["id"] for record in read(standing_still(rows), 5)} == {row["id"] for row in rows}


@pytest.mark.parametrize("wrong", ["soon", 5, "", True])
def test_a_record_with_a_wrong_change_ends_no_list(wrong: Any) -> None:
    """The page is compared by the other records' changes."""
    rows = [{"id": each, "changed": f"2026-11-{each:02}"} for each in range(1, 25)]
    rows[14] |= {"changed": wrong}
    assert {record["id"] for record in read(standing_still(rows), 8)} == {row["id"] for row in rows}


def test_pages_that_begin_elsewhere_are_refused() -> None:
    """Each overlaps the one before by more than it was asked for: the last one ends before the list does."""
    shop = ChangingList({each: each for each in range(1, 39)})

    def skewed(request: httpx.Request) -> httpx.Response:
        asked = dict(request.url.params)
        start = max(0, int(asked["offset"]) - 3)
        return shop.handle(httpx.Request("GET", request.url.copy_with(params={**asked, "offset": str(start)})))

    with pytest.raises(RefusedError, match="the list ended after 35 of 38 records"):
        read(skewed)


def test_records_without_a_place_are_passed_on() -> None:
    """One that lacks its id is the stream's business, and others join the pages."""
    odd = {"changed": 3}
    assert odd in read(answering([*ROWS[:4], odd], total="5"))


def test_pages_are_halved_down_to_two_records() -> None:
    """After a time-out fewer are asked for, and at least two, since one cannot overlap."""
    shop = ChangingList({each: each for each in range(1, 10)})

    def slow(request: httpx.Request) -> httpx.Response:
        return httpx.Response(504) if int(request.url.params["limit"]) > 2 else shop.handle(request)

    assert {record["id"] for record in read(slow, size=9)} == set(range(1, 10))
    assert {asked["limit"] for asked in shop.asked} == {"2"}
