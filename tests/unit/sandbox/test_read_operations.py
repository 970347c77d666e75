from __future__ import annotations

import pytest
from tests.unit.sandbox.raw import (
    BINS,
    CUSTOMERS,
    ManualTime,
    Raw,
    assert_problem,
    exact,
)


def test_a_list_is_walked_in_pages_of_what_changed(raw: Raw, clock: ManualTime) -> None:
    """Pages follow the last change: a resource that changes meanwhile appears again, and none is missed."""
    names = []
    for number in range(5):
        names.append(raw.make(BINS, f'{{"externalId":"{number}","code":"c","warehouse":"w"}}'))
        clock.now += 1
    first = exact(raw("GET", f"{BINS}?limit=2"))
    assert [each["id"] for each in first["data"]] == names[:2]
    raw("PATCH", f"{BINS}/{names[0]}", '{"zone":"z"}')
    seen, cursor = [], first["nextCursor"]
    while cursor is not None:
        page = exact(raw("GET", f"{BINS}?limit=2&cursor={cursor}"))
        seen += [each["id"] for each in page["data"]]
        cursor = page["nextCursor"]
    assert seen == [*names[2:], names[0]]
    late = exact(raw("GET", f"{BINS}?updatedSince=2027-01-15T09:00:03%2B01:00"))
    assert [each["id"] for each in late["data"]] == [*names[3:], names[0]]
    assert exact(raw("GET", CUSTOMERS)) == {"data": [], "nextCursor": None}


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=1001",
        "limit=x",
        "limit=%C2%B2",
        "cursor=???",
        "cursor=YWJj",
        "cursor=20270115080000000000.9999999999999999999",
        "updatedSince=yesterday",
        "updatedSince=2027-01-01T00:00:00",
        "updatedSince=2027-02-30T00:00:00Z",
        "updatedSince=0001-01-01T00:00:00%2B23:59",
        "updated_since=2027-01-01T00:00:00Z",
    ],
)
def test_a_malformed_query_is_refused(raw: Raw, query: str) -> None:
    """A malformed or unknown parameter is 400 and never ignored."""
    assert_problem(raw("GET", f"{BINS}?{query}"), 400)
