"""Notifications on real loopback receivers: what arrives, what is said when it does not, and that it never lasts."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import socket
import socketserver
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import trustme
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session
from tests.servers import served

from crossdock import exact_json
from crossdock.errors import UnavailableError
from crossdock.notifications import mail
from crossdock.notifications.events import ScheduledRunEnded, compose
from crossdock.notifications.notifier import Notifier, NotifyConfig
from crossdock.notifications.webhook import Webhook, WebhookChannel
from crossdock.testing.manual_clock import ManualClock

KEY = base64.b64encode(bytes(range(32))).decode()
FAILED = ScheduledRunEnded(
    "nightly", date(2026, 3, 14), None, 17, "failed", False, 60.0, 5, "wms: größer als gedacht", "done"
)
AT = datetime(2026, 1, 1, tzinfo=UTC)
QUICK_S = 0.2


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def certified(authority: trustme.CA) -> ssl.SSLContext:
    """How a server on this machine shows who it is."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost", "127.0.0.1").configure_cert(context)
    return context


@pytest.fixture
def trusting(authority: trustme.CA) -> ssl.SSLContext:
    """What trusts such a server."""
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


@pytest.fixture(autouse=True)
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", f"whsec_{KEY}")
    monkeypatch.setenv("PASSWORD", "hunter2 and more")


def notifier(config: dict[str, Any], *, tls: ssl.SSLContext | None = None, attempt_s: float = 10.0) -> Notifier:
    return Notifier(NotifyConfig.model_validate(config), ManualClock(), tls=tls, attempt_s=attempt_s)


# Webhooks


@dataclass
class Post:
    path: str
    headers: dict[str, str]
    body: bytes


class Receiver(ThreadingHTTPServer):
    """Answers with the given statuses in turn, the last one for ever, and keeps what came."""

    def __init__(self, *statuses: int, location: str = "") -> None:
        super().__init__(("127.0.0.1", 0), _Answering)
        self.posts: list[Post] = []
        self.statuses, self.location = list(statuses or [204]), location

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
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Nothing is logged."""


def test_a_signed_post_arrives() -> None:
    """The body is JSON, signed over id, time and body by the key; the query of the address stays."""
    with served(Receiver()) as receiver:
        assert notifier({"webhook": {"url": f"{receiver.url}/a?b=c", "secret": "env:KEY"}}).tell(FAILED) == []
    (post,) = receiver.posts
    assert post.path == "/a?b=c"
    assert post.headers["content-type"] == "application/json"
    assert post.headers["webhook-timestamp"] == "1767225600"
    signed = f"{post.headers['webhook-id']}.1767225600.".encode() + post.body
    expected = base64.b64encode(hmac.new(base64.b64decode(KEY), signed, hashlib.sha256).digest()).decode()
    assert post.headers["webhook-signature"] == f"v1,{expected}"
    told = exact_json.loads(post.body)
    assert (told["type"], told["data"]["error"]) == ("night.failed", "wms: größer als gedacht")


def test_an_unsigned_post_arrives() -> None:
    """Without a secret there is an id and a time, and no signature."""
    with served(Receiver(200)) as receiver:
        assert notifier({"webhook": {"url": receiver.url}}).tell(FAILED) == []
    (post,) = receiver.posts
    assert post.path == "/"
    assert "webhook-id" in post.headers
    assert "webhook-signature" not in post.headers


def test_an_address_may_be_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read when it is needed, and no failure shows it."""
    with served(Receiver(204, 404)) as receiver:
        monkeypatch.setenv("HOOK", f"{receiver.url}/T0/hunter2")
        telling = notifier({"webhook": {"url": "env:HOOK"}})
        assert telling.tell(FAILED) == []
        assert telling.tell(FAILED) == ["the webhook env:HOOK answered 404"]
        monkeypatch.delenv("HOOK")
        (said,) = telling.tell(FAILED)
    assert said == "the webhook env:HOOK cannot be used: the environment variable HOOK is not set"
    assert [post.path for post in receiver.posts] == ["/T0/hunter2"] * 2


