"""Bulk operations, whole lists as JSON lines: shopify.dev/docs/api/usage/bulk-operations/queries.

A result has one object per line, children with the id of their parent, in any order.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zlib import crc32

from msgspec import Struct

from crossdock import RefusedError
from crossdock.errors import RemoteError
from crossdock.sources import UnavailableError
from crossdock.values.exact_json import loads_replacing_invalid_values
from crossdock_connectors.shop.shopify import queries
from crossdock_connectors.shop.shopify.queries import ShopList
from crossdock_connectors.shop.shopify.requests_and_complete_lists import (
    Item,
    ShopifyContext,
    number_in_gid_or_empty,
    record_with_sorted_children,
    request_graphql,
    shop_facts_requested_once,
)
from crossdock_connectors.shop.shopify.scopes import APPROVAL, granted_scopes, missing_scopes_with_streams

PART_BYTES = 32 << 20
"""The part of a file that is held in memory at a time. The file is divided by the ids of its records."""
PER_PAGE = 250
_PARENT = "__parentId"


def records_with_children_in_result_file(
    ctx: ShopifyContext, shop_list: ShopList, path: Path, expected_objects: int, expected_records: int
) -> Iterator[tuple[list[Any], str]]:
    """Yield the records of the file with their children, in pages. The numbers of lines are checked before."""
    parts = _divide_result_file_or_raise_if_incomplete(path, expected_objects, expected_records)

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


def _divide_result_file_or_raise_if_incomplete(path: Path, expected_objects: int, expected_records: int) -> list[Path]:
    names = [path.with_suffix(f".part{number}") for number in range(path.stat().st_size // PART_BYTES + 1)]
    files, read, own = [name.open("wb") for name in names], 0, 0
    try:
        with path.open("rb") as lines:
            for read, line in enumerate(lines, 1):
                item = _parse_line_as_object(line, f"{path.name}:{read}")
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


def _parse_line_as_object(line: bytes, where: str) -> Item:
    try:
        item = loads_replacing_invalid_values(line)
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
            item = loads_replacing_invalid_values(line)
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


REUSED = timedelta(hours=6)
"""An operation of an earlier run that is younger than this is reused, so that a killed first load continues."""
_RUNNING = frozenset({"CREATED", "RUNNING"})
_BUSY = frozenset({"LIMIT_REACHED", "OPERATION_IN_PROGRESS"})
_LONGEST_PAUSE_S = 10.0


class FinishedBulkOperation(Struct, frozen=True):
    """A finished operation, with its records in *pages*. Changes after it was *begun* may be missing."""

    begun: datetime
    pages: Iterator[tuple[list[Any], str]]


def read_list_by_bulk_operation(
    ctx: ShopifyContext, shop_list: ShopList, found: str = "", *, reuse: bool
) -> FinishedBulkOperation:
    """Read the records of a list that match *found*; with *reuse* as old as `REUSED`. An incomplete file is refused."""
    query = shop_list.bulk_query(found)
    if reuse:
        query = f"{_scopes_comment(ctx)}{query}"
    operation = _wait_for_operation(
        ctx, (_reusable_operation(ctx, query) if reuse else None) or _start_operation(ctx, query)
    )
    begun = _creation_time(operation)
    if not operation.get("url"):
        if str(operation.get("objectCount")) != "0":
            raise UnavailableError(
                "a bulk operation has ended without a file", where=ctx.settings.base_url, code="job_failed"
            )
        return FinishedBulkOperation(begun, iter(()))
    path = ctx.run.work / f"{ctx.connection}-{number_in_gid_or_empty(str(operation['id']))}.jsonl"
    size = ctx.api.download(str(operation["url"]), path)
    if operation.get("fileSize") is not None and _number_in_operation_or_error(operation, "fileSize") != size:
        told = _number_in_operation_or_error(operation, "fileSize")
        message = f"the file of a bulk operation has {size:,} bytes, and the shop says {told:,}"
        raise RefusedError(message, where=path.name, hint="it was cut off; run again", code="job_results_differ")
    counts = (
        _number_in_operation_or_error(operation, "objectCount"),
        _number_in_operation_or_error(operation, "rootObjectCount"),
    )
    return FinishedBulkOperation(begun, records_with_children_in_result_file(ctx, shop_list, path, *counts))


def _scopes_comment(ctx: ShopifyContext) -> str:
    """Return a comment for a query: an operation that began with other scopes may have other records."""
    return f"# scopes: {' '.join(sorted(granted_scopes(shop_facts_requested_once(ctx))))}\n"


def _reusable_operation(ctx: ShopifyContext, query: str) -> Item | None:
    oldest = ctx.run.clock.now() - REUSED
    search = f"operation_type:query created_at:>='{oldest.isoformat(timespec='seconds')}'"
    for operation in request_graphql(ctx, queries.RECENT_BULK, query=search).items("/data/bulkOperations/nodes"):
        if (
            isinstance(operation, dict)
            and operation.get("query") == query
            and _is_reusable_operation(operation, oldest)
        ):
            return operation
    return None


def _is_reusable_operation(operation: Item, oldest: datetime) -> bool:
    if _creation_time(operation) < oldest:
        return False
    has_result = bool(operation.get("url")) or str(operation.get("objectCount")) == "0"
    return operation.get("status") in _RUNNING or (operation.get("status") == "COMPLETED" and has_result)


def _creation_time(operation: Item) -> datetime:
    try:
        return datetime.fromisoformat(str(operation.get("createdAt")))
    except ValueError:
        raise RefusedError(
            "a bulk operation has no time in createdAt", where=str(operation.get("id")), code="answer_misplaced"
        ) from None


def _number_in_operation_or_error(operation: Item, name: str) -> int:
    text = str(operation.get(name))
    if not (text.isascii() and text.isdecimal()):
        raise RefusedError(
            f"a bulk operation has no number in {name}", where=str(operation.get("id")), code="answer_misplaced"
        )
    return int(text)


def _start_operation(ctx: ShopifyContext, query: str) -> Item:
    """Begin a new operation, waiting while other operations of the app take all slots."""
    deadline, pause_s = ctx.run.clock.monotonic() + ctx.settings.bulk_timeout_s, 1.0
    while True:
        answer = request_graphql(ctx, queries.RUN_BULK, query=query)
        errors = answer.items("/data/bulkOperationRunQuery/userErrors")
        operation = answer.at("/data/bulkOperationRunQuery/bulkOperation")
        if isinstance(operation, dict) and not errors:
            return operation
        message = "; ".join(str(error.get("message")) for error in errors) or "it names no reason"
        if not any(error.get("code") in _BUSY for error in errors):
            raise RemoteError(f"refused a bulk operation: {message}", where=answer.address, code="job_failed")
        if ctx.run.clock.monotonic() >= deadline:
            raise UnavailableError(
                f"has no place for a bulk operation: {message}", where=answer.address, code="job_failed"
            )
        pause_s = _sleep_and_lengthen_pause(ctx, pause_s)


def _wait_for_operation(ctx: ShopifyContext, operation: Item) -> Item:
    deadline, pause_s = ctx.run.clock.monotonic() + ctx.settings.bulk_timeout_s, 1.0
    ctx.run.progress.begin(f"{ctx.connection}: waiting for a bulk operation", None)
    while True:
        answer = request_graphql(ctx, queries.BULK, id=operation["id"])
        found = answer.at("/data/bulkOperation")
        status = found.get("status") if isinstance(found, dict) else None
        if status == "COMPLETED":
            return dict(found)
        if status not in _RUNNING:
            code = found.get("errorCode") if isinstance(found, dict) else None
            raise _failed_operation_error(
                ctx, f"{status or 'no longer there'}{f', {code}' if code else ''}", code, answer.address
            )
        if ctx.run.clock.monotonic() >= deadline:
            message = f"a bulk operation has not ended in {ctx.settings.bulk_timeout_s / 3600:.1f} hours"
            hint = "it continues at the shop, and the next run uses it; bulk_timeout_s is the limit"
            raise UnavailableError(message, where=answer.address, hint=hint, code="job_failed")
        pause_s = _sleep_and_lengthen_pause(ctx, pause_s)


def _failed_operation_error(ctx: ShopifyContext, status: str, code: object, where: str) -> RemoteError:
    hint = _denied_access_hint(ctx) if code == "ACCESS_DENIED" else "run again"
    return UnavailableError(
        f"a bulk operation ended without a whole result: {status}", where=where, hint=hint, code="job_failed"
    )


def _denied_access_hint(ctx: ShopifyContext) -> str:
    if any(missing_scopes_with_streams(ctx.settings, granted_scopes(shop_facts_requested_once(ctx)))):
        return "check the scopes of the token with 'crossdock check'"
    return f"the token has all scopes, so the app needs {APPROVAL}; 'crossdock check' shows for what"


def _sleep_and_lengthen_pause(ctx: ShopifyContext, pause_s: float) -> float:
    ctx.run.clock.sleep(pause_s)
    return min(_LONGEST_PAUSE_S, pause_s * 1.5)
