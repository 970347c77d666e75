"""How lists end: by the word of the API, by a status, by the last page once more; and what only looks like an end."""

from __future__ import annotations

import base64
from collections.abc import Callable
from itertools import count
from typing import Any

import httpx
import pytest
from tests.unit.sources.test_pagination import client

from crossdock.errors import CrossdockError, RefusedError, RemoteError
from crossdock.reading.sources import list_completeness_evidence, paginated_api_client
from crossdock.reading.sources.list_completeness_evidence import DoubtfulListError, IncompleteListError
from crossdock.sources import AfterId, CursorInBody, LinkHeader, NextUrl, Offset, PageNumber, Paginator, Stop

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


@pytest.mark.parametrize("status", [404, 400])
@pytest.mark.parametrize("statuses", [set(), {404, 400}])
@pytest.mark.parametrize("tells_of_more", [False, True])
def test_a_refusal_after_the_stated_number_of_pages_is_no_end_if_the_last_one_tells_of_more(
    status: int, statuses: set[int], *, tells_of_more: bool
) -> None:
    """The number of pages may be wrong, or the page cut."""
    paginator = PageNumber("/items", pages="/pages", stop=Stop(statuses=frozenset(statuses)))
    handle = pages_of(6, 3, status, pages=lambda _: 2, has_more=lambda last: tells_of_more or not last)
    given, error = read(handle, paginator)
    assert (given, isinstance(error, DoubtfulListError)) == (6, tells_of_more)


@pytest.mark.parametrize("beside", [{}, {"has_more": lambda _: False}, {"offset": lambda _: 0}])
def test_a_refusal_is_no_end_by_itself(beside: Any) -> None:
    """Neither is one after a page that said it was the last one, if others that said so were not."""
    given, error = read(pages_of(9, 3, 404, **beside), NUMBERED)
    assert (given, isinstance(error, RemoteError)) == (9, True)


@pytest.mark.parametrize("records", [1, 5, 6])
def test_a_status_ends_a_list_only_where_its_end_is_stated(records: int) -> None:
    """It may be an error or a limit of the API, also after a page that is shorter than the others."""
    stop = Stop(statuses=frozenset({404}))
    given, error = read(pages_of(records, 3, 404), PageNumber("/items", size=3, stop=stop))
    assert (given, isinstance(error, DoubtfulListError)) == (records, True)
    stated = pages_of(records, 3, 404, total=lambda _: records)
    assert read(stated, PageNumber("/items", total="/total", stop=stop)) == (records, None)


@pytest.mark.parametrize(
    ("records", "refused", "is_whole"),
    [(6, set(), True), (5, set(), True), (9, {3}, False), (9, {3, 4}, False), (9, {3, 4, 5}, False)],
)
@pytest.mark.parametrize("size", [3, None])
def test_below_a_declared_limit_a_status_ends_a_list_if_it_comes_again(
    records: int, refused: set[int], size: int | None, *, is_whole: bool
) -> None:
    """The last page is asked for once more, and then the one after it: whatever was an error is over, or goes on."""
    asked, listed = count(1), pages_of(records, 3, 404)

    def handle(request: httpx.Request) -> httpx.Response:
        return httpx.Response(404, json={}) if next(asked) in refused else listed(request)

    stop = Stop(statuses=frozenset({404}))
    given, error = read(handle, PageNumber("/items", size=size, cap=100, stop=stop))
    assert (given, error is None) == (min(records, 6), is_whole)


@pytest.mark.parametrize("status", [204, 304])
def test_nothing_has_changed(status: int) -> None:
    """Only if it is declared: an empty answer may be that of a proxy."""
    declared = PageNumber("/items", stop=Stop(statuses=frozenset({204, 304})))
    assert read(lambda _: httpx.Response(status), declared) == (0, None)
    given, error = read(pages_of(3, 3, status), declared)
    assert (given, error is None) == (3, status == 204), "a later page may be unchanged, and those after it not"
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
    monkeypatch.setattr(paginated_api_client, "MAX_EMPTY_PAGES", 20)
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
    monkeypatch.setattr(list_completeness_evidence, "_IDLE_PAGES", 20)
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
    monkeypatch.setattr(list_completeness_evidence, "_IDLE_PAGES", 5)

    def handle(request: httpx.Request) -> httpx.Response:
        number = int(request.url.params.get("cursor", 1))
        first = number if groups == 1 else 0
        found = [{"group": number % groups, "sku": first * 3 + place, "quantity": 1} for place in range(3)]
        return httpx.Response(200, json={"items": found, "cursor": number + 1 if number < 40 else None})

    paginator = CursorInBody("/cursor")
    pages = list(client(handle).pages("/items", paginator=paginator, records="/items", shared_key="group"))
    assert len(pages) == 40


