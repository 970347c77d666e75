"""Telling a program: JSON by POST, signed as Standard Webhooks 1.0.0 has it where there is a secret."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import ssl
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import BeforeValidator, ValidationInfo, WithJsonSchema

from crossdock import exact_json
from crossdock.addresses import asks_with_secret, web_address
from crossdock.config_file import ConfigModel, Secret, SecretRef
from crossdock.errors import ConfigError, RemoteError, UnavailableError
from crossdock.notifications.events import Message
from crossdock.transport.http_client import HttpClient

_MAY_PASS = {408, 425, 429}
_A_KEY = "write whsec_ and the base64 of 24 to 64 random bytes: openssl rand -base64 32"


def _url(value: Any, info: ValidationInfo) -> str | Secret:
    if isinstance(value, Secret):
        return value
    if not isinstance(value, str):
        raise ValueError("must be text")  # noqa: TRY004  pydantic wants this one
    if value.startswith(("env:", "file:")) and not value.endswith(":"):
        return Secret(value, info.context["folder"] if info.context else Path())
    if asks_with_secret(value):
        raise ValueError("must not hold a secret: refer to the whole address by env:NAME or file:PATH")
    return web_address(value)


Url = Annotated[
    str | Secret, BeforeValidator(_url), WithJsonSchema({"type": "string", "pattern": "^(https?://|(env|file):).+"})
]


class Webhook(ConfigModel):
    """A program that wants to be told."""

    url: Url
    """Where to post to: https, or http on this machine. An address that is itself a secret, as those of chat
    channels are, is referred to by ``env:NAME`` or ``file:PATH``."""
    secret: SecretRef | None = None
    """The key to sign with: ``whsec_`` and the base64 of 24 to 64 bytes. Nothing is signed without it."""


class WebhookChannel:
    """Posts notices to a `Webhook`.

    Args:
        tls: What https trusts; the system's certificates without it.
    """

    def __init__(self, webhook: Webhook, tls: ssl.SSLContext | None = None) -> None:
        self._webhook, self._tls = webhook, tls
        url = webhook.url
        self.name = f"the webhook {url.reference}" if isinstance(url, Secret) else f"the webhook {urlsplit(url).netloc}"

    def check(self) -> None:
        """Look at the secrets.

        Raises:
            ConfigError: If one cannot be read or used.
        """
        self._address()
        self._key()

    def send(self, told: Message, *, at: datetime, within_s: float) -> None:
        """Post once.

        Args:
            at: The time of this attempt.

        Raises:
            ConfigError: See `check`.
            UnavailableError: If it was not taken now, and may be later.
            RemoteError: If it was not taken, and will not be.
        """
        address, key, body = urlsplit(self._address()), self._key(), exact_json.dumps(told.payload)
        headers = {"content-type": "application/json", "webhook-id": told.id, "webhook-timestamp": _seconds(at)}
        if key is not None:
            headers["webhook-signature"] = signature(key, told.id, _seconds(at), body)
        client = HttpClient(
            f"{address.scheme}://{address.netloc}",
            headers=headers,
            connect_timeout_s=within_s,
            read_timeout_s=within_s,
            total_timeout_s=within_s,
            tls=self._tls,
        )
        path = (address.path or "/") + (f"?{address.query}" if address.query else "")
        try:
            status = client.send("POST", path, body=body).status
        finally:
            client.close()
        if status >= 500 or status in _MAY_PASS:
            raise UnavailableError(f"answered {status}")
        if not 200 <= status < 300:
            raise RemoteError(f"answered {status}")

    def _address(self) -> str:
        url = self._webhook.url
        if isinstance(url, str):
            return url
        try:
            return web_address(url.reveal())
        except ValueError as error:
            raise ConfigError(f"the address in {url.reference} {error}") from None

    def _key(self) -> bytes | None:
        secret = self._webhook.secret
        if secret is None:
            return None
        try:
            key = base64.b64decode(secret.reveal().removeprefix("whsec_"), validate=True)
        except (binascii.Error, ValueError):
            key = b""
        if not 24 <= len(key) <= 64:
            raise ConfigError(f"{secret.reference} is no key to sign with", hint=_A_KEY)
        return key


def signature(key: bytes, message_id: str, timestamp: str, body: bytes) -> str:
    """The ``webhook-signature`` of a message: HMAC-SHA256 over id, timestamp and body."""
    signed = b".".join((message_id.encode(), timestamp.encode(), body))
    return f"v1,{base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()}"


def _seconds(at: datetime) -> str:
    return str(int(at.timestamp()))
