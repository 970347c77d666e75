"""A list is complete by the word of the API, compared with the distinct records that were read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import httpx
import pytest
from tests.unit.sources.test_pagination import client

from crossdock.errors import RefusedError, RemoteError
from crossdock.reading.sources.api_requests_and_answers import ApiAnswer
from crossdock.reading.sources.list_completeness_evidence import (
    DoubtfulListError,
    IncompleteListError,
    ListEvidence,
    OpenLists,
)
from crossdock.sources import AfterId, CursorInBody, LinkHeader, NextUrl, Offset, PageNumber, Paginator, Stop

ITEMS = [{"id": number} for number in range(1, 10)]


def page(ids: Sequence[int | str], total: int | str | None = None, **members: Any) -> dict[str, Any]:
    """A body whose records say when they were shown."""
    shown = [{"id": each, "shown_at": members.get("at", 0)} for each in ids]
    return {"items": shown, **({} if total is None else {"total": total}), **members}


def read(
    paginator: Paginator, *bodies: dict[str, Any] | int, key: str | tuple[str, ...] = "id"
) -> tuple[list[Any], int]:
    """The ids that are read of these answers in turn, the last one for ever, and the number of requests.

    A whole number is the status of an answer.
    """
    seen: list[httpx.Request] = []

    def handle(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        body = bodies[min(len(seen), len(bodies)) - 1]
        return httpx.Response(body, json={}) if isinstance(body, int) else httpx.Response(200, json=body)

    pages = client(handle).pages("/items", paginator=paginator, records="/items", key=key)
    return [item["id"] for each in pages for item in each.items("/items")], len(seen)


OFFSET, NUMBER = Offset("/items", total="/total"), PageNumber("/items", pages="/pages")


@pytest.mark.parametrize(
    ("paginator", "bodies", "requests"),
    [
        (OFFSET, [page([1, 2], 3), page([3], 3), page([], 3)], 3),
        (OFFSET, [page([1, 2], 2), page([], 2)], 2),  # it could be the total of a page
        (OFFSET, [page([1, 2], 4), page([3, 4], 4), page([])], 3),
        (OFFSET, [page([1, 2], 4), page([3, 4], 4), 404], 3),  # some APIs refuse the page after the last one
        (OFFSET, [page([1, 2], 4), page([3, 4], 4), page([3, 4], 4)], 3),  # others give the last one again
        (OFFSET, [page([], 0)], 1),
        (NUMBER, [page([1, 2], pages=2), page([3], pages=2), page([])], 3),
        (NUMBER, [page([1, 2], pages=2), page([3, 4], pages=2), 400], 3),
        (NUMBER, [page([1, 2], pages=2), page([3, 4], pages=2), page([3, 4], pages=2)], 3),
        (NUMBER, [page([1, 2], pages=2), page([3], pages=2), {"items": None}], 3),  # or have no list there
        (NUMBER, [page([1, 2], pages=1), page([3], pages=1), page([4], pages=1), page([])], 4),  # too few
        (CursorInBody("/next", total="/total"), [page([1], "2", next="a"), page([2], "2")], 2),
        (CursorInBody("/next", total="/total"), [page([1], 2, next="a"), page([2], 3)], 2),  # one was created
        (CursorInBody("/next"), [page([1], next=""), page([1])], 1),
        (CursorInBody("/meta/next_cursor"), [page([1], meta={"next_cursor": 0}), page([1])], 1),
        (CursorInBody("/nextOffset"), [page([1], nextOffset=1), page([2], nextOffset="-1"), page([1])], 2),
        (CursorInBody("/cursor"), [page([1], cursor=7), page([2], cursor=0), page([1])], 2),
    ],
)
def test_a_list_ends_where_the_api_says_so(
    paginator: Paginator, bodies: list[dict[str, Any] | int], requests: int
) -> None:
    """By a total of the distinct records or a number of pages, after which nothing new follows."""
    expected = sorted({item["id"] for body in bodies if isinstance(body, dict) for item in body["items"] or ()})
    found, number = read(paginator, *bodies)
    assert sorted(set(found)) == expected
    assert number == requests


@pytest.mark.parametrize(
    ("paginator", "bodies", "message"),
    [
        (OFFSET, [page([1, 2], 3, at=1), page([1, 2], 3, at=2)], "only records that earlier pages had"),
        (OFFSET, [page([1, 2], 2, at=1), page([1, 2], 2, at=2)], "only records that earlier pages had"),
        (NUMBER, [page([1, 2], pages=2, at=1), page([1, 2], pages=2, at=2)], "only records that earlier pages had"),
        (PageNumber("/items"), [page([1, 2]), page([2, 1])], "only records that earlier pages had"),
        (CursorInBody("/next"), [page([1], next="a"), page([1], next="b")], "only records that earlier pages had"),
        (CursorInBody("/next"), [page([1], next="a"), page([2], next="b"), page([3], next="a")], "earlier pages"),
        (
            CursorInBody("/offset"),
            [page([1], offset=0), page([1], offset=0)],
            "earlier pages",
        ),  # it is that of the page
        (NextUrl("/next"), [page([1], next="/api/b"), page([2], next="/api/items")], "earlier pages"),
        (AfterId("/items", "after"), [page([1, 2]), page([2, 1])], "only records that earlier pages had"),
        (AfterId("/items", "after"), [page([2, 9, 4]), page([10])], "not sorted by id"),
        (OFFSET, [page([1, 2], "many")], "no whole number at /total"),
    ],
)
def test_a_list_that_is_not_whole_is_refused(
    paginator: Paginator, bodies: list[dict[str, Any] | int], message: str
) -> None:
    """A page that brings nothing new is no end of a list."""
    with pytest.raises(RefusedError, match=message) as refused:
        read(paginator, *bodies)
    assert not isinstance(refused.value, DoubtfulListError)


@pytest.mark.parametrize(
    ("paginator", "bodies", "message"),
    [
        (OFFSET, [page([1, 2], 9), page([3], 9), page([], 9)], "ended after 3 of 9 records"),
        (OFFSET, [page([], 9)], "ended after 0 of 9 records"),
        (OFFSET, [page([1, 2], 2), page([3], 2), page([], 2)], "has 3 records, although the API says 2"),
        (OFFSET, [page([1, 2], 3), page([3], 3), page([4], 3), page([])], "has 4 records, although the API says 3"),
        (
            PageNumber("/items", pages="/pages", total="/total"),
            [page([1, 2], 5, pages=2), page([3], 5, pages=2)],
            "3 of 5",
        ),
        (CursorInBody("/next", total="/total"), [page([1], 3, next="a"), page([2], 3)], "ended after 2 of 3 records"),
    ],
)
def test_a_list_with_another_number_of_records_is_in_doubt(
    paginator: Paginator, bodies: list[dict[str, Any] | int], message: str
) -> None:
    """A record that is counted and on no page does not keep the others from delivery."""
    with pytest.raises(DoubtfulListError, match=message):
        read(paginator, *bodies)


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(200, json={"items": [], "total": 2, "success": False}),
        httpx.Response(200, json={"items": [], "total": 2, "errors": [{"message": "busy"}]}),
        httpx.Response(200, json={"error": "out of memory"}),
        httpx.Response(200, content=b"<html>down for maintenance</html>"),
        httpx.Response(207, json={"items": []}),
        httpx.Response(206, json={"items": []}),
        httpx.Response(302, headers={"location": "/login"}),
        httpx.Response(409, json={}),
    ],
)
def test_a_request_that_failed_does_not_end_a_list(answer: httpx.Response) -> None:
    """The total is that of the first page, so that only the next one shows whether there are more records."""
    answers = iter([httpx.Response(200, json=page([1, 2], 2)), answer])
    pages = client(lambda _: next(answers)).pages("/items", paginator=OFFSET, records="/items", key="id")
    assert [item["id"] for item in next(pages).items("/items")] == [1, 2]
    with pytest.raises((RefusedError, RemoteError)):
        next(pages)


def test_a_page_that_comes_again_is_no_end_of_a_list_with_a_next_page() -> None:
    """The number of pages may be that of one, and a page that comes again may be an error of the API."""
    again = PageNumber("/items", pages="/pages", stop=Stop(repeated=True))
    for body in (page([1, 2], pages=1), page([1, 2], pages=1, next=None)):
        assert read(again, body) == ([1, 2], 2)
    with pytest.raises(DoubtfulListError, match="/next tells of a next page"):
        read(again, page([1, 2], pages=1, next="abc"))


@pytest.mark.parametrize(
    "bodies",
    [
        [page([1, 2], 5), page([4, 5], 4), page([])],  # one was deleted, and 3 moved to the first page
        [page([1, 2], 4), page([4, 1], 4), page([])],  # 1 was changed and moved to the end, 3 to the first page
        [page([1, 2]), page([4, 1]), page([])],
        [page([1, 2], 4), page([2, 3], 4), page([4], 4), page([])],  # all were read, which nothing shows
        [page([1, 2], 3), page([2, 4], 3), page([])],  # the total is one too small, and fits what is left
        [page([2, 3], 3), page([3, 4], 4), page([])],
    ],
)
def test_a_list_that_changed_while_it_was_read_is_no_evidence(bodies: list[dict[str, Any] | int]) -> None:
    """Another total, or a record on two pages, shows that the pages may have passed over others."""
    total = "/total" if "total" in str(bodies[0]) else None
    with pytest.raises(DoubtfulListError, match="changed while it was read"):
        read(Offset("/items", total=total), *bodies)


def test_without_a_key_whole_records_are_compared() -> None:
    """Equal rows on two pages are rows of their own, unless pages are cut off by position: one may be read twice."""
    rows = [page([1, 1], 4), page([1, 2], 4)]
    with pytest.raises(DoubtfulListError):
        read(OFFSET, *rows, page([], 4))
    with pytest.raises(IncompleteListError, match="1 were on two pages") as refused:
        read(OFFSET, *rows, page([], 4), key=())
    assert not isinstance(refused.value, DoubtfulListError)
    assert "nothing of it is delivered" in (refused.value.hint or "")
    whole = page([1, 1], 4, next="r1"), page([1, 2], 4)
    assert read(CursorInBody("/next", total="/total"), *whole, key=())[0] == [1, 1, 1, 2]


def test_records_that_no_paginator_names_are_found() -> None:
    """The only list of objects in a page has the records; several are not compared."""
    body = {"facets": ["a"], "data": {"rows": ITEMS}}

    def linked(request: httpx.Request) -> httpx.Response:
        number = int(request.url.params.get("p", 1))
        return httpx.Response(200, headers={"link": f'</api/items?p={number + 1}>; rel="next"'}, json=body)

    with pytest.raises(IncompleteListError, match="only records that earlier pages had"):
        list(client(linked).pages("/items", paginator=LinkHeader()))


def test_many_records_take_little_memory() -> None:
    """They are compared by hashes, and equal keys of other parts are other keys."""
    evidence = ListEvidence(("a", "b"), counted=True)
    assert all(evidence.add_page([{"a": f"{number}", "b": "x"}]) for number in range(1_000))
    assert evidence.add_page([{"a": "1:1", "b": "x"}, {"a": "1", "b": "1:x"}])
    assert not evidence.add_page([{"a": "7", "b": "x", "more": 1}])
    evidence.raise_if_end_is_doubtful(ApiAnswer("https://shop.example", None))


def test_a_single_page_with_a_link_to_the_next_is_refused() -> None:
    """The API says that there is more, whatever is declared; without the link there is one page."""
    link = {"Link": '</api/items?page=2>; rel="next"'}

    def answer(_: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json=page([1]), headers=link)

    with pytest.raises(RefusedError, match="has a link to a next page"):
        list(client(answer).pages("/items", paginator=Paginator()))
    link.clear()
    assert len(list(client(answer).pages("/items", paginator=Paginator()))) == 1


def test_a_record_that_changed_may_be_listed_again() -> None:
    """Where the API marks the places of pages, it moves to their end; the same page once more is refused."""
    cursor = CursorInBody("/next")
    again = page([1, 2], next="a"), page([3, 4], next="b"), page([2], at=7)
    assert read(cursor, *again)[0] == [1, 2, 3, 4, 2]
    for bodies in (
        (page([1, 2], next="a"), page([3, 4], next="b"), page([2])),  # it is as before
        (page([1, 2], next="a"), page([3, 4], next="b"), page([1, 2], at=7)),  # an earlier page, with another time
        (page([1], next="a", at=1), page([1], at=2)),
    ):
        with pytest.raises(IncompleteListError, match="only records that earlier pages had"):
            read(cursor, *bodies)


def test_a_list_that_is_not_in_the_order_of_its_ids_is_in_doubt() -> None:
    """A record that comes again, after the id that was asked from, shows that others were passed over."""
    after = AfterId("/items", "after")
    with pytest.raises(DoubtfulListError, match="1 records came again unchanged after later ones"):
        read(after, page(["f", "c"]), page(["f", "e"]), page(["g"]), page([]))
    last = page(["c", "e"])  # of some APIs, each page begins with the record that is asked from
    assert read(after, page(["f", "c"]), last, page([]), last)[0] == ["f", "c", "c", "e"]
    last = {"items": [*page(["a"], at=7)["items"], *page(["c"])["items"]]}  # one of them has changed meanwhile
    assert read(after, page(["a", "b"]), last, page([]), last)[0] == ["a", "b", "a", "c"]


@pytest.mark.parametrize(
    ("paginator", "bodies", "is_read_again"),
    [
        (CursorInBody("/next"), [page([1], next="k"), page([2])], True),
        (CursorInBody("/next", total="/total"), [page([1], 2, next="k"), page([2], 2)], False),
        (CursorInBody("/next", total="/total"), [page([1], 3, next="k"), page([2], 2)], True),  # one was deleted
        (CursorInBody("/next"), [page([1])], False),
        (AfterId("/items", "after"), [page([1]), page([2]), page([])], False),
    ],
)
def test_a_cursor_may_be_a_position(paginator: Paginator, bodies: list[dict[str, Any]], *, is_read_again: bool) -> None:
    """A list of several pages hides a record if one leaves it meanwhile, unless a steady total shows that none is."""
    left = list(bodies)
    api = client(lambda _: httpx.Response(200, json=left.pop(0)))
    with api._run.open_lists.attributing_lists_to_stream("a"):
        list(api.pages("/items", paginator=paginator, records="/items", key="id"))
    assert ("a" in api._run.open_lists.in_pages) == is_read_again


def test_an_open_list_is_that_of_its_reader() -> None:
    """A stream that reads between the pages of another one has lists of its own."""
    lists = OpenLists()
    with lists.attributing_lists_to_stream("a"):
        opened = lists.open_list(ListEvidence(counted=True))
        opened.__enter__()
        with lists.attributing_lists_to_stream("b"):
            assert "a" in lists
            assert "b" not in lists
    opened.__exit__(None, None, None)
    assert "a" not in lists


@pytest.mark.parametrize(
    ("number", "cap", "warned"), [(1_000, None, True), (1_001, None, False), (1_000, 2_000, False)]
)
def test_a_list_as_long_as_a_cut_one_is_a_warning(number: int, cap: int | None, *, warned: bool) -> None:
    """Some APIs end each list at a round number, and state it as the total."""
    ids = list(range(number))
    bodies = [page(ids[:600], number), page(ids[600:], number), page([])]
    api = client(lambda request: httpx.Response(200, json=bodies[min(int(request.url.params["offset"]) // 400, 2)]))
    list(api.pages("/items", paginator=Offset("/items", total="/total", cap=cap), records="/items", key="id"))
    assert any("exactly 1,000 records" in text for text in api._run.warnings) == warned


@pytest.mark.parametrize(
    ("headers", "text"),
    [
        ({"age": "7200"}, "a cache, and is 7,200 s old"),
        ({"X-Cache-Status": "HIT"}, "a cache (x-cache-status: HIT), and may be old"),
    ],
)
def test_caches_are_asked_for_what_the_api_has_now(headers: dict[str, str], text: str) -> None:
    """An answer that comes from one nevertheless is a warning, once in a list."""
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.headers["cache-control"])
        following = {"next": "a"} if len(asked) == 1 else {}
        return httpx.Response(200, json=page([len(asked)], **following), headers=headers)

    api = client(answer)
    with api._run.open_lists.attributing_lists_to_stream("shop.orders"):
        list(api.pages("/items", paginator=CursorInBody("/next"), records="/items", key="id"))
    assert asked == ["no-cache"] * 2
    warning = f"shop.orders: https://shop.example/api/items: the list comes from {text} [list_doubtful]"
    assert api._run.warnings == [warning]
