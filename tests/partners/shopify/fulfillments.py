"""Fulfillment orders, what a location has to ship, and fulfillments, what it has shipped."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tests.partners.shopify.catalog import Location, ProductVariant
from tests.partners.shopify.money import MoneyBag
from tests.partners.shopify.order_lines import LineItem
from tests.partners.shopify.records import Record, number_of

if TYPE_CHECKING:
    from tests.partners.shopify.orders import Order

OPEN = ("OPEN", "IN_PROGRESS")
"""The statuses in which a fulfillment can be created."""


@dataclass(eq=False, kw_only=True)
class FulfillmentOrderLineItem(Record):
    line_item: LineItem
    total_quantity: int
    remaining_quantity: int

    @property
    def variant(self) -> ProductVariant | None:
        return self.line_item.variant

    @property
    def inventory_item_id(self) -> str | None:
        return self.variant.inventory_item.id if self.variant else None

    @property
    def sku(self) -> str | None:
        return self.line_item.sku

    @property
    def product_title(self) -> str:
        return self.line_item.title

    @property
    def variant_title(self) -> str | None:
        return self.line_item.variant_title

    @property
    def vendor(self) -> str | None:
        return self.line_item.vendor

    @property
    def requires_shipping(self) -> bool:
        return self.line_item.requires_shipping


@dataclass(eq=False, kw_only=True)
class FulfillmentOrder(Record):
    order: Order = field(repr=False)
    location: Location
    status: str = "OPEN"
    request_status: str = "UNSUBMITTED"
    line_items: list[FulfillmentOrderLineItem] = field(default_factory=list)
    fulfillments: list[Fulfillment] = field(default_factory=list, repr=False)

    SEARCHED = ("assigned_location_id",)

    @property
    def order_id(self) -> str:
        return self.order.id

    @property
    def order_name(self) -> str:
        return self.order.name

    @property
    def assigned_location_id(self) -> str:
        return self.location.id

    @property
    def fulfill_at(self) -> datetime:
        return self.created_at

    @property
    def assigned_location(self) -> dict[str, Any]:
        return {"name": self.location.name, "location": self.location, **self.location.address}

    @property
    def destination(self) -> dict[str, Any] | None:
        address = self.order.shipping_address
        if address is None:
            return None
        names = ("first_name", "last_name", "company", "address1", "address2", "city", "province", "zip", "phone")
        return {
            **{_camel(name): getattr(address, name) for name in names},
            "id": f"gid://shopify/FulfillmentOrderDestination/{number_of(self.id)}",
            "countryCode": address.country_code_v2,
            "email": self.order.email,
        }

    @property
    def delivery_method(self) -> dict[str, str]:
        return {"id": f"gid://shopify/DeliveryMethod/{number_of(self.id)}", "methodType": "SHIPPING"}

    @property
    def supported_actions(self) -> list[dict[str, Any]]:
        names = {
            "OPEN": ("CREATE_FULFILLMENT", "MOVE", "HOLD", "SPLIT"),
            "IN_PROGRESS": ("CREATE_FULFILLMENT",),
            "ON_HOLD": ("RELEASE_HOLD",),
        }
        return [{"action": name, "externalUrl": None} for name in names.get(self.status, ())]

    @property
    def remaining(self) -> int:
        return sum(line.remaining_quantity for line in self.line_items)


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


@dataclass(eq=False, kw_only=True)
class FulfillmentLineItem(Record):
    line_item: LineItem
    quantity: int

    @property
    def original_total_set(self) -> MoneyBag:
        return self.line_item.part(self.line_item.original_total_set, self.quantity)

    @property
    def discounted_total_set(self) -> MoneyBag:
        return self.line_item.part(self.line_item.discounted_total_set, self.quantity)


@dataclass(eq=False, kw_only=True)
class Fulfillment(Record):
    order: Order = field(repr=False)
    location: Location
    number: int
    status: str = "SUCCESS"
    display_status: str = "FULFILLED"
    delivered_at: datetime | None = None
    tracking_info: list[dict[str, str | None]] = field(default_factory=list)
    fulfillment_line_items: list[FulfillmentLineItem] = field(default_factory=list)
    fulfillment_orders: list[FulfillmentOrder] = field(default_factory=list, repr=False)

    @property
    def name(self) -> str:
        """Such as "#1001-F1"."""
        return f"{self.order.name}-F{self.number}"

    @property
    def total_quantity(self) -> int:
        return sum(line.quantity for line in self.fulfillment_line_items)

    @property
    def requires_shipping(self) -> bool:
        return any(line.line_item.requires_shipping for line in self.fulfillment_line_items)
