"""The common parts of vendors' subscription APIs: parsing of subscriptions, and creating one only once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from crossdock.errors import RefusedError, RemoteError, UnauthorizedError
from crossdock.values.json_paths import at_path
from crossdock.webhooks import Subscription, SubscriptionApi

if TYPE_CHECKING:
    from crossdock.connector import Context, Settings

S = TypeVar("S", bound="Settings")


def read_subscription(item: Any, source: str, *, topic: str, address: str, active: bool) -> Subscription:
    """Parse the subscription *item* of an answer. *topic*, or a list of topics, and *address* are members of it."""
    topics = at_path(item, topic)
    found = {"id": at_path(item, "id"), address: at_path(item, address)}
    found[topic] = ",".join(filter(_is_text, topics)) if isinstance(topics, list) else topics
    for name, value in found.items():
        if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
            raise RefusedError(f"has a subscription without {name}", where=source, code="answer_misplaced")
    return Subscription(str(found["id"]), str(found[topic]), str(found[address]), active)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


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
    before = _copies(api, ctx, topic, address)
    for found in before:
        if found.active:
            return found
    known = {each.id for each in before}
    try:
        made = send()
    except UnauthorizedError:
        raise
    except (RemoteError, RefusedError):
        added = [each for each in _copies(api, ctx, topic, address) if each.id not in known]
        kept = added[:1] if secret_is_known else []
        _remove(api, ctx, added[len(kept) :])
        if not kept:
            raise
        return kept[0]
    known.add(made.id)
    _remove(api, ctx, [each for each in _copies(api, ctx, topic, address) if each.id not in known])
    return made


def _copies(api: SubscriptionApi[S], ctx: Context[S], topic: str, address: str) -> list[Subscription]:
    return [each for each in api.listed(ctx) if (each.topic, each.address) == (topic, address)]


def _remove(api: SubscriptionApi[S], ctx: Context[S], extra: list[Subscription]) -> None:
    for each in extra:
        api.remove(ctx, each)
