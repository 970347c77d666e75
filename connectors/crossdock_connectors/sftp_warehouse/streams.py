"""Streams over the files of a warehouse: what is read; how it is mapped stands in the config."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from crossdock import Context, CrossdockError, DeclaredStream, Finding, RawBatch
from crossdock.sources import FileSource, FileStore, Reader, SftpLogin, UnavailableError, connect
from crossdock_connectors.sftp_warehouse.settings import SftpWarehouseSettings, SourceConfig, WarehouseStreamConfig


class WarehouseStream(DeclaredStream[SftpWarehouseSettings]):
    """A stream over files on an SFTP server."""

    def __init__(self, name: str, config: WarehouseStreamConfig, source: SourceConfig) -> None:
        whole = config.model_copy(
            update={"columns": {**source.columns, **config.columns}, "skip": {**source.skip, **config.skip}}
        )
        super().__init__(name, whole, source.format.model_dump(exclude_none=True))
        self.files, self.format, self.wait = source.files, source.format, source.wait
        self.peers: Sequence[WarehouseStream] = (self,)

    def pull(self, ctx: Context[SftpWarehouseSettings], since: str | None) -> Iterator[RawBatch]:
        del since  # the intake remembers by content
        return self._source(ctx).read(self.reader(ctx))

    def finished(self, ctx: Context[SftpWarehouseSettings]) -> None:
        self._source(ctx).finished(self.reader(ctx))

    def reader(self, ctx: Context[Any]) -> Reader:
        """Who reads, as the intake knows it."""
        return Reader(f"{ctx.connection}.{self.name}", self.version)

    def _source(self, ctx: Context[SftpWarehouseSettings]) -> FileSource:
        def make() -> FileSource:
            return FileSource(
                self.files,
                self.format,
                lambda: _session(ctx, again=self.wait is not None and ctx.place.patience is not None),
                ctx.place,
                settle_s=ctx.settings.settle_s,
                snapshot=self.mode == "snapshot",
                readers=[peer.reader(ctx) for peer in self.peers],
                wait=self.wait,
            )

        return ctx.shared(self.peers, make)


def streams(settings: SftpWarehouseSettings) -> Sequence[WarehouseStream]:
    """The configured streams; those with one source, or with equal files, layout and mode, share its reading."""
    made = [WarehouseStream(name, config, settings.source_of(config)) for name, config in settings.streams.items()]
    for stream in made:
        stream.peers = tuple(other for other in made if _shares(stream, other))
    return made


def _shares(one: WarehouseStream, other: WarehouseStream) -> bool:
    return (one.files, one.format, one.mode == "snapshot") == (other.files, other.format, other.mode == "snapshot")


def _session(ctx: Context[SftpWarehouseSettings], *, again: bool) -> FileStore:
    """A session; a login that failed is not tried again in this run, so that no account gets locked.

    Args:
        again: Ask a server that did not answer again, as who waits for it must.
    """
    failures: list[CrossdockError] = ctx.shared("failed logins", list)
    if failures and not (again and isinstance(failures[0], UnavailableError)):
        raise failures[0]
    try:
        session = connect(login(ctx.settings))
    except CrossdockError as failure:
        failures[:] = [failure]
        raise
    failures.clear()
    return session


def login(settings: SftpWarehouseSettings) -> SftpLogin:
    """Where to log in and as whom; reads the secrets."""
    return SftpLogin(
        host=settings.host,
        port=settings.port,
        user=settings.user,
        password=settings.password.reveal() if settings.password else None,
        private_key=settings.private_key.reveal() if settings.private_key else None,
        passphrase=settings.passphrase.reveal() if settings.passphrase else None,
        host_key=settings.host_key,
        timeout_s=settings.timeout_s,
    )


def check(ctx: Context[SftpWarehouseSettings]) -> Iterator[Finding]:
    """Log in, and count the files of every pattern."""
    with connect(login(ctx.settings)) as session:
        yield Finding(ok=True, text=f"logged in as {ctx.settings.user}@{ctx.settings.host}, host key as pinned")
        for files in dict.fromkeys(stream.files for stream in streams(ctx.settings)):
            folder, _, pattern = files.rpartition("/")
            try:
                found = session.list(folder, pattern)
            except CrossdockError as error:
                yield Finding(ok=False, text=f"{files}: {error.message}")
            else:
                yield Finding(ok=bool(found), text=f"{files}: {len(found)} files, {sum(f.size for f in found):,} bytes")
