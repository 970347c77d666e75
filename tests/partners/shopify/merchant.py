"""What a merchant does with products, stock and customers in the fake Shopify shop; a test calls it."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from tests.partners.shopify.catalog import InventoryItem, InventoryLevel, Location, Product, ProductVariant
from tests.partners.shopify.customers import Customer, MailingAddress
from tests.partners.shopify.records import Records


class Catalog:
    """Locations, products, variants and stock. The first location that is added ships what has no stock elsewhere."""

    def __init__(self, records: Records) -> None:
        self._records = records

    def add_location(self, name: str, **fields: Any) -> Location:
        return self._records.add(Location(name=name, **fields))

    def add_product(self, title: str, **fields: Any) -> Product:
        """A product without variants; `add_variant` gives it some."""
        handle = title.lower().replace(" ", "-")
        return self._records.add(Product(title=title, handle=handle, published_at=self._records.now(), **fields))

    def add_variant(
        self, product: Product, sku: str | None, price: str = "10.00", *, title: str = "Default Title", **fields: Any
    ) -> ProductVariant:
        """A variant with an inventory item; a SKU may be missing, and twice in a shop."""
        records = self._records
        item = records.add(InventoryItem(sku=sku, requires_shipping=not product.is_gift_card))
        variant = ProductVariant(
            product=product, inventory_item=item, title=title, price=Decimal(price), sku=sku, **fields
        )
        variant.position = len(product.variants) + 1
        records.add(variant)
        item.variant = variant
        product.variants.append(variant)
        records.touch(product)
        return variant

    def change(self, *changed: Product | ProductVariant | InventoryItem | Location, **fields: Any) -> None:
        """Set *fields*; a variant's product changes with it, and its inventory item has the same SKU."""
        for record in changed:
            for name, value in fields.items():
                setattr(record, name, value)
            self._records.touch(record)
            if isinstance(record, ProductVariant):
                record.inventory_item.sku = record.sku
                self._records.touch(record.inventory_item, record.product)

    def archive(self, product: Product) -> None:
        self.change(product, status="ARCHIVED")

    def delete_variant(self, variant: ProductVariant) -> None:
        """Delete a variant with its inventory item; orders keep their lines, without it."""
        variant.product.variants.remove(variant)
        for level in variant.inventory_item.inventory_levels:
            level.location.inventory_levels.remove(level)
            self._records.remove(level)
        variant.inventory_item.inventory_levels = []
        self._records.remove(variant)
        self._records.remove(variant.inventory_item)
        self._records.touch(variant.product)

    def delete_product(self, product: Product) -> None:
        for variant in list(product.variants):
            self.delete_variant(variant)
        self._records.remove(product)

    def stock(self, variant: ProductVariant, location: Location, available: int) -> InventoryLevel:
        """Have *available* units at a location, where the item is stocked from now on."""
        item, records = variant.inventory_item, self._records
        level = item.level_at(location)
        if level is None:
            level = records.add(
                InventoryLevel(item=item, location=location), suffix=f"?inventory_item_id={item.legacy_resource_id}"
            )
            item.inventory_levels.append(level)
            location.inventory_levels.append(level)
        level.move(records.now(), available=available - level.units["available"])
        records.touch(level)
        return level


class Customers:
    """The shop's customers."""

    def __init__(self, records: Records, currency: str) -> None:
        self._records, self._currency = records, currency

    def add(self, email: str | None = None, **fields: Any) -> Customer:
        customer = self._records.add(Customer(currency=self._currency, email=email, **fields))
        customer.default_address = self._records.add(
            MailingAddress(first_name=customer.first_name, last_name=customer.last_name)
        )
        return customer

    def change(self, customer: Customer, **fields: Any) -> None:
        for name, value in fields.items():
            setattr(customer, name, value)
        self._records.touch(customer)

    def delete(self, customer: Customer) -> None:
        """Delete a customer.

        Raises:
            ValueError: If the customer has orders, which Shopify does not allow.
        """
        if customer.orders:
            raise ValueError(f"customer {customer.id} has orders")
        self._records.remove(customer)

    def merge(self, kept: Customer, merged: Customer) -> None:
        """Give the orders of one customer to another, and delete the first.

        The orders do not count as changed: Shopify does not say that they do, so a sync must not rely on it.
        """
        for order in merged.orders:
            order.customer = kept
        kept.orders += merged.orders
        kept.tags = sorted({*kept.tags, *merged.tags})
        merged.orders = []
        self._records.remove(merged)
        self._records.touch(kept)
