"""What the streams of a connector pull and fetch, row by row, as the JSON that fingerprints are made of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from crossdock import Context, RawBatch
from crossdock.connector import Connector, Stream
from crossdock.values.raw_rows_and_records import JSON, with_path_columns


@dataclass
class Rows:
    """Rows by the key of their record, and the keys of deleted records."""

    by_key: dict[tuple[str | None, ...], list[str]] = field(default_factory=dict)
    deleted: set[tuple[str | None, ...]] = field(default_factory=set)

    @property
    def latest(self) -> Mapping[tuple[str | None, ...], str]:
        """The row of each record that was read last."""
        return {key: rows[-1] for key, rows in self.by_key.items()}

    @property
    def keys(self) -> set[str]:
        """The texts of keys with one part."""
        return {str(key) for (key,) in self.by_key}


def stream_of(connector: Connector[Any], ctx: Context[Any], name: str) -> Stream[Any]:
    return next(each for each in connector.streams(ctx.settings) if each.name == name)


def pulled(connector: Connector[Any], ctx: Context[Any], name: str, since: str | None = None) -> Rows:
    stream = stream_of(connector, ctx, name)
    return _rows(stream, (each for each in stream.pull(ctx, since) if isinstance(each, RawBatch)))


def fetched(connector: Connector[Any], ctx: Context[Any], name: str, keys: Iterable[str | tuple[str, ...]]) -> Rows:
    """A key with one part may be a text."""
    stream = stream_of(connector, ctx, name)
    return _rows(stream, stream.fetch(ctx, [(key,) if isinstance(key, str) else key for key in keys]))


def _rows(stream: Stream[Any], batches: Iterator[RawBatch]) -> Rows:
    found = Rows()
    for batch in batches:
        rows = with_path_columns(batch.load(), stream.key)
        for *key, text in rows.select(*stream.key, JSON).iter_rows():
            found.by_key.setdefault(tuple(key), []).append(text)
        found.deleted.update(batch.deleted)
    return found
