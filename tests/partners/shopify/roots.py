"""The fields of the query root: single records, searches, and what the app and the shop are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from graphql import GraphQLError
from tests.partners.shopify.access import TYPES, check, sees_order_of
from tests.partners.shopify.bulk_records import BulkOperation
from tests.partners.shopify.catalog import Location
from tests.partners.shopify.execution import Asking, Info
from tests.partners.shopify.fulfillments import OPEN, FulfillmentOrder
from tests.partners.shopify.lists import LISTS, Asked, Entry, place_of
from tests.partners.shopify.orders import Order
from tests.partners.shopify.records import BasicEvent, Record, type_of
from tests.partners.shopify.webhooks import WebhookSubscription

_SINGLE = {
    "customer": "Customer",
    "fulfillment": "Fulfillment",
    "fulfillmentOrder": "FulfillmentOrder",
    "inventoryItem": "InventoryItem",
    "inventoryLevel": "InventoryLevel",
    "location": "Location",
    "order": "Order",
    "product": "Product",
    "productVariant": "ProductVariant",
    "refund": "Refund",
    "bulkOperation": "BulkOperation",
}
_COUNTS = {"ordersCount": "orders", "productVariantsCount": "productVariants", "customersCount": "customers"}
"""The list that each count is of."""
_DEFAULT_SORT = {
    "orders": "PROCESSED_AT",
    "locations": "NAME",
    "bulkOperations": "CREATED_AT",
}


@dataclass(frozen=True, slots=True)
class DeletionEvent:
    """An event in the older form, which knows products only."""

    occurred_at: Any
    subject_id: str
    subject_type: str


def root(shop: dict[str, Any]) -> dict[str, Callable[..., Any]]:
    """The resolvers of the query root, by field."""
    return {
        **dict.fromkeys(LISTS, _list),
        **dict.fromkeys(_SINGLE, _one),
        **dict.fromkeys(_COUNTS, _count),
        "deletionEvents": _deletions,
        "currentAppInstallation": _installation,
        "currentBulkOperation": _latest_bulk,
        "node": _node,
        "nodes": lambda info, ids: [_node(info, one) for one in ids],
        "shop": lambda _: shop,
        "webhookSubscriptions": _subscriptions,
    }


def _one(info: Info, id: str) -> Record | None:  # noqa: A002  the argument's name
    if type_of(id) != _SINGLE[info.field_name]:
        raise GraphQLError(f"Invalid id: {id}", extensions={"code": "RESOURCE_NOT_FOUND"})
    found = info.context.records.any(id)
    return found if found is not None and _visible(found, info.context) else None


def _node(info: Info, id: str) -> Record | None:  # noqa: A002  the argument's name
    found = info.context.records.any(id)
    if found is None:
        return None
    check(info.field_name, TYPES.get(type(found).__name__, ()), info.context.scopes)
    return found if _visible(found, info.context) else None


def _visible(record: Record, asking: Asking) -> bool:
    """Whether the app sees *record*: orders by age, fulfillment orders by the kind of their location."""
    if isinstance(record, Order):
        return sees_order_of(record.processed_at, asking.records.now(), asking.scopes)
    if isinstance(record, FulfillmentOrder):
        kind = "third_party" if record.location.is_fulfillment_service else "merchant_managed"
        return f"read_{kind}_fulfillment_orders" in asking.scopes and _visible(record.order, asking)
    return True


def _list(info: Info, **arguments: Any) -> dict[str, Any]:
    asking: Asking = info.context
    listed = LISTS[info.field_name]
    query = arguments.get("query") or ""
    search = asking.search(info, query)
    sort = arguments.get("sortKey") or _DEFAULT_SORT.get(info.field_name, "ID")
    attribute = listed.sort_keys[sort]
    entries = [
        Entry(record, place_of(None if sort == "ID" else values.get(attribute), record.id))
        for record, values in asking.records.known(listed.kind)
        if search.matches(values) and _visible(record, asking) and _wanted(record, arguments)
    ]
    newest_first = info.field_name == "bulkOperations"  # as its description says, by default
    reverse = bool(arguments.get("reverse")) != newest_first
    asked = Asked(
        arguments.get("first"), arguments.get("after"), f"{info.field_name} {sort} {reverse} {query}", reverse
    )
    return asking.connection(entries, asked)


def _count(info: Info, limit: int | None, query: str | None = None) -> dict[str, Any]:
    """How many records of a list a search finds; at most *limit*, unless it is null."""
    asking: Asking = info.context
    listed = LISTS[_COUNTS[info.field_name]]
    check(info.field_name, TYPES[listed.kind.__name__], asking.scopes)
    search = asking.search(info, query or "", _COUNTS[info.field_name])
    found = sum(
        search.matches(values) and _visible(record, asking) for record, values in asking.records.known(listed.kind)
    )
    is_cut = limit is not None and found > limit
    return {"count": limit if is_cut else found, "precision": "AT_LEAST" if is_cut else "EXACT"}


def _wanted(record: Record, arguments: dict[str, Any]) -> bool:
    """What the arguments of locations and fulfillment orders leave out by default."""
    if isinstance(record, Location):
        active = record.is_active or arguments.get("includeInactive", False)
        return bool(active and (arguments.get("includeLegacy", False) or not record.is_fulfillment_service))
    if isinstance(record, FulfillmentOrder):
        return record.status in {*OPEN, "ON_HOLD"} or bool(arguments.get("includeClosed", False))
    return True


def _deletions(info: Info, **arguments: Any) -> dict[str, Any]:
    events: Iterator[BasicEvent] = (
        one for one in info.context.records.all(BasicEvent) if one.subject_type == "PRODUCT"
    )
    entries = [
        Entry(DeletionEvent(one.created_at, one.subject_id, one.subject_type), place_of(None, one.id)) for one in events
    ]
    asked = Asked(arguments.get("first"), arguments.get("after"), info.field_name, arguments.get("reverse", False))
    asking: Asking = info.context
    return asking.connection(entries, asked)


def _installation(info: Info) -> dict[str, Any]:
    scopes = [{"handle": one, "description": one.replace("_", " ")} for one in sorted(info.context.scopes)]
    return {"id": "gid://shopify/AppInstallation/1", "accessScopes": scopes}


def _latest_bulk(info: Info, type: str) -> BulkOperation | None:  # noqa: A002  the argument's name
    found = [one for one in info.context.records.all(BulkOperation) if one.type == type]
    return found[-1] if found else None


def _subscriptions(info: Info, **arguments: Any) -> list[WebhookSubscription]:
    """Those of the app; as a list, of which pages are made elsewhere."""
    topics, uri = arguments.get("topics"), arguments.get("uri")
    return [
        one
        for one in info.context.records.all(WebhookSubscription)
        if (topics is None or one.topic in topics) and uri in {None, one.uri}
    ]
