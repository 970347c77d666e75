"""Mail notifications over SMTP."""

from __future__ import annotations

import binascii
import io
import smtplib
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import format_datetime
from typing import TYPE_CHECKING, Any

from crossdock.config.notify_config import Email
from crossdock.errors import ConfigError, RemoteError, UnavailableError
from crossdock.reading.transport.failure_sentences import network_failure_reason
from crossdock.reading.transport.tls_context import tls_context
from crossdock.services.notifications.run_events_and_messages import Message

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

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
        with _translated_errors(), closing(_BoundedSmtp(email, self._tls or tls_context(), within_s)) as smtp:
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
def _translated_errors() -> Iterator[None]:
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
