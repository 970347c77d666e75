"""Telling people: a short mail over SMTP, in bounded time."""

from __future__ import annotations

import binascii
import smtplib
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Annotated, BinaryIO, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from crossdock.addresses import HostName, is_loopback, mailbox
from crossdock.config_file import ConfigModel, SecretRef
from crossdock.errors import ConfigError, RemoteError, UnavailableError
from crossdock.notifications.events import Message
from crossdock.transport.http_client import trust

MAX_REPLIES_BYTES = 1024 * 1024  # of one session; RFC 5321 section 4.5.3.1.5 bounds a line, but not their number

Mailbox = Annotated[str, AfterValidator(mailbox)]


class Email(ConfigModel):
    """People who want to be told, and the server that takes mail for them."""

    host: HostName
    """The mail server."""
    port: Annotated[int, Field(ge=1, le=65_535)]
    """Usually 587 for ``starttls``, 465 for ``tls``, 25 for ``none``."""
    tls: Literal["starttls", "tls", "none"]
    """Encrypted after a greeting, from the first byte, or (on this machine only) not at all. A server that does not
    encrypt as told gets nothing."""
    user: Annotated[str, Field(pattern="^[!-~]+$")] | None = None
    """Who logs in; without it nobody does."""
    password: SecretRef | None = None
    """The user's."""
    sender: Mailbox
    """The address that the mail is from."""
    to: Annotated[tuple[Mailbox, ...], Field(min_length=1)]
    """The addresses that it goes to."""

    @model_validator(mode="after")
    def _is_safe(self) -> Self:
        if self.tls == "none" and not is_loopback(self.host):
            raise ValueError("tls: none is for a mail server on this machine only; use starttls or tls")
        if (self.user is None) != (self.password is None):
            raise ValueError("user and password go together")
        return self


class MailChannel:
    """Mails notices as an `Email` says.

    Args:
        tls: What is trusted; the system's certificates without it.
    """

    def __init__(self, email: Email, tls: ssl.SSLContext | None = None) -> None:
        self._email, self._tls = email, tls
        self.name = f"the mail server {email.host}:{email.port}"

    def check(self) -> None:
        """Look at the password.

        Raises:
            ConfigError: If it cannot be read or used.
        """
        self._password()

    def send(self, told: Message, *, at: datetime, within_s: float) -> None:
        """Mail once. An attempt that broke off at its very end may have been one mail already.

        Args:
            at: The time of this attempt.

        Raises:
            ConfigError: See `check`.
            UnavailableError: If it was not taken now, and may be later.
            RemoteError: If it was not taken, or not for all, and will not be.
        """
        email, password, message = self._email, self._password(), self._message(told, at)
        with _said(), _reached(email.host, email.port, within_s) as plain, self._opened(plain) as smtp, closing(smtp):
            if email.user is not None and password is not None:
                smtp.login(email.user, password)
            refused = smtp.send_message(message, email.sender, email.to)
            with suppress(OSError, smtplib.SMTPException):  # the mail is theirs, whatever they say to our leaving
                smtp.quit()
        if refused:
            raise RemoteError(f"refused {len(refused)} of {len(email.to)} recipients ({_codes(refused)})")

    def _password(self) -> str | None:
        secret = self._email.password
        if secret is None:
            return None
        password = secret.reveal()
        if not (password.isascii() and password.isprintable()):
            raise ConfigError(f"{secret.reference} holds characters that no log-in of SMTP can carry")
        return password

    def _message(self, told: Message, at: datetime) -> EmailMessage:
        message = EmailMessage()
        message["Subject"] = told.subject
        message["From"] = Address("crossdock", addr_spec=self._email.sender)
        message["To"] = ", ".join(self._email.to)
        message["Date"] = format_datetime(at)
        message["Message-ID"] = f"<{told.id}@{self._email.sender.partition('@')[2]}>"
        message["Auto-Submitted"] = "auto-generated"  # RFC 3834: no answer by those on holiday
        message.set_content("\n".join(told.lines))
        return message

    @contextmanager
    def _opened(self, plain: socket.socket) -> Iterator[smtplib.SMTP]:
        """A session on *plain*, encrypted as the config says, past its greetings."""
        how = self._email.tls
        if how == "none":
            yield _greeted(plain)
            return
        if how == "starttls":
            self._ask_for_tls(_greeted(plain))
        with (self._tls or trust()).wrap_socket(plain, server_hostname=self._email.host.rstrip(".")) as encrypted:
            yield _session(encrypted) if how == "starttls" else _greeted(encrypted)

    def _ask_for_tls(self, smtp: smtplib.SMTP) -> None:
        smtp.ehlo()
        if not smtp.has_extn("starttls"):
            raise RemoteError("offers no STARTTLS")
        code, _ = smtp.docmd("STARTTLS")
        if code != 220:
            raise RemoteError(f"refused to encrypt ({code})")


