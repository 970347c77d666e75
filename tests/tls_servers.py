"""Servers on loopback for tests of connections: an HTTPS server, and a proxy that connects clients to it."""

from __future__ import annotations

import os
import re
import socket
import socketserver
import ssl
import threading
from contextlib import suppress
from pathlib import Path

import trustme

OK = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"


class HttpsServer(socketserver.ThreadingTCPServer):
    """Answers each request with the next of *answers*, the last one again and again; empty closes the connection.

    Args:
        authority: Issues the server's certificate.
        clients: Issues the certificates that clients must show; None if they need none.
        latest: The latest version of TLS.
        asks: Whether *clients* are asked for a certificate and may have none.

    Attributes:
        requests: The heads of the requests.
        shown: For each request, whether the client showed a certificate.
    """

    daemon_threads = True

    def __init__(
        self,
        authority: trustme.CA,
        clients: trustme.CA | None = None,
        *answers: bytes,
        latest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3,
        asks: bool = False,
    ) -> None:
        super().__init__(("127.0.0.1", 0), _HttpsHandler)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.maximum_version = latest
        authority.issue_cert("localhost", "127.0.0.1").configure_cert(self.context)
        if clients is not None:
            clients.configure_trust(self.context)
            self.context.verify_mode = ssl.CERT_OPTIONAL if asks else ssl.CERT_REQUIRED
        self.answers = list(answers or [OK])
        self.requests: list[str] = []
        self.shown: list[bool] = []

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"


class _HttpsHandler(socketserver.BaseRequestHandler):
    server: HttpsServer
    request: socket.socket

    def handle(self) -> None:
        raw = socket.socket(fileno=os.dup(self.request.fileno()))
        with raw, suppress(OSError):
            try:
                self._converse()
            except ssl.SSLError:  # read on, since closing a connection with unread data would discard our alert
                raw.shutdown(socket.SHUT_WR)
                while raw.recv(65_536):
                    pass

    def _converse(self) -> None:
        with self.server.context.wrap_socket(self.request, server_side=True) as tls:
            while head := _head(tls):
                self.server.requests.append(head.decode("latin-1"))
                length = re.search(r"content-length: ([0-9]+)", head.decode("latin-1").lower())
                body = b""
                while length and len(body) < int(length[1]):
                    body += tls.recv(65_536)
                self.server.shown.append(bool(tls.getpeercert()))
                answers = self.server.answers
                answer = answers.pop(0) if len(answers) > 1 else answers[0]
                if not answer:
                    return
                tls.sendall(answer)


class ConnectProxy(socketserver.ThreadingTCPServer):
    """A proxy that connects clients to servers, or sends *refusal* instead.

    Attributes:
        heads: The requests of clients.
        carried: What clients sent afterwards.
    """

    daemon_threads = True

    def __init__(self, refusal: bytes | None = None, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _ProxyHandler)
        self.refusal, self.tls = refusal, tls
        self.heads: list[str] = []
        self.carried = bytearray()

    @property
    def address(self) -> str:
        return f"{'http' if self.tls is None else 'https'}://127.0.0.1:{self.server_address[1]}"


class _ProxyHandler(socketserver.BaseRequestHandler):
    server: ConnectProxy

    def handle(self) -> None:
        client: socket.socket = self.request
        with suppress(OSError):
            if self.server.tls is not None:
                client = self.server.tls.wrap_socket(client, server_side=True)
            head = _head(client).decode("latin-1")
            self.server.heads.append(head)
            if self.server.refusal is not None:
                client.sendall(self.server.refusal)
                return
            host, _, port = head.split(" ")[1].rpartition(":")
            with socket.create_connection((host, int(port))) as server, client:
                client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                back = threading.Thread(target=_pump, args=(server, client, bytearray()), daemon=True)
                back.start()
                _pump(client, server, self.server.carried)
                back.join()


def _head(connection: socket.socket) -> bytes:
    """The next request without a body; empty when the client has left."""
    head = b""
    while not head.endswith(b"\r\n\r\n") and (received := connection.recv(1)):
        head += received
    return head


def _pump(source: socket.socket, sink: socket.socket, record: bytearray) -> None:
    with suppress(OSError):
        while received := source.recv(65_536):
            record += received
            sink.sendall(received)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


def written(folder: Path, authority: trustme.CA, name: str = "ca.pem") -> Path:
    """The certificate of *authority* as a file."""
    authority.cert_pem.write_to_path(str(folder / name))
    return folder / name


def client_certificate(folder: Path, authority: trustme.CA, name: str = "client.pem") -> Path:
    """A client certificate with its key as a file."""
    path = folder / name
    authority.issue_cert("sync@example.com").private_key_and_cert_chain_pem.write_to_path(str(path))
    path.chmod(0o600)
    return path
