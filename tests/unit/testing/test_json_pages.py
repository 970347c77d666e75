"""Lists of records in pages: found, reversed and without_records."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from crossdock.testing.lists_in_answers import (
    RecordList,
    outermost_lists,
    pages_with_reversed_lists,
    pages_without_some_records,
    possible_record_lists,
    value_at_path,
)

PAGES = st.lists(st.lists(st.integers(0, 9), max_size=4), min_size=1, max_size=5)


def test_lists_are_found_with_their_paths() -> None:
    """A list inside of another is part of its records."""
    page = {"data": {"orders": [{"lines": [1]}]}, "notes": [], "count": 1}
    assert dict(outermost_lists(page)) == {("data", "orders"): [{"lines": [1]}], ("notes",): []}
    assert value_at_path(page, ("data", "orders", 0, "lines")) == [1]
    assert value_at_path(page, ("data", "missing", "x")) is None


def test_records_may_be_inside_of_the_elements() -> None:
    """As in the edges of a GraphQL connection. What else an element has stays with its record."""
    page = {"data": {"x": {"edges": [{"cursor": "a", "node": {"id": 1}}, {"cursor": "b", "node": {"id": 2}}]}}}
    inside = RecordList(("data", "x", "edges"), ("node",))
    assert [*possible_record_lists(page)] == [RecordList(inside.path), inside]
    assert inside.records(page) == [{"id": 1}, {"id": 2}]
    (changed,) = pages_without_some_records([page], [inside], lambda item: item["id"] == 2)
    assert changed["data"]["x"]["edges"] == [{"cursor": "b", "node": {"id": 2}}]
    assert inside.element_with_replaced_record(inside.elements(page)[0], {"id": 3}) == {
        "cursor": "a",
        "node": {"id": 3},
    }


@given(PAGES, st.integers(0, 10))
def test_records_that_are_left_out_let_the_later_ones_move_up(contents: list[list[int]], least: int) -> None:
    """The order stays, no page grows, and none is empty before one that is not, unless it was."""
    pages: list[Any] = [{"items": items} for items in contents]
    made = [
        page["items"]
        for page in pages_without_some_records(pages, [RecordList(("items",))], lambda item: item >= least)
    ]
    assert [item for page in made for item in page] == [item for page in contents for item in page if item >= least]
    assert all(len(after) <= len(before) for before, after in zip(contents, made, strict=True))
    shorter = [index for index, page in enumerate(made) if len(page) < len(contents[index])]
    assert not any(page for index in shorter[:1] for page in made[index + 1 :])
    assert pages == [{"items": items} for items in contents], "the original is changed"


@given(PAGES)
def test_reversed_twice_is_as_before(contents: list[list[int]]) -> None:
    """Only the lists at the given places change."""
    pages: list[Any] = [{"items": items, "others": [1, 2]} for items in contents]
    once = pages_with_reversed_lists(pages, [RecordList(("items",)), RecordList(("missing",))])
    assert [page["items"] for page in once] == [items[::-1] for items in contents]
    assert all(page["others"] == [1, 2] for page in once)
    assert pages_with_reversed_lists(once, [RecordList(("items",))]) == pages