def cut_pages(
    records: int, most: int, *, at_asked: bool = False, ignored: bool = False, total: bool = False
) -> Handler:
    """A server that gives at most *most* records, whatever is asked for.

    Args:
        at_asked: Pages begin where those of the asked size would.
        ignored: The server ignores the size.
        total: It states the number of the records of a page as that of all.
    """

    def handle(request: httpx.Request) -> httpx.Response:
        params = request.url.params
        asked = most if ignored else int(params["limit"])
        size = min(asked, most)
        number = int(params.get("page", 1))
        start = (number - 1) * (asked if at_asked else size)
        found = ids(start + 1, min(records, start + size))
        is_more = asked <= most and start + size < records  # it counts with what was asked for
        body = {"items": found, "next": f"/api/items?page={number + 1}&limit={asked}" if is_more else None}
        return httpx.Response(200, json=body | ({"total": len(found)} if total else {}))

    return handle


@pytest.mark.parametrize("total", [False, True])
@pytest.mark.parametrize(
    ("paginator", "records", "server", "is_whole"),
    [
        (PageNumber("/items", size=250), 130, {"at_asked": True}, False),
        (PageNumber("/items", size=250), 100, {"at_asked": True}, True),
        (PageNumber("/items", size=250), 600, {"at_asked": True}, False),
        (PageNumber("/items", size=250), 250, {}, True),
        (PageNumber("/items", size=250), 250, {"ignored": True}, True),
        (PageNumber("/items", size=100), 250, {"at_asked": True}, True),
        (Offset("/items", "skip", size=250), 100, {}, True),
        (Offset("/items", "skip", size=250), 130, {}, True),
        (NextUrl("/next"), 130, {}, False),
        (NextUrl("/next"), 100, {}, True),
        (NextUrl("/next"), 99, {}, True),
        (Paginator(), 130, {}, False),
        (Paginator(), 100, {"ignored": True}, True),
    ],
)
def test_a_list_whose_only_page_the_server_has_cut_is_in_doubt(
    paginator: Paginator, records: int, server: dict[str, bool], *, is_whole: bool, total: bool
) -> None:
    """Servers give 100 records where 250 are asked for, and tell of no other; in smaller pages they show them."""
    handle = cut_pages(records, 100, total=total, **server)
    if isinstance(paginator, Offset):
        paginator, handle = Offset("/items", "skip", size=250), whole_by_offset(records)
    params = {} if isinstance(paginator, PageNumber | Offset) else {"limit": 250}
    pages = client(handle).pages("/items", params, paginator=paginator, records="/items", key="id")
    given, error = 0, None
    try:
        given = sum(len(page.items("/items")) for page in pages)
    except DoubtfulListError as raised:
        error = raised
    assert (error is None) is is_whole
    assert not is_whole or given == records
    assert is_whole or "the server gives 100 of the 250 records that limit asks for" in str(error)


