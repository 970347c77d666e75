"""Second readings: a list in pages, or one that may be old, is read twice before a missing record counts as gone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import polars as pl

from crossdock.config.project.connections import BoundStream
from crossdock.delta.row_preparation import KEY_HASH, keys_only
from crossdock.errors import CrossdockError, StateError, StoppedError
from crossdock.reading.sources.list_evidence import DoubtfulListError, IncompleteListError
from crossdock.values.records import RawBatch

_HINT = (
    "what was read is delivered, nothing counts as gone, and the next run reads the list again; read it when little"
    " changes, in smaller parts, or with a cursor of the API"
)
_CHANGED = "the list changed while it was read (read again, it {}), so that records may have been passed over"
_CUT = "what was read is delivered, and nothing counts as gone"


class SecondReading:
    """Compares two readings of one list, which *again* reads from its beginning.

    A record is missed only if another one, which was read before it, leaves the list. That record is missing in the
    second reading, so two readings with the same records have missed none. Of a list that nothing shows to be paged by
    position, the second reading must only lack the records that seem to be gone: it may have new ones.
    """

    def __init__(self, bound: BoundStream, again: Callable[[], Iterable[object]]) -> None:
        self._bound, self._again = bound, again
        self._first: list[pl.DataFrame] = []
        bound.context.run.open_lists.forget_stream(bound.name)

    def remember_keys(self, batches: Iterable[RawBatch]) -> Iterator[RawBatch]:
        """Yield *batches*, and keep the keys of those that an API lists."""
        for batch in batches:
            if self._bound.name in self._bound.context.run.open_lists.begun:
                self._first.append(self._keys_of_batch(batch))
            yield batch

    def find_doubt(self, missing: pl.Series) -> CrossdockError | None:
        """Return why the list may lack existing records: it may be cut or old, or a second reading differs."""
        bound, lists = self._bound, self._bound.context.run.open_lists
        if (text := lists.doubted.get(bound.name)) is not None:
            return IncompleteListError(text, where=bound.name, hint=_CUT, code="list_changed")
        is_position = bound.name in lists.unproved
        if not is_position and bound.name not in lists.in_pages:
            return None
        bound.context.run.progress.begin(f"reading {bound.name} again, since records seem to be gone", None)
        try:
            second = [self._keys_of_batch(batch) for batch in self._again() if isinstance(batch, RawBatch)]
        except (StateError, StoppedError):
            raise
        except CrossdockError as error:
            return error
        sign = _describe_difference(
            _distinct_keys(self._first), _distinct_keys(second), missing if not is_position else None
        )
        return (
            None
            if sign is None
            else DoubtfulListError(_CHANGED.format(sign), where=bound.name, hint=_HINT, code="list_changed")
        )

    def _keys_of_batch(self, batch: RawBatch) -> pl.DataFrame:
        return keys_only(self._bound.stream, batch.source, batch.load()).select(KEY_HASH)


def _distinct_keys(parts: list[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat(parts).unique().sort(KEY_HASH) if parts else pl.DataFrame(schema={KEY_HASH: pl.UInt128})


def _describe_difference(first: pl.DataFrame, second: pl.DataFrame, missing: pl.Series | None) -> str | None:
    """Describe how a second reading differs, or which of the *missing* records it has; None if it does not."""
    if missing is not None:
        there = second.filter(pl.col(KEY_HASH).is_in(missing.implode())).height
        return f"has {there:,} of the records that seemed to be gone" if there else None
    if first.equals(second):
        return None
    gone = first.join(second, on=KEY_HASH, how="anti").height
    new = second.join(first, on=KEY_HASH, how="anti").height
    return f"lacks {gone:,} of its records and has {new:,} others"
