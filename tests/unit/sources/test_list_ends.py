"""How lists end: by the word of the API, by a status, by the last page once more; and what only looks like an end."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import httpx
import pytest
from tests.unit.sources.test_pagination import client

from crossdock.errors import CrossdockError, RefusedError, RemoteError
from crossdock.reading.sources import api_client, list_evidence
from crossdock.reading.sources.list_evidence import DoubtfulListError, IncompleteListError
from crossdock.sources import AfterId, CursorInBody, Offset, PageNumber, Paginator, Stop

Handler = Callable[[httpx.Request], httpx.Response]
NUMBERED = PageNumber("/items")


def ids(first: int, last: int) -> list[dict[str, Any]]:
    return [{"id": number} for number in range(first, last + 1)]


def pages_of(records: int, size: int, after: Any, **beside: Callable[[bool], Any]) -> Handler:
    """A list by page number; *after* is a status, or "last" for the last page once more; *beside* gets is_last."""

    def handle(request: httpx.Request) -> httpx.Response:
        number, last = int(request.url.params["page"]), max(1, -(-records // size))
        if number > last and isinstance(after, int):
            return httpx.Response(after, json={"error": "no such page"} if after >= 400 else None)
        number = min(number, last) if after == "last" else number
        found = ids((number - 1) * size + 1, min(records, number * size))
        told = {name: value(number >= last) for name, value in beside.items()}
        return httpx.Response(200, json={"items": found, **told})

    return handle


def read(handle: Handler, paginator: Paginator, key: str | tuple[str, ...] = "id") -> tuple[int, CrossdockError | None]:
    """How many records were given, and why the list is not whole."""
    given = 0
    try:
        for page in client(handle).pages("/items", paginator=paginator, records="/items", key=key):
            given += len(page.items("/items"))
    except CrossdockError as error:
        return given, error
    return given, None


@pytest.mark.parametrize("status", [204, 400, 404, 410])
@pytest.mark.parametrize("beside", [{"has_more": lambda last: not last}, {"next": lambda last: None if last else 9}])
def test_a_page_that_says_it_is_the_last_one_may_be_followed_by_a_refusal(status: int, beside: Any) -> None:
    """The API's own word ends the list, whatever it answers to the page after it."""
    assert read(pages_of(6, 3, status, **beside), NUMBERED) == (6, None)


@pytest.mark.parametrize("beside", [{}, {"has_more": lambda _: False}, {"offset": lambda _: 0}])
def test_a_refusal_is_no_end_by_itself(beside: Any) -> None:
    """Neither is one after a page that said it was the last one, if others that said so were not."""
    given, error = read(pages_of(9, 3, 404, **beside), NUMBERED)
    assert (given, isinstance(error, RemoteError)) == (9, True)


@pytest.mark.parametrize(("records", "is_whole"), [(5, True), (6, False)])
def test_a_status_ends_a_list_after_a_page_that_is_not_full(records: int, is_whole: bool) -> None:
    """After a full one it may be a limit of the API, unless a total or number of pages agrees."""
    stop = Stop(statuses=frozenset({404}))
    given, error = read(pages_of(records, 3, 404), PageNumber("/items", size=3, stop=stop))
    assert (given, error is None) == (records, is_whole)
    assert is_whole or isinstance(error, DoubtfulListError)
    stated = pages_of(records, 3, 404, total=lambda _: records)
    assert read(stated, PageNumber("/items", total="/total", stop=stop)) == (records, None)


@pytest.mark.parametrize("status", [204, 304])
def test_nothing_has_changed(status: int) -> None:
    """Only if it is declared: an empty answer may be that of a proxy."""
    declared = PageNumber("/items", stop=Stop(statuses=frozenset({204, 304})))
    assert read(lambda _: httpx.Response(status), declared) == (0, None)
    assert read(pages_of(3, 3, status), declared) == (3, None)
    _, error = read(lambda _: httpx.Response(status), NUMBERED)
    assert isinstance(error, RefusedError | RemoteError)


def test_a_status_in_place_of_the_first_page_is_an_error() -> None:
    """Such as that of a wrong path."""
    paginator = PageNumber("/items", size=3, stop=Stop(statuses=frozenset({404})))
    given, error = read(lambda _: httpx.Response(404, json={}), paginator)
    assert (given, isinstance(error, RemoteError)) == (0, True)


@pytest.mark.parametrize("records", [2, 3, 6, 7])
def test_the_last_page_may_be_repeated_for_any_higher_number(records: int) -> None:
    """As Magento does; with a total, also if there is one page only."""
    handle = pages_of(records, 3, "last", total_count=lambda _: records)
    paginator = PageNumber("/items", total="/total_count", stop=Stop(repeated=True))
    assert read(handle, paginator) == (records, None)
    wrong = pages_of(records, 3, "last", total_count=lambda _: records + 1)
    given, error = read(wrong, paginator)
    assert (given, isinstance(error, DoubtfulListError if records > 3 else RefusedError)) == (records, True)


@pytest.mark.parametrize(
    "paginator", [PageNumber("/items"), Offset("/items", "page", start=1), AfterId("/items", "page"), None]
)
def test_a_declared_last_page_ends_a_list(paginator: Any) -> None:
    """No other page is requested; a list that ends without such a page is in doubt."""
    asked, stop = count(), Stop(when=lambda page: page.at("/done") == "yes")
    made = CursorInBody("/cursor", "page") if paginator is None else paginator
    object.__setattr__(made, "stop", stop)

    def handle(_: httpx.Request) -> httpx.Response:
        number = next(asked)
        done = {"done": "yes"} if number == 1 else {}
        return httpx.Response(200, json={"items": ids(2 * number + 1, 2 * number + 2), "cursor": f"c{number}", **done})

    assert read(handle, made) == (4, None)
    given, error = read(lambda _: httpx.Response(200, json={"items": []}), made)
    assert (given, "stop.when" in str(error), isinstance(error, DoubtfulListError)) == (0, True, True)


