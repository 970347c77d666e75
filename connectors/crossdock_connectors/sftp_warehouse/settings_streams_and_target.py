"""The settings, streams and target of a warehouse that exchanges files by an SFTP server."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from crossdock import Context, Finding, SecretRef, Settings
from crossdock.sources import FileStore, HostName, OldAlgorithm, SftpLogin, connect
from crossdock_connectors.warehouse import settings_and_streams as warehouse
from crossdock_connectors.warehouse.settings_and_streams import WarehouseSettings

if TYPE_CHECKING:
    from crossdock.targets import FileTarget


def _checked_fingerprint(text: str) -> str:
    if not re.fullmatch(r"SHA256:[A-Za-z0-9+/]{43}=?", text):
        raise ValueError("must be a fingerprint as 'ssh-keygen -lf' prints it: SHA256:...")
    return text


Fingerprint = Annotated[str, AfterValidator(_checked_fingerprint)]


class SftpServerSettings(Settings):
    """An SFTP server, and who logs in there."""

    host: HostName
    """The server."""
    port: Annotated[int, Field(ge=1, le=65535)] = 22
    """The port."""
    user: str
    """The user."""
    password: SecretRef | None = None
    """The password. A password or a private key is required."""
    private_key: SecretRef | None = None
    """The key itself, usually ``file:~/.ssh/NAME``."""
    passphrase: SecretRef | None = None
    """The passphrase of the private key."""
    host_key: Fingerprint | tuple[Fingerprint, ...]
    """Fingerprint of the server's key, or several, as ``ssh-keygen -lf`` prints it: ``SHA256:...``."""
    timeout_s: Annotated[float, Field(gt=0, le=86_400)] = 30.0
    """Seconds that the server may be silent; a listing may take ten times as long."""
    min_bytes_per_s: Annotated[float, Field(gt=0)] = 32_768
    """The lowest average rate of a transfer beyond the first ``timeout_s``; slower servers count as unavailable."""
    old_algorithms: tuple[OldAlgorithm, ...] = ()
    """Unsafe algorithms that this server may use if it has nothing better; each run warns of those that it uses."""

    @property
    def source_host(self) -> str | None:
        return f"{self.host}:{self.port}"

    @model_validator(mode="after")
    def _check_credential(self) -> Self:
        if self.password is None and self.private_key is None:
            raise ValueError("give a password or a private_key")
        return self


class SftpWarehouseSettings(WarehouseSettings, SftpServerSettings):  # the server's members come first
    """A warehouse that exports files to an SFTP server."""

    kind: Literal["sftp_warehouse"]


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
