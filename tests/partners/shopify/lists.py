"""Lists of the fake Shopify shop: what each can be searched for and sorted by, their pages and their cursors."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from graphql import GraphQLError
from tests.partners.shopify.bulk_records import BulkOperation
from tests.partners.shopify.catalog import InventoryItem, InventoryLevel, Location, Product, ProductVariant
from tests.partners.shopify.customers import Customer
from tests.partners.shopify.fulfillments import FulfillmentOrder
from tests.partners.shopify.orders import Order
from tests.partners.shopify.records import BasicEvent, Record, number_of
from tests.partners.shopify.search_terms import Filter

MAX_PAGE = 250
"""shopify.dev/docs/api/usage/pagination-graphql"""


@dataclass(frozen=True, slots=True)
class Listed:
    """What a list shows.

    Attributes:
        sort_keys: The attribute that each sort key sorts by; the id decides ties.
        filters: By the name in a query. All are in the description of the published schema.
    """

    kind: type[Record]
    sort_keys: Mapping[str, str]
    filters: Mapping[str, Filter]


_CREATED, _UPDATED, _ID = Filter("created_at", "time"), Filter("updated_at", "time"), Filter("id", "id")
_BY_ID, _BY_CREATION, _BY_UPDATE = {"ID": "id"}, {"CREATED_AT": "created_at"}, {"UPDATED_AT": "updated_at"}
LISTS: Mapping[str, Listed] = {
    "orders": Listed(
        Order,
        {**_BY_ID, **_BY_CREATION, **_BY_UPDATE, "PROCESSED_AT": "processed_at", "ORDER_NUMBER": "number"},
        {
            "id": _ID,
            "created_at": _CREATED,
            "updated_at": _UPDATED,
            "processed_at": Filter("processed_at", "time"),
            "name": Filter("name", "text"),
            "email": Filter("email", "text"),
            "status": Filter("status", "text"),
            "test": Filter("test", "boolean"),
            "customer_id": Filter("customer_id", "id"),
            "financial_status": Filter("display_financial_status", "text"),
            "fulfillment_status": Filter("display_fulfillment_status", "text"),
        },
    ),
    "products": Listed(
        Product,
        {**_BY_ID, **_BY_CREATION, **_BY_UPDATE, "TITLE": "title"},
        {
            "id": _ID,
            "created_at": _CREATED,
            "updated_at": _UPDATED,
            "status": Filter("status", "text"),
            "title": Filter("title", "text"),
            "vendor": Filter("vendor", "text"),
        },
    ),
    "productVariants": Listed(
        ProductVariant,
        {**_BY_ID, "POSITION": "position", "SKU": "sku"},
        {
            "id": _ID,
            "updated_at": _UPDATED,
            "sku": Filter("sku", "text"),
            "product_id": Filter("product_id", "id"),
        },
    ),
    "customers": Listed(
        Customer,
        {**_BY_ID, **_BY_CREATION, **_BY_UPDATE},
        {
            "id": _ID,
            "customer_date": _CREATED,
            "updated_at": _UPDATED,
            "email": Filter("email", "text"),
            "state": Filter("state", "text"),
        },
    ),
    "inventoryItems": Listed(
        InventoryItem,
        _BY_ID,
        {"id": _ID, "created_at": _CREATED, "updated_at": _UPDATED, "sku": Filter("sku", "text")},
    ),
    "inventoryLevels": Listed(InventoryLevel, _BY_ID, {"id": _ID, "created_at": _CREATED, "updated_at": _UPDATED}),
    "locations": Listed(
        Location,
        {**_BY_ID, "NAME": "name"},
        {"id": _ID, "created_at": _CREATED, "name": Filter("name", "text")},
    ),
    "fulfillmentOrders": Listed(
        FulfillmentOrder,
        {**_BY_ID, **_BY_UPDATE},
        {
            "id": _ID,
            "updated_at": _UPDATED,
            "status": Filter("status", "text"),
            "assigned_location_id": Filter("assigned_location_id", "id"),
        },
    ),
    "events": Listed(
        BasicEvent,
        {**_BY_ID, **_BY_CREATION},
        {
            "id": _ID,
            "created_at": _CREATED,
            "action": Filter("action", "text"),
            "subject_type": Filter("subject_type", "text"),
        },
    ),
    "deletionEvents": Listed(BasicEvent, {**_BY_ID, **_BY_CREATION}, {"id": _ID, "occurred_at": _CREATED}),
    "bulkOperations": Listed(
        BulkOperation,
        {**_BY_CREATION, "COMPLETED_AT": "completed_at"},
        {
            "id": _ID,
            "created_at": _CREATED,
            "status": Filter("status", "text"),
            "operation_type": Filter("type", "text"),
        },
    ),
}


@dataclass(frozen=True, slots=True)
class Entry:
    """A node with its place in a list; places are comparable within a list."""

    node: Any
    place: tuple[Any, ...]


def place_of(value: Any, gid: str) -> tuple[Any, ...]:
    """Where a record with *value* for the sort key is; records without a value come first."""
    shown = value.isoformat() if isinstance(value, datetime) else value
    return (shown is not None, shown if shown is not None else 0, number_of(gid))


@dataclass(frozen=True, slots=True)
class Asked:
    """The arguments of one page. *context* names the list and its order; a cursor belongs to one."""

    first: int | None
    after: str | None
    context: str
    reverse: bool = False


@dataclass(frozen=True, slots=True)
class Cursors:
    """Cursors are opaque texts with the last place and what it belongs to.

    Attributes:
        life: After which they are refused; None if they stay valid.
    """

    life: timedelta | None = None

    def write(self, entry: Entry, asked: Asked, now: datetime) -> str:
        content = {"last": entry.place, "of": asked.context, "at": now.isoformat()}
        return base64.urlsafe_b64encode(json.dumps(content).encode()).decode()

    def read(self, asked: Asked, now: datetime) -> tuple[Any, ...]:
        try:
            content = json.loads(base64.urlsafe_b64decode(asked.after or ""))
            issued, place = datetime.fromisoformat(content["at"]), tuple(content["last"])
        except (ValueError, KeyError, TypeError):
            raise _invalid_cursor() from None
        if content["of"] != asked.context or (self.life is not None and now >= issued + self.life):
            raise _invalid_cursor()
        return place


def _invalid_cursor() -> GraphQLError:
    """The text is Shopify's own, for a cursor that does not fit the list."""
    return GraphQLError("Invalid cursor for current pagination sort.", extensions={"code": "BAD_REQUEST"})


