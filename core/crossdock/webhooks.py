"""Webhooks that a connection receives: their declaration and their verification.

A webhook is a hint that a record may have changed, which is then fetched.

A connector declares its webhooks:

    def received(settings: DepotSettings) -> Webhooks[DepotSettings] | None:
        return None if settings.webhooks is None else Webhooks([SCHEME], settings.webhooks.secrets, hints)

    def hints(webhook: Webhook) -> Iterator[Hint]:
        if webhook.topic.startswith("order."):
            yield Hint("orders", (webhook.at("/order/id", str),))

    CONNECTOR = Connector(..., webhooks=received)

An application that receives webhooks itself, from the platform or another system, verifies them:

    verifier = WebhookVerifier(WebhookScheme(), [os.environ["WEBHOOK_SECRET"]])
    recent = RecentDeliveries()

    delivery = verifier.verify(body, request.headers.raw)  # raises WebhookError, whose status is the answer
    with recent.once(delivery):
        ...

The default scheme is Standard Webhooks 1.0. A verifier does not read the body, which is only bytes to be signed.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import threading
from abc import ABC, abstractmethod
from base64 import b64decode, b64encode
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Generic, Literal, Self, TypeVar

from pydantic import Field, model_validator

from crossdock.errors import ConfigError, RefusedError, RemoteError, UnauthorizedError
from crossdock.platform.platform_config import Header
from crossdock.values.clock import Clock, SystemClock
from crossdock.values.config_base_types import ConfigModel, Secret, SecretRef
from crossdock.values.json_access import JsonAccess
from crossdock.values.json_paths import value_at_path_or_missing

if TYPE_CHECKING:
    from crossdock.reading.sources.stream_context import Context, Settings

__all__ = [
    "Delivery", "Hint", "RecentDeliveries", "Subscription", "SubscriptionApi", "Webhook", "WebhookError",
    "WebhookScheme", "WebhookSettings", "WebhookVerifier", "Webhooks", "created_once", "read_subscription",
    "signed_headers",
]  # fmt: skip

S = TypeVar("S", bound="Settings")
Reason = Literal[
    "missing_header", "doubled_header", "malformed_header", "too_large", "wrong_signature", "stale", "future",
    "replayed", "in_progress",
]  # fmt: skip
Headers = Mapping[str, str] | Iterable[tuple[str | bytes, str | bytes]]
"""Header fields. Pairs are best: a mapping may have merged or dropped fields of the same name."""

MAX_SIGNATURES = 16
MAX_SECRETS = 2
_STATUS: Mapping[Reason, int] = {"too_large": 413, "wrong_signature": 401, "replayed": 200, "in_progress": 503}
_PLACEHOLDER = re.compile(r"(\{id\}|\{timestamp\}|\{body\})")
_ID = re.compile(r"[!-~]{1,256}")
_TIMESTAMP = re.compile(r"[0-9]{1,12}")


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
    def _json_document(self) -> Any:
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
        if not (
            _is_list_of_type(self.schemes, WebhookScheme) and _is_list_of_type(self.secrets, Secret) and callable(hints)
        ):
            raise TypeError("Webhooks are made of a list of WebhookScheme, a list of secrets and a function")
        if not (
            _is_list_of_type(self.topic_headers, str) and isinstance(member, str) and _is_list_of_type(self.topics, str)
        ):
            raise TypeError("topic_headers and topics of Webhooks must be lists of texts, and topic_member a text")
        if self.ping is not None and not isinstance(pattern, bytes):
            raise TypeError("ping of Webhooks must be a compiled pattern of bytes")

    def is_ping(self, body: bytes) -> bool:
        """Return whether *body* is the vendor's test of an address."""
        return self.ping is not None and self.ping.fullmatch(body) is not None


