"""An order as ShipBob accepts it: ``POST /2026-01/order`` (developer.shipbob.com), without the external id."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from crossdock.resources import Code, Country, Exact, Instant, Personal, ResourceModel, Text, Units


class _Member(ResourceModel):
    model_config = ConfigDict(alias_generator=None)


class ShipBobAddress(_Member):
    address1: Personal
    address2: Personal | None = None
    company_name: Personal | None = None
    city: Personal
    state: Personal | None = None
    country: Country
    zip_code: Personal | None = None


class Recipient(_Member):
    name: Personal
    address: ShipBobAddress
    email: Personal | None = None
    phone_number: Personal | None = None


class OrderedProduct(_Member):
    """A line. A product that ShipBob does not know is created if it has a name."""

    reference_id: Code
    """The SKU at ShipBob."""
    quantity: Units
    name: Text | None = None
    sku: Code | None = None
    unit_price: Exact | None = None
    external_line_id: int | None = None
    quantity_unit_of_measure_code: Literal["EA", "INP", "CS", "PL"] | None = None
    upc: Code | None = None
    gtin: Code | None = None


class Financials(_Member):
    total_price: Exact | None = None


class Tag(_Member):
    name: Text
    value: Text


class RetailerProgramData(_Member):
    """Of orders to retailers."""

    purchase_order_number: Code
    retailer_program_type: Code
    customer_ticket_number: Code | None = None
    delivery_date: Instant | None = None
    department: Code | None = None
    doNotShipBeforeDate: Instant | None = None  # noqa: N815  ShipBob's spelling
    mark_for_store: Code | None = None
    shipByDate: Instant | None = None  # noqa: N815  ShipBob's spelling


class ShippingTerms(_Member):
    carrier_type: Literal["Parcel", "Freight"]
    payment_term: Literal["Collect", "ThirdParty", "Prepaid", "MerchantResponsible"]


class ShipBobOrder(_Member):
    """An order to ship."""

    recipient: Recipient
    products: Annotated[tuple[OrderedProduct, ...], Field(min_length=1)]
    shipping_method: Code
    type: Literal["DTC", "DropShip", "B2B"] = "DTC"
    order_number: Code | None = None
    purchase_date: Instant | None = None
    location_id: int | None = None
    financials: Financials | None = None
    gift_message: Annotated[Text, Field(max_length=500)] | None = None
    origin_platform_program: Text | None = None
    sales_channel: Text | None = None
    retailer_program_data: RetailerProgramData | None = None
    shipping_terms: ShippingTerms | None = None
    tags: tuple[Tag, ...] | None = None