def test_what_nobody_asked_for_is_not_sent() -> None:
    """A good night, and kinds that are not in ``when``, reach nobody."""
    with served(Receiver()) as receiver:
        telling = notifier({"when": ["recovered"], "webhook": {"url": receiver.url}})
        assert telling.tell(FAILED) == []
        assert telling.tell(replace(FAILED, status="done")) == []
        assert receiver.posts == []
        assert telling.tell(replace(FAILED, status="done", previous="failed", degraded=True)) == []
    (post,) = receiver.posts
    assert exact_json.loads(post.body)["data"]["kinds"] == ["recovered"]


@pytest.mark.parametrize("first", [500, 503, 408, 425, 429])
def test_a_passing_failure_is_tried_once_more(first: int) -> None:
    """With the same id and body, and the time of the attempt in a signature of its own."""
    with served(Receiver(first, 204)) as receiver:
        assert notifier({"webhook": {"url": receiver.url, "secret": "env:KEY"}}).tell(FAILED) == []
    one, other = receiver.posts
    assert one.body == other.body
    assert one.headers["webhook-id"] == other.headers["webhook-id"]
    assert int(other.headers["webhook-timestamp"]) == int(one.headers["webhook-timestamp"]) + 2
    assert one.headers["webhook-signature"] != other.headers["webhook-signature"]


@pytest.mark.parametrize(("status", "posts"), [(500, 2), (400, 1), (401, 1), (410, 1), (302, 1)])
def test_a_refusal_is_said(status: int, posts: int) -> None:
    """Twice at most, and only where it may pass; a redirect is a refusal and leads nowhere."""
    with served(Receiver()) as elsewhere, served(Receiver(status, location=elsewhere.url)) as receiver:
        said = notifier({"webhook": {"url": f"{receiver.url}/hunter2"}}).tell(FAILED)
    assert said == [f"the webhook {receiver.url.removeprefix('http://')} answered {status}"]
    assert (len(receiver.posts), elsewhere.posts) == (posts, [])


@pytest.mark.parametrize("trusted", [True, False])
def test_https_shows_who_it_is(certified: ssl.SSLContext, trusting: ssl.SSLContext, trusted: bool) -> None:
    """A receiver whose certificate is not trusted learns nothing."""
    receiver = Receiver()
    receiver.socket = certified.wrap_socket(receiver.socket, server_side=True)
    with served(receiver):
        url = receiver.url.replace("http:", "https:")
        said = notifier({"webhook": {"url": url}}, tls=trusting if trusted else None).tell(FAILED)
    if trusted:
        assert (said, len(receiver.posts)) == ([], 1)
    else:
        assert receiver.posts == []
        assert "certificate" in said[0]


# Mail


@dataclass
class Relay:
    """A mail server's end of it, as aiosmtpd calls it.

    Attributes:
        replies: By recipient; 250 without one.
        after: Replies to the mails, in turn; 250 without one.
        rude: It breaks off where it should say good-bye.
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
    """*relay* behind aiosmtpd, on a free port.

    Args:
        tls: To encrypt from the first byte.
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


def email(port: int, **changes: Any) -> dict[str, Any]:
    said = {
        "host": "127.0.0.1",
        "port": port,
        "tls": "none",
        "sender": "sync@example.com",
        "to": ["a@x.org", "b@x.org"],
    }
    return {"email": said | changes}


def test_a_mail_arrives() -> None:
    """One mail for all, marked as made by a machine, with the text as it was."""
    with relaying(Relay()) as relay:
        assert notifier(email(relay.port)).tell(FAILED) == []
    ((sender, to, message),) = relay.mails
    assert (sender, to) == ("sync@example.com", ["a@x.org", "b@x.org"])
    assert message["subject"] == "nightly failed (2026-03-14)"
    assert message["from"] == "crossdock <sync@example.com>"
    assert message["to"] == "a@x.org, b@x.org"
    assert message["date"].datetime == AT
    assert message["auto-submitted"] == "auto-generated"
    assert message["message-id"].endswith("@example.com>")
    assert message.get_content().splitlines()[:2] == ["Job nightly failed for 2026-03-14.", "wms: größer als gedacht"]


