"""The records that a stream fetches by their keys, as it would read them in a run."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import polars as pl

from crossdock.config.project.connector_instances import BoundStream
from crossdock.delta.row_preparation import DELETED, KEY, SKIP, is_ours, prepare
from crossdock.records import RawBatch, key_parts_of

Rows = tuple[dict[str, Any], ...]


def fetched_records(bound: BoundStream, keys: Sequence[str]) -> dict[str, Rows]:
    """Return the rows of each record that `fetch` yields and no filter leaves out, by key. The last rows of a key
    count.

    Args:
        keys: In their text form, at most `Stream.fetch_size`, each once.
    """
    found: dict[str, Rows] = {}
    for batch in bound.stream.fetch(bound.context, [key_parts_of(key) for key in keys]):
        rows = sorted(_kept(bound, batch), key=itemgetter(KEY))
        for key, group in groupby(rows, key=itemgetter(KEY)):
            cells = [{name: cell for name, cell in row.items() if not is_ours(name)} for row in group]
            found[key] = tuple(cells) if bound.stream.group_by else (cells[-1],)
    return found


def _kept(bound: BoundStream, batch: RawBatch) -> list[dict[str, Any]]:
    """Keep the rows with a key that no filter leaves out and that are not marked as deleted."""
    frame = prepare(bound.stream, batch.source, batch.load())
    frame = frame.filter(pl.col(SKIP).is_null() & pl.col(KEY).is_not_null())
    if bound.stream.deleted is not None:
        frame = frame.filter(~pl.col(DELETED))
    return frame.to_dicts()
