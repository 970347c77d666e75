"""Sends notifications about scheduled runs by mail and webhook. A failed notification never fails the run."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import io
import smtplib
import socket
import ssl
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import format_datetime
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from crossdock.config.notify_config import Email, NotifyConfig, Webhook
from crossdock.errors import ConfigError, CrossdockError, RemoteError, UnavailableError, add_code_to_first_line
from crossdock.reading.sources.api_requests_and_answers import ApiAnswer
from crossdock.reading.sources.signs_of_unread_records import collect_signs_beside_empty_list
from crossdock.reading.transport.failure_sentences import network_failure_reason
from crossdock.reading.transport.http_answers_and_errors import Answer
from crossdock.reading.transport.httpcore_client import HttpClient
from crossdock.reading.transport.proxy_and_tls_settings import tls_context
from crossdock.services.notifications.run_events_and_messages import (
    Event,
    Message,
    compose_message,
    compose_message_of_several_events,
    notification_kinds_of_event,
)
from crossdock.values import exact_json
from crossdock.values.clock import Clock
from crossdock.values.config_base_types import Secret
from crossdock.values.web_address_checks import check_https_or_loopback_address

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_TEMPORARY_HTTP_STATUSES = {408, 425, 429}
_KEY_HINT = "write whsec_ and the base64 of 24 to 64 random bytes: openssl rand -base64 32"


class WebhookChannel:
    def __init__(self, webhook: Webhook) -> None:
        self._webhook = webhook
        url = webhook.url
        self.name = f"the webhook {url.reference}" if isinstance(url, Secret) else f"the webhook {urlsplit(url).netloc}"

    def check_secrets(self) -> None:
        self._address()
        self._signing_key()

    def send(self, message: Message, *, at: datetime, within_s: float) -> None:
        """Make one attempt. Raise UnavailableError for a temporary failure, and RemoteError for a permanent one."""
        address, key, body = urlsplit(self._address()), self._signing_key(), exact_json.dumps(message.payload)
        timestamp = str(int(at.timestamp()))
        headers = {"content-type": "application/json", "webhook-id": message.id, "webhook-timestamp": timestamp}
        if key is not None:
            headers["webhook-signature"] = webhook_signature_header(key, message.id, timestamp, body)
        origin = f"{address.scheme}://{address.netloc}"
        path = (address.path or "/") + (f"?{address.query}" if address.query else "")
        limits: dict[str, Any] = {"connect_timeout_s": within_s, "total_timeout_s": within_s}
        client = HttpClient(origin, headers=headers, connection=self._webhook, **limits)
        with closing(client):
            answer = client.send("POST", path, body=body)
        status = answer.status
        if status >= 500 or status in _TEMPORARY_HTTP_STATUSES:
            raise UnavailableError(f"responded with {status}", code="notification_failed")
        if not 200 <= status < 300:
            raise RemoteError(f"responded with {status}", code="notification_failed")
        if (place := _error_place_in_successful_answer(answer)) is not None:
            raise RemoteError(f"responded with {status}, and an error in {place}", code="notification_failed")

    def _address(self) -> str:
        url = self._webhook.url
        if isinstance(url, str):
            return url
        try:
            return check_https_or_loopback_address(url.reveal())
        except ValueError as error:
            raise ConfigError(f"the URL in {url.reference} {error}", code="address_invalid") from None

    def _signing_key(self) -> bytes | None:
        secret = self._webhook.secret
        if secret is None:
            return None
        try:
            key = base64.b64decode(secret.reveal().removeprefix("whsec_"), validate=True)
        except (binascii.Error, ValueError):
            key = b""
        if not 24 <= len(key) <= 64:
            raise ConfigError(f"{secret.reference} is not a signing key", hint=_KEY_HINT, code="secret_invalid")
        return key


def _error_place_in_successful_answer(answer: Answer) -> str | None:
    """Return the member of an answer of success that reports an error, as those of DingTalk do, or None.

    Objects in it may be the message, which a receiver gives back.
    """
    try:
        body = exact_json.loads(answer.body)
    except ValueError:
        return None
    own = {name: value for name, value in body.items() if not isinstance(value, dict)} if isinstance(body, dict) else {}
    return collect_signs_beside_empty_list(ApiAnswer("", own), None, ()).place_of_error


def webhook_signature_header(key: bytes, message_id: str, timestamp: str, body: bytes) -> str:
    """Return the ``webhook-signature`` of a message: HMAC-SHA256 over id, timestamp and body."""
    signed = b".".join((message_id.encode(), timestamp.encode(), body))
    return f"v1,{base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()}"


MAX_REPLIES_BYTES = 1024 * 1024  # per conversation; RFC 5321 section 4.5.3.1.5 limits a line, but not their number
_TIMED_OUT, _NOT_SMTP = "timed out", "is not an SMTP server"


class RecipientsRefusedError(RemoteError):
    """The server refuses some recipients for good, and has accepted the mail for the others."""


class MailChannel:
    """Sends messages as an `Email` configures. *tls* verifies the server; None stands for the system's certificates."""

    def __init__(self, email: Email, tls: ssl.SSLContext | None = None) -> None:
        self._email, self._tls = email, tls
        self.name = f"the mail server {email.host}:{email.port}"

    def check_secrets(self) -> None:
        self._password()

    def send(self, message: Message, *, at: datetime, within_s: float) -> None:
        """Make one attempt. If it fails after the last byte, the mail may have been accepted.

        Raises:
            UnavailableError: A temporary failure.
            RecipientsRefusedError: Some recipients are refused for good, the others have the mail.
            RemoteError: Another permanent failure, also if only some recipients were accepted for now.
        """
        email, password = self._email, self._password()
        with (
            _smtp_errors_as_crossdock_errors(),
            closing(_BoundedSmtp(email, self._tls or tls_context(), within_s)) as smtp,
        ):
            smtp.open()
            if email.user is not None and password is not None:
                smtp.login(email.user, password)
            refused = smtp.send_message(self._compose_mail(message, at), email.sender, email.to)
            with suppress(OSError, smtplib.SMTPException, RemoteError):  # the mail is accepted already
                smtp.quit()
        if refused:
            lasting = all(code >= 500 for code, _ in refused.values())
            raise (RecipientsRefusedError if lasting else RemoteError)(
                f"refused {len(refused)} of {len(email.to)} recipients ({_reply_codes(refused)})",
                code="notification_failed",
            )

    def _password(self) -> str | None:
        secret = self._email.password
        if secret is None:
            return None
        password = secret.reveal()
        if not (password.isascii() and password.isprintable()):
            raise ConfigError(
                f"{secret.reference} contains characters that SMTP authentication does not support",
                code="secret_invalid",
            )
        return password

    def _compose_mail(self, message: Message, at: datetime) -> EmailMessage:
        mail = EmailMessage()
        mail["Subject"] = message.subject
        mail["From"] = Address("crossdock", addr_spec=self._email.sender)
        mail["To"] = ", ".join(self._email.to)
        mail["Date"] = format_datetime(at)
        mail["Message-ID"] = f"<{message.id}@{self._email.sender.partition('@')[2]}>"
        mail["Auto-Submitted"] = "auto-generated"  # RFC 3834: suppresses automatic replies
        mail.set_content("\n".join(message.lines))
        return mail


