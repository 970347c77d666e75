"""A bulk operation, as the schema shows it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from tests.partners.shopify.records import Record

RUNNING = ("CREATED", "RUNNING", "CANCELING")


@dataclass(eq=False, kw_only=True)
class BulkOperation(Record):
    """One operation.

    Attributes:
        content: The lines of its result, whole or partial.
    """

    query: str = field(repr=False)
    group_objects: bool
    type: str = "QUERY"
    status: str = "CREATED"
    error_code: str | None = None
    completed_at: datetime | None = None
    ended_at: datetime | None = None
    object_count: int = 0
    root_object_count: int = 0
    content: bytes = field(default=b"", repr=False)
    url: str | None = None
    partial_data_url: str | None = None

    @property
    def file_size(self) -> int | None:
        return len(self.content) if self.ended_at else None
