"""Webhook notifications: JSON by POST, signed as in Standard Webhooks 1.0.0 if there is a secret."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from contextlib import closing
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from crossdock.config.notify_config import Webhook
from crossdock.errors import ConfigError, RemoteError, UnavailableError
from crossdock.reading.sources.api_requests_and_answers import ApiAnswer
from crossdock.reading.sources.signs_of_unread_records import collect_signs_beside_empty_list
from crossdock.reading.transport.http_answer_and_error_types import Answer
from crossdock.reading.transport.httpcore_client import HttpClient
from crossdock.services.notifications.run_events_and_messages import Message
from crossdock.values import exact_json
from crossdock.values.config_base_types import Secret
from crossdock.values.web_address_checks import check_https_or_loopback_address

_TEMPORARY = {408, 425, 429}
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
            headers["webhook-signature"] = signature(key, message.id, timestamp, body)
        origin = f"{address.scheme}://{address.netloc}"
        path = (address.path or "/") + (f"?{address.query}" if address.query else "")
        limits: dict[str, Any] = {"connect_timeout_s": within_s, "total_timeout_s": within_s}
        client = HttpClient(origin, headers=headers, connection=self._webhook, **limits)
        with closing(client):
            answer = client.send("POST", path, body=body)
        status = answer.status
        if status >= 500 or status in _TEMPORARY:
            raise UnavailableError(f"responded with {status}", code="notification_failed")
        if not 200 <= status < 300:
            raise RemoteError(f"responded with {status}", code="notification_failed")
        if (place := _place_of_error(answer)) is not None:
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


def _place_of_error(answer: Answer) -> str | None:
    """Return the member of an answer of success that reports an error, as those of DingTalk do, or None.

    Objects in it may be the message, which a receiver gives back.
    """
    try:
        body = exact_json.loads(answer.body)
    except ValueError:
        return None
    own = {name: value for name, value in body.items() if not isinstance(value, dict)} if isinstance(body, dict) else {}
    return collect_signs_beside_empty_list(ApiAnswer("", own), None, ()).place_of_error


def signature(key: bytes, message_id: str, timestamp: str, body: bytes) -> str:
    """Return the ``webhook-signature`` of a message: HMAC-SHA256 over id, timestamp and body."""
    signed = b".".join((message_id.encode(), timestamp.encode(), body))
    return f"v1,{base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()}"
