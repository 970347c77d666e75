"""Getting in: host keys before anything else, credentials, and what is said when it fails."""

from __future__ import annotations

import io
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import paramiko
import pytest
from tests.servers import require

from crossdock.errors import ConfigError, CrossdockError, UnauthorizedError, UnavailableError
from crossdock.reading.transport.sftp_store import SftpLogin, connect
from crossdock.reading.transport.ssh_connection_and_sftp_protocol import OLD_ALGORITHMS, OldAlgorithm
from crossdock.testing.manual_clock import ManualClock
from crossdock.testing.openssh_server import OpenSshServer
from crossdock.testing.sftp_server import SftpServer

STRANGER = "SHA256:" + "A" * 43

pytestmark = pytest.mark.usefixtures("nothing_left")


@pytest.mark.parametrize("by", ["password", "key", "wrong key, then password"])
def test_logs_in(server: SftpServer, login: SftpLogin, by: str) -> None:
    """A password, a private key, or the second of the two where the first is refused, opens the door."""
    stranger_key = io.StringIO()
    paramiko.ECDSAKey.generate().write_private_key(stranger_key)
    logins = {
        "password": login,
        "key": replace(login, password=None, private_key=server.client_key),
        "wrong key, then password": replace(login, private_key=stranger_key.getvalue()),
    }
    with connect(logins[by]) as session:
        assert session.list("", "*") == []


def test_any_pinned_fingerprint_will_do(server: SftpServer, login: SftpLogin) -> None:
    """While a server changes its key, both the old and the new one are trusted; padding does not matter."""
    with connect(replace(login, host_key=(STRANGER, server.fingerprint + "="))) as session:
        assert session.list("", "*") == []


@pytest.mark.openssh
def test_the_pinned_key_may_be_of_any_kind_the_server_has(openssh: OpenSshServer, openssh_login: SftpLogin) -> None:
    """Partners often publish the RSA fingerprint though their server shows another key first."""
    with connect(replace(openssh_login, host_key=openssh.rsa_fingerprint)) as session:
        assert isinstance(session.list("", "*"), list)


def test_no_host_key_is_refused_before_login_and_tells_what_it_saw(server: SftpServer, login: SftpLogin) -> None:
    """Without a pinned key nobody logs in; the error has the fingerprint to compare."""
    with pytest.raises(ConfigError) as caught:
        connect(replace(login, host_key=None))
    assert server.fingerprint in str(caught.value)
    assert "host_key" in str(caught.value)
    assert server.logins == []


@pytest.mark.parametrize("case", ["never right", "changed"])
def test_another_host_key_is_refused_before_login(server: SftpServer, login: SftpLogin, case: str) -> None:
    """A server with another key gets no credentials, and the error has both fingerprints."""
    if case == "changed":
        connect(login).close()
        server.logins.clear()
        pinned = server.fingerprint
        server.replace_host_key()
    else:
        pinned = STRANGER
    with pytest.raises(UnauthorizedError) as caught:
        connect(replace(login, host_key=pinned))
    text = str(caught.value)
    assert server.fingerprint in text
    assert pinned in text
    assert f"{server.user}@127.0.0.1:{server.port}" in text
    assert server.logins == []


@pytest.mark.openssh
def test_every_host_key_that_was_seen_is_told(openssh: OpenSshServer, openssh_login: SftpLogin) -> None:
    """The error names all keys of a server that has several."""
    with pytest.raises(UnauthorizedError) as caught:
        connect(replace(openssh_login, host_key=STRANGER))
    assert openssh.fingerprint in str(caught.value)
    assert openssh.rsa_fingerprint in str(caught.value)


@pytest.mark.parametrize("fingerprint", ["16:27:ac:a5:76:28:2d:36:63:1b:56:4d:eb:df:a6:48", "SHA256:short", ""])
def test_a_malformed_fingerprint_is_a_config_error(login: SftpLogin, fingerprint: str) -> None:
    """MD5 and cut fingerprints are named, and how to get a good one."""
    with pytest.raises(ConfigError, match="not a SHA256 fingerprint"):
        connect(replace(login, host_key=fingerprint))


