"""Who is notified about scheduled runs, when, and by which channel."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, WithJsonSchema, model_validator

from crossdock.reading.transport.proxy_and_tls_settings import HttpConnection
from crossdock.values.config_base_types import ConfigModel, HostName, Secret, SecretRef
from crossdock.values.web_address_checks import (
    check_email_address,
    check_https_or_loopback_address,
    is_loopback,
    query_has_secret,
)

Kind = Literal["failed", "degraded", "recovered", "late"]


def _checked_url_or_secret_reference(value: Any, info: ValidationInfo) -> str | Secret:
    if isinstance(value, Secret):
        return value
    if not isinstance(value, str):
        raise ValueError("must be text")  # noqa: TRY004  pydantic wants this one
    if value.startswith(("env:", "file:")) and not value.endswith(":"):
        return Secret(value, info.context["folder"] if info.context else Path())
    if query_has_secret(value):
        raise ValueError("must not contain a secret: refer to the whole URL with env:NAME or file:PATH")
    return check_https_or_loopback_address(value)


Url = Annotated[
    str | Secret,
    BeforeValidator(_checked_url_or_secret_reference),
    WithJsonSchema({"type": "string", "pattern": "^(https?://|(env|file):).+"}),
]


class Webhook(HttpConnection):
    """A webhook to post to, and how connections to it are made."""

    url: Url
    """The address: https, or http on this machine. Refer to an address that is itself a secret, as those of chat
    channels are, by ``env:NAME`` or ``file:PATH``."""
    secret: SecretRef | None = None
    """The signing key: ``whsec_`` and the base64 of 24 to 64 bytes. Without it, requests are not signed."""


Mailbox = Annotated[str, AfterValidator(check_email_address)]


class Email(ConfigModel):
    """Mail recipients and the SMTP server to send through."""

    host: HostName
    """The mail server (SMTP)."""
    port: Annotated[int, Field(ge=1, le=65_535)]
    """Usually 587 for ``starttls``, 465 for ``tls``, 25 for ``none``."""
    tls: Literal["starttls", "tls", "none"]
    """``starttls`` upgrades the connection, ``tls`` encrypts it from the start, ``none`` is for a server on this
    machine only. Nothing is sent to a server that does not encrypt as configured."""
    user: Annotated[str, Field(pattern="^[!-~]+$")] | None = None
    """User name for authentication; omit it for a server without authentication."""
    password: SecretRef | None = None
    """The password of ``user``."""
    sender: Mailbox
    """The From address."""
    to: Annotated[tuple[Mailbox, ...], Field(min_length=1)]
    """The recipients' addresses."""

    @model_validator(mode="after")
    def _check_tls_and_login(self) -> Self:
        if self.tls == "none" and not is_loopback(self.host):
            raise ValueError("tls: none is for a mail server on this machine only; use starttls or tls")
        if (self.user is None) != (self.password is None):
            raise ValueError("user and password go together")
        return self


class NotifyConfig(ConfigModel):
    """Who is notified about scheduled runs, and when."""

    when: Annotated[tuple[Kind, ...], Field(min_length=1)] = ("failed", "degraded", "recovered")
    """Events to notify about: ``failed`` (the run did not complete), ``degraded`` (it completed, but records are
    open: rejected, waiting, pending or in doubt), ``recovered`` (it completed after a run that did not, or nothing
    is open any more), ``late`` (it is expected to end after ``done_by``)."""
    webhook: Webhook | None = None
    """Webhook to post to."""
    email: Email | None = None
    """Mail to send."""

    @model_validator(mode="after")
    def _check_has_webhook_or_email(self) -> Self:
        if self.webhook is None and self.email is None:
            raise ValueError("needs a webhook or an email; to send no notifications, leave notify out")
        return self
