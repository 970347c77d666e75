"""Streams over the files of a warehouse; the config declares their mapping."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from crossdock import Context, CrossdockError, DeclaredStream, Finding, RawBatch
from crossdock.sources import Expectation, FileSource, FileStore, StreamId, UnavailableError
from crossdock_connectors.warehouse.settings import SourceConfig, WarehouseSettings, WarehouseStreamConfig

W = TypeVar("W", bound=WarehouseSettings)
OpenStore = Callable[[W], FileStore]
"""Opens the store of a warehouse's files."""


class WarehouseStream(DeclaredStream[W]):
    """A stream over the files of a warehouse."""

    def __init__(
        self, name: str, config: WarehouseStreamConfig, source: SourceConfig, open_store: OpenStore[W]
    ) -> None:
        merged = config.model_copy(
            update={"columns": {**source.columns, **config.columns}, "skip": {**source.skip, **config.skip}}
        )
        super().__init__(name, merged, source.format.model_dump(exclude_none=True))
        self.files, self.format, self.wait = source.files, source.format, source.wait
        is_usual = self.mode == "snapshot" and (self.wait is None or self.wait.then == "fail")
        self._expectation = Expectation(source.required, source.expect, is_usual)
        self.peers: Sequence[WarehouseStream[W]] = (self,)
        self._open_store = open_store

    def pull(self, ctx: Context[W], since: str | None) -> Iterator[RawBatch]:
        del since  # the intake log knows files by content
        return self._source(ctx).read(self.stream_id(ctx), self._expectation)

    def finished(self, ctx: Context[W]) -> None:
        self._source(ctx).finished(self.stream_id(ctx))

    def stream_id(self, ctx: Context[Any]) -> StreamId:
        """The stream's identity in the intake log."""
        return StreamId(f"{ctx.connection}.{self.name}", self.version)

    def _source(self, ctx: Context[W]) -> FileSource:
        def make() -> FileSource:
            return FileSource(
                self.files,
                self.format,
                lambda: _session(ctx, self._open_store, again=self.wait is not None and ctx.run.patience is not None),
                ctx.run,
                settle_s=ctx.settings.settle_s,
                snapshot=self.mode == "snapshot",
                stream_ids=[peer.stream_id(ctx) for peer in self.peers],
                wait=self.wait,
            )

        return ctx.shared(self.peers, make)


def streams(settings: W, open_store: OpenStore[W]) -> Sequence[WarehouseStream[W]]:
    """The configured streams; those with equal files, layout and mode share one source, which is read once."""
    made = [
        WarehouseStream(name, config, settings.source_of(config), open_store)
        for name, config in settings.streams.items()
    ]
    for stream in made:
        stream.peers = tuple(other for other in made if _shares(stream, other))
    return made


def _shares(one: WarehouseStream[Any], other: WarehouseStream[Any]) -> bool:
    return (one.files, one.format, one.mode == "snapshot") == (other.files, other.format, other.mode == "snapshot")


def _session(ctx: Context[W], open_store: OpenStore[W], *, again: bool) -> FileStore:
    """A session; a failed log-in is not repeated in this run, so that no account is locked.

    Args:
        again: Retry a server that was unavailable, in a run that waits for its files.
    """
    failures: list[CrossdockError] = ctx.shared("failed logins", list)
    if failures and not (again and isinstance(failures[0], UnavailableError)):
        raise failures[0]
    try:
        session = open_store(ctx.settings)
    except CrossdockError as failure:
        failures[:] = [failure]
        raise
    failures.clear()
    return session


def check(settings: W, open_store: OpenStore[W], opened: str) -> Iterator[Finding]:
    """Open the store, report *opened*, and count the files of every pattern."""
    with open_store(settings) as store:
        yield Finding(ok=True, text=opened)
        for files in dict.fromkeys(stream.files for stream in streams(settings, open_store)):
            folder, _, pattern = files.rpartition("/")
            try:
                found = store.list(folder, pattern)
            except CrossdockError as error:
                yield Finding(ok=False, text=f"{files}: {error.message}")
            else:
                yield Finding(ok=bool(found), text=f"{files}: {len(found)} files, {sum(f.size for f in found):,} bytes")
