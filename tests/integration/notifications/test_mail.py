"""Mail notifications to servers on loopback."""

from __future__ import annotations

import ssl
from typing import Any

import pytest
from tests.integration.notifications.receivers import (
    AT,
    FAILED,
    QUICK_S,
    Odd,
    Relay,
    email,
    notifier,
    relaying,
)
from tests.servers import served

from crossdock.config.notify_config import Email
from crossdock.errors import UnavailableError
from crossdock.services.notifications import mail_and_webhook_notifier
from crossdock.services.notifications.mail_and_webhook_notifier import have_all_channels_accepted
from crossdock.services.notifications.run_events_and_messages import compose_message

CODE = "[notification_failed]"


def test_a_mail_arrives() -> None:
    """One mail for all recipients, marked as automatic, with the text unchanged."""
    with relaying(Relay()) as relay:
        assert notifier(email(relay.port)).notify(FAILED) == []
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
    """With STARTTLS and with implicit TLS, the password is sent after encryption only."""
    settings: dict[str, Any] = {"tls": certified} if how == "tls" else {"tls_context": certified}
    with relaying(Relay(), **settings, auth_require_tls=how == "starttls") as relay:
        config = email(relay.port, tls=how, user="sync", password="env:PASSWORD")
        assert notifier(config, tls=trusting).notify(FAILED) == []
    assert relay.logins[0][:2] == (b"sync", b"hunter2 and more")
    assert relay.logins[0][2] or how == "tls"
    assert len(relay.mails) == 1


@pytest.mark.parametrize("how", ["starttls", "tls"])
def test_an_untrusted_server_gets_nothing(certified: ssl.SSLContext, how: str) -> None:
    """No login, no mail, no retry."""
    settings: dict[str, Any] = {"tls": certified} if how == "tls" else {"tls_context": certified}
    with relaying(Relay(), **settings) as relay:
        reported = notifier(email(relay.port, tls=how, user="sync", password="env:PASSWORD")).notify(FAILED)
    name = f"the mail server 127.0.0.1:{relay.port}"
    assert reported[0].startswith(f"{name} cannot be reached: its certificate is not trusted: ")
    assert (relay.logins, relay.mails) == ([], [])


def test_a_server_without_tls_gets_nothing() -> None:
    """There is no fallback to plain text."""
    with relaying(Relay(), auth_require_tls=False) as relay:
        reported = notifier(email(relay.port, tls="starttls", user="sync", password="env:PASSWORD")).notify(FAILED)
        assert reported == [
            f"the mail server 127.0.0.1:{relay.port} cannot be used: STARTTLS extension not supported by server. {CODE}"
        ]
        (said_for_tls,) = notifier(email(relay.port, tls="tls")).notify(FAILED)
    assert "the TLS handshake failed" in said_for_tls
    assert (relay.logins, relay.mails) == ([], [])


@pytest.mark.parametrize(
    ("relay", "changes", "reported", "mails"),
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
def test_a_refusal_is_reported_without_addresses(
    relay: Relay, changes: dict[str, Any], reported: str, mails: int
) -> None:
    """Reply codes are shown; the server's texts may contain personal data."""
    with relaying(relay, auth_require_tls=False):
        assert notifier(email(relay.port, **changes)).notify(FAILED) == [
            f"the mail server 127.0.0.1:{relay.port} {reported} {CODE}"
        ]
    assert len(relay.mails) == mails


@pytest.mark.parametrize(("reply", "told"), [("550 unknown", True), ("450 come back later", False)])
def test_a_recipient_who_is_refused_for_good_leaves_the_others_told(reply: str, told: bool) -> None:
    """One who is refused for now, as by greylisting, gets the message later, and the others get it again."""
    with relaying(Relay({"b@x.org": reply}), auth_require_tls=False) as relay:
        problems = notifier(email(relay.port)).notify(FAILED)
    assert len(problems) == 1
    assert have_all_channels_accepted(problems) is told


def test_a_mail_refused_temporarily_is_retried() -> None:
    """It has the same Message-ID, so mail programs show it once."""
    with relaying(Relay(after=["451 later"])) as relay:
        assert notifier(email(relay.port)).notify(FAILED) == []
    one, other = relay.mails
    assert one[2]["message-id"] == other[2]["message-id"]


def test_an_accepted_mail_is_not_sent_again() -> None:
    """Not even if the server closes the connection before its last reply."""
    with relaying(Relay(rude=True)) as relay:
        assert notifier(email(relay.port)).notify(FAILED) == []
    assert len(relay.mails) == 1


def test_a_server_without_login_is_reported() -> None:
    """The password is not sent."""
    with relaying(Relay()) as relay:  # it offers a log-in only once encrypted
        reported = notifier(email(relay.port, user="sync", password="env:PASSWORD")).notify(FAILED)
    assert reported == [
        f"the mail server 127.0.0.1:{relay.port} cannot be used: SMTP AUTH extension not supported by server. {CODE}"
    ]
    assert (relay.logins, relay.mails) == ([], [])


@pytest.mark.parametrize(
    ("tls", "greeting", "drop"),
    [("none", b"", b""), ("none", b"220", b"-x\r\n220"), ("tls", b"", b""), ("starttls", b"220 hello\r\n", b"")],
    ids=["silent", "dripping", "silent in the handshake", "silent after the greeting"],
)
def test_a_slow_server_times_out(tls: str, greeting: bytes, drop: bytes) -> None:
    """However slowly bytes arrive, the attempt ends in time and the connection is closed."""
    with served(Odd(greeting, drop)) as odd:
        channel = mail_and_webhook_notifier.MailChannel(Email.model_validate(email(odd.port, tls=tls)["email"]))
        with pytest.raises(UnavailableError, match="timed out"):
            channel.send(compose_message(FAILED, {"failed"}, AT), at=AT, within_s=QUICK_S)
        assert odd.client_left.wait(30)


@pytest.mark.parametrize(
    ("greeting", "reported"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n", "is not an SMTP server"),
        (b"554 <ops@x.org> no service\r\n", "refused the mail (554)"),
        (b"\xff\xfe\r\n", "is not an SMTP server"),
    ],
)
def test_other_servers_are_reported(greeting: bytes, reported: str) -> None:
    """There is no retry."""
    with served(Odd(greeting)) as odd:
        assert notifier(email(odd.port)).notify(FAILED) == [f"the mail server 127.0.0.1:{odd.port} {reported} {CODE}"]
        assert odd.clients == 1


def test_endless_replies_are_cut_off() -> None:
    """After one mebibyte, long before the deadline."""
    with served(Odd(b"220-x\r\n" * 300_000)) as odd:
        reported = notifier(email(odd.port), attempt_s=60).notify(FAILED)
        assert reported == [f"the mail server 127.0.0.1:{odd.port} sent responses of more than 1,048,576 bytes {CODE}"]
        assert odd.clients == 1


def test_an_invalid_challenge_is_reported() -> None:
    """A challenge that is not base64 is not shown."""
    with served(Odd(b"220 x\r\n250-x\r\n250 AUTH CRAM-MD5\r\n334 canary\r\n")) as odd:
        reported = notifier(email(odd.port, user="sync", password="env:PASSWORD")).notify(FAILED)
    assert reported == [f"the mail server 127.0.0.1:{odd.port} is not an SMTP server {CODE}"]