def _greeted(connection: socket.socket) -> smtplib.SMTP:
    smtp = _session(connection)
    code, text = smtp.getreply()
    if code != 220:
        smtp.close()
        raise smtplib.SMTPConnectError(code, text)
    return smtp


def _session(connection: socket.socket) -> smtplib.SMTP:
    """A session without memory: what was said in the clear before STARTTLS counts for nothing after it."""
    name = connection.getsockname()[0]
    smtp = smtplib.SMTP(local_hostname=f"[IPv6:{name}]" if ":" in name else f"[{name}]")  # a name would ask the DNS
    smtp.sock, smtp.file = connection, _Replies(connection.makefile("rb"))
    return smtp


class _Replies:
    """What a server says, up to `MAX_REPLIES_BYTES`; smtplib keeps every line of a reply, however many come."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._left = file, MAX_REPLIES_BYTES
        self.close = file.close

    def readline(self, size: int) -> bytes:
        line = self._file.readline(size)
        self._left -= len(line)
        if self._left < 0:
            raise RemoteError(f"replies with more than {MAX_REPLIES_BYTES:,} bytes")
        return line


@contextmanager
def _reached(host: str, port: int, within_s: float) -> Iterator[socket.socket]:
    """A connection that is cut *within_s* seconds after it was asked for, however its bytes drip."""
    ends, late = time.monotonic() + within_s, threading.Event()
    with socket.create_connection((host, port), timeout=within_s) as connection, connection.dup() as same:
        connection.settimeout(None)  # the cut ends every wait

        def cut() -> None:
            late.set()
            with suppress(OSError):
                same.shutdown(socket.SHUT_RDWR)

        timer = threading.Timer(ends - time.monotonic(), cut)
        timer.daemon = True
        timer.start()
        try:
            yield connection
        except (OSError, smtplib.SMTPException) as error:
            if late.is_set():
                raise TimeoutError from error
            raise
        finally:
            timer.cancel()
            timer.join()


@contextmanager
def _said() -> Iterator[None]:
    """Failures as ours, with the server's codes; its words may hold addresses."""
    try:
        yield
    except smtplib.SMTPRecipientsRefused as error:
        passing = any(400 <= code < 500 for code, _ in error.recipients.values())
        raise _failure(f"refused all recipients ({_codes(error.recipients)})", passing=passing) from error
    except smtplib.SMTPResponseException as error:
        what = "the log-in" if isinstance(error, smtplib.SMTPAuthenticationError) else "the mail"
        said = f"refused {what} ({error.smtp_code})" if error.smtp_code > 0 else "does not speak SMTP"
        raise _failure(said, passing=400 <= error.smtp_code < 500) from error
    except smtplib.SMTPServerDisconnected as error:
        raise UnavailableError("closed the connection") from error
    except smtplib.SMTPException as error:
        raise RemoteError("offers no log-in that we know") from error
    except ssl.SSLCertVerificationError as error:
        raise RemoteError(f"shows a certificate that is not trusted: {error.verify_message}") from error
    except TimeoutError as error:
        raise UnavailableError("gave no whole answer in time") from error
    except ssl.SSLError as error:
        raise UnavailableError(f"does not encrypt as it should: {error.reason}") from error
    except binascii.Error as error:  # in a challenge of the log-in
        raise RemoteError("does not speak SMTP") from error
    except OSError as error:
        raise UnavailableError(f"cannot be reached: {(error.strerror or type(error).__name__).lower()}") from error


def _failure(said: str, *, passing: bool) -> RemoteError:
    return UnavailableError(said) if passing else RemoteError(said)


def _codes(refused: Mapping[str, tuple[int, bytes]]) -> str:
    return ", ".join(sorted({str(code) for code, _ in refused.values()}))