def test_an_empty_page_with_a_cursor_ends_a_list_if_it_says_so() -> None:
    """Some APIs give another cursor with each page, with which changes are asked for later."""
    asked = count(1)

    def handle(_: httpx.Request) -> httpx.Response:
        number = next(asked)
        assert number < 4
        body = {"items": ids(1, 2) if number == 1 else [], "has_more": number == 1, "cursor": f"c{number}"}
        return httpx.Response(200, json=body)

    assert read(handle, CursorInBody("/cursor")) == (2, None)


@pytest.mark.parametrize("shown", ["same", "other order", "changed", "changed in other order"])
def test_the_same_records_under_ever_new_cursors_are_a_loop(shown: str) -> None:
    """Also if their order or a member is another one each time."""
    asked = count(1)

    def handle(_: httpx.Request) -> httpx.Response:
        number = next(asked)
        assert number < 200
        found = [{**each, "seen": number if "changed" in shown else 0} for each in ids(1, 5)]
        turn = number % 5 if "order" in shown else 0
        return httpx.Response(200, json={"items": found[turn:] + found[:turn], "cursor": f"c{number}"})

    _, error = read(handle, CursorInBody("/cursor"))
    assert "pagination loop" in str(error)
    assert not isinstance(error, DoubtfulListError)


def test_pages_without_records_under_ever_new_cursors_are_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A filter may leave out all records of some pages, and not of very many in a row."""
    monkeypatch.setattr(api_client, "MAX_EMPTY_PAGES", 20)
    asked = count(1)

    def handle(_: httpx.Request) -> httpx.Response:
        number = next(asked)
        found = ids(number, number) if number in {1, 20} else []
        return httpx.Response(200, json={"items": found, "cursor": f"c{number}"})

    given, error = read(handle, CursorInBody("/cursor"))
    assert (given, "without records: pagination loop" in str(error), next(asked)) == (2, True, 42)


@pytest.mark.parametrize("stated", ["pages", "one record"])
def test_a_loop_shows_where_several_records_have_one_key(monkeypatch: pytest.MonkeyPatch, stated: str) -> None:
    """Each answer has another time in its records; the same rows of other groups are no loop."""
    monkeypatch.setattr(list_evidence, "_IDLE_PAGES", 20)
    asked = count(1)

    def handle(_: httpx.Request) -> httpx.Response:
        number = next(asked)
        records = ids(1, 1 if stated == "one record" else 3)
        found = [{**each, "group": "A", "seen": number} for each in records]
        return httpx.Response(200, json={"items": found, "cursor": f"c{number}"})

    pages = client(handle).pages("/items", paginator=CursorInBody("/cursor"), records="/items", shared_key="group")
    with pytest.raises(IncompleteListError, match="pagination loop"):
        list(pages)
    assert next(asked) == 23


@pytest.mark.parametrize("groups", [1, 40])
def test_rows_of_few_groups_are_no_loop(monkeypatch: pytest.MonkeyPatch, groups: int) -> None:
    """A stock list by warehouse has no new key for long, and orders may have the same lines."""
    monkeypatch.setattr(list_evidence, "_IDLE_PAGES", 5)

    def handle(request: httpx.Request) -> httpx.Response:
        number = int(request.url.params.get("cursor", 1))
        first = number if groups == 1 else 0
        found = [{"group": number % groups, "sku": first * 3 + place, "quantity": 1} for place in range(3)]
        return httpx.Response(200, json={"items": found, "cursor": number + 1 if number < 40 else None})

    paginator = CursorInBody("/cursor")
    pages = list(client(handle).pages("/items", paginator=paginator, records="/items", shared_key="group"))
    assert len(pages) == 40


def lengths(paginator: Paginator, *sizes: int) -> CrossdockError | None:
    """Why a list with pages of these lengths, and then a 404, is not whole."""

    def handle(request: httpx.Request) -> httpx.Response:
        number = int(request.url.params["page"])
        if number > len(sizes):
            return httpx.Response(404, json={"error": "no such page"})
        first = sum(sizes[: number - 1]) + 1
        return httpx.Response(200, json={"items": ids(first, first + sizes[number - 1] - 1)})

    return read(handle, paginator)[1]


@pytest.mark.parametrize(
    ("sizes", "is_whole"),
    [
        ((2,), True),
        ((3, 3, 2), True),
        ((10, 2), True),
        ((3, 2, 3, 2), False),
        ((2, 2), False),
        ((2, 3, 1), False),
        ((3, 3), False),
    ],
)
def test_a_short_page_shows_the_end_only_where_no_other_page_is_short(sizes: tuple[int, ...], is_whole: bool) -> None:
    """A filter of the API shortens pages in the middle, and a gateway may refuse the next one."""
    paginator = PageNumber("/items", size=3, stop=Stop(statuses=frozenset({404})))
    assert (lengths(paginator, *sizes) is None) is is_whole


def test_an_api_may_give_fewer_records_than_are_asked_for() -> None:
    """Its pages are as long as it wants then, and only a shorter one shows the end."""
    paginator = PageNumber("/items", size=250, stop=Stop(statuses=frozenset({404})))
    assert lengths(paginator, 4, 4, 1) is None
    assert isinstance(lengths(paginator, 4, 4, 4), DoubtfulListError)
