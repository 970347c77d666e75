"""Settings of a warehouse that writes files to an SFTP server."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from crossdock import SecretRef, Settings
from crossdock.sources import HostName, OldAlgorithm
from crossdock_connectors.warehouse.settings import WarehouseSettings


def _check_fingerprint(text: str) -> str:
    if not re.fullmatch(r"SHA256:[A-Za-z0-9+/]{43}=?", text):
        raise ValueError("must be a fingerprint as 'ssh-keygen -lf' prints it: SHA256:...")
    return text


Fingerprint = Annotated[str, AfterValidator(_check_fingerprint)]


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
