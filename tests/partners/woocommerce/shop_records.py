"""What the records of the fake WooCommerce shop have in common: times, meta data, addresses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal, InvalidOperation
from itertools import count
from typing import Any, Literal

from tests.partners.woocommerce.shop_errors import invalid_parameter
from tests.partners.woocommerce.shop_settings import ShopSettings

from crossdock.values.clock import Clock

SHIPPING = (
    "first_name",
    "last_name",
    "company",
    "address_1",
    "address_2",
    "city",
    "state",
    "postcode",
    "country",
    "phone",
)
BILLING = (*SHIPPING, "email")


Change = Literal["created", "updated", "deleted"]
"""The events of WooCommerce's webhooks; ``deleted`` is the move to the trash, or the end of a customer."""


@dataclass(slots=True)
class Record:
    """A record with an *id* and times in whole seconds; *modified* is None if WooCommerce never changed it."""

    id: int
    created: datetime
    modified: datetime | None
    members: dict[str, Any]
    meta: list[dict[str, Any]] = field(default_factory=list)

    @property
    def changed(self) -> datetime:
        """When it was changed last, or created."""
        return self.modified or self.created


class Shelf:
    """What all collections of one shop share: its settings, its clock and its numbers.

    Products, variations, orders and refunds have ids of one sequence, as WordPress's posts have.

    Attributes:
        watchers: Told of each change of an order, a product, a variation or a customer, once it has happened.
    """

    def __init__(self, settings: ShopSettings, clock: Clock) -> None:
        self.watchers: list[Callable[[Record, Change], None]] = []
        self.settings, self._clock = settings, clock
        self.post_ids, self.user_ids, self.comment_ids = count(101), count(1), count(1)
        self._item_ids, self._meta_ids = count(1), count(1)

    def now(self) -> datetime:
        return self._clock.now().replace(microsecond=0)

    def saved(self, record: Record) -> None:
        """*record* is changed now."""
        record.modified = self.now()
        self.tell(record, "updated")

    def tell(self, record: Record, change: Change) -> None:
        for watcher in self.watchers:
            watcher(record, change)

    def item_id(self) -> int:
        return next(self._item_ids)

    def add_meta(self, meta: list[dict[str, Any]], sent: Any) -> None:
        """Change meta data as ``update_meta_data`` does: by id, else the first of the key; null as value removes it."""
        for one in sent or ():
            same = [
                each for each in meta if each["id"] == one.get("id") or ("id" not in one and each["key"] == one["key"])
            ]
            if one.get("value") is None:
                meta[:] = [each for each in meta if each not in same]
            elif same:
                same[0] |= {"key": one["key"], "value": one["value"]}
            else:
                meta.append({"id": next(self._meta_ids), "key": one["key"], "value": one["value"]})


def address(
    names: tuple[str, ...], sent: Mapping[str, Any] | None, before: Mapping[str, str] | None = None
) -> dict[str, str]:
    """An address with all members, "" for what is unknown; what was not *sent* stays as *before*."""
    known = {**(before or {}), **(sent or {})}
    return {name: str(known.get(name, "")) for name in names}


def decimal(name: str, value: Any) -> Decimal:
    """An amount of a request: a text, or a number.

    Raises:
        RefusedError: 400 if it is neither.
    """
    try:
        return Decimal(str(value))
    except InvalidOperation:
        raise invalid_parameter(name, f"{name} is not of type string.") from None
