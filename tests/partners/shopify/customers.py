"""Customers and their addresses, as the schema shows them."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from tests.partners.shopify.money import MoneyV2
from tests.partners.shopify.records import Record

if TYPE_CHECKING:
    from tests.partners.shopify.orders import Order


@dataclass(eq=False, kw_only=True)
class MailingAddress(Record):
    first_name: str | None = "Zoë"
    last_name: str | None = "Müller"
    company: str | None = None
    address1: str | None = "Hauptstraße 1"
    address2: str | None = None
    city: str | None = "Berlin"
    province: str | None = None
    province_code: str | None = None
    zip: str | None = "01067"
    country: str | None = "Germany"
    country_code_v2: str | None = "DE"
    phone: str | None = None

    @property
    def name(self) -> str | None:
        return " ".join(part for part in (self.first_name, self.last_name) if part) or None


@dataclass(eq=False, kw_only=True)
class Customer(Record):
    currency: str
    email: str | None = None
    phone: str | None = None
    first_name: str | None = None
    last_name: str | None = None
    note: str | None = None
    tags: list[str] = field(default_factory=list)
    state: str = "DISABLED"
    locale: str = "de"
    tax_exempt: bool = False
    verified_email: bool = True
    default_address: MailingAddress | None = None
    orders: list[Order] = field(default_factory=list, repr=False)

    @property
    def display_name(self) -> str:
        name = " ".join(part for part in (self.first_name, self.last_name) if part)
        return name or self.email or self.phone or ""

    @property
    def addresses_v2(self) -> list[MailingAddress]:
        return [self.default_address] if self.default_address else []

    @property
    def default_email_address(self) -> dict[str, Any] | None:
        if self.email is None:
            return None
        return {"emailAddress": self.email, "marketingState": "NOT_SUBSCRIBED", "validFormat": "@" in self.email}

    @property
    def default_phone_number(self) -> dict[str, str] | None:
        return {"phoneNumber": self.phone} if self.phone else None

    @property
    def number_of_orders(self) -> int:
        return len(self.orders)

    @property
    def last_order(self) -> Order | None:
        return self.orders[-1] if self.orders else None

    @property
    def amount_spent(self) -> MoneyV2:
        spent = sum((order.net_payment_set.shop_money.amount for order in self.orders), Decimal(0))
        return MoneyV2(spent, self.currency)
