"""Bodies that the fake of ShipBob accepts, as its OpenAPI document 2026-01 describes them.

Stricter than ShipBob in one respect: a member that the document does not name is refused, so that a misspelt one shows.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from tests.partners.partner_server import PartnerRequest
from tests.partners.shipbob_stockroom import RefusedError

Text = Annotated[str, Field(min_length=1)]
Amount = int | Decimal
Count = Annotated[int, Field(ge=1)]
Time = Annotated[datetime, Field(strict=False)]


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class _Product(Body):
    quantity: Count
    external_line_id: int | None = None
    quantity_unit_of_measure_code: Literal["EA", "INP", "CS", "PL"] | None = None


class ProductByReference(_Product):
    reference_id: Text
    name: str | None = None
    sku: str | None = None
    upc: str | None = None
    gtin: str | None = None
    unit_price: Amount | None = None


class ProductById(_Product):
    id: int


class Address(Body):
    address1: Text
    address2: str | None = None
    company_name: str | None = None
    city: Text
    state: str | None = None
    country: Text
    zip_code: str | None = None


class Recipient(Body):
    name: Text
    address: Address
    email: str | None = None
    phone_number: str | None = None


class Financials(Body):
    total_price: Amount | None = None


class Tag(Body):
    name: str
    value: str


class RetailerAddress(Address):
    type: Literal["MarkFor", "ShipFrom"]


class RetailerProgramData(Body):
    purchase_order_number: Text
    retailer_program_type: Text
    addresses: list[RetailerAddress] | None = None
    customer_ticket_number: str | None = None
    delivery_date: Time | None = None
    department: str | None = None
    doNotShipBeforeDate: Time | None = None  # noqa: N815  ShipBob's spelling
    mark_for_store: str | None = None
    shipByDate: Time | None = None  # noqa: N815  ShipBob's spelling


class ShippingTerms(Body):
    carrier_type: Literal["Parcel", "Freight"]
    payment_term: Literal["Collect", "ThirdParty", "Prepaid", "MerchantResponsible"]


class CreateOrder(Body):
    """``POST /order``."""

    reference_id: Annotated[str, Field(min_length=1, max_length=300)]
    recipient: Recipient
    products: Annotated[list[ProductByReference | ProductById], Field(min_length=1)]
    shipping_method: Text
    type: Literal["DTC", "DropShip", "B2B"]
    order_number: str | None = None
    purchase_date: Time | None = None
    location_id: int | None = None
    financials: Financials | None = None
    gift_message: Annotated[str, Field(max_length=500)] | None = None
    origin_platform_program: str | None = None
    sales_channel: str | None = None
    retailer_program_data: RetailerProgramData | None = None
    shipping_terms: ShippingTerms | None = None
    tags: list[Tag] | None = None


class UpdateAddress(Body):
    """``PUT /shipment/{id}:updateAddress``."""

    street_address1: Text
    city: Text
    street_address2: str | None = None
    company_name: str | None = None
    state: str | None = None
    country_code: str | None = None
    zip_code: str | None = None
    recipient_name: str | None = None
    email: str | None = None
    phone_number: str | None = None


class WroBoxItem(Body):
    inventory_id: int
    quantity: Count
    lot_number: str | None = None
    lot_date: Time | None = None


class WroBox(Body):
    tracking_number: str | None
    box_items: list[WroBoxItem]


class FulfillmentCenter(Body):
    id: int


class CreateWro(Body):
    """``POST /receiving``."""

    fulfillment_center: FulfillmentCenter
    package_type: Literal["Package", "Pallet", "FloorLoadedContainer"]
    box_packaging_type: Literal["EverythingInOneBox", "OneSkuPerBox", "MultipleSkuPerBox"]
    expected_arrival_date: Time
    boxes: Annotated[list[WroBox], Field(min_length=1)]
    purchase_order_number: str | None = None


def body_of(request: PartnerRequest, model: type[BaseModel]) -> dict[str, Any]:
    """The body as it was sent, if *model* accepts it.

    Raises:
        RefusedError: 400 with the messages of each member, by its path.
    """
    try:
        body: dict[str, Any] = request.json()
        TypeAdapter(model).validate_python(body)
    except ValidationError as error:
        found: dict[str, list[str]] = {}
        for problem in error.errors():
            found.setdefault(".".join(map(str, problem["loc"])), []).append(problem["msg"])
        raise RefusedError(400, found) from error
    except ValueError as error:
        raise RefusedError(400, {"": [f"The body is not JSON: {error}"]}) from error
    return body
