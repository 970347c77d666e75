"""Detection of rows that were changed while a list was read by position, so that other rows may have been missed.

If several rows may have one key, such as versions of a record, two rows alone do not show such a change. A row on an
earlier page together with one that was changed after the reading began does.
"""

from __future__ import annotations

from collections.abc import Sequence

from crossdock import RawBatch, RecordError
from crossdock.reading.sources.compact_id_set import IdSet
from crossdock.sources import Cursor
from crossdock.values.raw_rows_and_records import with_path_columns

COARSE_S = 1.0  # an API may drop the fraction of a second


class MovedRows:
    def __init__(self, key: Sequence[str], cursor: Cursor) -> None:
        self._key, self._cursor = tuple(key), cursor
        self._seen, self._latest = IdSet(), ""

    def add_page(self, page: RawBatch, until: str) -> None:
        """Add a page. A time later than *until*, in a cursor's form, is that of no change in any time zone."""
        columns = [*dict.fromkeys((*self._key, self._cursor.column))]
        frame = with_path_columns(page.load(), columns)
        if not set(columns) <= set(frame.columns):
            return  # the run refuses the page
        rows = list(frame[columns].iter_rows(named=True))
        keys = ["\0".join(row[name] or "" for name in self._key) for row in rows]
        again = self._seen.known_ids_among(keys)
        for key, row in zip(keys, rows, strict=True):
            if key in again and (value := self._cursor_value(row)) <= until:
                self._latest = max(self._latest, value)
        self._seen.add(keys)

    def _cursor_value(self, row: dict[str, str | None]) -> str:
        try:
            return self._cursor.value(row)
        except RecordError:  # the run rejects the record
            return ""

    def any_moved_since(self, began: str) -> bool:
        """Return whether a row of an earlier page came again with a change since *began*, which has a cursor's form."""
        return self._latest >= began