class _BoundedSmtp(smtplib.SMTP):
    """An SMTP client with a deadline for the whole conversation and a limit for the size of all replies."""

    def __init__(self, email: Email, tls: ssl.SSLContext, within_s: float) -> None:
        super().__init__(local_hostname="", timeout=within_s)
        self._host = email.host.rstrip(".")  # smtplib verifies certificates against it
        self._email, self._tls = email, tls
        self._deadline, self._bytes_left = time.monotonic() + within_s, MAX_REPLIES_BYTES

    def open(self) -> None:
        code, text = self.connect(self._email.host, self._email.port)
        if code != 220:
            raise smtplib.SMTPConnectError(code, text)
        if self._email.tls == "starttls":
            self.starttls(context=self._tls)

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        self.sock = socket.create_connection((host, port), timeout)
        address = self.sock.getsockname()[0]
        self.local_hostname = f"[IPv6:{address}]" if ":" in address else f"[{address}]"  # a name would need DNS
        self._limit_next_wait()
        return self._tls.wrap_socket(self.sock, server_hostname=self._host) if self._email.tls == "tls" else self.sock

    def getreply(self) -> tuple[int, bytes]:
        self.file = self.file or io.BufferedReader(_LimitedReplies(self))
        reply = super().getreply()
        self._limit_next_wait()  # for a TLS handshake or the next command
        return reply

    def receive_into(self, buffer: WriteableBuffer) -> int:
        assert self.sock is not None
        self._limit_next_wait()
        try:
            count = self.sock.recv_into(buffer)
        except TimeoutError as error:  # smtplib would report a closed connection
            raise UnavailableError(_TIMED_OUT, code="notification_failed") from error
        self._bytes_left -= count
        if self._bytes_left < 0:
            raise RemoteError(f"sent responses of more than {MAX_REPLIES_BYTES:,} bytes", code="notification_failed")
        return count

    def _limit_next_wait(self) -> None:
        seconds_left = self._deadline - time.monotonic()
        if seconds_left <= 0:
            raise UnavailableError(_TIMED_OUT, code="notification_failed")
        if self.sock is not None:
            self.sock.settimeout(seconds_left)


class _LimitedReplies(io.RawIOBase):
    def __init__(self, smtp: _BoundedSmtp) -> None:
        self._smtp = smtp

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        return self._smtp.receive_into(buffer)


