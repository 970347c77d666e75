"""Locations, products, variants and stock of the fake Shopify shop, as the schema shows them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

from tests.partners.shopify.money import MoneyV2
from tests.partners.shopify.records import Record, number_of

STATES = ("available", "committed", "damaged", "incoming", "on_hand", "quality_control", "reserved", "safety_stock")
"""Names of quantities. ``on_hand`` is the sum of all but ``incoming``
(shopify.dev/docs/apps/build/orders-fulfillment/inventory-management-apps)."""


@dataclass(eq=False, kw_only=True)
class Location(Record):
    """A site. Those of a fulfillment service are legacy locations, which lists show only if they are asked for."""

    name: str
    is_active: bool = True
    is_fulfillment_service: bool = False
    fulfills_online_orders: bool = True
    ships_inventory: bool = True
    deactivated_at: str | None = None
    address: dict[str, str] = field(default_factory=lambda: {"city": "Berlin", "countryCode": "DE"})
    inventory_levels: list[InventoryLevel] = field(default_factory=list, repr=False)

    @property
    def has_active_inventory(self) -> bool:
        return any(level.is_active for level in self.inventory_levels)


@dataclass(eq=False, kw_only=True)
class Product(Record):
    title: str
    handle: str
    description_html: str = ""
    vendor: str = ""
    product_type: str = ""
    status: str = "ACTIVE"
    tags: list[str] = field(default_factory=list)
    is_gift_card: bool = False
    published_at: datetime | None = None
    variants: list[ProductVariant] = field(default_factory=list, repr=False)

    @property
    def tracks_inventory(self) -> bool:
        return any(variant.inventory_item.tracked for variant in self.variants)

    @property
    def total_inventory(self) -> int:
        return sum(variant.inventory_quantity or 0 for variant in self.variants)

    @property
    def options(self) -> list[dict[str, Any]]:
        """One option, the title, as shops have it whose merchant names none."""
        titles = [variant.title for variant in self.variants]
        gid = f"gid://shopify/ProductOption/{number_of(self.id)}"
        return [{"id": gid, "name": "Title", "position": 1, "values": titles}]


@dataclass(eq=False, kw_only=True)
class ProductVariant(Record):
    product: Product = field(repr=False)
    inventory_item: InventoryItem = field(repr=False)
    title: str
    price: Decimal
    sku: str | None = None
    barcode: str | None = None
    compare_at_price: Decimal | None = None
    position: int = 1
    taxable: bool = True
    inventory_policy: str = "DENY"

    SEARCHED = ("product_id",)

    @property
    def product_id(self) -> str:
        return self.product.id

    @property
    def display_name(self) -> str:
        return f"{self.product.title} - {self.title}"

    @property
    def selected_options(self) -> list[dict[str, str]]:
        return [{"name": "Title", "value": self.title}]

    @property
    def inventory_quantity(self) -> int | None:
        """Units that are available at all active locations."""
        levels = self.inventory_item.inventory_levels
        return sum(level.units["available"] for level in levels if level.is_active)


@dataclass(eq=False, kw_only=True)
class InventoryItem(Record):
    sku: str | None = None
    tracked: bool = True
    requires_shipping: bool = True
    unit_cost: MoneyV2 | None = None
    country_code_of_origin: str | None = None
    harmonized_system_code: str | None = None
    weight_kg: Decimal = Decimal(0)
    variant: ProductVariant | None = field(default=None, repr=False)
    inventory_levels: list[InventoryLevel] = field(default_factory=list, repr=False)

    @property
    def variants(self) -> list[ProductVariant]:
        return [self.variant] if self.variant else []

    @property
    def measurement(self) -> dict[str, Any]:
        gid = f"gid://shopify/InventoryItemMeasurement/{number_of(self.id)}"
        return {"id": gid, "weight": {"unit": "KILOGRAMS", "value": self.weight_kg}}

    def level_at(self, location: Location) -> InventoryLevel | None:
        return next((level for level in self.inventory_levels if level.location is location), None)

    def inventory_level(self, location_id: str, *, include_inactive: bool) -> InventoryLevel | None:
        levels = (level for level in self.inventory_levels if level.is_active or include_inactive)
        return next((level for level in levels if level.location.id == location_id), None)


@dataclass(eq=False, kw_only=True)
class InventoryLevel(Record):
    """Stock of one item at one location. Its updates change neither the item, nor the variant, nor the product."""

    item: InventoryItem
    location: Location
    is_active: bool = True
    units: dict[str, int] = field(default_factory=lambda: dict.fromkeys(STATES, 0))
    changed: dict[str, datetime] = field(default_factory=dict)

    def move(self, now: datetime, **deltas: int) -> None:
        """Add units to states; ``on_hand`` follows."""
        for name, delta in deltas.items():
            self.units[name] += delta
            self.changed[name] = now
        self.units["on_hand"] = sum(self.units[name] for name in STATES if name not in {"on_hand", "incoming"})
        if deltas.keys() != {"incoming"}:
            self.changed["on_hand"] = now

    def quantities(self, names: list[str]) -> list[dict[str, Any]]:
        return [
            {
                "id": f"gid://shopify/InventoryQuantity/{number_of(self.id)}?name={name}",
                "name": name,
                "quantity": self.units[name],
                "updatedAt": self.changed.get(name),
            }
            for name in names
            if name in self.units
        ]