def read_subscription(item: Any, source: str, *, topic: str, address: str, active: bool) -> Subscription:
    """Parse the subscription *item* of an answer. *topic*, or a list of topics, and *address* are members of it."""
    topics = value_at_path_or_missing(item, topic)
    found = {"id": value_at_path_or_missing(item, "id"), address: value_at_path_or_missing(item, address)}
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
    before = _vendor_subscriptions_to_topic(api, ctx, topic, address)
    for found in before:
        if found.active:
            return found
    known = {each.id for each in before}
    try:
        made = send()
    except UnauthorizedError:
        raise
    except (RemoteError, RefusedError):
        added = [each for each in _vendor_subscriptions_to_topic(api, ctx, topic, address) if each.id not in known]
        kept = added[:1] if secret_is_known else []
        _remove_extra_subscriptions(api, ctx, added[len(kept) :])
        if not kept:
            raise
        return kept[0]
    known.add(made.id)
    _remove_extra_subscriptions(
        api, ctx, [each for each in _vendor_subscriptions_to_topic(api, ctx, topic, address) if each.id not in known]
    )
    return made


def _vendor_subscriptions_to_topic(
    api: SubscriptionApi[S], ctx: Context[S], topic: str, address: str
) -> list[Subscription]:
    return [each for each in api.listed(ctx) if (each.topic, each.address) == (topic, address)]


def _remove_extra_subscriptions(api: SubscriptionApi[S], ctx: Context[S], extra: list[Subscription]) -> None:
    for each in extra:
        api.remove(ctx, each)


def _is_list_of_type(values: object, kind: type) -> bool:
    return isinstance(values, list | tuple) and all(isinstance(each, kind) for each in values)


# ---- verification of deliveries


class WebhookError(RemoteError):
    """A delivery that must not be processed. *status* is the answer: 200 for ``replayed``, whose work is done."""

    code = "webhook_refused"

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason: Reason = reason
        self.status = _STATUS.get(reason, 400)


class WebhookScheme(ConfigModel):
    """How a system signs its webhooks. The defaults are those of Standard Webhooks 1.0."""

    signature_header: Header = "webhook-signature"
    """Header with the signature, or with several separated by spaces."""
    id_header: Header | None = "webhook-id"
    """Header with the id of the delivery, the same in each attempt; ``null`` if there is none."""
    timestamp_header: Header | None = "webhook-timestamp"
    """Header with the time of the attempt in Unix seconds; ``null`` if there is none."""
    signed_content: Annotated[str, Field(max_length=200)] = "{id}.{timestamp}.{body}"
    """What is signed: text around ``{body}``, and ``{id}`` and ``{timestamp}`` where they are signed too."""
    algorithm: Literal["sha1", "sha256", "sha512"] = "sha256"
    """Hash function of the HMAC."""
    encoding: Literal["base64", "hex"] = "base64"
    """How the signature is written."""
    prefix: Annotated[str, Field(pattern=r"^[!-~]*$", max_length=32)] = "v1,"
    """Text before each signature. Signatures without it are ignored: they are of another version."""
    secret_encoding: Literal["whsec", "text", "base64", "hex"] = "whsec"  # noqa: S105  the name of an encoding
    """How the secret is written: as ``whsec_`` and base64 (``whsec``), as ``text`` whose bytes are used, in ``base64``
    or in ``hex``."""
    tolerance_s: Annotated[int, Field(gt=0, le=86_400)] = 300
    """Seconds that the timestamp may differ from this machine's clock, in both directions."""
    max_body_bytes: Annotated[int, Field(gt=0, le=1 << 30)] = 5 << 20
    """Largest accepted body. Default: 5 MiB."""

    @model_validator(mode="after")
    def _check_placeholders_match_headers(self) -> Self:
        found = _PLACEHOLDER.findall(self.signed_content)
        if found.count("{body}") != 1 or len(found) != len(set(found)):
            raise ValueError("signed_content: needs {body} once, and {id} and {timestamp} at most once")
        for header, name in ((self.id_header, "{id}"), (self.timestamp_header, "{timestamp}")):
            if header is None and name in found:
                raise ValueError(f"signed_content: contains {name}, but {name[1:-1]}_header is null")
        if self.timestamp_header is not None and "{timestamp}" not in found:
            raise ValueError("timestamp_header: proves nothing, because signed_content does not contain {timestamp}")
        names = [self.signature_header, *filter(None, (self.id_header, self.timestamp_header))]
        if len({name.lower() for name in names}) < len(names):
            raise ValueError("signature_header, id_header and timestamp_header must be different headers")
        return self

    @property
    def signs_id(self) -> bool:
        return "{id}" in self.signed_content


