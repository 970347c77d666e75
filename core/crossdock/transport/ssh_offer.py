"""Which algorithms an SSH server offers: asked only to tell a person why no connection is possible."""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields

from crossdock.transport.sftp_wire import Message, ProtocolError

_KEXINIT = 20
_MAX_BANNER = 16 * 1024
_MAX_PACKET = 64 * 1024


@dataclass(frozen=True, slots=True)
class Offer:
    """One side's algorithms of each kind."""

    key_exchange: Sequence[str]
    host_key: Sequence[str]
    cipher: Sequence[str]
    mac: Sequence[str]

    def missing(self, ours: Offer) -> str:
        """A sentence on the first kind of which the two sides share nothing."""
        for kind in (field.name for field in fields(self)):
            their_names, our_names = getattr(self, kind), getattr(ours, kind)
            if not set(their_names) & set(our_names):
                return (
                    f"no {kind.replace('_', ' ')} algorithm is shared: the server offers {', '.join(their_names)};"
                    f" crossdock takes {', '.join(our_names)}"
                )
        return "no algorithm is shared"


def read_offer(sock: socket.socket, timeout_s: float) -> Offer:
    """Greet the server and read its first packet, which is not encrypted yet.

    Raises:
        OSError, EOFError, ProtocolError: If no such packet comes in time.
    """
    reader = _Reader(sock, time.monotonic() + timeout_s)
    sock.sendall(b"SSH-2.0-crossdock\r\n")
    while not reader.line().startswith(b"SSH-"):
        pass
    length = int.from_bytes(reader.take(4))
    if length > _MAX_PACKET:
        raise ProtocolError("an SSH packet claims to be too long")
    packet = Message(reader.take(length))
    packet.take(1)  # the length of the padding
    if packet.take(1)[0] != _KEXINIT:
        raise ProtocolError("no list of algorithms came")
    packet.take(16)  # a random cookie
    key_exchange, host_key, _, cipher, _, mac = (
        tuple(packet.text().decode("ascii", "replace").split(",")) for _ in range(6)
    )
    return Offer(key_exchange, host_key, cipher, mac)


class _Reader:
    def __init__(self, sock: socket.socket, deadline: float) -> None:
        self._sock = sock
        self._deadline = deadline
        self._bytes = bytearray()

    def line(self) -> bytes:
        while (end := self._bytes.find(b"\n")) < 0:
            if len(self._bytes) > _MAX_BANNER:
                raise ProtocolError("no SSH greeting came")
            self._receive()
        return self.take(end + 1)

    def take(self, count: int) -> bytes:
        while len(self._bytes) < count:
            self._receive()
        taken = bytes(self._bytes[:count])
        del self._bytes[:count]
        return taken

    def _receive(self) -> None:
        self._sock.settimeout(max(0.001, self._deadline - time.monotonic()))
        received = self._sock.recv(4096)
        if not received:
            raise EOFError
        self._bytes += received
