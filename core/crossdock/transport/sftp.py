"""Files from an SFTP server: the only door to paramiko.

Everything paramiko raises is turned into an error of ours here, once. No wait lasts longer than its deadline: a
watchdog closes the connection under it, since paramiko has waits that know no time limit.
"""

from __future__ import annotations

import hmac
import io
import logging
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import paramiko

from crossdock.errors import ConfigError, CrossdockError, UnauthorizedError, UnavailableError
from crossdock.transport.sftp_session import Link, SftpSession
from crossdock.transport.sftp_wire import ProtocolError, SftpWire, StatusError
from crossdock.transport.ssh_offer import Offer, read_offer
from crossdock.transport.watchdog import Watchdog

__all__ = ["SftpLogin", "SftpSession", "connect"]

_MAX_PACKET = 64 * 1024  # holds an answer of 32 KiB in one piece
_KEEPALIVE_S = 15
_CIPHERS = ("aes128-gcm@openssh.com", "aes256-gcm@openssh.com", "aes128-ctr", "aes192-ctr", "aes256-ctr")
_REFUSED_MACS = ("hmac-md5", "hmac-md5-96", "hmac-sha1", "hmac-sha1-96")
_KEY_KINDS = {
    "ED25519": ("ssh-ed25519",),
    "ECDSA": ("ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521"),
    "RSA": ("rsa-sha2-512", "rsa-sha2-256"),
}
_FINGERPRINT = re.compile(r"SHA256:[A-Za-z0-9+/]{43}=?")

# What goes wrong is raised; paramiko's own telling of it, with tracebacks, would only repeat it on stderr.
_LOG_NAME = "crossdock.transport.ssh"
logging.getLogger(_LOG_NAME).addHandler(logging.NullHandler())
logging.getLogger(_LOG_NAME).propagate = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SftpLogin:
    """Where to log in, as whom, and which host key proves that it is the right place.

    Attributes:
        private_key: The key itself (OpenSSH or PEM text), not its path.
        passphrase: Opens *private_key*.
        host_key: Fingerprints as ``ssh-keygen -lf`` prints them (``SHA256:...``); any of them will do.
        timeout_s: How long the server may be silent before it counts as unavailable.
        connect_timeout_s: The same for connecting and for exchanging keys.
        window_bytes: How much is asked for ahead; long links need more.
    """

    host: str
    user: str
    port: int = 22
    password: str | None = field(default=None, repr=False)
    private_key: str | None = field(default=None, repr=False)
    passphrase: str | None = field(default=None, repr=False)
    host_key: str | tuple[str, ...] | None = None
    timeout_s: float = 30.0
    connect_timeout_s: float = 15.0
    window_bytes: int = 8 * 1024 * 1024

    @property
    def where(self) -> str:
        return f"{self.user}@{self.host}" + (f":{self.port}" if self.port != 22 else "")


def connect(login: SftpLogin) -> SftpSession:
    """Connect, check the host key, and only then log in.

    Raises:
        ConfigError: If no host key, no credentials or an unreadable one is configured, or no algorithm is shared.
        UnauthorizedError: If the host key is another one, or the login is refused.
        UnavailableError: If the server cannot be reached or does not answer in time.
    """
    pinned = _pinned(login)
    key = _private_key(login)
    line = _trusted_line(login, pinned)
    try:
        _log_in(line, key)
        wire = line.open_sftp()
    except BaseException:
        line.close()
        raise
    return SftpSession(
        Link(wire, lambda doing: line.waiting(doing, login.timeout_s), line.close, login.where, login.window_bytes)
    )


class _Line:
    """An SSH connection whose waits all end."""

    def __init__(self, login: SftpLogin, refused_keys: tuple[str, ...]) -> None:
        self.login = login
        sock = _socket(login)
        self.transport = paramiko.Transport(
            sock, disabled_algorithms={"keys": refused_keys, "macs": _REFUSED_MACS}, default_max_packet_size=_MAX_PACKET
        )
        self.transport.set_log_channel(_LOG_NAME)
        self.transport.get_security_options().ciphers = _CIPHERS
        self.transport.banner_timeout = self.transport.handshake_timeout = 2 * login.connect_timeout_s
        self.transport.auth_timeout = self.transport.channel_timeout = 2 * login.timeout_s  # the watchdog comes first
        self._sock = sock
        self._watchdog = Watchdog(self._cut)

    def exchange_keys(self) -> paramiko.PKey:
        with self.waiting("exchanging keys", self.login.connect_timeout_s):
            self.transport.start_client()
            return self.transport.get_remote_server_key()

    @property
    def expired(self) -> bool:
        return self._watchdog.expired

    def open_sftp(self) -> SftpWire:
        with self.waiting("opening SFTP", self.login.timeout_s):
            self.transport.set_keepalive(_KEEPALIVE_S)
            channel = self.transport.open_session(window_size=self.login.window_bytes)
            channel.invoke_subsystem("sftp")
            wire = SftpWire(channel.sendall, channel.recv, self._watchdog.heard)
            wire.hello()
            return wire

    @contextmanager
    def waiting(self, doing: str, seconds: float) -> Iterator[None]:
        """Bound a wait on the server, and translate whatever it raises."""
        try:
            with self._watchdog.waiting(seconds):
                yield
        except (CrossdockError, StatusError):
            raise
        except Exception as error:  # paramiko hands on what its thread met, of any class
            raise _broken(self.login, doing, seconds if self.expired else None, error) from error

    def close(self) -> None:
        self._watchdog.close()
        self._cut()
        self.transport.packetizer.complete_handshake()  # ends its timer, which a failed handshake leaves running
        self._sock.close()
        if self.transport.ident is not None:
            self.transport.join()

    def _cut(self) -> None:
        with suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        self.transport.close()


