"""The platform's answers: the input models with the members that it adds (assumed), and those of the actions."""

from __future__ import annotations

from decimal import Decimal
from typing import Literal

from crossdock.resources import (
    Customer,
    InventoryLot,
    Invoice,
    LedgerAccount,
    Order,
    Product,
    ResourceModel,
    WarehouseBin,
)
from crossdock.values.field_types import Currency, Exact, Instant, PlatformId


class Stored(ResourceModel):
    """The members that every stored resource has."""

    id: PlatformId
    created_at: Instant
    updated_at: Instant


class StoredInvoice(Stored, Invoice):
    """An invoice as stored. An approved one cannot be changed or deleted."""

    status: Literal["draft", "approved"]
    total: Decimal
    """The exact sum of quantity x unit price, with at most 8 decimals."""


class StoredCustomer(Stored, Customer):
    """A customer as stored."""


class StoredProduct(Stored, Product):
    """A product as stored."""


class StoredOrder(Stored, Order):
    """An order as stored."""


class StoredInventoryLot(Stored, InventoryLot):
    """An inventory lot as stored."""


class StoredWarehouseBin(Stored, WarehouseBin):
    """A warehouse bin as stored."""


class StoredLedgerAccount(Stored, LedgerAccount):
    """A ledger account as stored."""


class StoredMovement(ResourceModel):
    """A movement as stored."""

    id: PlatformId
    lot_id: PlatformId
    to_lot_id: PlatformId
    from_bin_id: PlatformId | None = None
    to_bin_id: PlatformId
    quantity: Exact
    created_at: Instant


class Entry(ResourceModel):
    """One side of a posting to the general ledger."""

    id: PlatformId
    account_id: PlatformId
    invoice_id: PlatformId
    side: Literal["debit", "credit"]
    amount: Decimal
    """At least 0."""
    currency: Currency
    at: Instant
