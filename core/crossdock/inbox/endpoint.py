"""One connection's webhooks: verified, and turned into the records that they are about."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import uuid4

from crossdock import exact_json
from crossdock.clock import Clock
from crossdock.connector import Stream
from crossdock.delta.row_preparation import MAX_KEY_BYTES
from crossdock.errors import ConfigError, RecordError
from crossdock.platform.webhooks import Delivery, WebhookVerifier
from crossdock.printable import is_storable, printable
from crossdock.project.connector_instances import Connection
from crossdock.runs.named_records import named
from crossdock.state import NamedRecord, ReceivedWebhook
from crossdock.webhooks import Hint, Webhook, Webhooks

MOST_HINTS = 1_000  # of one webhook
_MAX_TOPIC = 200  # characters
_MAX_PROBLEM = 500

RawHeaders = Sequence[tuple[bytes, bytes]]


class Endpoint:
    """What one connection receives. Reads the connection's secrets when it is made.

    Raises:
        ConfigError: If a secret cannot be read, or is not written as the scheme says.
    """

    def __init__(self, connection: Connection, webhooks: Webhooks[Any], clock: Clock) -> None:
        self.connection, self._webhooks = connection, webhooks
        self._streams = {stream.name: stream for stream in connection.streams}
        secrets = [secret.reveal() for secret in webhooks.secrets]
        try:
            self._verifiers = [WebhookVerifier(scheme, secrets, clock) for scheme in webhooks.schemes]
        except ConfigError as error:
            where = f"connections.{connection.name}.webhooks.secrets"
            raise ConfigError(error.message, where=where, hint=error.hint) from error
        self.max_body_bytes = max(scheme.max_body_bytes for scheme in webhooks.schemes)

    def accept(self, body: bytes, headers: RawHeaders) -> ReceivedWebhook:
        """Verify a webhook, and find out which records it is about.

        Raises:
            WebhookError: If it must not be processed; its `status` is the answer.
        """
        delivery = self._verifier(headers).verify(body, headers)
        key, topic, problem = _delivery_key(delivery), "", None
        records: tuple[NamedRecord, ...] = ()
        try:
            webhook = self._read(body, headers)
            topic = webhook.topic
            records = self._records(webhook)
        except _UnreadableError as error:
            topic, problem = error.topic, str(error)
        return ReceivedWebhook(self.connection.name, key, printable(topic)[:_MAX_TOPIC], problem, records)

    def _verifier(self, headers: RawHeaders) -> WebhookVerifier:
        """The first whose signature header is there; else the first, which says what is missing."""
        names = {name.decode("latin-1").lower() for name, _ in headers}
        given = (each for each in self._verifiers if each.scheme.signature_header.lower() in names)
        return next(given, self._verifiers[0])

    def _read(self, body: bytes, headers: RawHeaders) -> Webhook:
        fields = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in headers}
        topic = next((fields[name.lower()] for name in self._webhooks.topic_headers if name.lower() in fields), "")
        try:
            document = exact_json.loads(body)
        except (ValueError, RecursionError):
            raise _UnreadableError("the body is not JSON", topic) from None
        webhook = Webhook(topic, fields, document)
        if topic or not self._webhooks.topic_member:
            return webhook
        try:
            return Webhook(webhook.at(self._webhooks.topic_member, str), fields, document)
        except RecordError as error:
            raise _UnreadableError(_said(error), topic) from None

    def _records(self, webhook: Webhook) -> tuple[NamedRecord, ...]:
        found: dict[str, list[tuple[str, ...]]] = {}
        try:
            hints = list(self._webhooks.hints(webhook))
        except RecordError as error:
            raise _UnreadableError(_said(error), webhook.topic) from None
        except Exception as error:  # noqa: BLE001  a defect of the connector; its text may quote data
            raise _UnreadableError(f"the connector raised {type(error).__name__}", webhook.topic) from None
        if len(hints) > MOST_HINTS:
            raise _UnreadableError(f"it is about {len(hints):,} records, more than {MOST_HINTS:,}", webhook.topic)
        for hint in hints:
            self._check(hint, webhook.topic)
            found.setdefault(f"{self.connection.name}.{hint.stream}", []).append(hint.key)
        return tuple(record for stream, keys in found.items() for record in named(stream, keys))

    def _check(self, hint: Hint, topic: str) -> None:
        stream: Stream[Any] | None = self._streams.get(hint.stream)
        if stream is None:
            raise _UnreadableError(f"the connection has no stream {hint.stream!r}", topic)
        if not stream.fetches:
            raise _UnreadableError(f"the stream {hint.stream} cannot fetch named records", topic)
        if len(hint.key) != len(stream.key):
            raise _UnreadableError(f"a key of {hint.stream} has {len(stream.key)} parts, not {len(hint.key)}", topic)
        if not _is_key(hint.key):
            raise _UnreadableError(f"a key of {hint.stream} is empty, too long or not storable", topic)


class _UnreadableError(Exception):
    """A webhook whose body cannot be used."""

    def __init__(self, message: str, topic: str) -> None:
        super().__init__(printable(message)[:_MAX_PROBLEM])
        self.topic = topic


def endpoints(connections: Iterable[Connection], clock: Clock) -> dict[str, Endpoint]:
    """The endpoints of the connections that declare webhooks, by name.

    Raises:
        ConfigError: As `Endpoint`.
    """
    found = {}
    for connection in connections:
        webhooks = connection.webhooks
        if webhooks is not None:
            found[connection.name] = Endpoint(connection, webhooks, clock)
    return found


def _delivery_key(delivery: Delivery) -> str:
    """The same for each copy of a webhook. An id that is not signed counts with what is: somebody could change it.

    Without an id, two webhooks with one body may tell of two changes: none counts as a copy.
    """
    if delivery.id is None:
        return uuid4().hex
    return delivery.key if delivery.key == delivery.id else f"{delivery.id} {delivery.key}"


def _is_key(key: tuple[str, ...]) -> bool:
    return all(is_storable(part) and 0 < len(part.encode()) <= MAX_KEY_BYTES for part in key)


def _said(error: RecordError) -> str:
    return f"{error.pointer}: {error.message}" if error.pointer else error.message
