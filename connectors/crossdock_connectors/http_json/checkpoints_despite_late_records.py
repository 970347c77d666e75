"""Until when windows of time were read whole, if the times of an API may be behind its clock."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import polars as pl

from crossdock.mapping.row_order_and_cursors import ANY_TIME_ZONE, LateRecordTracker, latest_time_of_change
from crossdock.sources import Checkpoint, Window
from crossdock.values.raw_rows_and_records import JSON

_TIME = r'"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"'


class WindowCheckpoints:
    """Makes the checkpoints of the windows of one run.

    An API that reads the times of a request as local ones, and writes such, goes on to add records to a window that has
    ended by its clock. The config names no member with a time, so any member shows how far the times may be behind.

    Args:
        timezone: That of times without an offset; None for UTC.
    """

    def __init__(self, timezone: str | None) -> None:
        self._zone = ZoneInfo(timezone) if timezone else UTC
        self._late = LateRecordTracker(timedelta())

    def add_rows(self, rows: pl.DataFrame, window: Window, asked_at: datetime) -> None:
        """Take the times of *rows* into account, which a request for *window* listed, *asked_at* by the API's clock."""
        if window.end < asked_at - ANY_TIME_ZONE:
            return  # it is whole, and its times need not be read
        for text in rows[JSON].str.extract_all(_TIME).explode().drop_nulls().unique():
            with suppress(ValueError):  # not a day of the calendar
                moment = datetime.fromisoformat(text.strip('"'))
                moment = moment if moment.tzinfo else moment.replace(tzinfo=self._zone)
                if moment <= latest_time_of_change(asked_at):
                    self._late.add_request(moment, asked_at)

    def checkpoint(self, window: Window, asked_at: datetime) -> Checkpoint:
        """Return the end of *window*, or an earlier time if records may be added to it after *asked_at*."""
        whole_until = max(self._late.missing_from(asked_at), asked_at - ANY_TIME_ZONE)
        return Window(window.start, min(window.end, whole_until)).checkpoint
