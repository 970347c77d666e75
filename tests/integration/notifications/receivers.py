"""Webhook receivers and mail servers on loopback, and notifiers for them."""

from __future__ import annotations

import asyncio
import base64
import socket
import socketserver
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from crossdock.config.notify_config import NotifyConfig
from crossdock.services.notifications.mail_and_webhook_notifier import Notifier
from crossdock.services.notifications.run_events_and_messages import ScheduledRunEnded
from crossdock.testing.manual_clock import ManualClock
from crossdock.values.run_progress_and_messages import RunMessage

KEY = base64.b64encode(bytes(range(32))).decode()
FAILED = ScheduledRunEnded(
    "nightly",
    date(2026, 3, 14),
    None,
    17,
    "failed",
    60.0,
    5,
    (RunMessage("error", "", "wms: größer als gedacht"),),
    "done",
)
AT = datetime(2026, 1, 1, tzinfo=UTC)
QUICK_S = 0.2


def notifier(config: dict[str, Any], *, tls: ssl.SSLContext | None = None, attempt_s: float = 10.0) -> Notifier:
    return Notifier(NotifyConfig.model_validate(config), ManualClock(), tls=tls, attempt_s=attempt_s)


def email(port: int, **changes: Any) -> dict[str, Any]:
    settings = {
        "host": "127.0.0.1",
        "port": port,
        "tls": "none",
        "sender": "sync@example.com",
        "to": ["a@x.org", "b@x.org"],
    }
    return {"email": settings | changes}


@dataclass
class Post:
    path: str
    headers: dict[str, str]
    body: bytes


class Receiver(ThreadingHTTPServer):
    """Answers with *statuses* in turn, repeating the last one, and *body*, and records the requests."""

    def __init__(self, *statuses: int, location: str = "", body: bytes = b"") -> None:
        super().__init__(("127.0.0.1", 0), _Answering)
        self.posts: list[Post] = []
        self.statuses, self.location, self.body = list(statuses or [204]), location, body

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Answering(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.posts.append(Post(self.path, {k.lower(): v for k, v in self.headers.items()}, body))
        statuses = self.server.statuses
        self.send_response(statuses.pop(0) if len(statuses) > 1 else statuses[0])
        if self.server.location:
            self.send_header("location", self.server.location)
        self.send_header("content-length", str(len(self.server.body)))
        self.end_headers()
        self.wfile.write(self.server.body)

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


@dataclass
class Relay:
    """A handler for aiosmtpd.

    Attributes:
        replies: By recipient; 250 by default.
        after: Replies to the mails, in turn; 250 by default.
        rude: Closes the connection instead of answering QUIT.
    """

    replies: dict[str, str] = field(default_factory=dict)
    after: list[str] = field(default_factory=list)
    mails: list[tuple[str | None, list[str], EmailMessage]] = field(default_factory=list)
    logins: list[tuple[bytes, bytes, bool]] = field(default_factory=list)
    rude: bool = False
    port: int = 0

    async def handle_RCPT(  # noqa: N802  aiosmtpd's name
        self, _: SMTP, __: Session, envelope: Envelope, address: str, ___: list[str]
    ) -> str:
        reply = self.replies.get(address, "250 OK")
        if reply.startswith("250"):
            envelope.rcpt_tos.append(address)
        return reply

    async def handle_DATA(self, _: SMTP, __: Session, envelope: Envelope) -> str:  # noqa: N802  aiosmtpd's name
        assert isinstance(envelope.content, bytes)
        message = message_from_bytes(envelope.content, policy=policy.default)
        assert isinstance(message, EmailMessage)
        self.mails.append((envelope.mail_from, envelope.rcpt_tos, message))
        return self.after.pop(0) if self.after else "250 OK"

    async def handle_QUIT(self, server: SMTP, _: Session, __: Envelope) -> str:  # noqa: N802  aiosmtpd's name
        if self.rude:
            assert isinstance(server.transport, asyncio.Transport)
            server.transport.abort()
        return "221 Bye"

    def logs_in(self, _: SMTP, session: Session, __: Envelope, ___: str, data: Any) -> AuthResult:
        assert isinstance(data, LoginPassword)
        self.logins.append((data.login, data.password, session.ssl is not None))
        return AuthResult(success=data.password == b"hunter2 and more", handled=False)


@contextmanager
def relaying(relay: Relay, *, tls: ssl.SSLContext | None = None, **settings: Any) -> Iterator[Relay]:
    """Serve *relay* with aiosmtpd on a free port.

    Args:
        tls: For implicit TLS.
    """
    listener = socket.create_server(("127.0.0.1", 0))
    relay.port = listener.getsockname()[1]
    up, loop = threading.Event(), asyncio.new_event_loop()
    ended = asyncio.Event()

    async def serve() -> None:
        make = lambda: SMTP(relay, loop=loop, authenticator=relay.logs_in, **settings)  # noqa: E731
        async with await loop.create_server(make, sock=listener, ssl=tls):
            up.set()
            await ended.wait()

    def run() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(serve())

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert up.wait(30)
        yield relay
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()


class Odd(socketserver.ThreadingTCPServer):
    """Sends *greeting* to each client, then repeats *drop* until the client leaves, or closes if it *ends*."""

    daemon_threads = True

    def __init__(self, greeting: bytes = b"", drop: bytes = b"", *, ends: bool = False) -> None:
        super().__init__(("127.0.0.1", 0), _Odd)
        self.greeting, self.drop, self.ends = greeting, drop, ends
        self.clients, self.client_left = 0, threading.Event()

    @property
    def port(self) -> int:
        return int(self.server_address[1])


class _Odd(socketserver.BaseRequestHandler):
    server: Odd

    def handle(self) -> None:
        self.server.clients += 1
        with suppress(OSError):
            self.request.sendall(self.server.greeting)
            self.request.settimeout(0.005 if self.server.drop else None)
            while self._is_connected() and not self.server.ends:
                self.request.sendall(self.server.drop)
        self.server.client_left.set()

    def _is_connected(self) -> bool:
        try:
            return bool(self.request.recv(65_536))
        except TimeoutError:
            return True
