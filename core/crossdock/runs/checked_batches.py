"""Checks of what a stream's `pull` yields: a defect of a connector ends its own stream, and the error names the
place.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, TypeVar

import polars as pl

from crossdock.config.project.connector_instances import BoundStream
from crossdock.errors import ConnectorError
from crossdock.mapping.cursors import Checkpoint
from crossdock.printable import is_storable
from crossdock.records import Again, RawBatch
from crossdock.values.author_code import guarded

_Item = TypeVar("_Item")


def pulled(bound: BoundStream, since: str | None) -> Generator[RawBatch | Checkpoint, None, None]:
    """Yield the batches and checkpoints of the stream. Closing this generator closes the source.

    Raises:
        ConnectorError: If `pull` raised an unexpected exception, or yielded something that is not a batch.
        CrossdockError: If the source failed or was refused.
    """
    latest: str | None = None
    guard, observe = _Guard(bound), bound.context.run.observe
    with code_of(bound, "pull", lambda: latest):
        batches = bound.stream.pull(bound.context, since)
        try:
            for batch in _read_by(bound, batches):
                _check(bound, batch, latest)
                if isinstance(batch, Checkpoint):
                    yield batch
                    continue
                latest = batch.source
                bound.context.run.reading.advance()
                if observe is not None:
                    observe(bound.name, "", batch)
                yield guard.around(batch)
        finally:
            if isinstance(batches, Generator):
                batches.close()


def _read_by(bound: BoundStream, batches: Iterable[_Item]) -> Iterator[_Item]:
    """Attribute the lists that are read for *batches* to the stream."""
    following = iter(batches)
    while True:
        with bound.context.run.open_lists.read_by(bound.name):
            try:
                batch = next(following)
            except StopIteration:  # a default of `next` could be what an author yields by mistake
                return
        yield batch


def listed_batches(bound: BoundStream) -> Iterator[RawBatch]:
    """Yield the batches of the stream's `existing`, with the errors of `pulled`."""
    latest: str | None = None
    with code_of(bound, "existing", lambda: latest):
        for batch in _read_by(bound, bound.stream.existing(bound.context)):
            _check(bound, batch, latest, method="existing")
            latest = batch.source
            yield batch


def fetched_batches(bound: BoundStream, keys: Sequence[tuple[str, ...]]) -> Iterator[RawBatch]:
    """Yield the batches of the stream's `fetch`, called for at most `Stream.fetch_size` of *keys* at a time.

    The errors are those of `pulled`.
    """
    latest: str | None = None
    guard = _Guard(bound, "fetch")
    size = bound.stream.fetch_size
    with code_of(bound, "fetch", lambda: latest):
        for start in range(0, len(keys), size):
            for batch in bound.stream.fetch(bound.context, keys[start : start + size]):
                _check(bound, batch, latest, method="fetch")
                latest = batch.source
                yield guard.around(batch)


def code_of(
    bound: BoundStream, method: str, after: Callable[[], str | None] = lambda: None
) -> AbstractContextManager[None]:
    return guarded(method, bound.name, code=bound.stream, settings=bound.context.settings, after=after)


class _Guard:
    """Wraps callables of a batch so that they raise the errors of `pulled`. Equal callables stay equal."""

    def __init__(self, bound: BoundStream, method: str = "pull") -> None:
        self._bound, self._method = bound, method
        self._made: dict[Again | Callable[[], str], Any] = {}

    def around(self, batch: RawBatch) -> RawBatch:
        again, proof = batch.again, batch.proof
        if again is not None and again not in self._made:
            self._made[again] = self._reading(again, batch.source)
        if proof is not None and proof.content not in self._made:
            self._made[proof.content] = self._naming(proof.content, batch.source)
        return replace(
            batch,
            again=None if again is None else self._made[again],
            proof=None if proof is None else replace(proof, content=self._made[proof.content]),
        )

    def _reading(self, again: Again, source: str) -> Again:
        def read(lines: Sequence[int] | None) -> Iterator[pl.DataFrame]:
            with code_of(self._bound, self._method, lambda: source):
                yield from again(lines)

        return read

    def _naming(self, content: Callable[[], str], source: str) -> Callable[[], str]:
        def name() -> str:
            with code_of(self._bound, self._method, lambda: source):
                return content()

        return name


def _check(bound: BoundStream, batch: object, latest: str | None, method: str = "pull") -> None:
    wrong = None
    source: object = getattr(batch, "source", None)
    cursor: object = getattr(batch, "cursor", None)
    if isinstance(batch, Checkpoint) and method == "pull":
        if not (isinstance(cursor, str) and is_storable(cursor)):
            wrong = "yielded a checkpoint whose cursor is not storable text"
    elif not isinstance(batch, RawBatch):
        wrong = f"yielded a {type(batch).__name__} instead of a RawBatch"
    elif not isinstance(source, str) or not is_storable(source):
        wrong = "yielded a batch whose source is not storable text"
    elif cursor is not None and not (isinstance(cursor, str) and is_storable(cursor)):
        wrong = "yielded a batch whose cursor is not storable text"
    elif batch.deleted and (method == "existing" or not bound.stream.yields_deleted):
        wrong = "yielded a batch that names deleted records, which the stream does not declare (yields_deleted = True)"
    if wrong is not None:
        read = f" after {latest}" if latest else ""
        raise ConnectorError(f"{method} {wrong}{read}", where=bound.name, hint="fix the connector")
