"""Until when windows of time were read whole."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from crossdock.sources import Window
from crossdock.values.raw_rows_and_records import RawBatch
from crossdock_connectors.http_json.streams import WindowCheckpoints

ASKED_AT = datetime(2026, 3, 2, 13, tzinfo=UTC)


def checkpoint(*texts: object, zone: str | None = None, end: datetime = ASKED_AT) -> str:
    rows = RawBatch.json([{"id": n, "deep": {"at": text}} for n, text in enumerate(texts)], source="page", key=["id"])
    found, window = WindowCheckpoints(zone), Window(end - timedelta(days=7), end)
    found.add_rows(rows.load(), window, ASKED_AT)
    return found.checkpoint(window, ASKED_AT).cursor


@pytest.mark.parametrize(
    ("texts", "zone", "until"),
    [
        (["2026-03-02T12:58:00Z", "2026-03-01T00:00:00Z", None], None, "2026-03-02T12:58:00Z"),
        (["2026-03-02T13:00:05+00:00"], None, "2026-03-02T13:00:00Z"),
        (["2026-03-02T08:00:00Z"], None, "2026-03-02T08:00:00Z"),
        (["2026-03-02 08:00"], None, "2026-03-02T08:00:00Z"),
        (["2026-03-02T08:00:00.250"], "America/New_York", "2026-03-02T13:00:00Z"),
        (["2026-02-28T00:00:00Z"], None, "2026-03-01T11:00:00Z"),
        (["2026-03-02T13:00:05Z", "2026-03-02T08:00:00Z"], None, "2026-03-02T13:00:00Z"),
        (["2026-03-09T00:00:00Z", "2026-03-02T08:00:00Z"], None, "2026-03-02T08:00:00Z"),
        (["2026-03-09T00:00:00Z", "2026-02-30T00:00:00Z", "soon", 7], None, "2026-03-02T13:00:00Z"),
    ],
)
def test_a_window_ends_where_the_times_of_its_records_show_that_it_was_whole(
    texts: list[object], zone: str | None, until: str
) -> None:
    """At its end if the latest one is of now, or none has come; at most 26 hours before, the most of two time zones."""
    assert checkpoint(*texts, zone=zone) == until


def test_a_window_that_has_ended_in_all_time_zones_is_whole() -> None:
    """Its records have earlier times in any case."""
    end = ASKED_AT - timedelta(hours=27)
    assert checkpoint("2026-02-25T00:00:00Z", end=end) == "2026-03-01T10:00:00Z"
