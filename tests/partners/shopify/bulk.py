"""Bulk operations of the fake Shopify shop: started by a mutation, carried out as time passes, read from a file.

Source: shopify.dev/docs/api/usage/bulk-operations/queries. As of version 2026-01 an app runs up to five at a time for a
shop; earlier it was one. A result's address needs no token, and expires after seven days.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from tests.partners.partner_server import PartnerAnswer, PartnerRequest
from tests.partners.shopify.bulk_queries import checked, lines_of
from tests.partners.shopify.bulk_records import RUNNING, BulkOperation
from tests.partners.shopify.execution import Asking, Info, prepared, resolved
from tests.partners.shopify.records import Records

FILES = "/bulk/"
_FILE_LIFE = timedelta(days=7)
_EXPIRED = b"<?xml version='1.0' encoding='UTF-8'?><Error><Code>ExpiredToken</Code></Error>"


@dataclass(frozen=True, slots=True)
class Failure:
    """How an operation fails: its error code, and how many lines it has found by then."""

    code: str = "INTERNAL_SERVER_ERROR"
    lines: int = 0


class BulkOperations:
    """The operations of one app.

    Args:
        asking: Makes what resolvers see of the shop.
        takes: How long an operation runs.

    Attributes:
        limit: How many run at a time.
        failures: What happens to the next operations that start; the others succeed.
        cuts: After how many bytes the next files end, without a word of it.
    """

    def __init__(self, records: Records, asking: Callable[[], Asking], takes: timedelta, limit: int) -> None:
        self._records, self._asking, self._takes, self.limit = records, asking, takes, limit
        self.root: dict[str, Any] = {}
        self.failures, self.cuts = deque[Failure](), deque[int]()
        self._planned: dict[str, Failure] = {}

    def run(self, info: Info, query: str, **options: Any) -> dict[str, Any]:
        """``bulkOperationRunQuery``"""
        ready, problems = checked(query)
        if problems or ready is None:
            return _refused(*({"field": ["query"], "message": one, "code": "INVALID"} for one in problems))
        running = [one for one in self._records.all(BulkOperation) if one.status in RUNNING]
        if len(running) >= self.limit:
            return _refused(self._busy(running[-1]))
        operation = self._records.add(BulkOperation(query=query, group_objects=options["groupObjects"]))
        if self.failures:
            self._planned[operation.id] = self.failures.popleft()
        self._records.log("bulk_started", operation=operation.id, query=query)
        return {"bulkOperation": operation, "userErrors": []}

    def _busy(self, running: BulkOperation) -> dict[str, Any]:
        if self.limit > 1:
            message, code = "Bulk operations limit reached. Please try again later.", "LIMIT_REACHED"
        else:
            message = f"A bulk query operation for this app and shop is already in progress: {running.id}."
            code = "OPERATION_IN_PROGRESS"
        return {"field": None, "message": message, "code": code}

    def cancel(self, info: Info, id: str) -> dict[str, Any]:  # noqa: A002  the argument's name
        """``bulkOperationCancel``; the operation is cancelled a little later."""
        operation = self._records.find(BulkOperation, id)
        if operation is None:
            return _refused({"field": ["id"], "message": "Bulk operation does not exist"})
        if operation.status not in RUNNING:
            message = f"A bulk operation cannot be canceled when it is {operation.status.lower()}"
            return {"bulkOperation": operation, "userErrors": [{"field": None, "message": message}]}
        operation.status = "CANCELING"
        self._records.touch(operation)
        return {"bulkOperation": operation, "userErrors": []}

    def proceed(self, host: str) -> None:
        """Bring all operations to where they are by now, with addresses of files at *host*."""
        now = self._records.now()
        for operation in self._records.all(BulkOperation):
            if operation.status == "CREATED" and now > operation.created_at:
                self._become(operation, "RUNNING")
            if operation.status == "CANCELING" and now > operation.updated_at:
                self._end(operation, "CANCELED")
            elif operation.status == "RUNNING" and now >= operation.created_at + self._takes:
                self._carry_out(operation)
            self._show_addresses(operation, host, now)

    def _show_addresses(self, operation: BulkOperation, host: str, now: datetime) -> None:
        alive = operation.ended_at is not None and now < operation.ended_at + _FILE_LIFE
        address = f"http://{host}{FILES}{operation.legacy_resource_id}.jsonl?signature=1" if alive else None
        has_lines = bool(operation.content)
        operation.url = address if has_lines and operation.status == "COMPLETED" else None
        operation.partial_data_url = address if has_lines and operation.status == "FAILED" else None

    def _carry_out(self, operation: BulkOperation) -> None:
        asking = self._asking()
        asking.in_bulk = True
        data, errors = resolved(prepared(operation.query), {}, self.root, asking)
        lines = lines_of(data, grouped=operation.group_objects, seed=operation.legacy_resource_id)
        failure = self._planned.get(operation.id)
        if errors:
            codes = {error.get("extensions", {}).get("code") for error in errors}
            code = "ACCESS_DENIED" if "ACCESS_DENIED" in codes else "INTERNAL_SERVER_ERROR"
            failure = Failure(code)
        operation.content = lines.content(failure.lines if failure else None)
        operation.object_count = operation.content.count(b"\n")
        operation.root_object_count = min(lines.roots, operation.object_count)
        operation.error_code = failure.code if failure else None
        self._end(operation, "FAILED" if failure else "COMPLETED")

    def _end(self, operation: BulkOperation, status: str) -> None:
        operation.ended_at = self._records.now()
        operation.completed_at = operation.ended_at if status == "COMPLETED" else None
        self._become(operation, status)

    def _become(self, operation: BulkOperation, status: str) -> None:
        operation.status = status
        self._records.touch(operation)

    def file(self, request: PartnerRequest) -> PartnerAnswer:
        """``GET`` of a result, from the storage service that Shopify uses: its errors are XML."""
        xml = {"content-type": "application/xml; charset=UTF-8"}
        number = request.path.removeprefix(FILES).removesuffix(".jsonl")
        operation = self._records.find(BulkOperation, f"gid://shopify/BulkOperation/{number}")
        if operation is None or operation.ended_at is None:
            return PartnerAnswer(404, b"<Error><Code>NoSuchKey</Code></Error>", xml)
        if self._records.now() >= operation.ended_at + _FILE_LIFE:
            return PartnerAnswer(400, _EXPIRED, xml)
        content = operation.content[: self.cuts.popleft()] if self.cuts else operation.content
        return PartnerAnswer(200, content, {"content-type": "application/jsonl"})


def _refused(*errors: dict[str, Any]) -> dict[str, Any]:
    return {"bulkOperation": None, "userErrors": list(errors)}
