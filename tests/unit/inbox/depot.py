"""A connection that receives webhooks: a depot whose body names the stream and the keys."""

from __future__ import annotations

import secrets
from base64 import b64encode
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

from crossdock import Connector, Context, RawBatch, Record, Settings, Stream
from crossdock.config.project.connections_and_bound_streams import Connection
from crossdock.services.inbox.webhook_verification_and_parsing import WebhookEndpoint
from crossdock.values.clock import Clock, SystemClock
from crossdock.values.config_base_types import Secret
from crossdock.webhooks import Hint, Webhook, Webhooks, WebhookScheme, signed_headers

SCHEME = WebhookScheme()
TOPIC = "x-topic"


class DepotSettings(Settings):
    """Nothing to set."""

    kind: Literal["depot"] = "depot"


class Orders(Stream[DepotSettings]):
    name, resource, key = "orders", "order", ("id",)

    def pull(self, ctx: Context[DepotSettings], since: str | None) -> Iterator[RawBatch]:
        yield from ()

    def fetch(self, ctx: Context[DepotSettings], keys: Sequence[tuple[str, ...]]) -> Iterator[RawBatch]:
        yield from ()

    def to_resource(self, record: Record) -> dict[str, Any]:
        raise NotImplementedError


def hints(webhook: Webhook) -> Iterator[Hint]:
    """One for each key of the body, of the stream that it names."""
    for key in webhook.at("/keys", list):
        yield Hint(webhook.at("/stream", str, default="orders"), tuple(key))


def new_secret() -> str:
    return f"whsec_{b64encode(secrets.token_bytes(32)).decode()}"


def webhooks_of(folder: Path, texts: Sequence[str], **more: Any) -> Webhooks[Any]:
    """Webhooks signed with the secrets *texts*, which are put into files in *folder*."""
    files = [folder / f"secret-{uuid4().hex}" for _ in texts]
    for file, text in zip(files, texts, strict=True):
        file.touch(mode=0o600)
        file.write_text(text, encoding="utf-8")
    found = [Secret(f"file:{file}", folder) for file in files]
    facts: dict[str, Any] = {"schemes": [SCHEME], "secrets": found, "hints": hints, "topic_headers": (TOPIC,)}
    return Webhooks(**facts | more)


def endpoint(folder: Path, *texts: str, clock: Clock | None = None, **more: Any) -> WebhookEndpoint:
    """The endpoint of a connection ``depot``."""
    streams = tuple(more.pop("streams", [Orders()]))
    webhooks = webhooks_of(folder, texts, **more)
    connector = Connector("depot", "Depot", DepotSettings, lambda _: streams, webhooks=lambda _: webhooks)
    return WebhookEndpoint(Connection("depot", connector, DepotSettings(), streams), webhooks, clock or SystemClock())


def signed(secret: str, body: bytes, *, at: float | None = None, name: str | None = None) -> list[tuple[str, str]]:
    """The header fields of a webhook, sent now."""
    moment = SystemClock().now().timestamp() if at is None else at
    fields = signed_headers(SCHEME, secret, body, delivery_id=name or uuid4().hex, timestamp=int(moment))
    return [*fields.items(), (TOPIC, "order.changed")]


def raw(fields: Sequence[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    """Header fields as an ASGI server gives them."""
    return [(name.lower().encode(), value.encode("latin-1")) for name, value in fields]
