"""Subscriptions of vendors: read from answers, and created once whatever happens to the answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from crossdock.connector import Context, Settings
from crossdock.errors import RefusedError, RemoteError, UnauthorizedError
from crossdock.webhooks import Subscription, SubscriptionApi, created_once, read_subscription

HOOK = "https://hooks.example/shop"
CTX: Context[Settings] = None  # type: ignore[assignment]  # the vendor below needs none


class Vendor(SubscriptionApi[Settings]):
    """A vendor that accepts duplicates.

    Args:
        sends: How often each request is carried out.
        fails: Raised after that.
    """

    def __init__(self, *known: Subscription, sends: int = 1, fails: Exception | None = None) -> None:
        self.kept, self._sends, self._fails = [*known], sends, fails

    def listed(self, ctx: Context[Settings]) -> Iterator[Subscription]:
        yield from [*self.kept]

    def create(self, ctx: Context[Settings], topic: str, address: str, *, secret_is_known: bool = True) -> Subscription:
        def send() -> Subscription:
            for _ in range(self._sends):
                self.kept.append(Subscription(f"new{len(self.kept)}", topic, address))
            if self._fails:
                raise self._fails
            return self.kept[-1]

        return created_once(self, ctx, topic, address, send, secret_is_known=secret_is_known)

    def remove(self, ctx: Context[Settings], subscription: Subscription) -> None:
        self.kept.remove(subscription)


def found(id: str = "1", topic: str = "orders", address: str = HOOK, *, active: bool = True) -> Subscription:  # noqa: A002
    return Subscription(id, topic, address, active)


def test_copies_of_a_request_that_was_sent_again_are_removed() -> None:
    """The subscription of the last answer stays, those to other topics and addresses too."""
    others = (found(topic="products"), found("2", address="https://other.example"))
    vendor = Vendor(*others, sends=3)
    made = vendor.create(CTX, "orders", HOOK)
    assert vendor.kept == [*others, made]


def test_an_active_subscription_is_not_created_again() -> None:
    """A second call returns what the first has created."""
    vendor = Vendor()
    assert vendor.create(CTX, "orders", HOOK) == vendor.create(CTX, "orders", HOOK)
    assert len(vendor.kept) == 1


def test_a_disabled_subscription_stays_beside_the_new_one() -> None:
    """What the call has not created is not removed."""
    disabled = found(active=False)
    vendor = Vendor(disabled)
    made = vendor.create(CTX, "orders", HOOK)
    assert vendor.kept == [disabled, made]
    assert made.active


@pytest.mark.parametrize("fails", [RemoteError("lost"), RefusedError("no JSON")])
def test_one_that_was_created_without_an_answer_is_found(fails: Exception) -> None:
    """After an error the list decides; of two that were created one stays."""
    vendor = Vendor(sends=2, fails=fails)
    assert [vendor.create(CTX, "orders", HOOK)] == vendor.kept


def test_one_whose_secret_was_lost_is_removed() -> None:
    """A subscription that nobody can verify is of no use; the error says that there is none."""
    disabled = found(active=False)
    vendor = Vendor(disabled, sends=2, fails=RemoteError("lost"))
    with pytest.raises(RemoteError, match="lost"):
        vendor.create(CTX, "orders", HOOK, secret_is_known=False)
    assert vendor.kept == [disabled]


@pytest.mark.parametrize("fails", [RemoteError("no such topic"), UnauthorizedError("no")])
def test_a_refusal_is_raised(fails: RemoteError) -> None:
    """If nothing was created, the vendor's error is the user's."""
    with pytest.raises(RemoteError, match=fails.message):
        Vendor(sends=0, fails=fails).create(CTX, "orders", HOOK)


ITEM: dict[str, Any] = {"id": 7, "topics": ["a", "b"], "url": HOOK}


def read(item: Any) -> Subscription:
    return read_subscription(item, "https://vendor.example/hooks", topic="topics", address="url", active=True)


def test_a_subscription_is_read() -> None:
    """Ids are texts, and several topics are separated by commas."""
    assert read(ITEM) == Subscription("7", "a,b", HOOK)


@pytest.mark.parametrize(
    "change", [{"id": None}, {"id": True}, {"id": ""}, {"topics": []}, {"topics": {"a": 1}}, {"url": None}], ids=str
)
def test_an_incomplete_subscription_is_refused(change: dict[str, Any]) -> None:
    """The error names the member and the answer."""
    item = {**ITEM, **change}
    with pytest.raises(RefusedError, match=r"^https://vendor\.example/hooks: has a subscription without \w+$"):
        read(item)
    with pytest.raises(RefusedError, match="without id"):
        read("nonsense")


def test_a_secret_is_not_shown() -> None:
    """Logs that show a subscription show no secret."""
    assert "whsec" not in repr(Subscription("1", "orders", HOOK, secret="whsec_x"))