@pytest.mark.parametrize("how", ["starttls", "tls"])
def test_a_login_is_encrypted(certified: ssl.SSLContext, trusting: ssl.SSLContext, how: str) -> None:
    """Encrypted after a greeting or from the first byte: in both the password is sent only then."""
    settings: dict[str, Any] = {"tls": certified} if how == "tls" else {"tls_context": certified}
    with relaying(Relay(), **settings, auth_require_tls=how == "starttls") as relay:
        config = email(relay.port, tls=how, user="sync", password="env:PASSWORD")
        assert notifier(config, tls=trusting).tell(FAILED) == []
    assert relay.logins[0][:2] == (b"sync", b"hunter2 and more")
    assert relay.logins[0][2] or how == "tls"
    assert len(relay.mails) == 1


@pytest.mark.parametrize("how", ["starttls", "tls"])
def test_a_server_that_is_not_trusted_gets_nothing(certified: ssl.SSLContext, how: str) -> None:
    """No log-in, no mail, no second attempt."""
    settings: dict[str, Any] = {"tls": certified} if how == "tls" else {"tls_context": certified}
    with relaying(Relay(), **settings) as relay:
        said = notifier(email(relay.port, tls=how, user="sync", password="env:PASSWORD")).tell(FAILED)
    name = f"the mail server 127.0.0.1:{relay.port}"
    assert said[0].startswith(f"{name} cannot be reached: its certificate is not trusted: ")
    assert (relay.logins, relay.mails) == ([], [])


def test_a_server_that_cannot_encrypt_gets_nothing() -> None:
    """There is no way back to clear text."""
    with relaying(Relay(), auth_require_tls=False) as relay:
        said = notifier(email(relay.port, tls="starttls", user="sync", password="env:PASSWORD")).tell(FAILED)
        assert said == [
            f"the mail server 127.0.0.1:{relay.port} cannot be used: STARTTLS extension not supported by server."
        ]
        (said_of_tls,) = notifier(email(relay.port, tls="tls")).tell(FAILED)
    assert "the TLS handshake failed" in said_of_tls
    assert (relay.logins, relay.mails) == ([], [])


@pytest.mark.parametrize(
    ("relay", "changes", "said", "mails"),
    [
        pytest.param(Relay({"b@x.org": "550 5.1.1 <b@x.org> unknown"}), {},
                     "refused 1 of 2 recipients (550)", 1, id="one recipient"),
        pytest.param(Relay({"a@x.org": "550 no", "b@x.org": "553 no"}), {},
                     "refused all recipients (550, 553)", 0, id="all recipients"),
        pytest.param(Relay(after=["554 <a@x.org> looks like spam"]), {}, "refused the mail (554)", 1, id="the mail"),
        pytest.param(Relay(after=["451 later"] * 2), {}, "refused the mail (451)", 2, id="twice for now"),
        pytest.param(Relay(), {"user": "sync", "password": "env:KEY"}, "refused the login (535)", 0, id="password"),
    ],
)  # fmt: skip
def test_a_refusal_is_said_without_addresses(relay: Relay, changes: dict[str, Any], said: str, mails: int) -> None:
    """The code tells what a mail administrator needs; the server's words may hold what is personal."""
    with relaying(relay, auth_require_tls=False):
        assert notifier(email(relay.port, **changes)).tell(FAILED) == [f"the mail server 127.0.0.1:{relay.port} {said}"]
    assert len(relay.mails) == mails


def test_a_mail_refused_for_now_is_tried_once_more() -> None:
    """It is the same mail: readers that know its id show it once."""
    with relaying(Relay(after=["451 later"])) as relay:
        assert notifier(email(relay.port)).tell(FAILED) == []
    one, other = relay.mails
    assert one[2]["message-id"] == other[2]["message-id"]


