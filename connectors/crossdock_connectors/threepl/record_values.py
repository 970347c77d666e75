"""Conversion of values in a 3PL's records, for the mappings of all 3PLs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from functools import cache
from typing import Any
from urllib.parse import unquote

from msgspec import Struct

from crossdock import RecordError, Reference
from crossdock.mapping.resource_types import make_platform_external_id
from crossdock.resources import Tracking
from crossdock.sources import Ours
from crossdock.values.json_access import JsonAccess
from crossdock.values.record_keys import key_text


def key_of_external_id(name: Any, namespace: str) -> str | None:
    """Return the record key in an order's external id, ``NAMESPACE:KEY``; None if the order has another name."""
    if not isinstance(name, str):
        return None
    key = _own_external_id_recognizer(namespace).key_in(name)
    return None if key is None else unquote(key)


@cache
def _own_external_id_recognizer(namespace: str) -> Ours:
    return Ours(member="name", namespace=namespace)


def possible_external_ids_of_key(key: str, namespace: str) -> list[str]:
    """Return the external ids that may stand for *key*: with a bar it may be one part of a record key or several."""
    return list(
        dict.fromkeys(make_platform_external_id(namespace, key_text(parts)) for parts in ((key,), key.split("|")))
    )


def normalized_status(status: str) -> str:
    """Normalize a status: Amazon writes both ``CompletePartialled`` and ``COMPLETE_PARTIALLED``."""
    return status.replace("_", "").casefold()


def our_status_by_normalized_status(statuses: Mapping[str, str]) -> dict[str, str]:
    return {normalized_status(theirs): ours for theirs, ours in statuses.items()}


def platform_status_or_error(record: JsonAccess, pointer: str, statuses: Mapping[str, str]) -> str:
    found = record.at(pointer, str)
    known = our_status_by_normalized_status(statuses)
    if normalized_status(found) not in known:
        raise RecordError("bad_value", "is a status that is not in the setting statuses", pointer=pointer)
    return known[normalized_status(found)]


def non_negative_units_or_error(record: JsonAccess, pointer: str) -> Decimal:
    found = record.at(pointer, Decimal)
    if found < 0:
        raise RecordError("bad_value", "is a negative number of units", pointer=pointer)
    return found


def distinct_parcels_or_none(found: Iterable[Tracking]) -> tuple[Tracking, ...] | None:
    return tuple(dict.fromkeys(found)) or None


class ProductSkus(Struct, frozen=True):
    """The platform's SKUs by the 3PL's. *namespace* is None if the 3PL's own list of products is on the platform."""

    namespace: str | None
    aliases: Mapping[str, str]

    def platform_sku(self, theirs: str) -> str:
        return self.aliases.get(theirs, theirs)

    def reference(self, theirs: str, own_key: tuple[str, ...]) -> Reference:
        """Return the product with the 3PL's SKU *theirs*, whose key in the 3PL's list of products is *own_key*."""
        if self.namespace is None:
            return Reference("product", own_key)
        return Reference("product", self.platform_sku(theirs), self.namespace)
