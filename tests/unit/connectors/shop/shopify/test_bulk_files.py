"""Files of bulk operations: whole or refused, whatever the order of their lines and however they are divided."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.partners.shopify.reading import shop_context
from tests.partners.shopify.site import Site

from crossdock import Context, RefusedError
from crossdock.values import exact_json
from crossdock.values.json_paths import pointer_and_fault_of_invalid_value
from crossdock_connectors.shop.shopify import bulk_operations
from crossdock_connectors.shop.shopify.bulk_operations import records_with_children_in_result_file
from crossdock_connectors.shop.shopify.queries import CUSTOMERS, ORDERS, ShopList

Shop = dict[int, list[int]]
shops = st.dictionaries(st.integers(1, 40), st.lists(st.integers(100, 999), unique=True, max_size=5), max_size=12)


@pytest.fixture(name="ctx", scope="module")
def _ctx() -> Context[Any]:
    return shop_context(Site())


def lines_of(shop: Shop) -> list[dict[str, Any]]:
    """The orders of *shop* with their lines, each an object of the file."""
    own = [{"id": f"gid://shopify/Order/{order}", "name": f"#{order}"} for order in shop]
    inner = [
        {"id": f"gid://shopify/LineItem/{order}{line}", "__parentId": f"gid://shopify/Order/{order}"}
        for order, lines in shop.items()
        for line in lines
    ]
    return own + inner


def content(objects: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(each).replace("/", "\\/").encode() + b"\n" for each in objects)


def read(
    ctx: Context[Any], data: bytes, objects: int, roots: int, shop_list: ShopList = ORDERS
) -> list[dict[str, Any]]:
    """The records of a file with this content; nothing of it is left behind."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "shop-1.jsonl")
        path.write_bytes(data)
        found = [
            record
            for page, _ in records_with_children_in_result_file(ctx, shop_list, path, objects, roots)
            for record in page
        ]
        assert list(Path(folder).iterdir()) == []
    return found


@settings(max_examples=examples(60))
@given(shop=shops, data=st.data(), part=st.integers(1, 4000))
def test_records_get_their_children(ctx: Context[Any], shop: Shop, data: st.DataObject, part: int) -> None:
    """In any order of the lines and any number of parts, each order is there once with its lines in their order."""
    objects = data.draw(st.permutations(lines_of(shop)))
    with mock.patch.object(bulk_operations, "PART_BYTES", part):
        found = read(ctx, content(objects), len(objects), len(shop))
    expected = {
        f"#{order}": sorted((f"gid://shopify/LineItem/{order}{line}" for line in lines), key=lambda gid: int(gid[23:]))
        for order, lines in shop.items()
    }
    assert {each["name"]: [line["id"] for line in each["lineItems"]] for each in found} == expected
    assert len(found) == len(shop)
    assert not any("__parentId" in line for each in found for line in each["lineItems"])


def test_half_of_a_character_refuses_no_file(ctx: Context[Any]) -> None:
    """The record with the cut text becomes a dead letter, which its object in place of the text shows."""
    objects = lines_of({1: [100], 2: []})
    objects[0]["name"] = "cut \ud83d"
    first, second = read(ctx, content(objects), len(objects), 2)
    assert (pointer_and_fault_of_invalid_value(exact_json.dumps(first).decode()) or "")[0] == "/name"
    assert pointer_and_fault_of_invalid_value(exact_json.dumps(second).decode()) is None


def test_a_file_that_is_cut_off_anywhere_is_refused(ctx: Context[Any]) -> None:
    """At every byte but the last: nothing of it is read."""
    objects = lines_of({1: [101, 102], 2: []})
    whole = content(objects)
    for end in range(len(whole) - 1):
        with pytest.raises(RefusedError):
            read(ctx, whole[:end], len(objects), 2)
    assert len(read(ctx, whole[:-1], len(objects), 2)) == 2  # only the line feed at the end is missing


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"[1]\n", "is no object"),
        (b"{\n", "is no JSON"),
        (b'{"id": "a"}\n{"id": "b"}\n', "has 2 objects, 2 of them records, and the shop says 1 and 1"),
        (b'{"id": "a", "__parentId": "b"}\n', "has 1 objects, 0 of them records"),
        (b"\xff\n", "is no JSON"),
        (b"\n", "is no JSON"),
        (b'{"id": "a", "__parentId": ["b"]}\n', "another parent than an id"),
    ],
)
def test_another_file_is_refused(ctx: Context[Any], data: bytes, message: str) -> None:
    """A line that is no object or has no text for a parent, and other numbers than the shop says."""
    with pytest.raises(RefusedError, match=message):
        read(ctx, data, 1, 1)


def test_children_without_a_record_are_told() -> None:
    """A child whose record is not in the file is no record; the run warns of it once."""
    ctx = shop_context(Site())
    objects = [*lines_of({1: [101]}), {"id": "gid://shopify/LineItem/9", "__parentId": "gid://shopify/Order/9"}]
    [found] = read(ctx, content(objects), 3, 1)
    assert len(found["lineItems"]) == 1
    assert ctx.run.warnings == [
        "shopify: 1 lines of shop-1.jsonl belong to records that are not in it [records_left_out]"
    ]


def test_a_list_without_children(ctx: Context[Any]) -> None:
    """Its records are as they are; pages are numbered and have a limited size."""
    objects = [{"id": f"gid://shopify/Customer/{number}"} for number in range(5)]
    with TemporaryDirectory() as folder, mock.patch.object(bulk_operations, "PER_PAGE", 2):
        path = Path(folder, "shop-1.jsonl")
        path.write_bytes(content(objects))
        pages = list(records_with_children_in_result_file(ctx, CUSTOMERS, path, 5, 5))
    assert [(len(page), source) for page, source in pages] == [
        (2, "shop-1.jsonl (1)"), (2, "shop-1.jsonl (2)"), (1, "shop-1.jsonl (3)"),
    ]  # fmt: skip
    assert [record for page, _ in pages for record in page] == objects


def test_nothing_is_read_before_the_whole_file_was_checked(ctx: Context[Any], tmp_path: Path) -> None:
    """The call refuses a file, not the first page."""
    path = tmp_path / "shop-1.jsonl"
    path.write_bytes(content(lines_of({1: [101]})))
    with pytest.raises(RefusedError):
        records_with_children_in_result_file(ctx, ORDERS, path, 3, 1)
