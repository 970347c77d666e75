"""The rows that form a group when rows can mark their record as deleted."""

from __future__ import annotations

import polars as pl

from crossdock.delta.row_preparation import DELETED, KEY_HASH, POSITION
from crossdock.records import LINE


def rows_of_groups(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of one unit that form groups, without deleted rows and rows older than a deletion of their key.

    A record that was created again does not have these rows.

    Args:
        rows: With `KEY_HASH`, `LINE`, `POSITION` where the stream has ``order_by``, and `DELETED` where rows can say
            that their record was deleted.
    """
    if DELETED not in rows.columns:
        return rows
    order = pl.col(POSITION if POSITION in rows.columns else LINE)
    last_deleted = order.filter(pl.col(DELETED)).max().over(KEY_HASH)
    is_older = (order < last_deleted).fill_null(value=False)  # a row of an unknown position counts as the newest
    return rows.filter(~pl.col(DELETED) & ~is_older)