@pytest.mark.parametrize("paginator", [Paginator(), LinkHeader(), NextUrl("/next"), CursorInBody("/next")], ids=type)
@pytest.mark.parametrize(
    ("records", "param", "beside", "is_whole"),
    [
        (250, "limit", {}, False),
        (250, "per_page", {}, False),
        (100, "limit", {}, True),
        (99, "limit", {}, True),
        (250, "how_many", {}, True),  # by no usual name, so that nothing shows it
        (250, "limit", {"has_more": False}, True),  # the API says that it is whole
    ],
    ids=str,
)
def test_a_list_that_a_server_cuts_by_default_is_in_doubt(
    paginator: Paginator, records: int, param: str, beside: dict[str, Any], *, is_whole: bool
) -> None:
    """Directus and Parse Server list 100 records where no size is asked for, and tell of no other."""

    def handle(request: httpx.Request) -> httpx.Response:
        given = request.url.params
        if unknown := {*given} - {param}:
            return httpx.Response(400, json={"message": f"unknown: {unknown}"})
        return httpx.Response(200, json={"items": ids(1, min(records, int(given.get(param, 100)))), **beside})

    pages = client(handle).pages("/items", paginator=paginator, records="/items", key="id")
    if is_whole:
        assert len(list(pages)) == 1
    else:
        with pytest.raises(DoubtfulListError, match=f"its only page has 100 records, and has others if {param} asks"):
            list(pages)


@pytest.mark.parametrize(("param", "requests"), [("limit", 20 + 20 * 2), ("how_many", 20 + 8)])
def test_lists_of_single_records_are_asked_for_the_parameter_once(param: str, requests: int) -> None:
    """An API heeds the same one below each order, or none: orders with 20 lines take no request for each name."""
    seen = list[httpx.Request]()

    def handle(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, json={"items": ids(1, min(20, int(request.url.params.get(param, 20))))})

    api = client(handle)
    for number in range(20):
        list(api.pages(f"/orders/{number}/lines", paginator=Paginator(), records="/items", key="id"))
    assert len(seen) == requests


@pytest.mark.parametrize("answer", [httpx.Response(500), httpx.Response(200, json={"items": ids(1, 101)})])
def test_a_parameter_that_an_api_does_not_know_shows_no_cut(answer: httpx.Response) -> None:
    """An API that fails with it is not out of order, and one that ignores it may have a new record meanwhile."""
    pages = client(lambda request: answer if request.url.query else httpx.Response(200, json={"items": ids(1, 100)}))
    assert len(list(pages.pages("/items", paginator=Paginator(), records="/items", key="id"))) == 1


def whole_by_offset(records: int) -> Handler:
    def handle(request: httpx.Request) -> httpx.Response:
        start = int(request.url.params["skip"])
        return httpx.Response(200, json={"items": ids(start + 1, min(records, start + 100))})

    return handle


class Bookmarked:
    """A list of texts that an API cuts off after a record, as long as it has this record, and empty after another.

    Attributes:
        gone: How many pages are given before the last record of the latest one is deleted; None if none is.
    """

    def __init__(self, records: int, size: int, gone: int | None) -> None:
        self.ids = [f"r{40 + 7 * number:03}" for number in range(records)]  # no positions
        self.size, self.gone, self.asked = size, gone, list[str]()

    def __call__(self, request: httpx.Request) -> httpx.Response:
        after = request.url.params.get("after", "")
        self.asked.append(after)
        if len(self.asked) - 1 == self.gone and after in self.ids:
            self.ids.remove(after)
        start = 0 if not after else self.ids.index(after) + 1 if after in self.ids else len(self.ids)
        return httpx.Response(200, json={"items": [{"id": each} for each in self.ids[start : start + self.size]]})


class Linked(Bookmarked):
    """The same list, whose answers tell where it goes on: by the id of their last record, or by a text with it."""

    def __init__(self, records: int, size: int, gone: int | None, write: Callable[[str], str] = str) -> None:
        super().__init__(records, size, gone)
        self.write, self.written = write, dict[str, str]()

    def __call__(self, request: httpx.Request) -> httpx.Response:
        after = request.url.params.get("after", "")
        asked = request.url.copy_set_param("after", self.written.get(after, after))
        body = super().__call__(httpx.Request("GET", asked)).json()
        last = body["items"][-1]["id"] if body["items"] else None
        following = None
        if last is not None:
            following = self.write(last)
            self.written[following] = last
        link = following and f"/api/items?after={following}"
        return httpx.Response(200, json={**body, "cursor": following, "link": link})


AFTER = AfterId("/items", "after")
MARKED = CursorInBody("/cursor", "after")


