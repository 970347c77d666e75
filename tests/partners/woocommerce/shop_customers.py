"""Customers of the fake WooCommerce shop: registered users; guests exist only on orders.

Sources: ``WC_REST_Customers_V1_Controller`` and its ``V2`` in github.com/woocommerce/woocommerce.
Lists cannot be filtered by time. ``date_modified`` is null until WooCommerce saves the customer.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from tests.partners.woocommerce.shop_errors import RefusedError
from tests.partners.woocommerce.shop_queries import Query
from tests.partners.woocommerce.shop_records import BILLING, SHIPPING, Record, Shelf, address

_TEXTS = ("email", "first_name", "last_name", "username")


class Customers:
    """All registered users, by id."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self.customers: dict[int, Record] = {}

    def add(self, email: str, role: str = "customer", **members: Any) -> Record:
        """A user whom WordPress registered, so that ``date_modified`` is null."""
        return self._added({"email": email, **members}, role, None)

    def create(self, sent: dict[str, Any]) -> Record:
        if any(each.members["email"] == sent.get("email") for each in self.customers.values()):
            message = "An account is already registered with your email address."
            raise RefusedError(400, "registration-error-email-exists", message)
        if "@" not in str(sent.get("email", "")):
            raise RefusedError(400, "registration-error-invalid-email", "Please provide a valid email address.")
        return self._added(sent, "customer", self._shelf.now())

    def change(self, customer: Record, sent: dict[str, Any]) -> None:
        self._store(customer, sent)
        self._shelf.saved(customer)

    def _store(self, customer: Record, sent: dict[str, Any]) -> None:
        members = customer.members
        members |= {name: str(sent[name]) for name in _TEXTS if name in sent}
        members["billing"] = address(BILLING, sent.get("billing"), members["billing"])
        members["shipping"] = address(SHIPPING, sent.get("shipping"), members["shipping"])
        self._shelf.add_meta(customer.meta, sent.get("meta_data"))

    def _added(self, sent: dict[str, Any], role: str, modified: datetime | None) -> Record:
        members: dict[str, Any] = {**dict.fromkeys(_TEXTS, ""), "role": role, "billing": {}, "shipping": {}}
        members["username"] = str(sent.get("email", "")).partition("@")[0]
        customer = Record(next(self._shelf.user_ids), self._shelf.now(), modified, members)
        self.customers[customer.id] = customer
        self._store(customer, sent)
        self._shelf.tell(customer, "created")
        return customer

    def listed(self, query: Query) -> list[Record]:
        """Customers only, unless ``role`` asks for others.

        SQL does not define the order of equal names or times, and a database may return it another way for each page:
        here by id on odd pages, the other way on even ones. Only ``orderby=id`` has no ties.
        """
        role, email = query.text("role", "customer"), query.text("email")
        orderby = query.choice("orderby", "name", "id", "registered_date")
        tie = -1 if query.number("page", 1, 1) % 2 == 0 else 1
        found = [
            each
            for each in self.customers.values()
            if query.chosen(each.id) and role in {"all", each.members["role"]} and email in {"", each.members["email"]}
        ]
        found.sort(key=lambda each: each.id * (1 if orderby == "id" else tie))
        if orderby == "name":
            found.sort(key=lambda each: f"{each.members['first_name']} {each.members['last_name']}".strip())
        elif orderby == "registered_date":
            found.sort(key=lambda each: each.created)
        return found[::-1] if query.choice("order", "asc", "desc") == "desc" else found

    def view(self, customer: Record) -> dict[str, Any]:
        times = self._shelf.settings.times
        return {
            "id": customer.id,
            **times("date_created", customer.created),
            **times("date_modified", customer.modified),
            **customer.members,
            "meta_data": customer.meta,
        }
