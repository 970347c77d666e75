"""Rows that came again on another page because they were changed while the list was read."""

from __future__ import annotations

import pytest

from crossdock.sources import Cursor
from crossdock.values.raw_rows_and_records import RawBatch
from crossdock_connectors.http_json.streams import MovedRowDetector


@pytest.mark.parametrize(
    ("changed", "is_moved"),
    [
        ("2026-03-01T12:59:59Z", False),
        ("2026-03-01T13:00:00Z", True),
        ("2026-03-02T15:00:00Z", True),
        ("2099-01-01T00:00:00Z", False),
        ("0000-00-00 00:00:00", False),
        (None, False),
    ],
)
def test_a_row_on_two_pages_was_moved_if_its_time_is_of_the_reading(changed: str | None, is_moved: bool) -> None:
    """In any time zone; a time that is later is planned or wrong, and would stop the cursor for good."""
    moved = MovedRowDetector(["id"], Cursor(column="at", as_="instant"))
    for number in range(2):
        page = RawBatch.json([{"id": "1", "at": changed}], source=f"page {number}", key=["id"])
        moved.add_page(page, "2026-03-02T15:00:00.000000000Z")
    assert moved.any_moved_since("2026-03-01T13:00:00.000000000Z") is is_moved