def test_a_mail_that_was_taken_is_taken() -> None:
    """A server that breaks off after its yes gets no second one."""
    with relaying(Relay(rude=True)) as relay:
        assert notifier(email(relay.port)).tell(FAILED) == []
    assert len(relay.mails) == 1


def test_a_server_without_login_is_said() -> None:
    """A password that nobody asks for is not sent."""
    with relaying(Relay()) as relay:  # it offers a log-in only once encrypted
        said = notifier(email(relay.port, user="sync", password="env:PASSWORD")).tell(FAILED)
    assert said == [
        f"the mail server 127.0.0.1:{relay.port} cannot be used: SMTP AUTH extension not supported by server."
    ]
    assert (relay.logins, relay.mails) == ([], [])


# Receivers that are no good


class Odd(socketserver.ThreadingTCPServer):
    """Says *greeting* to whoever connects, then drips *drop* until the other side leaves, or *ends* it."""

    daemon_threads = True

    def __init__(self, greeting: bytes = b"", drop: bytes = b"", *, ends: bool = False) -> None:
        super().__init__(("127.0.0.1", 0), _Odd)
        self.greeting, self.drop, self.ends = greeting, drop, ends
        self.met, self.left = 0, threading.Event()

    @property
    def port(self) -> int:
        return int(self.server_address[1])


class _Odd(socketserver.BaseRequestHandler):
    server: Odd

    def handle(self) -> None:
        self.server.met += 1
        with suppress(OSError):
            self.request.sendall(self.server.greeting)
            self.request.settimeout(0.005 if self.server.drop else None)
            while self._listens() and not self.server.ends:
                self.request.sendall(self.server.drop)
        self.server.left.set()

    def _listens(self) -> bool:
        """True until the other side has left."""
        try:
            return bool(self.request.recv(65_536))
        except TimeoutError:
            return True


@pytest.mark.parametrize(
    ("tls", "greeting", "drop"),
    [("none", b"", b""), ("none", b"220", b"-x\r\n220"), ("tls", b"", b""), ("starttls", b"220 hello\r\n", b"")],
    ids=["silent", "dripping", "silent in the handshake", "silent after the greeting"],
)
def test_a_mail_server_that_hangs_is_left(tls: str, greeting: bytes, drop: bytes) -> None:
    """However its bytes drip, the attempt ends in time and leaves no connection behind."""
    with served(Odd(greeting, drop)) as odd:
        channel = mail.MailChannel(mail.Email.model_validate(email(odd.port, tls=tls)["email"]))
        with pytest.raises(UnavailableError, match="timed out"):
            channel.send(compose(FAILED, {"failed"}, AT), at=AT, within_s=QUICK_S)
        assert odd.left.wait(30)


@pytest.mark.parametrize(("greeting", "drop"), [(b"", b""), (b"HTTP/1.1 200 OK\r\n", b"x")], ids=["silent", "dripping"])
def test_a_receiver_that_hangs_is_left(greeting: bytes, drop: bytes) -> None:
    """As a mail server is."""
    with served(Odd(greeting, drop)) as odd:
        channel = WebhookChannel(Webhook(url=f"http://127.0.0.1:{odd.port}"))
        with pytest.raises(UnavailableError, match="request failed"):
            channel.send(compose(FAILED, {"failed"}, AT), at=AT, within_s=QUICK_S)
        assert odd.left.wait(30)


