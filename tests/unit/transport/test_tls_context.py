"""TLS contexts: which certificates are trusted, and which one is shown."""

from __future__ import annotations

import os
import ssl
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import trustme
from cryptography.hazmat.primitives import serialization

from crossdock.errors import ConfigError
from crossdock.reading.transport.proxy_and_tls_settings import HttpConnection, tls_context
from crossdock.values.config_base_types import Secret


@pytest.fixture
def client_pem(tmp_path: Path) -> Path:
    """A certificate with its key."""
    path = tmp_path / "client.pem"
    trustme.CA().issue_cert("sync@example.com").private_key_and_cert_chain_pem.write_to_path(str(path))
    path.chmod(0o600)
    return path


def test_certificates_are_verified() -> None:
    """The context is shared by all clients."""
    context = tls_context()
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert tls_context() is context


def test_senders_that_start_together_share_a_context(client_pem: Path) -> None:
    """Certificates are read once, also by threads that need them at the same time."""
    connection, together = HttpConnection(client_certificate=client_pem), threading.Barrier(4)

    def wanted(_: int) -> ssl.SSLContext:
        together.wait(30)
        return tls_context(connection)

    with ThreadPoolExecutor(4) as threads:
        assert len(set(threads.map(wanted, range(4)))) == 1


def test_certificates_come_from_a_regular_file(tmp_path: Path) -> None:
    """A pipe instead of `ca_file` is refused at once, and so is a file without certificates."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigError, match="contains no certificates: .*not a regular file"):
        tls_context(HttpConnection(ca_file=tmp_path / "pipe"))
    (tmp_path / "text").write_text("no certificate")
    with pytest.raises(ConfigError, match="contains no certificates: "):
        tls_context(HttpConnection(ca_file=tmp_path / "text"))


def test_certificates_of_the_environment_need_trust_env(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`SSL_CERT_FILE` counts only with it, and not beside `ca_file`; keys of connections are never logged."""
    named, own = tmp_path / "named.pem", tmp_path / "own.pem"
    trustme.CA(organization_name="named").cert_pem.write_to_path(str(named))
    trustme.CA(organization_name="own").cert_pem.write_to_path(str(own))
    monkeypatch.setenv("SSL_CERT_FILE", str(named))
    monkeypatch.delenv("SSL_CERT_DIR", raising=False)
    monkeypatch.setenv("SSLKEYLOGFILE", str(tmp_path / "keys"))

    def trusted(**settings: Any) -> set[str]:
        text = str(tls_context(HttpConnection(**settings)).get_ca_certs())
        return {name for name in ("named", "own") if f"'organizationName', '{name}'" in text}

    assert trusted() == set()
    assert trusted(trust_env=True) == {"named"}
    assert trusted(trust_env=True, ca_file=own) == trusted(ca_file=own) == {"own"}
    assert not (tmp_path / "keys").exists()


def test_a_replaced_file_is_read_again(tmp_path: Path) -> None:
    """A service that runs for months uses the renewed certificate."""
    ca_file = tmp_path / "ca.pem"
    connection = HttpConnection(ca_file=ca_file)
    trustme.CA(organization_name="old").cert_pem.write_to_path(str(ca_file))
    before = tls_context(connection)
    assert tls_context(connection) is before
    trustme.CA(organization_name="renewed").cert_pem.write_to_path(str(ca_file))
    os.utime(ca_file, (1, 1))
    assert "renewed" in str(tls_context(connection).get_ca_certs())


def test_a_client_certificate_is_checked(client_pem: Path, tmp_path: Path) -> None:
    """Without its key, with the key of another, or with a key that others may read, it is refused with its file."""
    tls_context(HttpConnection(client_certificate=client_pem))
    client_pem.chmod(0o644)
    with pytest.raises(ConfigError, match="others may read this private key") as refused:
        tls_context(HttpConnection(client_certificate=client_pem))
    assert refused.value.hint == f"chmod 600 {client_pem}"
    client_pem.chmod(0o600)
    other = tmp_path / "other.key"
    trustme.CA().issue_cert("other@example.com").private_key_pem.write_to_path(str(other))
    other.chmod(0o600)
    with pytest.raises(ConfigError, match="the private key is not that of the certificate"):
        tls_context(HttpConnection(client_certificate=client_pem, client_key=other))
    with pytest.raises(ConfigError, match="contains no usable certificate with its key"):
        tls_context(HttpConnection(client_certificate=other))
    with pytest.raises(ConfigError, match="cannot be read: No such file") as missing:
        tls_context(HttpConnection(client_certificate=tmp_path / "missing"))
    assert missing.value.where == str(tmp_path / "missing")


@pytest.mark.parametrize(("passphrase", "works"), [("correct horse", True), ("wrong", False), (None, False)])
def test_an_encrypted_key_needs_its_passphrase(
    client_pem: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, passphrase: str | None, works: bool
) -> None:
    """Nobody is asked at the terminal."""
    key = serialization.load_pem_private_key(client_pem.read_bytes(), None)
    how = serialization.BestAvailableEncryption(b"correct horse")
    encrypted = tmp_path / "encrypted.key"
    encrypted.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, how))
    encrypted.chmod(0o600)
    secret = None
    if passphrase is not None:
        monkeypatch.setenv("PASSPHRASE", passphrase)
        secret = Secret("env:PASSPHRASE", tmp_path)
    connection = HttpConnection(client_certificate=client_pem, client_key=encrypted, client_key_passphrase=secret)
    if works:
        tls_context(connection)
    else:
        with pytest.raises(ConfigError, match="no usable certificate") as refused:
            tls_context(connection)
        assert "client_key_passphrase" in str(refused.value.hint)
