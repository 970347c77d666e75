"""One connection's webhooks: verified, and turned into the records that they are about."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import uuid4

from crossdock.config.project.connections_and_bound_streams import Connection
from crossdock.config.project.records_named_by_webhooks import checked_webhook_hints
from crossdock.errors import ConfigError, CrossdockError, RecordError
from crossdock.printable import is_storable, printable
from crossdock.state import ReceivedWebhook, StreamAndKey
from crossdock.values import exact_json
from crossdock.values.clock import Clock
from crossdock.values.record_keys import MAX_KEY_BYTES, key_text
from crossdock.webhooks import Delivery, Webhook, Webhooks, WebhookVerifier

MOST_HINTS = 1_000  # of one webhook
WEBHOOKS_EXAMPLE = "{secrets: [env:SHOP_SECRET]}"  # in the config of a connection
_MAX_TOPIC = 200  # characters
_MAX_PROBLEM = 500

RawHeaders = Sequence[tuple[bytes, bytes]]


class WebhookEndpoint:
    """The webhooks of one connection. Its secrets are read when it is made; one that is unusable is a ConfigError."""

    def __init__(self, connection: Connection, webhooks: Webhooks[Any], clock: Clock) -> None:
        self._connection, self._webhooks = connection, webhooks
        if not webhooks.schemes:
            message = "the connector declares webhooks without a signature scheme"
            raise ConfigError(message, where=f"connections.{connection.name}.webhooks", code="connector_invalid")
        secrets = [secret.reveal() for secret in webhooks.secrets]
        try:
            self._verifiers = [WebhookVerifier(scheme, secrets, clock) for scheme in webhooks.schemes]
        except ConfigError as error:
            where = f"connections.{connection.name}.webhooks.secrets"
            raise ConfigError(error.message, where=where, hint=error.hint, code=error.code) from error
        self.max_body_bytes = max(scheme.max_body_bytes for scheme in webhooks.schemes)

    def verify_and_read(self, body: bytes, headers: RawHeaders) -> ReceivedWebhook | None:
        """Verify a webhook and return it with its records; None for a ping. A WebhookError has the status to answer."""
        if self._webhooks.is_ping(body):
            return None
        delivery = self._verifier_for_signature_header(headers).verify(body, headers)
        fields = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in headers}
        topic = next((fields[name.lower()] for name in self._webhooks.topic_headers if name.lower() in fields), "")
        records: tuple[StreamAndKey, ...] = ()
        problem: str | None = None
        try:
            webhook = self._parse_json_and_topic(body, fields, topic)
            topic = webhook.topic
            records = self._records_named_by_webhook(webhook)
        except RecordError as error:
            problem = f"{error.pointer}: {error.message}" if error.pointer else error.message
        except CrossdockError as error:  # an author may raise any of them on purpose
            problem = error.message
        shown = None if problem is None else printable(problem)[:_MAX_PROBLEM]
        name, topic = self._connection.name, printable(topic)[:_MAX_TOPIC]
        return ReceivedWebhook(name, _deduplication_key(delivery, topic), topic, shown, records)

    def _verifier_for_signature_header(self, headers: RawHeaders) -> WebhookVerifier:
        """Return the verifier whose signature header is present, or else the first: its error says what is missing."""
        names = {name.decode("latin-1").lower() for name, _ in headers}
        given = (each for each in self._verifiers if each.scheme.signature_header.lower() in names)
        return next(given, self._verifiers[0])

    def _parse_json_and_topic(self, body: bytes, fields: Mapping[str, str], topic: str) -> Webhook:
        try:
            webhook = Webhook(topic, fields, exact_json.loads(body))
        except (ValueError, RecursionError):
            raise RecordError("bad_value", "the body is not JSON, or goes beyond its limits") from None
        if topic or not self._webhooks.topic_member:
            return webhook
        return Webhook(webhook.at(self._webhooks.topic_member, str), fields, webhook.body)

    def _records_named_by_webhook(self, webhook: Webhook) -> tuple[StreamAndKey, ...]:
        found: dict[StreamAndKey, None] = {}
        for number, hint in enumerate(checked_webhook_hints(self._connection, self._webhooks, webhook), 1):
            if number > MOST_HINTS:
                raise RecordError("bad_value", f"it is about more than {MOST_HINTS:,} records")
            if not _is_usable_record_key(hint.key):
                raise RecordError("bad_value", f"a key of {hint.stream} is empty, too long or not storable")
            found[StreamAndKey(f"{self._connection.name}.{hint.stream}", key_text(hint.key))] = None
        return tuple(found)


def _is_usable_record_key(key: tuple[str, ...]) -> bool:
    """Return whether *key* may name a record. Parts may be empty if `fetch` finds several records by the others."""
    return any(key) and all(is_storable(part) and len(part.encode()) <= MAX_KEY_BYTES for part in key)


def endpoints_by_connection(connections: Iterable[Connection], clock: Clock) -> dict[str, WebhookEndpoint]:
    declared = ((connection, connection.webhooks) for connection in connections)
    return {each.name: WebhookEndpoint(each, webhooks, clock) for each, webhooks in declared if webhooks is not None}


def _deduplication_key(delivery: Delivery, topic: str) -> str:
    """Return a key that is the same for each copy of a webhook.

    An unsigned id, which anyone could change, counts together with the signed content and the topic. Without an id,
    two webhooks with the same body may announce two changes, so none counts as a copy.
    """
    if delivery.id is None:
        return uuid4().hex
    return delivery.id if delivery.key == delivery.id else _hash_of_texts(delivery.id, delivery.key, topic)


def _hash_of_texts(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
