"""Settings that connections to all shops have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from crossdock import ConfigModel
from crossdock.resources import Code, Country, Instant, Text
from crossdock.sources import HttpSettings, Name
from crossdock.webhooks import WebhookSettings

ChargeKind = Literal[
    "discount", "shipping", "fee", "tax", "duty", "tip", "gift_card", "custom_item", "rounding", "refund",
    "difference",
]  # fmt: skip
Invoiced = Literal["paid", "shipped", "placed", "never"]
MAPPED = {
    "charges", "cities", "clean", "currencies", "currency", "differences", "guests", "incomplete_addresses", "invoices",
    "locations", "lot", "price_currency", "product_key", "product_namespace", "progress", "refunds", "statuses",
    "stock_quantity", "tracking_carriers", "unit_of_measure", "warehouse",
}  # fmt: skip
"""The settings of any shop that mappings use."""


class ChargeProduct(ConfigModel):
    """The product of lines of one kind."""

    sku: Code
    """Its SKU. Default: one named after the kind, such as ``SHIPPING``."""
    name: Text
    """Its name. Default: one named after the kind, such as ``Shipping``."""


CHARGES: Mapping[ChargeKind, ChargeProduct] = {
    "discount": ChargeProduct(sku="DISCOUNT", name="Discount"),
    "shipping": ChargeProduct(sku="SHIPPING", name="Shipping"),
    "fee": ChargeProduct(sku="FEE", name="Fee"),
    "tax": ChargeProduct(sku="TAX", name="Tax"),
    "duty": ChargeProduct(sku="DUTY", name="Duty"),
    "tip": ChargeProduct(sku="TIP", name="Tip"),
    "gift_card": ChargeProduct(sku="GIFT-CARD", name="Gift card"),
    "custom_item": ChargeProduct(sku="CUSTOM-ITEM", name="Item without a product"),
    "rounding": ChargeProduct(sku="ROUNDING", name="Rounding"),
    "refund": ChargeProduct(sku="REFUND", name="Refund adjustment"),
    "difference": ChargeProduct(sku="DIFFERENCE", name="Unexplained difference"),
}
CITIES: Mapping[str, str] = {
    "GI": "Gibraltar",
    "HK": "Hong Kong",
    "MC": "Monaco",
    "MO": "Macao",
    "SG": "Singapore",
    "VA": "Vatican City",
}
"""Cities of countries that have one, or whose addresses name none: github.com/google/libaddressinput has the formats.
Shops do not ask for it there.
"""


class ShopSettings(HttpSettings):
    """What a connection to any shop is configured with."""

    known_statuses: ClassVar[Mapping[str, str]] = {}

    charges: Mapping[ChargeKind, ChargeProduct] = {}
    """The products of lines that are no items, by the kind of line: ``discount``, ``shipping``, ``fee``, ``tax``,
    ``duty``, ``tip``, ``gift_card``, ``custom_item``, ``rounding``, ``refund`` or ``difference``; only those that shall
    differ from the default. The stream ``products`` creates them."""
    product_namespace: Name | None = None
    """The namespace of the platform's products, if their key is the SKU and another connection writes them, such as
    another shop of the brand. By default the stream ``products`` writes them, and their key is the shop's id."""
    product_key: Literal["id", "sku"] = "id"
    """The key of the products that this connection writes: the shop's id, or the SKU, by which other connections can
    refer to them."""
    guests: Literal["email", "order", "one"] = "email"
    """Customers of orders without a customer account: one for each ``email`` address, for each ``order``, or ``one``
    for all."""
    invoices: Invoiced = "paid"
    """When an order becomes an invoice: once it is ``paid``, ``shipped`` or ``placed``, or ``never``."""
    refunds: Literal["credit_note", "reject"] = "credit_note"
    """What a refund after the invoice becomes: ``credit_note``, an invoice with negative quantities; or ``reject``, the
    invoice becomes a dead letter with the reason ``changed_after_delivery``."""
    differences: Literal["reject", "line"] = "reject"
    """What an order or refund becomes whose parts do not add up to its total, such as one with a gift card that lowers
    the total, or an exchange: ``reject``, a dead letter with both amounts; or ``line``, a line of the charge
    ``difference``."""
    incomplete_addresses: Literal["reject_order", "reject", "leave_out"] = "reject_order"
    """What an address without a street, city or valid country becomes: ``reject_order``, an order with it is a dead
    letter, and a customer has no address; ``reject``, a customer with it is a dead letter as well; or ``leave_out``, no
    address in both."""
    cities: Mapping[Country, Text] = {}
    """The city of addresses without one, by country; besides the usual ones of city states, which each can be
    replaced."""
    clean: bool = True
    """Whether characters that nobody sees are removed from names, addresses and descriptions, and those that are too
    long are cut; each is counted. Otherwise too long ones are dead letters."""
    test_orders: bool = False
    """Whether test orders are read."""
    progress: Literal["shop", "other"] = "shop"
    """Who tells the platform the status and the parcels of orders: the shop, or another stream, such as that of a
    3PL."""
    statuses: Mapping[str, Code] = {}
    """The platform's status of an order by the shop's; besides the usual ones, which each can be replaced."""
    locations: Mapping[str, Code] = {}
    """The code of the platform's bin by the id of the shop's location. If any is named, the stock of others is left
    out. By default the code is the name of the location. Stock that is written to the shop may name the code, too."""
    warehouse: Code = "SHOP"
    """The warehouse of these bins."""
    lot: Code = "STOCK"
    """The lot number of the shop's stock; shops know no lots."""
    unit_of_measure: Code | None = None
    """The unit of measure of products and lots."""
    first: Instant | None = None
    """The first run reads orders that changed since then; by default all."""
    page_size: Annotated[int, Field(ge=1, le=250)] | None = None
    """The most records that are requested at a time; by default as many as the shop permits."""
    webhooks: WebhookSettings | None = None
    """The webhooks that the shop sends; by default none are accepted."""

    @property
    def platform_status_by_shop_status(self) -> Mapping[str, str]:
        return {**self.known_statuses, **self.statuses}

    @property
    def city_by_country(self) -> Mapping[str, str]:
        return {**CITIES, **self.cities}

    @property
    def product_by_charge_kind(self) -> Mapping[ChargeKind, ChargeProduct]:
        return {**CHARGES, **self.charges}