def test_a_receiver_that_breaks_off_is_tried_twice() -> None:
    """It may have taken the first one; the id tells it that the second one is the same."""
    with served(Odd(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nxx", ends=True)) as odd:
        (said,) = notifier({"webhook": {"url": f"http://127.0.0.1:{odd.port}"}}).tell(FAILED)
    assert said.startswith(f"the webhook 127.0.0.1:{odd.port} request failed: ")
    assert odd.met == 2


@pytest.mark.parametrize(
    ("greeting", "said"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n", "is not an SMTP server"),
        (b"554 <ops@x.org> no service\r\n", "refused the mail (554)"),
        (b"\xff\xfe\r\n", "is not an SMTP server"),
    ],
)
def test_what_is_no_mail_server_is_said(greeting: bytes, said: str) -> None:
    """And it is asked once."""
    with served(Odd(greeting)) as odd:
        assert notifier(email(odd.port)).tell(FAILED) == [f"the mail server 127.0.0.1:{odd.port} {said}"]
        assert odd.met == 1


def test_a_mail_server_that_never_comes_to_an_end_is_left() -> None:
    """A reply of endless lines ends at a mebibyte, long before the time is over."""
    with served(Odd(b"220-x\r\n" * 300_000)) as odd:
        said = notifier(email(odd.port), attempt_s=60).tell(FAILED)
        assert said == [f"the mail server 127.0.0.1:{odd.port} sent replies of more than 1,048,576 bytes"]
        assert odd.met == 1


def test_a_challenge_that_is_none_is_said() -> None:
    """A server whose challenge is not base64 is not an SMTP server, and its words are not shown."""
    with served(Odd(b"220 x\r\n250-x\r\n250 AUTH CRAM-MD5\r\n334 canary\r\n")) as odd:
        said = notifier(email(odd.port, user="sync", password="env:PASSWORD")).tell(FAILED)
    assert said == [f"the mail server 127.0.0.1:{odd.port} is not an SMTP server"]


def test_a_receiver_is_not_quoted() -> None:
    """What a receiver answers instead of HTTP is not shown."""
    with served(Odd(b"canary\r\n\r\n", ends=True)) as odd:
        (said,) = notifier({"webhook": {"url": f"http://127.0.0.1:{odd.port}"}}).tell(FAILED)
    assert said == f"the webhook 127.0.0.1:{odd.port} request failed: the response is not valid HTTP"


def test_nobody_there_is_said() -> None:
    """Each channel fails for itself, and none keeps the other from being told."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with served(Receiver()) as receiver:
        config = {"webhook": {"url": receiver.url}, **email(port)}
        assert notifier(config).tell(FAILED) == [
            f"the mail server 127.0.0.1:{port} cannot be reached: connection refused"
        ]
        assert len(receiver.posts) == 1
    both = {"webhook": {"url": f"http://127.0.0.1:{port}"}, **email(port)}
    assert [said.split(" cannot")[0] for said in notifier(both).tell(FAILED)] == [
        f"the webhook 127.0.0.1:{port}", f"the mail server 127.0.0.1:{port}",
    ]  # fmt: skip


def test_what_no_timeout_ends_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look-up of a name has no bound of its own; the night goes on all the same."""
    over = threading.Event()

    def stuck(*_: Any, **__: Any) -> None:
        assert over.wait(60)
        raise OSError(5, "Too late")

    monkeypatch.setattr(socket, "create_connection", stuck)
    said = notifier(email(25), attempt_s=QUICK_S).tell(FAILED)
    over.set()
    assert said == ["the mail server 127.0.0.1:25 did not answer in time"]


def test_a_mistake_of_ours_costs_no_night(monkeypatch: pytest.MonkeyPatch) -> None:
    """What nobody foresaw is said by its kind alone."""

    def broken(*_: Any, **__: Any) -> None:
        raise KeyError("hunter2")

    monkeypatch.setattr(mail.MailChannel, "send", broken)
    assert notifier(email(25)).tell(FAILED) == ["the mail server 127.0.0.1:25 failed: KeyError"]


def test_a_changed_secret_is_used_from_then_on(tmp_path: Path) -> None:
    """Keys are changed without a restart."""
    file = tmp_path / "key"
    file.write_text(KEY)
    file.chmod(0o600)
    with served(Receiver()) as receiver:
        telling = notifier({"webhook": {"url": receiver.url, "secret": f"file:{file}"}})
        assert telling.tell(FAILED) == []
        file.write_text("no key")
        (said,) = telling.tell(FAILED)
    assert said.endswith(f"cannot be used: file:{file} is not a signing key")
    assert len(receiver.posts) == 1
