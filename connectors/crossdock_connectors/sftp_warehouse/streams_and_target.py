"""Streams over the files on an SFTP server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from crossdock import Context, Finding
from crossdock.sources import FileStore, SftpLogin, connect
from crossdock_connectors.sftp_warehouse.settings import SftpWarehouseSettings
from crossdock_connectors.warehouse import streams as warehouse

if TYPE_CHECKING:
    from crossdock.targets import FileTarget


def streams(settings: SftpWarehouseSettings) -> Sequence[warehouse.WarehouseStream[SftpWarehouseSettings]]:
    return warehouse.streams(settings, _open)


def check(ctx: Context[SftpWarehouseSettings]) -> Iterator[Finding]:
    opened = f"logged in as {ctx.settings.user}@{ctx.settings.host}, host key as pinned"
    return warehouse.check(ctx.settings, _open, opened)


def target(settings: SftpWarehouseSettings) -> FileTarget | None:
    address = f"sftp://{settings.user}@{settings.host}:{settings.port}"
    return warehouse.target(settings, lambda: connect(sftp_login(settings)), address)


def _open(settings: SftpWarehouseSettings) -> FileStore:
    return connect(sftp_login(settings))


def sftp_login(settings: SftpWarehouseSettings) -> SftpLogin:
    """Return the address and credentials for the log-in. This reads the secrets."""
    return SftpLogin(
        host=settings.host,
        port=settings.port,
        user=settings.user,
        password=settings.password.reveal() if settings.password else None,
        private_key=settings.private_key.reveal() if settings.private_key else None,
        passphrase=settings.passphrase.reveal() if settings.passphrase else None,
        host_key=settings.host_key,
        timeout_s=settings.timeout_s,
        min_bytes_per_s=settings.min_bytes_per_s,
        old_algorithms=settings.old_algorithms,
    )