def test_a_wrong_password_is_unauthorized_and_stays_secret(server: SftpServer, login: SftpLogin) -> None:
    """The error tells user, host and method, never the password."""
    with pytest.raises(UnauthorizedError, match="does not accept the password of 'export'") as caught:
        connect(replace(login, password="canary-5f1c"))
    assert "canary-5f1c" not in str(caught.value)
    assert "canary-5f1c" not in repr(replace(login, password="canary-5f1c"))
    assert server.logins == [("password", "export")]


@pytest.mark.openssh
def test_a_wrong_key_is_unauthorized(openssh_login: SftpLogin, server: SftpServer) -> None:
    """A key that the server does not know is refused by name."""
    with pytest.raises(UnauthorizedError, match="does not accept the private key of"):
        connect(replace(openssh_login, private_key=server.client_key))


@pytest.mark.openssh
def test_a_method_the_server_does_not_offer_is_unauthorized(openssh_login: SftpLogin) -> None:
    """A password is refused where only keys are allowed."""
    with pytest.raises(UnauthorizedError, match="does not accept the password of"):
        connect(replace(openssh_login, private_key=None, password="x"))


def test_credentials_are_needed(login: SftpLogin) -> None:
    """Neither a password nor a key is an error of the configuration."""
    with pytest.raises(ConfigError, match="neither password nor private_key"):
        connect(replace(login, password=None))


@pytest.mark.parametrize("kind", ["openssh", "pem"])
def test_an_encrypted_key_needs_its_passphrase(server: SftpServer, login: SftpLogin, kind: str) -> None:
    """No passphrase, a wrong one and the right one are told apart, without a word of the key."""
    key = paramiko.ECDSAKey.from_private_key(io.StringIO(server.client_key))
    text = io.StringIO()
    form = paramiko.pkey.OPENSSH if kind == "openssh" else paramiko.pkey.PEM
    key.write_private_key(text, password="canary-pass", file_format=form)
    encrypted = replace(login, password=None, private_key=text.getvalue())
    with pytest.raises(ConfigError, match="private_key is encrypted"):
        connect(encrypted)
    with pytest.raises(ConfigError, match="cannot be read with this passphrase") as caught:
        connect(replace(encrypted, passphrase="canary-wrong"))
    assert "canary" not in str(caught.value)
    with connect(replace(encrypted, passphrase="canary-pass")) as session:
        assert session.list("", "*") == []


@pytest.mark.parametrize("text", ["", "canary", "-----BEGIN PRIVATE KEY-----\ncanary\n-----END PRIVATE KEY-----\n"])
def test_an_unreadable_key_is_a_config_error(login: SftpLogin, text: str) -> None:
    """What is no key is refused before a connection is made, without quoting it."""
    with pytest.raises(ConfigError, match="private_key cannot be read") as caught:
        connect(replace(login, private_key=text))
    assert "canary" not in str(caught.value)


def test_nobody_listening_is_unavailable(login: SftpLogin) -> None:
    """A refused connection says so, with the host."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(UnavailableError, match=rf"export@127.0.0.1:{port}: cannot connect: .*refused"):
        connect(replace(login, port=port))


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a" * 70 + ".invalid", "a..b"])
def test_an_unknown_host_is_unavailable(login: SftpLogin, host: str) -> None:
    """A name that cannot be resolved, or can be none, says so."""
    with pytest.raises(UnavailableError, match="cannot connect"):
        connect(replace(login, host=host))


def test_all_addresses_of_a_host_share_one_deadline(login: SftpLogin, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name with very many addresses, of which none answers, costs no more than one that has one."""
    clock, tried = ManualClock(), list[float]()

    def silent(_address: object, timeout: float) -> socket.socket:
        tried.append(timeout)
        clock.advance(min(timeout, 6))
        raise TimeoutError("timed out")

    addresses = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (f"127.0.0.{n}", 22)) for n in range(1, 100)]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: addresses)
    monkeypatch.setattr(socket, "create_connection", silent)
    with pytest.raises(UnavailableError, match="cannot connect: timed out"):
        connect(replace(login, connect_timeout_s=15), clock=clock)
    assert tried == [15, 9, 3]