@dataclass(frozen=True, slots=True)
class Delivery:
    """A verified delivery.

    Attributes:
        id: The id as sent, 1 to 256 printable ASCII characters; None if the scheme has no such header. It is
            trustworthy only if it is signed.
        timestamp: Unix seconds of this attempt; None if the scheme has none.
        key: A text that is the same for each copy of a delivery, and that others cannot change: the id if it is signed,
            else ``sha256:`` and the hash of what was signed.
    """

    id: str | None
    timestamp: int | None
    key: str


class WebhookVerifier:
    """Verifies deliveries; thread-safe. Give two *secrets* while one is replaced.

    Raises ConfigError if one is empty, or not written as ``secret_encoding`` says, or if there are more than two.
    """

    def __init__(self, scheme: WebhookScheme, secrets: Sequence[str], clock: Clock | None = None) -> None:
        if isinstance(secrets, str) or not 1 <= len(secrets) <= MAX_SECRETS:
            raise ConfigError(
                f"a webhook is verified with 1 to {MAX_SECRETS} secrets, given as a list", code="secret_invalid"
            )
        self.scheme = scheme
        self._keys = tuple(_secret_bytes(secret, scheme) for secret in secrets)
        self._clock = clock or SystemClock()

    def verify(self, body: bytes, headers: Headers) -> Delivery:
        """Check signature and time of a delivery. *body* is what was received, before any decoding.

        Raises WebhookError if it must not be processed, and nothing else, whatever the delivery contains.
        """
        scheme = self.scheme
        if len(body) > scheme.max_body_bytes:
            raise WebhookError("too_large", f"the body has more than {scheme.max_body_bytes:,} bytes")
        found = _required_header_values_by_name(headers, scheme)
        signatures = found[scheme.signature_header].split(" ")
        if len(signatures) > MAX_SIGNATURES:
            raise WebhookError(
                "malformed_header", f"{scheme.signature_header} has more than {MAX_SIGNATURES} signatures"
            )
        delivery_id = _checked_header(_ID, found, scheme.id_header)
        timestamp = _checked_header(_TIMESTAMP, found, scheme.timestamp_header)
        content = _signed_content(scheme, delivery_id, timestamp, body)
        given = [each.removeprefix(scheme.prefix) for each in signatures if each.startswith(scheme.prefix)]
        if not self._is_signed(content, given):
            raise WebhookError("wrong_signature", f"{scheme.signature_header} has no valid signature")
        sent_at = None if timestamp is None else int(timestamp)
        if sent_at is not None:
            self._check_time(sent_at)
        signed_id = delivery_id if scheme.signs_id else None
        return Delivery(delivery_id, sent_at, signed_id or f"sha256:{hashlib.sha256(content).hexdigest()}")

    def _is_signed(self, content: bytes, signatures: Sequence[str]) -> bool:
        """Compare texts, so that each signature has one spelling; all of them, so that the time reveals nothing."""
        scheme = self.scheme
        is_hex = scheme.encoding == "hex"
        given = [(each.lower() if is_hex else each).encode("latin-1", "replace") for each in signatures]
        expected = [_signature(key, content, scheme).encode() for key in self._keys]
        return any([hmac.compare_digest(one, other) for one in expected for other in given])  # noqa: C419  see above

    def _check_time(self, sent_at: int) -> None:
        ahead_s = sent_at - self._clock.now().timestamp()
        if abs(ahead_s) > self.scheme.tolerance_s:
            side: Reason = "future" if ahead_s > 0 else "stale"
            said = "later" if ahead_s > 0 else "earlier"
            raise WebhookError(side, f"sent more than {self.scheme.tolerance_s:,} s {said} than this machine's time")