def page(entries: Sequence[Entry], asked: Asked, cursors: Cursors, now: datetime) -> dict[str, Any]:
    """One page as a connection: what comes after the cursor's place now, wherever the last node has moved since.

    Raises:
        GraphQLError: If ``first`` is missing or too large, or the cursor is not valid.
    """
    if asked.first is None:
        raise GraphQLError("you must provide one of first or last", extensions={"code": "BAD_REQUEST"})
    if not 0 <= asked.first <= MAX_PAGE:
        message = f"first must be between 0 and {MAX_PAGE}, and is {asked.first}"
        raise GraphQLError(message, extensions={"code": "BAD_REQUEST"})
    ordered = sorted(entries, key=lambda one: one.place, reverse=asked.reverse)
    rest = ordered
    if asked.after is not None:
        last = cursors.read(asked, now)
        rest = [one for one in ordered if (one.place < last if asked.reverse else one.place > last)]
    shown = rest[: asked.first]
    edges = [{"node": one.node, "cursor": cursors.write(one, asked, now)} for one in shown]
    info = {
        "hasNextPage": len(rest) > len(shown),
        "hasPreviousPage": len(rest) < len(ordered),
        "startCursor": edges[0]["cursor"] if edges else None,
        "endCursor": edges[-1]["cursor"] if edges else None,
    }
    return {"edges": edges, "nodes": [one.node for one in shown], "pageInfo": info}


def everything(entries: Sequence[Entry]) -> dict[str, Any]:
    """All of a list as a connection, for a bulk operation."""
    ordered = sorted(entries, key=lambda one: one.place)
    return {"edges": [{"node": one.node, "cursor": ""} for one in ordered], "nodes": [], "pageInfo": None}