def _socket(login: SftpLogin) -> socket.socket:
    try:
        sock = socket.create_connection((login.host, login.port), timeout=login.connect_timeout_s)
    except TimeoutError as error:
        raise UnavailableError(f"no answer within {login.connect_timeout_s:g} s", where=login.where) from error
    except (OSError, UnicodeError) as error:
        raise UnavailableError(f"cannot connect: {error}", where=login.where) from error
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # without it each request waits for the last one's ack
    return sock


def _broken(login: SftpLogin, doing: str, silent_s: float | None, error: Exception) -> UnavailableError:
    if silent_s is not None:
        return UnavailableError(f"no answer for {silent_s:g} s while {doing}", where=login.where)
    reason = " ".join(str(error).split()) or type(error).__name__
    return UnavailableError(f"the connection broke while {doing}: {reason[:300]}", where=login.where)


def _nothing_shared(login: SftpLogin, transport: paramiko.Transport) -> ConfigError:
    ours = Offer(
        transport.preferred_kex, transport.preferred_keys, transport.preferred_ciphers, transport.preferred_macs
    )
    try:
        with _socket(login) as sock:
            theirs = read_offer(sock, login.connect_timeout_s)
        reason = theirs.missing(ours)
    except (OSError, EOFError, ProtocolError):
        reason = "no algorithm is shared"
    return ConfigError(
        reason,
        where=login.where,
        hint="The server is too old to be talked to safely. Have it updated, or fetch its files by other means.",
    )


def _trusted_line(login: SftpLogin, pinned: tuple[str, ...]) -> _Line:
    """A connection to a server that holds the pinned host key.

    A server may hold keys of several kinds and shows one; the others are looked at before it is called a stranger.
    """
    seen: dict[str, str] = {}
    while len(seen) < len(_KEY_KINDS):
        line = _Line(login, tuple(name for kind in seen for name in _KEY_KINDS[kind]))
        try:
            key = line.exchange_keys()
            if any(hmac.compare_digest(key.fingerprint, fingerprint) for fingerprint in pinned):
                return line
        except BaseException as error:
            line.close()
            if seen and isinstance(error, CrossdockError):
                break  # it has no key of another kind
            if isinstance(error.__cause__, paramiko.ssh_exception.IncompatiblePeer):
                raise _nothing_shared(login, line.transport) from error
            raise
        line.close()
        shown = f"{key.fingerprint} ({key.algorithm_name})"
        if not pinned:
            raise ConfigError(f"no host key is configured; {login.host} shows {shown}", where=login.where, hint=_VERIFY)
        seen[key.algorithm_name] = shown
    raise UnauthorizedError(
        f"host key mismatch: {login.host} shows {', '.join(seen.values())}, expected {' or '.join(pinned)}",
        where=login.where,
        hint=f"Nothing was sent to it. Somebody may be in between, or the server has a new key. {_VERIFY}",
    )


_VERIFY = (
    "Ask its operator to run `ssh-keygen -lf` on the server's public host key, compare, and set `host_key` to what it"
    " prints."
)


def _pinned(login: SftpLogin) -> tuple[str, ...]:
    given = (login.host_key,) if isinstance(login.host_key, str) else login.host_key or ()
    for fingerprint in given:
        if not _FINGERPRINT.fullmatch(fingerprint):
            raise ConfigError(f"host_key {fingerprint!r} is no SHA256 fingerprint", where=login.where, hint=_VERIFY)
    return tuple(fingerprint.rstrip("=") for fingerprint in given)


def _private_key(login: SftpLogin) -> paramiko.PKey | None:
    if login.private_key is None:
        if login.password is None:
            raise ConfigError("neither password nor private_key is set", where=login.where)
        return None
    for kind in (paramiko.Ed25519Key, paramiko.ECDSAKey, paramiko.RSAKey):
        try:
            return kind.from_private_key(io.StringIO(login.private_key), login.passphrase)
        except paramiko.PasswordRequiredException:
            raise ConfigError("private_key is encrypted", where=login.where, hint="Set its passphrase.") from None
        except Exception:  # noqa: BLE001, S112  of any class, and its text may quote the key
            continue
    raise ConfigError(
        "private_key cannot be read" + (" with this passphrase" if login.passphrase else ""),
        where=login.where,
        hint="It must be an Ed25519, ECDSA or RSA key in OpenSSH or PEM form; `ssh-keygen -p -f KEY` rewrites others.",
    )


def _log_in(line: _Line, key: paramiko.PKey | None) -> None:
    """Try the key, then the password; some servers want both."""
    login = line.login
    tried: list[str] = []
    if key is not None and _accepted(
        line, "private key", tried, lambda: line.transport.auth_publickey(login.user, key)
    ):
        return
    password = login.password
    if password is not None and _accepted(
        line, "password", tried, lambda: line.transport.auth_password(login.user, password)
    ):
        return
    raise UnauthorizedError(
        f"login refused: {login.host} does not accept the {' or the '.join(tried)} of {login.user!r}",
        where=login.where,
        hint="Check `user` and the password."
        if key is None
        else "Check `user`; is the key's public half registered there?",
    )


def _accepted(line: _Line, method: str, tried: list[str], attempt: Callable[[], list[str]]) -> bool:
    """Whether the login is complete; False if *method* was refused or is not enough alone."""
    try:
        with line.waiting(f"logging in by {method}", line.login.timeout_s):
            attempt()
    except UnavailableError as error:
        refused = isinstance(error.__cause__, paramiko.AuthenticationException)
        if not refused or line.expired or not (line.transport.is_active() or tried):
            raise
    tried.append(method)
    return line.transport.is_authenticated()