class RecentDeliveries:
    """Keeps the ids of processed deliveries in memory. Thread-safe.

    The *most* recent ones are kept. Choose more than arrive within the tolerance.
    """

    def __init__(self, most: int = 10_000) -> None:
        self._most, self._lock = most, threading.Lock()
        self._done: OrderedDict[str, None] = OrderedDict()
        self._in_progress: set[str] = set()

    @contextmanager
    def once(self, delivery: Delivery) -> Iterator[None]:
        """Process *delivery* in the ``with`` block. If the block raises, a later attempt is processed.

        Raises WebhookError: ``replayed`` if it was processed; ``in_progress`` if another thread is, which may fail.
        """
        key = delivery.key
        with self._lock:
            if key in self._done:
                raise WebhookError("replayed", "this delivery was processed before")
            if key in self._in_progress:
                raise WebhookError("in_progress", "this delivery is being processed")
            self._in_progress.add(key)
        try:
            yield
        except BaseException:
            with self._lock:
                self._in_progress.discard(key)
            raise
        with self._lock:
            self._in_progress.discard(key)
            self._done[key] = None
            if len(self._done) > self._most:
                self._done.popitem(last=False)


def signed_headers(
    scheme: WebhookScheme, secret: str, body: bytes, *, delivery_id: str | None = None, timestamp: int | None = None
) -> dict[str, str]:
    """Return the header fields of a delivery as its sender makes them, for tests of a receiver.

    *delivery_id* and *timestamp*, in Unix seconds, are needed if the scheme has headers for them.
    """
    given = ((scheme.id_header, delivery_id), (scheme.timestamp_header, timestamp))
    fields = {name: str(value) for name, value in given if name is not None and value is not None}
    content = _signed_content(
        scheme,
        _checked_header(_ID, fields, scheme.id_header),
        _checked_header(_TIMESTAMP, fields, scheme.timestamp_header),
        body,
    )
    return {
        **fields,
        scheme.signature_header: scheme.prefix + _signature(_secret_bytes(secret, scheme), content, scheme),
    }


def _secret_bytes(secret: str, scheme: WebhookScheme) -> bytes:
    """Return the bytes of *secret*, which no error shows."""
    encoding = scheme.secret_encoding
    try:
        if encoding == "text":
            key = secret.encode()
        elif encoding == "hex":
            key = bytes.fromhex(secret)
        else:
            text = secret.removeprefix("whsec_") if encoding == "whsec" else secret
            key = b64decode(text + "=" * (-len(text) % 4), validate=True)
    except ValueError:
        expected = "whsec_ and base64" if encoding == "whsec" else encoding
        message = f"the secret of a webhook is not written as {expected} (secret_encoding)"
        raise ConfigError(message, code="secret_invalid") from None
    if not key:
        raise ConfigError("the secret of a webhook is empty", code="secret_invalid")
    return key


def _required_header_values_by_name(headers: Headers, scheme: WebhookScheme) -> dict[str, str]:
    wanted = {
        name.lower(): name for name in (scheme.signature_header, scheme.id_header, scheme.timestamp_header) if name
    }
    found: dict[str, str] = {}
    for key, value in headers.items() if isinstance(headers, Mapping) else headers:
        name = wanted.get(_header_text(key).lower())
        if name is None:
            continue
        if name in found:
            raise WebhookError("doubled_header", f"more than one {name}")
        found[name] = _header_text(value)
    for name in wanted.values():
        if not found.get(name):
            raise WebhookError("missing_header", f"no {name}")
    return found


def _header_text(value: str | bytes) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else value


def _checked_header(pattern: re.Pattern[str], fields: Mapping[str, str], name: str | None) -> str | None:
    if name is None:
        return None
    value = fields.get(name, "")
    if not pattern.fullmatch(value):
        raise WebhookError("malformed_header", f"{name} has an invalid value")
    return value


def _signed_content(scheme: WebhookScheme, delivery_id: str | None, timestamp: str | None, body: bytes) -> bytes:
    parts = _PLACEHOLDER.split(scheme.signed_content)
    if delivery_id and "{id}" in parts:
        separator = parts[parts.index("{id}") + 1]
        if separator and separator in delivery_id:  # otherwise one signature would fit another id and body
            raise WebhookError("malformed_header", f"{scheme.id_header} contains {separator!r}")
    values = {"{id}": (delivery_id or "").encode(), "{timestamp}": (timestamp or "").encode(), "{body}": body}
    return b"".join(values.get(part, part.encode()) for part in parts)


def _signature(key: bytes, content: bytes, scheme: WebhookScheme) -> str:
    digest = hmac.digest(key, content, scheme.algorithm)
    return digest.hex() if scheme.encoding == "hex" else b64encode(digest).decode()