@contextmanager
def talker(talk: Callable[[socket.socket, threading.Event], None]) -> Iterator[int]:
    """A server that says what it likes to each client, until the end."""
    over = threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))
    threads: list[threading.Thread] = []

    def serve(client: socket.socket) -> None:
        with client, suppress(OSError):
            talk(client, over)

    def accept() -> None:
        with suppress(OSError):
            while True:
                threads.append(threading.Thread(target=serve, args=(listener.accept()[0],)))
                threads[-1].start()

    threads.append(threading.Thread(target=accept))
    threads[0].start()
    try:
        yield listener.getsockname()[1]
    finally:
        over.set()
        listener.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join()
        listener.close()


def silent(_: socket.socket, over: threading.Event) -> None:
    over.wait()


def greets_only(client: socket.socket, over: threading.Event) -> None:
    client.sendall(b"SSH-2.0-silent\r\n")
    over.wait()


def drips(client: socket.socket, over: threading.Event) -> None:
    while not over.wait(0.05):
        client.sendall(b"x")


@pytest.mark.parametrize("talk", [silent, greets_only, drips])
def test_a_peer_that_does_not_come_to_the_point_is_unavailable(
    login: SftpLogin, talk: Callable[[socket.socket, threading.Event], None]
) -> None:
    """Silence before or after the greeting, and a byte now and then, end at the deadline."""
    with talker(talk) as port, pytest.raises(UnavailableError, match=r"no answer for 0.3 s while exchanging keys"):
        connect(replace(login, port=port, connect_timeout_s=0.3))


@pytest.mark.parametrize(
    "said", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\xff\xfe\r\n", b"SSH-2.0-x\r\n" + b"\xff" * 64, b""]
)
def test_a_peer_that_speaks_something_else_is_unavailable(login: SftpLogin, said: bytes) -> None:
    """A web server, garbage and a closed door are translated like everything else."""

    def talk(client: socket.socket, _: threading.Event) -> None:
        client.sendall(said)

    with talker(talk) as port, pytest.raises(UnavailableError, match="exchanging keys"):
        connect(replace(login, port=port, connect_timeout_s=2))


@pytest.mark.parametrize(
    ("said", "message"),
    [
        pytest.param(b"HTTP/1.1 200 canary\r\n" * 100, "what answers is not an SSH server", id="another protocol"),
        pytest.param(b"SSH-canary\r\n", "what answers is not an SSH server", id="no version"),
        pytest.param(b"SSH-1.canary-x\r\n", "does not speak SSH 2.0", id="another version"),
        pytest.param(b"SSH-2.0-x\r\n" + b"canary" * 20, "keep to the SSH protocol|a damaged packet", id="no packet"),
        pytest.param(b"\xffcanary\r\n", "no SSH banner|not an SSH server", id="no text"),
    ],
)
def test_what_a_peer_says_is_not_shown(login: SftpLogin, said: bytes, message: str) -> None:
    """Why no session came about is a sentence of ours; paramiko's texts quote the greeting."""

    def talk(client: socket.socket, over: threading.Event) -> None:
        client.sendall(said)
        over.wait()

    with talker(talk) as port, pytest.raises((UnavailableError, ConfigError), match=message) as caught:
        connect(replace(login, port=port, connect_timeout_s=5))
    assert "canary" not in str(caught.value)


def test_a_login_that_is_not_answered_is_unavailable(server: SftpServer, login: SftpLogin) -> None:
    """A server that hangs while it checks the password is no refusal."""
    server.faults.stall_login = True
    with pytest.raises(UnavailableError, match=r"no answer for 0.3 s while logging in by password"):
        connect(replace(login, timeout_s=0.3))


@pytest.mark.nightly(but=["old0", "old2", "old3"])
@pytest.mark.openssh
@pytest.mark.parametrize(
    ("line", "kind", "ours", "old"),
    [
        (
            "KexAlgorithms diffie-hellman-group14-sha1",
            "kex algorithm",
            "curve25519-sha256",
            ["diffie-hellman-group14-sha1"],
        ),
        ("HostKeyAlgorithms ssh-rsa", "host key", "ssh-ed25519", ["ssh-rsa"]),
        ("Ciphers aes128-cbc,3des-cbc", "ciphers", "aes256-ctr", ["aes128-cbc"]),
        ("Ciphers aes128-ctr\nMACs hmac-sha1,hmac-md5", "macs", "hmac-sha2-256", ["hmac-sha1"]),
    ],
)
def test_an_old_algorithm_is_used_only_if_it_is_permitted(
    tmp_path: Path, line: str, kind: str, ours: str, old: list[OldAlgorithm]
) -> None:
    """The error names what both sides offer and the setting that permits it; with it, the session warns."""
    require(OpenSshServer.available(), "an OpenSSH server")
    with OpenSshServer(tmp_path, extra=line) as server:
        login = SftpLogin(
            host=server.host,
            port=server.port,
            user=server.user,
            private_key=server.client_key,
            host_key=(server.fingerprint, server.rsa_fingerprint),
        )
        with pytest.raises(ConfigError) as caught:
            connect(login)
        assert re.search(
            f"no acceptable {kind}: the server offers .*{old[0]}.* and none of .*{ours}", str(caught.value)
        )
        assert f"old_algorithms: [{old[0]}]" in str(caught.value.hint)
        with connect(replace(login, old_algorithms=tuple(old))) as session:
            assert session.list("", "*") == []
            assert [old[0] in warning for warning in session.warnings] == [True]


