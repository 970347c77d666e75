"""Webhooks that a connection receives. A webhook is a hint that a record may have changed, which is then fetched.

A connector declares its webhooks:

    def received(settings: DepotSettings) -> Webhooks[DepotSettings] | None:
        return None if settings.webhooks is None else Webhooks([SCHEME], settings.webhooks.secrets, hints)

    def hints(webhook: Webhook) -> Iterator[Hint]:
        if webhook.topic.startswith("order."):
            yield Hint("orders", (webhook.at("/order/id", str),))

    CONNECTOR = Connector(..., webhooks=received)

An application that receives webhooks itself, from the platform or another system, verifies them with `WebhookVerifier`.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar

from pydantic import Field

from crossdock.errors import RefusedError, RemoteError, UnauthorizedError
from crossdock.platform.webhook_verification import (
    MAX_SECRETS,
    Delivery,
    RecentDeliveries,
    WebhookError,
    WebhookScheme,
    WebhookVerifier,
    signed_headers,
)
from crossdock.values.config_models import ConfigModel, Secret, SecretRef
from crossdock.values.json_access import JsonAccess
from crossdock.values.json_paths import at_path

if TYPE_CHECKING:
    from crossdock.reading.sources.stream_context import Context, Settings

__all__ = [
    "Delivery", "Hint", "RecentDeliveries", "Subscription", "SubscriptionApi", "Webhook", "WebhookError",
    "WebhookScheme", "WebhookSettings", "WebhookVerifier", "Webhooks", "created_once", "read_subscription",
    "signed_headers",
]  # fmt: skip

S = TypeVar("S", bound="Settings")


class WebhookSettings(ConfigModel):
    """The webhooks that a connection receives; a connector may add its own fields."""

    secrets: Annotated[tuple[SecretRef, ...], Field(min_length=1, max_length=MAX_SECRETS)]
    """The secrets with which webhooks are signed: one, or two while a secret is replaced."""


@dataclass(frozen=True, slots=True)
class Hint:
    """A record that may have changed, or been created or deleted.

    Attributes:
        stream: A stream of the connection with `Stream.fetch`.
        key: The texts of the stream's key columns.
    """

    stream: str
    key: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Webhook(JsonAccess):
    """A verified webhook. Its methods read the body.

    Attributes:
        topic: The vendor's name for the event; empty if it has none.
        headers: The headers by lower-case name.
        body: The JSON value. Numbers with a decimal point are `Decimal`.
    """

    topic: str
    headers: Mapping[str, str]
    body: Any

    @property
    def _document(self) -> Any:
        return self.body

    def _full_pointer(self, pointer: str) -> str:
        return pointer


@dataclass(frozen=True, slots=True)
class Subscription:
    """One subscription at a vendor.

    Attributes:
        id: The vendor's id.
        topic: The topic; several topics are separated by commas.
        address: Where webhooks are sent.
        active: False if the vendor has disabled it.
        secret: The secret that the vendor has made to sign its webhooks, and returns only from
            `SubscriptionApi.create`. The user must store it where `WebhookSettings.secrets` refers to. None if the
            vendor signs with a secret of the user.
    """

    id: str
    topic: str
    address: str
    active: bool = True
    secret: str | None = field(default=None, repr=False)


class SubscriptionApi(ABC, Generic[S]):
    """A vendor's API for subscriptions. Requests may be sent more than once, as all of ``ctx.api``.

    Each method raises `RemoteError` or `UnauthorizedError` if the vendor refuses.
    """

    @abstractmethod
    def listed(self, ctx: Context[S]) -> Iterator[Subscription]:
        """Yield all subscriptions of this account, with any address."""

    @abstractmethod
    def create(self, ctx: Context[S], topic: str, address: str) -> Subscription:
        """Subscribe to *topic*. Use `created_once`.

        An active subscription with this topic and address is returned unchanged, without its secret.
        """

    @abstractmethod
    def remove(self, ctx: Context[S], subscription: Subscription) -> None:
        """End *subscription*. One that no longer exists is not an error."""


@dataclass(frozen=True)  # without slots: ``Webhooks[...](...)`` would fail
class Webhooks(Generic[S]):
    """The webhooks that one connection receives.

    Attributes:
        schemes: The vendor's signature schemes. The first one whose signature header a webhook has is used.
        secrets: One secret, or two while a secret is replaced.
        hints: A pure function that yields the records of a webhook. It yields nothing for unknown topics, and raises
            `RecordError` for a body that it cannot read.
        topic_headers: Headers that name the topic. The first one that a webhook has is used.
        topic_member: Pointer of the member of the body that names the topic if no header does; empty without one.
        topics: The topics to subscribe to, as the vendor names them.
        subscriptions: The vendor's API for subscriptions; None if it has none.
        ping: The whole body of the vendor's unsigned test of an address; None if it never sends one. The answer is 200,
            and the webhook is ignored.
    """

    schemes: Sequence[WebhookScheme]
    secrets: Sequence[Secret]
    hints: Callable[[Webhook], Iterable[Hint]]
    topic_headers: Sequence[str] = ()
    topic_member: str = ""
    topics: Sequence[str] = ()
    subscriptions: SubscriptionApi[S] | None = None
    ping: re.Pattern[bytes] | None = None

    def __post_init__(self) -> None:
        hints: object = self.hints
        member: object = self.topic_member
        pattern: object = getattr(self.ping, "pattern", None)
        if not (_all_are(self.schemes, WebhookScheme) and _all_are(self.secrets, Secret) and callable(hints)):
            raise TypeError("Webhooks are made of a list of WebhookScheme, a list of secrets and a function")
        if not (_all_are(self.topic_headers, str) and isinstance(member, str) and _all_are(self.topics, str)):
            raise TypeError("topic_headers and topics of Webhooks must be lists of texts, and topic_member a text")
        if self.ping is not None and not isinstance(pattern, bytes):
            raise TypeError("ping of Webhooks must be a compiled pattern of bytes")

    def is_ping(self, body: bytes) -> bool:
        """Return whether *body* is the vendor's test of an address."""
        return self.ping is not None and self.ping.fullmatch(body) is not None


