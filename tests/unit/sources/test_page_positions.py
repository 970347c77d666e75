"""Pages that an API cuts off by position are told by its links and cursors, whoever counts."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest

from crossdock.reading.sources.api_requests_and_answers import ApiRequest
from crossdock.reading.sources.list_completeness_evidence import PagingByPositionDetector

SIZE = 10
FIRST = ApiRequest("GET", "https://shop.example/api/items", {"limit": SIZE})


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def linked(query: Callable[[int], str]) -> list[ApiRequest]:
    return [ApiRequest("GET", f"https://shop.example/api/items?{query(number)}") for number in range(1, 6)]


def below(path: Callable[[int], str]) -> list[ApiRequest]:
    return [ApiRequest("GET", f"https://shop.example/api/items{path(number)}") for number in range(1, 6)]


def with_cursor(cursor: Callable[[int], str]) -> list[ApiRequest]:
    """The requests with the cursor after so many pages."""
    return [FIRST.with_page(cursor=cursor(number)) for number in range(1, 6)]


def found_after(requests: Sequence[ApiRequest]) -> int | None:
    """The number of requests that show it; None if none of them does."""
    positions = PagingByPositionDetector()
    steps = enumerate(pairwise([FIRST, *requests]), 1)
    found = [
        positions.add_request_and_detect_paging(request, following, SIZE * number)
        for number, (request, following) in steps
    ]
    return found.index(True) + 1 if True in found else None


@pytest.mark.parametrize(
    ("requests", "after"),
    [
        (linked(lambda number: f"page={number + 1}&limit=10"), 1),
        (linked(lambda number: f"p={number}"), 1),
        (linked(lambda number: f"from={number * SIZE}"), 1),
        (linked(lambda number: f"part={number + 1}"), 2),
        (with_cursor(lambda number: str(number + 1)), 2),
        (with_cursor(lambda number: str(number * SIZE)), 1),
        (with_cursor(lambda number: encoded(f"arrayconnection:{number * SIZE - 1}")), 1),
        (with_cursor(lambda number: encoded(f'{{"offset":{number * SIZE}}}').rstrip("=")), 1),
        (with_cursor(lambda number: encoded(f"page={number + 1}")), 2),
        (with_cursor(lambda number: encoded(f'{{"offset":{number * SIZE},"limit":{SIZE}}}')), 1),
        (with_cursor(lambda number: encoded(f"limit={SIZE}&page={number + 1}")), 1),
        (with_cursor(lambda number: str(number * SIZE + 1)), 1),
        (linked(lambda number: f"startIndex={number * SIZE + 1}&count=10"), 1),
        (linked(lambda number: f"limitstart={number * SIZE}&limit=10"), 1),
        (linked(lambda number: f"page%5Bnumber%5D={number + 1}&page%5Bsize%5D=10"), 1),
        (below(lambda number: f"/page/{number + 1}"), 1),
        (below(lambda number: f"/{number * SIZE}/10"), 1),
        (below(lambda number: f"/part/{number + 1}"), 2),
    ],
)
def test_positions_are_found(requests: Sequence[ApiRequest], after: int) -> None:
    """Numbers of pages or of records, bare or in Base64; of a parameter that could be anything by its second value."""
    assert found_after(requests) == after


@pytest.mark.parametrize(
    "requests",
    [
        linked(lambda number: f"since_id={4700 + 7 * number}&limit=10"),
        linked(lambda number: f"page_info={encoded(f'last_id:{9 * number},last_value:{3 * number}')}"),
        linked(lambda number: f"after=k{number}&limit=10&page=7&year=2026"),
        linked(lambda number: f"resultsPerPage=10&max_rows=10&after=k{number}"),
        below(lambda number: f"/after/k{number}/of/3"),
        with_cursor(lambda number: encoded(f'{{"last_id":{4700 + 9 * number},"at":"2026-11-10T{SIZE}:09:11"}}')),
        with_cursor(lambda number: encoded(f"order {number * 113}")),
        with_cursor(lambda number: "=" * number),
        with_cursor(lambda number: f"2026-11-{number:02}"),
        [],
    ],
)
def test_what_names_a_record_is_no_position(requests: Sequence[ApiRequest]) -> None:
    """Ids, keys, times, and parameters that stay as they are."""
    assert found_after(requests) is None
