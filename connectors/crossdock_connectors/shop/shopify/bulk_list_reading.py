"""Bulk operations, whole lists as JSON lines: shopify.dev/docs/api/usage/bulk-operations/queries."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct

from crossdock import RefusedError
from crossdock.errors import RemoteError
from crossdock.sources import UnavailableError
from crossdock_connectors.shop.shopify import queries
from crossdock_connectors.shop.shopify.bulk_result_files import assemble_records
from crossdock_connectors.shop.shopify.pages import (
    Item,
    ShopifyContext,
    number_in_gid_or_empty,
    request_query,
    shop_answer,
)
from crossdock_connectors.shop.shopify.queries import ShopList
from crossdock_connectors.shop.shopify.scopes import APPROVAL, granted_scopes, missing_scopes_with_streams

REUSED = timedelta(hours=6)
"""An operation of an earlier run that is younger than this is reused, so that a killed first load continues."""
_RUNNING = frozenset({"CREATED", "RUNNING"})
_BUSY = frozenset({"LIMIT_REACHED", "OPERATION_IN_PROGRESS"})
_LONGEST_PAUSE_S = 10.0


class BulkRead(Struct, frozen=True):
    """A finished operation, with its records in *pages*. Changes after it was *begun* may be missing."""

    begun: datetime
    pages: Iterator[tuple[list[Any], str]]


def run_or_reuse_bulk_operation(ctx: ShopifyContext, shop_list: ShopList, found: str = "", *, reuse: bool) -> BulkRead:
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
        return BulkRead(begun, iter(()))
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
    return BulkRead(begun, assemble_records(ctx, shop_list, path, *counts))


def _scopes_comment(ctx: ShopifyContext) -> str:
    """Return a comment for a query: an operation that began with other scopes may have other records."""
    return f"# scopes: {' '.join(sorted(granted_scopes(shop_answer(ctx))))}\n"


def _reusable_operation(ctx: ShopifyContext, query: str) -> Item | None:
    oldest = ctx.run.clock.now() - REUSED
    search = f"operation_type:query created_at:>='{oldest.isoformat(timespec='seconds')}'"
    for operation in request_query(ctx, queries.RECENT_BULK, query=search).items("/data/bulkOperations/nodes"):
        if isinstance(operation, dict) and operation.get("query") == query and _is_usable(operation, oldest):
            return operation
    return None


def _is_usable(operation: Item, oldest: datetime) -> bool:
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
        answer = request_query(ctx, queries.RUN_BULK, query=query)
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
        answer = request_query(ctx, queries.BULK, id=operation["id"])
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
    if any(missing_scopes_with_streams(ctx.settings, granted_scopes(shop_answer(ctx)))):
        return "check the scopes of the token with 'crossdock check'"
    return f"the token has all scopes, so the app needs {APPROVAL}; 'crossdock check' shows for what"


def _sleep_and_lengthen_pause(ctx: ShopifyContext, pause_s: float) -> float:
    ctx.run.clock.sleep(pause_s)
    return min(_LONGEST_PAUSE_S, pause_s * 1.5)