@pytest.mark.parametrize(("records", "gone"), [(9, 1), (9, 2), (9, 3), (3, 1)])
def test_a_list_whose_last_record_is_deleted_meanwhile_may_be_cut(records: int, gone: int) -> None:
    """An API that finds no such record finds none after it, either."""
    given, error = read(Bookmarked(records, 3, gone), AFTER)
    assert given == 3 * gone
    assert isinstance(error, DoubtfulListError)
    assert "the last record of it is not listed any more" in error.message


@pytest.mark.parametrize("paginator", [MARKED, NextUrl("/link")])
@pytest.mark.parametrize("gone", [None, 1, 2])
def test_a_link_or_cursor_may_name_the_last_record(paginator: Paginator, gone: int | None) -> None:
    """An API that finds nothing after a record that is gone says in the same answer that no page follows."""
    given, error = read(Linked(9, 3, gone), paginator)
    assert given == 3 * (gone or 3)
    assert isinstance(error, DoubtfulListError) == (gone is not None)


@pytest.mark.parametrize(
    ("form", "is_encoded"),
    [("{}:asc", False), ("{}", True), ('{{"id": "{}", "order": "asc"}}', True), ("Item:{}", True)],
)
@pytest.mark.parametrize("gone", [None, 1, 2])
def test_a_cursor_may_name_the_last_record_in_base64_or_beside_other_things(
    form: str, gone: int | None, *, is_encoded: bool
) -> None:
    """Servers make it of the record's id, and find nothing after a record that is gone."""

    def write(last: str) -> str:
        text = form.format(last)
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=") if is_encoded else text

    given, error = read(Linked(9, 3, gone, write), MARKED)
    assert given == 3 * (gone or 3)
    assert isinstance(error, DoubtfulListError) == (gone is not None)


@pytest.mark.parametrize(
    ("records", "paginator", "requests"),
    [
        (9, AFTER, 5),  # the third page once more
        (8, AFTER, 4),  # it is not full
        (3, AFTER, 3),
        (2, AfterId("/items", "after", size=3), 2),
        (0, AFTER, 1),
    ],
)
def test_a_last_page_by_text_is_read_once_more_only_if_it_is_full(
    records: int, paginator: Paginator, requests: int
) -> None:
    """One that is shorter than the others shows that no record follows."""
    api = Linked(records, 3, None)
    assert read(api, paginator) == (records, None)
    assert len(api.asked) == requests


class Guarded:
    """A list by number or offset that leaves out the records of a page that the user must not see."""

    def __init__(self, records: int, size: int, hidden: set[int]) -> None:
        self.records, self.size, self.hidden, self.asked = records, size, hidden, 0

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked += 1
        query = request.url.params
        start = int(query["offset"]) if "offset" in query else self.size * (int(query["page"]) - 1)
        shown = [each for each in range(start, min(start + self.size, self.records)) if each not in self.hidden]
        return httpx.Response(200, json={"items": [{"id": each} for each in shown]})


@pytest.mark.parametrize("paginator", [NUMBERED, Offset("/items", size=3)])
@pytest.mark.parametrize(("hidden", "given"), [({6, 7, 8}, 6), ({3, 4, 5}, 3), ({1, 6, 7, 8}, 5), ({1, 5, 6, 7, 8}, 4)])
def test_a_page_of_which_all_records_are_hidden_is_not_the_last_one(
    paginator: Paginator, hidden: set[int], given: int
) -> None:
    """Pages of different lengths, or a full one before it, do not show that no other follows."""
    if isinstance(paginator, PageNumber):
        paginator = PageNumber("/items", size=3)
    found, error = read(Guarded(12, 3, hidden), paginator)
    assert isinstance(error, DoubtfulListError), (found, error)
    assert found <= given or error.code == "list_changed"


@pytest.mark.parametrize(("records", "requests"), [(0, 1), (2, 2), (3, 3), (7, 4), (9, 5)])
def test_the_page_after_an_empty_one_is_requested_only_after_a_full_one(records: int, requests: int) -> None:
    """A page that is shorter than those before it was the last one."""
    api = Guarded(records, 3, set())
    assert read(api, PageNumber("/items", size=3)) == (records, None)
    assert api.asked == requests
