"""The streams of a shop. A dialect reads them from one kind of shop, and maps their records.

Variants with the same SKU are warned of where the SKU is the key of products.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

from crossdock import (
    Context,
    CustomerDraft,
    Filter,
    InventoryLotDraft,
    InvoiceDraft,
    OrderDraft,
    ProductDraft,
    RawBatch,
    Record,
    Stream,
    WarehouseBinDraft,
)
from crossdock.mapping.stream_declaration import ChangeLimits
from crossdock.sources import Checkpoint
from crossdock.values.field_types import use_default_decimal_context
from crossdock_connectors.record_mapping_in_code import version_of_mapping_and_settings
from crossdock_connectors.shop.sale_lines import charge_product_key
from crossdock_connectors.shop.settings import MAPPED, ShopSettings

S = TypeVar("S", bound=ShopSettings)
MAX_WARNED = 20
"""The most warnings of one run."""


class RepeatedSkuWarner:
    """Warns of variants with the same SKU in one run: they would be one product, and the last one would count."""

    def __init__(self, ctx: Context[S]) -> None:
        self._ctx = ctx
        self._variants: dict[int, int] = {}  # hashes, since the texts of a large shop could take a gigabyte
        self._warned = 0

    def warn_of_repeated(self, skus_with_variant_ids: Iterable[tuple[Any, Any]]) -> None:
        for sku, variant in skus_with_variant_ids:
            if not isinstance(sku, str):
                continue  # a row without a key, which is rejected
            first = self._variants.setdefault(hash(sku), hash(str(variant)))
            if first != hash(str(variant)) and self._warned < MAX_WARNED:
                self._warned += 1
                text = f"several variants have the SKU {sku}: they are one product, and the last one counts"
                self._ctx.run.warn(f"{self._ctx.connection}.products", text, code="sku_repeated")


Read = Iterator[RawBatch | Checkpoint]
Row = dict[str, Any]
Keys = Sequence[tuple[str, ...]]

_ANY_NUMBER = ChangeLimits(at_most_percent=100)
"""Most orders and most of the stock change in a day."""
_WITHOUT_MAPPING = Filter(field="mapped", equals="false")
WITHDRAWN = "withdrawn"
"""The value of ``due`` of an order that is no sale any more, although it may have been invoiced before."""
CREDIT_NOTE = "credit-note"
"""The prefix of a credit note's key, before the shop's id of the refund."""


class ShopReader(ABC, Generic[S]):
    """The way to read one kind of shop. Each row has its record's key in the member ``key``.

    Reading methods get the cursor of an earlier run, None at first, and end with a checkpoint. Mapping methods are
    pure.
    """

    mapping = 4
    """Raised with every change of a mapping."""
    tells_deleted: bool
    """Whether the shop tells which customers and orders were deleted. Else those that exist are listed."""
    hides_orders = False
    """Whether the list of orders that exist may hide some, which are then fetched."""
    left_out_orders: Mapping[str, Filter] = {}
    """Rows of `orders` that are no orders, by the name under which they are counted."""
    left_out_stock: Mapping[str, Filter] = {}
    """Rows of `stock` that are not read, beside those that are not counted or not mapped."""

    def __init__(self, settings: S) -> None:
        self.settings = settings

    @abstractmethod
    def products(self, ctx: Context[S], since: str | None) -> Read:
        """Yield a row for each variant."""

    @abstractmethod
    def customers(self, ctx: Context[S], since: str | None) -> Read:
        """Yield customer accounts, and a row for the guest of each order without one."""

    @abstractmethod
    def orders(self, ctx: Context[S], since: str | None) -> Read:
        """Yield orders. The member ``test`` says whether a row is a test order."""

    @abstractmethod
    def invoices(self, ctx: Context[S], since: str | None) -> Read:
        """Yield orders, and with credit notes a row for each refund.

        The member ``due`` says whether the order must be invoiced now, or the refund has paid something back; or it is
        `WITHDRAWN`.
        """

    @abstractmethod
    def locations(self, ctx: Context[S]) -> Iterator[RawBatch]:
        """Yield locations. The member ``mapped`` says whether the stock of a location is read."""

    @abstractmethod
    def stock(self, ctx: Context[S]) -> Iterator[RawBatch]:
        """Yield each variant at each location. The member ``counted`` says whether the shop counts its stock there."""

    @abstractmethod
    def products_with_keys(self, ctx: Context[S], keys: Sequence[str]) -> Iterator[RawBatch]:
        """Yield rows as `products` for these variants. All methods `*_by_key` may also yield rows of other records."""

    @abstractmethod
    def fetch_customers_by_keys(self, ctx: Context[S], keys: Sequence[str]) -> Iterator[RawBatch]:
        """Yield rows as `customers` for these accounts, and for the guests of the orders of
        `order_ids_in_guest_keys`.
        """

    @abstractmethod
    def orders_with_keys(self, ctx: Context[S], keys: Sequence[str]) -> Iterator[RawBatch]:
        """Yield rows as `orders` for these orders."""

    @abstractmethod
    def invoices_with_keys(self, ctx: Context[S], keys: Sequence[str]) -> Iterator[RawBatch]:
        """Yield rows as `invoices` for the orders with these keys, and for those with these credit notes."""

    @abstractmethod
    def stock_with_keys(self, ctx: Context[S], keys: Sequence[str]) -> Iterator[RawBatch]:
        """Yield rows as `stock` for the variants with these keys."""

    @abstractmethod
    def batches_of_all_product_keys(self, ctx: Context[S]) -> Iterator[RawBatch]: ...

    def batches_of_all_customer_keys(self, ctx: Context[S]) -> Iterator[RawBatch]:
        """Yield all customers, including guests. Needed unless `tells_deleted`."""
        raise NotImplementedError

    def batches_of_all_order_keys(self, ctx: Context[S]) -> Iterator[RawBatch]:
        """Yield all orders. Needed unless `tells_deleted`."""
        raise NotImplementedError

    @abstractmethod
    def map_product(self, record: Record) -> ProductDraft: ...

    @abstractmethod
    def map_customer(self, record: Record) -> CustomerDraft: ...

    @abstractmethod
    def map_order(self, record: Record) -> OrderDraft: ...

    @abstractmethod
    def map_invoice(self, record: Record) -> InvoiceDraft: ...

    @abstractmethod
    def map_credit_note(self, record: Record) -> InvoiceDraft: ...

    @abstractmethod
    def map_location(self, record: Record) -> WarehouseBinDraft: ...

    @abstractmethod
    def map_inventory_lot(self, record: Record) -> InventoryLotDraft: ...

    def charge_product_rows(self) -> list[Row]:
        return [
            {"key": charge_product_key(kind), "charge": kind, "sku": product.sku, "name": product.name}
            for kind, product in self.settings.product_by_charge_kind.items()
        ]


class ShopStream(Stream[S]):
    key = ("key",)

    def __init__(self, dialect: ShopReader[S]) -> None:
        self.dialect = dialect
        self.mapping_version = version_of_mapping_and_settings(dialect.settings, MAPPED, dialect.mapping)


class _StreamWithDeletions(ShopStream[S]):
    """A stream whose deleted records the shop names, or whose existing records it lists."""

    def __init__(self, dialect: ShopReader[S]) -> None:
        super().__init__(dialect)
        self.yields_deleted = dialect.tells_deleted

    @property
    def lists_existing(self) -> bool:
        return not self.dialect.tells_deleted


class Products(ShopStream[S]):
    """Each variant, and each kind of line that is not an item, is a product."""

    name, resource = "products", "product"

    def pull(self, ctx: Context[S], since: str | None) -> Read:
        yield RawBatch.json(self.dialect.charge_product_rows(), source="the setting charges")
        if self.dialect.settings.product_namespace is None:
            yield from self.dialect.products(ctx, since)

    def existing(self, ctx: Context[S]) -> Iterator[RawBatch]:
        yield RawBatch.json(self.dialect.charge_product_rows(), source="the setting charges")
        if self.dialect.settings.product_namespace is None:
            yield from self.dialect.batches_of_all_product_keys(ctx)

    def fetch(self, ctx: Context[S], keys: Keys) -> Iterator[RawBatch]:
        charges = [row for row in self.dialect.charge_product_rows() if (row["key"],) in keys]
        if charges:
            yield RawBatch.json(charges, source="the setting charges")
        if self.dialect.settings.product_namespace is None:
            yield from self.dialect.products_with_keys(ctx, _only_part_of_each_key(keys))

    def to_resource(self, record: Record) -> ProductDraft:
        if record.at("/charge", str, default=None) is not None:
            return ProductDraft(sku=record.at("/sku", str), name=record.at("/name", str))
        return self.dialect.map_product(record)


class Customers(_StreamWithDeletions[S]):
    """Customer accounts and guests.

    `fetch` gets the guest of an order by the name ``order-`` and the order's key: only with ``guests: order`` the
    guest's own key contains it. For an order with an account it gets nothing.
    """

    name, resource = "customers", "customer"

    def pull(self, ctx: Context[S], since: str | None) -> Read:
        yield from self.dialect.customers(ctx, since)

    def existing(self, ctx: Context[S]) -> Iterator[RawBatch]:
        yield from self.dialect.batches_of_all_customer_keys(ctx)

    def fetch(self, ctx: Context[S], keys: Keys) -> Iterator[RawBatch]:
        yield from self.dialect.fetch_customers_by_keys(ctx, _only_part_of_each_key(keys))

    def to_resource(self, record: Record) -> CustomerDraft:
        return self.dialect.map_customer(record)


class Orders(_StreamWithDeletions[S]):
    name, resource, changes = "orders", "order", _ANY_NUMBER

    def __init__(self, dialect: ShopReader[S]) -> None:
        super().__init__(dialect)
        self.skip = {} if dialect.settings.test_orders else {"test_order": Filter(field="test", equals="true")}
        self.skip = {**self.skip, **dialect.left_out_orders}
        self.fetches_unlisted = dialect.hides_orders

    def pull(self, ctx: Context[S], since: str | None) -> Read:
        yield from self.dialect.orders(ctx, since)

    def existing(self, ctx: Context[S]) -> Iterator[RawBatch]:
        yield from self.dialect.batches_of_all_order_keys(ctx)

    def fetch(self, ctx: Context[S], keys: Keys) -> Iterator[RawBatch]:
        yield from self.dialect.orders_with_keys(ctx, _only_part_of_each_key(keys))

    def to_resource(self, record: Record) -> OrderDraft:
        with use_default_decimal_context():
            return self.dialect.map_order(record)


class Invoices(ShopStream[S]):
    """The charges and refunds of orders. `fetch` gets an invoice with its credit notes."""

    name, resource = "invoices", "invoice"

    def __init__(self, dialect: ShopReader[S]) -> None:
        super().__init__(dialect)
        self.skip = {} if dialect.settings.test_orders else {"test_order": Filter(field="test", equals="true")}
        self.skip = {**self.skip, "not_due": Filter(field="due", equals="false")}
        self.deleted = Filter(field="due", equals=WITHDRAWN)

    def pull(self, ctx: Context[S], since: str | None) -> Read:
        yield from self.dialect.invoices(ctx, since)

    def fetch(self, ctx: Context[S], keys: Keys) -> Iterator[RawBatch]:
        yield from self.dialect.invoices_with_keys(ctx, _only_part_of_each_key(keys))

    def to_resource(self, record: Record) -> InvoiceDraft:
        is_credit_note = record.key_parts[0].startswith(CREDIT_NOTE)
        with use_default_decimal_context():
            return self.dialect.map_credit_note(record) if is_credit_note else self.dialect.map_invoice(record)


class Locations(ShopStream[S]):
    """Each place that has stock is a bin."""

    name, resource, mode = "locations", "warehouse_bin", "snapshot"

    def __init__(self, dialect: ShopReader[S]) -> None:
        super().__init__(dialect)
        self.skip = {"without_mapping": _WITHOUT_MAPPING}

    def pull(self, ctx: Context[S], since: str | None) -> Read:  # noqa: ARG002  a snapshot
        yield from self.dialect.locations(ctx)

    def to_resource(self, record: Record) -> WarehouseBinDraft:
        return self.dialect.map_location(record)


class Stock(ShopStream[S]):
    """The stock of each variant at each location is a lot."""

    name, resource, mode, changes = "stock", "inventory_lot", "snapshot", _ANY_NUMBER

    def __init__(self, dialect: ShopReader[S]) -> None:
        super().__init__(dialect)
        own = {"not_counted": Filter(field="counted", equals="false"), "without_mapping": _WITHOUT_MAPPING}
        self.skip = {**own, **dialect.left_out_stock}

    def pull(self, ctx: Context[S], since: str | None) -> Read:  # noqa: ARG002  a snapshot
        yield from self.dialect.stock(ctx)

    def fetch(self, ctx: Context[S], keys: Keys) -> Iterator[RawBatch]:
        yield from self.dialect.stock_with_keys(ctx, _only_part_of_each_key(keys))

    def to_resource(self, record: Record) -> InventoryLotDraft:
        return self.dialect.map_inventory_lot(record)


def _only_part_of_each_key(keys: Keys) -> list[str]:
    return [key for (key,) in keys]


def streams_of_shop(dialect: ShopReader[S]) -> Sequence[ShopStream[S]]:
    chosen = [Products(dialect), Customers(dialect), Locations(dialect), Stock(dialect), Orders(dialect)]
    return chosen if dialect.settings.invoices == "never" else [*chosen, Invoices(dialect)]
