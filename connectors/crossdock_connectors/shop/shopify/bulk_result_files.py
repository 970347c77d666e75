"""Results of bulk operations: one object per line, children with the id of their parent, in any order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

from crossdock import RefusedError
from crossdock.values.half_characters import loads_marking_half_characters
from crossdock_connectors.shop.shopify.pages import Item, ShopifyContext, record_with_sorted_children
from crossdock_connectors.shop.shopify.queries import ShopList

PART_BYTES = 32 << 20
"""The part of a file that is held in memory at a time. The file is divided by the ids of its records."""
PER_PAGE = 250
_PARENT = "__parentId"


def assemble_records(
    ctx: ShopifyContext, shop_list: ShopList, path: Path, expected_objects: int, expected_records: int
) -> Iterator[tuple[list[Any], str]]:
    """Yield the records of the file with their children, in pages. The numbers of lines are checked before."""
    parts = _check_counts_and_divide(path, expected_objects, expected_records)

    def pages() -> Iterator[tuple[list[Any], str]]:
        number, orphans = 0, 0
        for part in parts:
            records, lost = _records_and_orphan_count_of_part(shop_list, part)
            orphans += lost
            for start in range(0, len(records), PER_PAGE):
                number += 1
                yield records[start : start + PER_PAGE], f"{path.name} ({number})"
            part.unlink()
        if orphans:
            text = f"{orphans:,} lines of {path.name} belong to records that are not in it"
            ctx.run.warn(ctx.connection, text, code="records_left_out")

    return pages()


def _check_counts_and_divide(path: Path, expected_objects: int, expected_records: int) -> list[Path]:
    names = [path.with_suffix(f".part{number}") for number in range(path.stat().st_size // PART_BYTES + 1)]
    files, read, own = [name.open("wb") for name in names], 0, 0
    try:
        with path.open("rb") as lines:
            for read, line in enumerate(lines, 1):
                item = _parse_object(line, f"{path.name}:{read}")
                own += item.get(_PARENT) is None
                files[crc32(str(item.get(_PARENT) or item.get("id")).encode()) % len(files)].write(line)
    finally:
        for file in files:
            file.close()
    if (read, own) != (expected_objects, expected_records):
        stated = f"{expected_objects:,} and {expected_records:,}"
        message = f"has {read:,} objects, {own:,} of them records, and the shop says {stated}"
        raise RefusedError(message, where=path.name, hint="it was cut off; run again", code="job_results_differ")
    path.unlink()
    return names


def _parse_object(line: bytes, where: str) -> Item:
    try:
        item = loads_marking_half_characters(line)
    except ValueError as error:
        hint = "the file of a bulk operation was cut off or damaged; run again"
        raise RefusedError(f"is no JSON: {error}", where=where, hint=hint, code="answer_unreadable") from None
    if not isinstance(item, dict):
        raise RefusedError("is no object", where=where, code="answer_misplaced")
    if not isinstance(item.get(_PARENT), str | None):
        raise RefusedError("has another parent than an id", where=where, code="answer_misplaced")
    return item


def _records_and_orphan_count_of_part(shop_list: ShopList, part: Path) -> tuple[list[Any], int]:
    """Return the records of *part* with their children, and the number of children of other records."""
    records: dict[str, Item] = {}
    without_id: list[Any] = []
    children: dict[str, list[Item]] = {}
    with part.open("rb") as lines:
        for line in lines:
            item = loads_marking_half_characters(line)
            parent = item.pop(_PARENT, None)
            gid = item.get("id")
            if parent is not None:
                children.setdefault(parent, []).append(item)
            elif isinstance(gid, str):
                records[gid] = item
            else:
                without_id.append(item)
    child, whole = shop_list.children, [*records.values()]
    if child is not None:
        whole = [record_with_sorted_children(record, child, children.pop(gid, [])) for gid, record in records.items()]
    return whole + without_id, sum(map(len, children.values()))