@pytest.mark.openssh
def test_what_is_permitted_is_not_used_where_there_is_better(openssh_login: SftpLogin) -> None:
    """All old algorithms are permitted, and none is used."""
    with connect(replace(openssh_login, old_algorithms=tuple(OLD_ALGORITHMS))) as session:
        assert session.warnings == []


@pytest.mark.openssh
def test_a_server_without_sftp_is_told(tmp_path: Path) -> None:
    """A login that opens no SFTP says at which step it ended."""
    require(OpenSshServer.available(), "an OpenSSH server")
    with OpenSshServer(tmp_path, extra="Match all\nForceCommand /bin/false") as server:
        login = SftpLogin(
            host=server.host,
            port=server.port,
            user=server.user,
            private_key=server.client_key,
            host_key=server.fingerprint,
        )
        with pytest.raises(UnavailableError, match="opening SFTP"):
            connect(login)


def paramiko_errors() -> list[Exception]:
    """One of each exception class that paramiko defines, however deep."""
    made: dict[Any, Callable[[], Exception]] = {
        paramiko.BadHostKeyException: lambda: paramiko.BadHostKeyException("h", KEY, KEY),
        paramiko.BadAuthenticationType: lambda: paramiko.BadAuthenticationType("no", ["x"]),
        paramiko.ChannelException: lambda: paramiko.ChannelException(1, "no"),
        paramiko.hostkeys.InvalidHostKey: lambda: paramiko.hostkeys.InvalidHostKey("line", ValueError()),
        paramiko.ssh_exception.NoValidConnectionsError: lambda: paramiko.ssh_exception.NoValidConnectionsError(
            {("127.0.0.1", 22): OSError()}
        ),
        paramiko.pkey.UnknownKeyType: lambda: paramiko.pkey.UnknownKeyType("x", b""),
        paramiko.ProxyCommandFailure: lambda: paramiko.ProxyCommandFailure("c", "no"),
        paramiko.ssh_exception.PartialAuthentication: lambda: paramiko.ssh_exception.PartialAuthentication(["x"]),
    }
    found: dict[type[Exception], Exception] = {}
    pending: list[type[Exception]] = [Exception]
    while pending:
        for kind in pending.pop().__subclasses__():
            pending.append(kind)
            if kind.__module__.startswith("paramiko"):
                found[kind] = made.get(kind, partial(kind, "no"))()
    return list(found.values())


KEY = paramiko.ECDSAKey.generate()


EVERY_ERROR = [*paramiko_errors(), EOFError(), OSError(5, "io"), ValueError("x")]
LATER_STEPS = ["get_remote_server_key", "auth_password", "set_keepalive", "open_session"]


@pytest.mark.parametrize(
    ("step", "error"),
    [("start_client", error) for error in EVERY_ERROR]
    + [(step, error) for step in LATER_STEPS for error in (paramiko.SSHException("no"), EOFError(), ValueError("x"))],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_no_error_of_paramiko_gets_through(
    login: SftpLogin, monkeypatch: pytest.MonkeyPatch, step: str, error: Exception
) -> None:
    """Whatever class paramiko raises, and at whichever step, crossdock's callers see one of ours."""

    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(paramiko.Transport, step, fail)
    with pytest.raises(CrossdockError) as caught:
        connect(replace(login, connect_timeout_s=2))
    assert isinstance(caught.value, UnavailableError | UnauthorizedError | ConfigError)
