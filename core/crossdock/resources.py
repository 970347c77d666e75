"""The platform's seven resources: drafts, whose fields may be references, and wire models.

Only the invoice is documented by the platform, and it has exactly the documented fields; those of the others are
assumptions. Names on the wire are camelCase, and numbers are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cache
from typing import Annotated, Any, Generic, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StrictBool, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from crossdock.values.field_types import (
    Code,
    Country,
    Currency,
    Exact,
    ExternalId,
    Instant,
    LongText,
    Personal,
    PlatformId,
    Text,
    Units,
    minor_unit_digits_or_value_error,
)

__all__ = [
    "Address", "Code", "Country", "Currency", "Customer", "CustomerDraft", "Exact", "ExternalId", "Instant",
    "InventoryLot", "InventoryLotDraft", "Invoice", "InvoiceApprovalDraft", "InvoiceDraft", "LedgerAccount",
    "LedgerAccountDraft", "Line", "LineDraft", "LongText", "LotMovementDraft", "Order", "OrderDraft", "Personal",
    "PlatformId", "Product", "ProductDraft", "Ref", "Reference", "ResourceModel", "ResourceName", "ShippingAddress",
    "Text", "Tracking", "Units", "WarehouseBin", "WarehouseBinDraft",
]  # fmt: skip

ResourceName = Literal["ledger_account", "customer", "product", "warehouse_bin", "inventory_lot", "order", "invoice"]
"""The name of a resource of the platform that other records may refer to."""
ActionName = Literal["lot_movement", "invoice_approval"]

_Storable = Annotated[str, Field(pattern=r"^[^\x00]*$")]  # PostgreSQL accepts no NUL
_KeyPart = Annotated[str, Field(min_length=1)]


@dataclass(frozen=True, slots=True)
class Reference:
    """Another record, identified by its own key instead of the platform's id.

    Attributes:
        key: Its key as the source has it, such as ``gid://shop/Customer/1``; for a key of several columns, a tuple of
            their texts. `Record.key_parts` is the key of a record in this form.
        namespace: The namespace of *key*; None for that of the record that refers to it.
    """

    resource: ResourceName
    key: _KeyPart | Annotated[tuple[_KeyPart, ...], Field(min_length=1)]
    namespace: _Storable | None = None

    @property
    def key_parts(self) -> tuple[str, ...]:
        return (self.key,) if isinstance(self.key, str) else self.key


Ref = Reference | PlatformId
"""Another record in a draft: by its own key, or by the id that the platform assigned."""
R = TypeVar("R")  # PlatformId on the wire, Ref in a draft


class ResourceModel(BaseModel):
    """Base of all drafts and wire models: frozen, no unknown fields, camelCase on the wire."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        hide_input_in_errors=True,
        arbitrary_types_allowed=True,
        revalidate_instances="always",  # `model_copy` and `model_construct` do not validate
        defer_build=True,  # a run needs few of the fourteen; building all takes 0.1 s
    )

    def payload(self) -> dict[str, Any]:
        """Return the members by their wire names, without those that are None. A `Reference` is not converted."""
        return {
            alias: value if type(value) in _SCALARS else _wire_value(value)
            for name, alias in _wire_names_by_field(type(self))
            if (value := getattr(self, name)) is not None
        }


_SCALARS = frozenset({str, bool, int, Decimal})  # most members, handled first to save time


@cache
def _wire_names_by_field(model: type[ResourceModel]) -> Sequence[tuple[str, str]]:
    return [(name, field.alias or name) for name, field in model.model_fields.items()]


def _wire_value(value: object) -> object:
    if isinstance(value, ResourceModel):
        return value.payload()
    return [_wire_value(item) for item in value] if isinstance(value, tuple) else value


def _refuse_decimals_without_minor_unit(currency: str | None, prices: Sequence[tuple[str, Decimal | None]]) -> None:
    """Unit prices may have more decimals than the minor unit, but none in a currency without one."""
    if currency is None or minor_unit_digits_or_value_error(currency) != 0:
        return
    for place, price in prices:
        if price is not None and price != price.to_integral_value():
            context = {"place": place, "currency": currency}
            raise PydanticCustomError("no_decimals", "{currency} has no decimals", context)


class Address(ResourceModel):
    """A postal address."""

    line1: Personal
    line2: Personal | None = None
    city: Personal
    region: Personal | None = None
    postal_code: Personal | None = None
    country: Country