@contextmanager
def _smtp_errors_as_crossdock_errors() -> Iterator[None]:
    """Raise errors of crossdock with the server's reply codes. Its texts may contain addresses."""
    try:
        yield
    except smtplib.SMTPRecipientsRefused as error:
        temporary = any(400 <= code < 500 for code, _ in error.recipients.values())
        raise _notification_error(
            f"refused all recipients ({_reply_codes(error.recipients)})", temporary=temporary
        ) from error
    except smtplib.SMTPResponseException as error:
        what = "the login" if isinstance(error, smtplib.SMTPAuthenticationError) else "the mail"
        text = f"refused {what} ({error.smtp_code})" if error.smtp_code > 0 else _NOT_SMTP
        raise _notification_error(text, temporary=400 <= error.smtp_code < 500) from error
    except smtplib.SMTPServerDisconnected as error:
        raise UnavailableError("closed the connection", code="notification_failed") from error
    except smtplib.SMTPException as error:  # a missing feature; the text is smtplib's own
        raise RemoteError(f"cannot be used: {error}", code="notification_failed") from error
    except binascii.Error as error:  # an authentication challenge that is not base64
        raise RemoteError(_NOT_SMTP, code="notification_failed") from error
    except OSError as error:
        temporary = not isinstance(error, ssl.SSLCertVerificationError)
        raise _notification_error(f"cannot be reached: {network_failure_reason(error)}", temporary=temporary) from error


def _notification_error(text: str, *, temporary: bool) -> RemoteError:
    kind = UnavailableError if temporary else RemoteError
    return kind(text, code="notification_failed")


def _reply_codes(refused: Mapping[str, Any]) -> str:
    return ", ".join(sorted({str(code) for code, _ in refused.values()}))


Channel = WebhookChannel | MailChannel


class RefusedRecipientsSentence(str):
    """A sentence about recipients that a channel refuses for good. The others have the message, and get it once."""

    __slots__ = ()


def have_all_channels_accepted(problems: Iterable[str]) -> bool:
    """Return whether each channel has accepted the message, given the *problems* of sending it."""
    return all(isinstance(each, RefusedRecipientsSentence) for each in problems)


ATTEMPT_S = 10.0


class Notifier:
    """Sends the notifications that a `NotifyConfig` selects. Secrets are read for each message, so they can be rotated.

    A channel has at most two attempts of *attempt_s*. A secret that cannot be read or used is a ConfigError.
    """

    def __init__(
        self, config: NotifyConfig, clock: Clock, *, tls: ssl.SSLContext | None = None, attempt_s: float = ATTEMPT_S
    ) -> None:
        self._clock, self._attempt_s = clock, attempt_s
        self._when = frozenset(config.when)
        self._channels: list[Channel] = []
        if config.webhook is not None:
            self._channels.append(WebhookChannel(config.webhook))
        if config.email is not None:
            self._channels.append(MailChannel(config.email, tls))
        for channel in self._channels:
            channel.check_secrets()

    def notify(self, event: Event) -> list[str]:
        """Send *event* on all channels in parallel if it is selected, within 2.5 times *attempt_s*.

        Return a sentence for each channel that failed.
        """
        selected = notification_kinds_of_event(event) & self._when
        return self._send_on_all_channels(compose_message(event, selected, self._clock.now())) if selected else []

    def is_event_selected(self, event: Event) -> bool:
        return bool(notification_kinds_of_event(event) & self._when)

    def notify_of_several_events(self, events: Sequence[tuple[str, Event]], tenants: int) -> list[str]:
        """Send one message about at least one selected event, each with its tenant. The rest is as in `notify`."""
        return self._send_on_all_channels(compose_message_of_several_events(events, tenants, self._clock.now()))

    def _send_on_all_channels(self, message: Message) -> list[str]:
        deadline = time.monotonic() + 2.5 * self._attempt_s
        failures = {channel.name: f"{channel.name} did not answer in time" for channel in self._channels}
        threads = []
        for channel in self._channels:  # in threads, since nothing else bounds a DNS lookup
            task = partial(self._send_on_channel, channel, message, deadline, failures)
            threads.append(threading.Thread(target=task, name="notification", daemon=True))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        return list(failures.values())

    def _send_on_channel(self, channel: Channel, message: Message, deadline: float, failures: dict[str, str]) -> None:
        name = channel.name
        try:
            self._send_with_retry(channel, message, deadline)
            del failures[name]
        except ConfigError as error:
            failures[name] = add_code_to_first_line(f"{name} cannot be used: {error.message}", error.code)
        except RecipientsRefusedError as error:
            text = add_code_to_first_line(f"{name} {error.message}", "notification_failed")
            failures[name] = RefusedRecipientsSentence(text)
        except CrossdockError as error:
            failures[name] = add_code_to_first_line(f"{name} {error.message}", "notification_failed")
        except Exception as error:  # noqa: BLE001  a defect here must not fail the run; its text may quote anything
            failures[name] = f"{name} failed: {type(error).__name__}"

    def _send_with_retry(self, channel: Channel, message: Message, deadline: float) -> None:
        send = partial(channel.send, message, within_s=self._attempt_s)
        try:
            send(at=self._clock.now())
        except UnavailableError:
            self._clock.sleep(self._attempt_s / 5)
            if time.monotonic() >= deadline:
                raise
            send(at=self._clock.now())
