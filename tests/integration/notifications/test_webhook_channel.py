"""Webhook notifications to receivers on loopback."""

from __future__ import annotations

import base64
import hashlib
import hmac
import ssl
from pathlib import Path

import pytest
import trustme
from tests.integration.notifications.receivers import (
    AT,
    FAILED,
    KEY,
    QUICK_S,
    Odd,
    Receiver,
    notifier,
)
from tests.servers import served

from crossdock.config.notify_config import Webhook
from crossdock.errors import UnavailableError
from crossdock.services.notifications.mail_and_webhook_notifier import WebhookChannel
from crossdock.services.notifications.run_events_and_messages import compose_message
from crossdock.values import exact_json

CODE = "[notification_failed]"


def test_a_signed_post_arrives() -> None:
    """The body is JSON, the signature covers id, time and body, and the query of the address is kept."""
    with served(Receiver()) as receiver:
        assert notifier({"webhook": {"url": f"{receiver.url}/a?b=c", "secret": "env:KEY"}}).notify(FAILED) == []
    (post,) = receiver.posts
    assert post.path == "/a?b=c"
    assert post.headers["content-type"] == "application/json"
    assert post.headers["webhook-timestamp"] == "1767225600"
    signed = f"{post.headers['webhook-id']}.1767225600.".encode() + post.body
    expected = base64.b64encode(hmac.new(base64.b64decode(KEY), signed, hashlib.sha256).digest()).decode()
    assert post.headers["webhook-signature"] == f"v1,{expected}"
    received = exact_json.loads(post.body)
    assert (received["type"], received["data"]["error"]) == ("night.failed", "wms: größer als gedacht")


def test_an_unsigned_post_arrives() -> None:
    """Without a secret there are id and time, but no signature."""
    with served(Receiver(200)) as receiver:
        assert notifier({"webhook": {"url": receiver.url}}).notify(FAILED) == []
    (post,) = receiver.posts
    assert post.path == "/"
    assert "webhook-id" in post.headers
    assert "webhook-signature" not in post.headers


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ('{"errcode": 310000, "errmsg": "keywords not in content"}', "/errcode"),
        ('{"ok": false, "error": "channel_not_found"}', "/ok"),
        ('{"errcode": 0, "errmsg": "ok"}', ""),
        ('{"code": 0, "msg": "success", "data": {}}', ""),
        ('{"id": 7, "data": {"status": "failed", "error": "wms: down"}}', ""),
        ("ok", ""),
        ("1", ""),
    ],
)
def test_an_answer_of_success_may_report_an_error(body: str, place: str) -> None:
    """Nobody was told then. A receiver may give the message back, which has an error of its own."""
    with served(Receiver(200, body=body.encode())) as receiver:
        problems = notifier({"webhook": {"url": receiver.url}}).notify(FAILED)
    found = [f"the webhook {receiver.url[7:]} responded with 200, and an error in {place} {CODE}"] if place else []
    assert problems == found


def test_the_address_may_be_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read for each message, and no failure shows it."""
    with served(Receiver(204, 404)) as receiver:
        monkeypatch.setenv("HOOK", f"{receiver.url}/T0/hunter2")
        sender = notifier({"webhook": {"url": "env:HOOK"}})
        assert sender.notify(FAILED) == []
        assert sender.notify(FAILED) == [f"the webhook env:HOOK responded with 404 {CODE}"]
        monkeypatch.delenv("HOOK")
        (reported,) = sender.notify(FAILED)
    assert reported == "the webhook env:HOOK cannot be used: the environment variable HOOK is not set [secret_missing]"
    assert [post.path for post in receiver.posts] == ["/T0/hunter2"] * 2


@pytest.mark.parametrize("first", [500, 503, 408, 425, 429])
def test_a_temporary_failure_is_retried_once(first: int) -> None:
    """The retry has the same id and body, and its own timestamp and signature."""
    with served(Receiver(first, 204)) as receiver:
        assert notifier({"webhook": {"url": receiver.url, "secret": "env:KEY"}}).notify(FAILED) == []
    one, other = receiver.posts
    assert one.body == other.body
    assert one.headers["webhook-id"] == other.headers["webhook-id"]
    assert int(other.headers["webhook-timestamp"]) == int(one.headers["webhook-timestamp"]) + 2
    assert one.headers["webhook-signature"] != other.headers["webhook-signature"]


@pytest.mark.parametrize(("status", "posts"), [(500, 2), (400, 1), (401, 1), (410, 1), (302, 1)])
def test_a_refusal_is_reported(status: int, posts: int) -> None:
    """Only temporary failures are retried, once; redirects are refusals and are not followed."""
    with served(Receiver()) as elsewhere, served(Receiver(status, location=elsewhere.url)) as receiver:
        reported = notifier({"webhook": {"url": f"{receiver.url}/hunter2"}}).notify(FAILED)
    assert reported == [f"the webhook {receiver.url.removeprefix('http://')} responded with {status} {CODE}"]
    assert (len(receiver.posts), elsewhere.posts) == (posts, [])


@pytest.mark.parametrize("trusted", [True, False])
def test_https_verifies_the_receiver(
    certified: ssl.SSLContext, authority: trustme.CA, tmp_path: Path, trusted: bool
) -> None:
    """Nothing is sent to a receiver with an untrusted certificate."""
    receiver = Receiver()
    receiver.socket = certified.wrap_socket(receiver.socket, server_side=True)
    ca_file = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(ca_file))
    with served(receiver):
        url = receiver.url.replace("http:", "https:")
        reported = notifier({"webhook": {"url": url} | ({"ca_file": ca_file} if trusted else {})}).notify(FAILED)
    if trusted:
        assert (reported, len(receiver.posts)) == ([], 1)
    else:
        assert receiver.posts == []
        assert "certificate" in reported[0]


@pytest.mark.parametrize(("greeting", "drop"), [(b"", b""), (b"HTTP/1.1 200 OK\r\n", b"x")], ids=["silent", "dripping"])
def test_a_slow_receiver_times_out(greeting: bytes, drop: bytes) -> None:
    """However slowly bytes arrive, the attempt ends in time and the connection is closed."""
    with served(Odd(greeting, drop)) as odd:
        channel = WebhookChannel(Webhook(url=f"http://127.0.0.1:{odd.port}"))
        with pytest.raises(UnavailableError, match="request failed"):
            channel.send(compose_message(FAILED, {"failed"}, AT), at=AT, within_s=QUICK_S)
        assert odd.client_left.wait(30)


def test_an_interrupted_response_is_retried() -> None:
    """The receiver may have processed the first attempt; the id identifies the second as a repetition."""
    with served(Odd(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nxx", ends=True)) as odd:
        (reported,) = notifier({"webhook": {"url": f"http://127.0.0.1:{odd.port}"}}).notify(FAILED)
    assert reported.startswith(f"the webhook 127.0.0.1:{odd.port} request failed: ")
    assert odd.clients == 2


def test_a_response_is_not_quoted() -> None:
    """A response that is not HTTP is not shown."""
    with served(Odd(b"canary\r\n\r\n", ends=True)) as odd:
        (reported,) = notifier({"webhook": {"url": f"http://127.0.0.1:{odd.port}"}}).notify(FAILED)
    assert reported == f"the webhook 127.0.0.1:{odd.port} request failed: the response is not valid HTTP {CODE}"