class ShippingAddress(Address):
    """Where an order goes, and to whom."""

    name: Personal | None = None
    phone: Personal | None = None


class Tracking(ResourceModel):
    """A parcel of an order."""

    carrier: Code
    number: Code
    url: Text | None = None


class Item(ResourceModel, Generic[R]):
    """One line of an invoice or order."""

    product_id: R
    quantity: Exact
    unit_price: Exact
    """Price per unit, in the currency of the document."""


class Line(Item[PlatformId]):
    """One line on the wire."""


class LineDraft(Item[Ref]):
    """One line of an invoice or order. Its product may be a `Reference`."""


L = TypeVar("L", Line, LineDraft)


class _Lines(ResourceModel, Generic[R, L]):
    customer_id: R
    currency: Currency
    items: Annotated[tuple[L, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _check_price_decimals(self) -> Self:
        prices = [(f"items/{n}/unitPrice", line.unit_price) for n, line in enumerate(self.items)]
        _refuse_decimals_without_minor_unit(self.currency, prices)
        return self


class InvoiceFields(_Lines[R, L], Generic[R, L]):
    auto_post_ledger: StrictBool | None = None
    """Post the invoice to the general ledger in the same operation. Left out unless set; the default is unknown."""


class CustomerDraft(ResourceModel):
    """A customer as a mapping makes it."""

    name: Personal
    email: Personal | None = None
    phone: Personal | None = None
    tax_id: Personal | None = None
    currency: Currency | None = None
    billing_address: Address | None = None
    shipping_address: Address | None = None


class ProductDraft(ResourceModel):
    """A product as a mapping makes it."""

    sku: Code
    name: Text
    description: LongText | None = None
    unit_of_measure: Code | None = None
    barcode: Code | None = None
    unit_price: Exact | None = None
    currency: Currency | None = None
    active: StrictBool = True

    @model_validator(mode="after")
    def _check_price_decimals(self) -> Self:
        _refuse_decimals_without_minor_unit(self.currency, [("unitPrice", self.unit_price)])
        return self


class OrderFields(_Lines[R, L], Generic[R, L]):
    placed_at: Instant
    status: Code | None = None
    shipping_address: ShippingAddress | None = None
    tracking: tuple[Tracking, ...] | None = None


class InventoryLotFields(ResourceModel, Generic[R]):
    product_id: R
    lot_number: Code
    bin_id: R | None = None
    quantity: Exact
    unit_of_measure: Code | None = None
    status: Code | None = None
    received_on: date | None = None
    expires_on: date | None = None


class WarehouseBinDraft(ResourceModel):
    """A warehouse bin as a mapping makes it."""

    code: Code
    warehouse: Code
    zone: Code | None = None
    capacity: Exact | None = None
    active: StrictBool = True


class LedgerAccountFields(ResourceModel, Generic[R]):
    code: Code
    name: Text
    type: Literal["asset", "liability", "equity", "revenue", "expense"]
    currency: Currency | None = None
    parent_id: R | None = None


class External(ResourceModel):
    """A resource with our own id, unique in tenant and resource. The documented invoice input has none."""

    external_id: ExternalId


class InvoiceDraft(InvoiceFields[Ref, LineDraft]):
    """An invoice before its references are resolved."""


class OrderDraft(OrderFields[Ref, LineDraft]):
    """An order before its references are resolved."""


class InventoryLotDraft(InventoryLotFields[Ref]):
    """An inventory lot before its references are resolved."""


class LedgerAccountDraft(LedgerAccountFields[Ref]):
    """A ledger account before its references are resolved."""


class LotMovementDraft(ResourceModel):
    """A quantity of a lot that goes to another bin."""

    lot_id: Ref
    to_bin_id: Ref
    quantity: Exact


class InvoiceApprovalDraft(ResourceModel):
    """The approval of an invoice."""

    invoice_id: Ref


class Invoice(InvoiceFields[PlatformId, Line]):
    """Invoice creation input, as the platform documents it."""


class Customer(External, CustomerDraft):
    """Customer input (assumed)."""


class Product(External, ProductDraft):
    """Product input (assumed)."""


class Order(External, OrderFields[PlatformId, Line]):
    """Order input (assumed)."""


class InventoryLot(External, InventoryLotFields[PlatformId]):
    """Inventory lot input (assumed)."""


class WarehouseBin(External, WarehouseBinDraft):
    """Warehouse bin input (assumed)."""


class LedgerAccount(External, LedgerAccountFields[PlatformId]):
    """Ledger account input (assumed)."""
