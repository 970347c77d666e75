"""Products and variations of the fake WooCommerce shop, with their stock.

Source: ``WC_REST_Products_Controller``, ``WC_REST_Product_Variations_Controller`` and ``WC_Product::save`` in
github.com/woocommerce/woocommerce. Stock is set or changed by a delta, and never compared with what was expected.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from tests.partners.woocommerce.shop_errors import RefusedError, invalid_parameter
from tests.partners.woocommerce.shop_records import Record, Shelf, decimal

_TEXTS = ("name", "description", "short_description", "sku", "weight", "tax_class", "global_unique_id")
_PRICES = ("regular_price", "sale_price")
_STATUSES = ("publish", "draft", "pending", "private", "trash")
_BACKORDERS = ("no", "notify", "yes")


@dataclass(slots=True)
class Product(Record):
    """A product, or a variation of *parent*. A variation without a stock of its own has its parent's."""

    parent: Product | None = None
    stock: int | None = None

    @property
    def kind(self) -> str:
        return "product_variation" if self.parent else "product"

    @property
    def keeper(self) -> Product | None:
        """The product that keeps the stock; None if nobody does."""
        if self.stock is not None:
            return self
        return self.parent.keeper if self.parent else None

    @property
    def stock_status(self) -> str:
        keeper = self.keeper
        if keeper is None or keeper.stock is None:
            return str(self.members["stock_status"])
        if keeper.stock > 0:
            return "instock"
        return "outofstock" if keeper.members["backorders"] == "no" else "onbackorder"

    @property
    def price(self) -> str:
        return str(self.members["sale_price"] or self.members["regular_price"])


class Catalog:
    """All products and variations, by id; trashed ones have the status ``trash``, deleted ones are gone."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self.products: dict[int, Product] = {}

    def add(self, name: str, price: str = "", parent: Product | None = None, **members: Any) -> Product:
        """A new product, or a variation of *parent*; other members as requests send them, such as ``sku``."""
        return self.create({"name": name, "regular_price": price, **members}, parent)

    def variations(self, product: Product) -> list[Product]:
        return [each for each in self.products.values() if each.parent is product]

    def create(self, sent: dict[str, Any], parent: Product | None = None) -> Product:
        self._check(sent, None)
        now = self._shelf.now()
        members: dict[str, Any] = dict.fromkeys((*_TEXTS, *_PRICES), "")
        members |= {
            "type": "simple",
            "status": "publish",
            "stock_status": "instock",
            "backorders": "no",
            "attributes": [],
        }
        product = Product(next(self._shelf.post_ids), now, now, members, parent=parent)
        self.products[product.id] = product
        self._store(product, sent)
        self._shelf.tell(product, "created")
        if parent:
            self._shelf.saved(parent)
        return product

    def change(self, product: Product, sent: dict[str, Any]) -> None:
        """Save a product. Every save counts as a change, one that changes nothing too, and that of a variation also
        changes its parent."""
        self._check(sent, product)
        self._store(product, sent)
        self._saved(product)

    def move_stock(self, product: Product, delta: int) -> None:
        """Change the stock, if it is managed, as orders do."""
        if product.keeper and product.keeper.stock is not None:
            product.keeper.stock += delta
            self._saved(product.keeper)

    def trash(self, product: Product) -> None:
        product.members["status"], product.modified = "trash", self._shelf.now()
        self._shelf.tell(product, "deleted")
        if product.parent:
            self._shelf.saved(product.parent)

    def delete(self, product: Product) -> None:
        """Delete for ever, with all variations. No trace is left."""
        for each in (product, *self.variations(product)):
            del self.products[each.id]
        if product.parent:
            self._saved(product.parent)

    def by_sku(self, sku: str) -> Product | None:
        return next((each for each in self.products.values() if sku and each.members["sku"] == sku), None)

    def _check(self, sent: dict[str, Any], product: Product | None) -> None:
        for name, allowed in (("status", _STATUSES), ("backorders", _BACKORDERS)):
            if sent.get(name, allowed[0]) not in allowed:
                raise invalid_parameter(name, f"{name} is not one of {', '.join(allowed)}.")
        if not isinstance(sent.get("stock_quantity", 0), int | None):
            raise invalid_parameter("stock_quantity", "stock_quantity is not of type integer.")
        other = self.by_sku(sent.get("sku") or "")
        if other and other is not product:
            extra = {"resource_id": other.id, "unique_sku": f"{sent['sku']}-1"}
            raise RefusedError(400, "product_invalid_sku", "Invalid or duplicated SKU.", **extra)

    def _store(self, product: Product, sent: dict[str, Any]) -> None:
        for name in (*_TEXTS, "type", "status", "stock_status", "backorders", "attributes"):
            if name in sent:
                product.members[name] = sent[name]
        for name in _PRICES:
            if name in sent:
                product.members[name] = f"{decimal(name, sent[name]):f}" if sent[name] != "" else ""
        self._store_stock(product, sent)
        self._shelf.add_meta(product.meta, sent.get("meta_data"))

    @staticmethod
    def _store_stock(product: Product, sent: dict[str, Any]) -> None:
        """A quantity for a product whose stock is not managed is ignored without an error."""
        if "manage_stock" in sent:
            product.stock = (product.stock or 0) if sent["manage_stock"] is True else None
        if product.stock is None:
            return
        if sent.get("stock_quantity") is not None:
            product.stock = sent["stock_quantity"]
        elif "inventory_delta" in sent:
            product.stock += int(sent["inventory_delta"])

    def _saved(self, product: Product) -> None:
        for each in (product, product.parent):
            if each:
                self._shelf.saved(each)


def product_view(product: Product, catalog: Catalog, shelf: Shelf) -> dict[str, Any]:
    """A product or variation as the API shows it; ``manage_stock`` of a variation may be the text "parent"."""
    keeper, own = product.keeper, dict(product.members)
    variations = [each for each in catalog.variations(product) if each.members["status"] != "trash"]
    prices = sorted((Decimal(each.price), each.price) for each in variations if each.price)
    view = {
        "id": product.id,
        **shelf.settings.times("date_created", product.created),
        **shelf.settings.times("date_modified", product.modified),
        **own,
        "price": prices[0][1] if prices else product.price,
        "on_sale": bool(own["sale_price"]),
        "manage_stock": "parent" if keeper and keeper is not product else keeper is not None,
        "stock_quantity": keeper.stock if keeper else None,
        "stock_status": product.stock_status,
        "backorders_allowed": own["backorders"] != "no",
        "backordered": product.stock_status == "onbackorder",
        "meta_data": product.meta,
    }
    if product.parent:
        return view | {"type": "variation", "parent_id": product.parent.id}
    return view | {"parent_id": 0, "variations": [each.id for each in variations]}
