"""Bodies that the fake of Amazon accepts.

Members, lengths and enumerations are those of ``fulfillmentOutbound_2020-07-01.json``; limits that only its
descriptions tell (lines and units of an order, characters of an order number, the city) are here as well.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel
from tests.partners.amazon_wire import instant, invalid

MAX_LINES = 100
MAX_UNITS = 250


def _instant_text(text: str) -> str:
    instant(text)
    return text


def _order_number(text: str) -> str:
    text.encode("latin-1")  # its error is a ValueError
    if "  " in text:
        raise ValueError("two spaces in a row")
    return text


Text = Annotated[str, Field(min_length=1)]
Key = Annotated[str, Field(min_length=1, max_length=40)]
ItemKey = Annotated[str, Field(min_length=1, max_length=50)]
Comment = Annotated[str, Field(max_length=750)]
OrderNumber = Annotated[Key, AfterValidator(_order_number)]
Timestamp = Annotated[str, AfterValidator(_instant_text)]
Quantity = Annotated[int, Field(ge=1, le=2**31 - 1)]
Country = Annotated[str, Field(pattern=r"^[A-Z]{2}$")]
Emails = list[Annotated[str, Field(max_length=64)]]
Action = Literal["Ship", "Hold"]
Policy = Literal["FillOrKill", "FillAll", "FillAllAvailable"]
Speed = Literal["Standard", "Expedited", "Priority", "ScheduledDelivery"]


class _Body(BaseModel):
    """Unknown members are refused, and null, as in the document. Defaults only mark what may be missing."""

    model_config = ConfigDict(strict=True, extra="forbid", alias_generator=to_camel)


class Money(_Body):
    currency_code: Annotated[str, Field(pattern=r"^[A-Z]{3}$")]
    value: Annotated[str, Field(pattern=r"^\d+(\.\d+)?$")]


_NO_MONEY = Money.model_construct(currency_code="", value="")


class Address(_Body):
    name: Text
    address_line1: Text
    address_line2: str = ""
    address_line3: str = ""
    city: str = ""
    district_or_county: str = ""
    state_or_region: str = ""
    postal_code: Text
    country_code: Country
    phone: str = ""

    @model_validator(mode="after")
    def _has_a_city(self) -> Self:
        if not self.city and self.country_code != "JP":
            raise ValueError("the city is missing")
        return self


_NO_ADDRESS = Address.model_construct(name="", address_line1="", postal_code="", country_code="")


class _Line(_Body):
    seller_fulfillment_order_item_id: ItemKey
    quantity: Quantity
    gift_message: Annotated[str, Field(max_length=512)] = ""
    displayable_comment: Annotated[str, Field(max_length=250)] = ""
    fulfillment_network_sku: str = ""
    per_unit_declared_value: Money = _NO_MONEY
    per_unit_price: Money = _NO_MONEY
    per_unit_tax: Money = _NO_MONEY


class CreateLine(_Line):
    seller_sku: Annotated[str, Field(min_length=1, max_length=50)]


class UpdateLine(_Line):
    seller_sku: str = ""
    order_item_disposition: str = ""


class FeatureConstraint(_Body):
    feature_name: str = ""
    feature_fulfillment_policy: Literal["Required", "NotRequired"] = "NotRequired"


class DeliveryWindow(_Body):
    start_date: Timestamp
    end_date: Timestamp


_NO_WINDOW = DeliveryWindow.model_construct(start_date="", end_date="")


class CreateBody(_Body):
    """A ``CreateFulfillmentOrderRequest`` without cash on delivery, payment and delivery preferences (India, Japan)."""

    marketplace_id: str = ""
    seller_fulfillment_order_id: Key
    displayable_order_id: OrderNumber
    displayable_order_date: Timestamp
    displayable_order_comment: Comment
    shipping_speed_category: Speed
    delivery_window: DeliveryWindow = _NO_WINDOW
    destination_address: Address
    fulfillment_action: Action = "Ship"
    fulfillment_policy: Policy = "FillOrKill"
    ship_from_country_code: str = ""
    notification_emails: Emails = []
    feature_constraints: list[FeatureConstraint] = []
    items: Annotated[list[CreateLine], Field(min_length=1, max_length=MAX_LINES)]

    @model_validator(mode="after")
    def _can_be_fulfilled(self) -> Self:
        keys = [line.seller_fulfillment_order_item_id for line in self.items]
        if len(set(keys)) < len(keys):
            raise ValueError("two items have the same sellerFulfillmentOrderItemId")
        if sum(line.quantity for line in self.items) > MAX_UNITS:
            raise ValueError(f"more than {MAX_UNITS} units")
        if self.fulfillment_action == "Hold" and self.shipping_speed_category == "ScheduledDelivery":
            raise ValueError("Hold is not valid for ScheduledDelivery")
        return self


class UpdateBody(_Body):
    """An ``UpdateFulfillmentOrderRequest``. What it does not mention stays, an order hold as well."""

    marketplace_id: str = ""
    displayable_order_id: OrderNumber = "1"
    displayable_order_date: Timestamp = ""
    displayable_order_comment: Comment = ""
    shipping_speed_category: Speed = "Standard"
    destination_address: Address = _NO_ADDRESS
    fulfillment_action: Action = "Hold"
    fulfillment_policy: Policy = "FillOrKill"
    ship_from_country_code: str = ""
    notification_emails: Emails = []
    feature_constraints: list[FeatureConstraint] = []
    items: list[UpdateLine] = []


def accepted(model: type[_Body], body: Any) -> dict[str, Any]:
    """The members of a valid body, as they were sent.

    Raises:
        RefusedError: If the body is not valid; the message names its first wrong member.
    """
    try:
        return model.model_validate(body).model_dump(by_alias=True, exclude_unset=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "body"
        raise invalid(f"Value for parameter {place} is invalid. Reason: {first['msg']}.") from None