def read_subscription(item: Any, source: str, *, topic: str, address: str, active: bool) -> Subscription:
    """Parse the subscription *item* of an answer. *topic*, or a list of topics, and *address* are members of it."""
    topics = at_path(item, topic)
    found = {"id": at_path(item, "id"), address: at_path(item, address)}
    found[topic] = ",".join(each for each in topics if isinstance(each, str)) if isinstance(topics, list) else topics
    for name, value in found.items():
        if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
            raise RefusedError(f"has a subscription without {name}", where=source, code="answer_misplaced")
    return Subscription(str(found["id"]), str(found[topic]), str(found[address]), active)


def created_once(
    api: SubscriptionApi[S],
    ctx: Context[S],
    topic: str,
    address: str,
    send: Callable[[], Subscription],
    *,
    secret_is_known: bool,
) -> Subscription:
    """Return the only subscription to *topic* at *address* that *send* has created, or an existing active one.

    If the answer to a request is lost, `ApiClient` sends it again, and a vendor may have two of them then: the list
    shows them, and the extra ones are removed. One whose answer was lost is kept only if its secret is known.
    """
    before = _subscriptions_to(api, ctx, topic, address)
    for found in before:
        if found.active:
            return found
    known = {each.id for each in before}
    try:
        made = send()
    except UnauthorizedError:
        raise
    except (RemoteError, RefusedError):
        added = [each for each in _subscriptions_to(api, ctx, topic, address) if each.id not in known]
        kept = added[:1] if secret_is_known else []
        _remove_all(api, ctx, added[len(kept) :])
        if not kept:
            raise
        return kept[0]
    known.add(made.id)
    _remove_all(api, ctx, [each for each in _subscriptions_to(api, ctx, topic, address) if each.id not in known])
    return made


def _subscriptions_to(api: SubscriptionApi[S], ctx: Context[S], topic: str, address: str) -> list[Subscription]:
    return [each for each in api.listed(ctx) if (each.topic, each.address) == (topic, address)]


def _remove_all(api: SubscriptionApi[S], ctx: Context[S], extra: list[Subscription]) -> None:
    for each in extra:
        api.remove(ctx, each)


def _all_are(values: object, kind: type) -> bool:
    return isinstance(values, list | tuple) and all(isinstance(each, kind) for each in values)
