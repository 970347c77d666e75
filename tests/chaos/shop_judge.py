"""The judge of the load of a shop: adds up what the shop has, and compares it with what happened at the platform.

It reads two files and uses the standard library alone: ``python shop_judge.py DUMP EFFECTS shop|presentment``. It
prints a line for each difference, and ends with 1 if there are any.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

Row = Mapping[str, Any]
CONNECTION = "shop"
STATUSES = {"UNFULFILLED": "open", "PARTIALLY_FULFILLED": "partially_shipped", "FULFILLED": "shipped"}
_DECIMALS = {"JPY": 0, "KWD": 3}
_SHOWN = 5


@dataclass(frozen=True)
class Bill:
    """What an order, an invoice or a credit note must have.

    Attributes:
        units: By product; only those of products that the shop has.
    """

    customer: str
    currency: str
    total: Decimal
    units: frozenset[tuple[str, Decimal]]


class OrderSums:
    """Adds up one order in one currency, as Shopify documents its fields."""

    def __init__(self, order: Row, which: int) -> None:
        self._order, self._which = order, which
        self.currency = order["currencies"][which]
        self._unit = Decimal(1).scaleb(-_DECIMALS.get(self.currency, 2))
        self._rate, self._included = Decimal(order["tax_rate"]), order["taxes_included"]
        self._lines = {line["id"]: line for line in order["lines"]}

    def _amount(self, pair: list[str]) -> Decimal:
        return Decimal(pair[self._which])

    def _round(self, amount: Decimal) -> Decimal:
        return amount.quantize(self._unit, ROUND_HALF_UP)

    def _tax(self, amount: Decimal, *, taxed: bool = True) -> Decimal:
        """The tax that is added to *amount*."""
        return self._round(amount * self._rate) if taxed and not self._included else Decimal(0)

    def _part(self, line: Row, units: int) -> Decimal:
        """Net price and added tax of some units of a line."""
        price = line["quantity"] * self._amount(line["price"]) - sum(map(self._amount, line["discounts"]))
        share = Decimal(units) / line["quantity"]
        tax = self._tax(price, taxed=not line["gift_card"])
        return self._round(price * share) + self._round(tax * share)

    def _shipping(self, *, now: bool) -> Decimal:
        whole = Decimal(0)
        for price, refunded in self._order["shipping"]:
            amount = self._amount(price) - (self._amount(refunded) if now else 0)
            whole += amount + self._tax(amount)
        return whole + self._amount(self._order["tip"])

    @property
    def now(self) -> Decimal:
        """What is left of the order."""
        lines = self._lines.values()
        left = sum((self._part(line, line["quantity"] - line["removed"]) for line in lines), Decimal(0))
        return left + self._shipping(now=True)

    @property
    def charged(self) -> Decimal:
        """What the buyer was charged: the order as it was placed, or what is left and what was taken back."""
        back = self._returned()
        if all(line["removed"] == back[name] for name, line in self._lines.items()):
            placed = sum((self._part(line, line["quantity"]) for line in self._lines.values()), Decimal(0))
            return placed + self._shipping(now=False)
        return self.now + sum(map(self._value, self.refunds()))

    def _value(self, refund: Row) -> Decimal:
        """What units and shipping of a refund are worth, whether all of it was paid or not."""
        units = sum((self._part(self._lines[name], number) for name, number in refund["lines"]), Decimal(0))
        shipping = [self._amount(pair) for pair in refund["shipping"]]
        return units + sum((amount + self._tax(amount) for amount in shipping), Decimal(0))

    def refunds(self) -> list[Row]:
        """Those that paid something back."""
        return [refund for refund in self._order["refunds"] if self.paid_back(refund)]

    def paid_back(self, refund: Row) -> Decimal:
        return sum(map(self._amount, refund["paid"]), Decimal(0))

    def _returned(self) -> Counter[str]:
        back: Counter[str] = Counter()
        for refund in self.refunds():
            for name, units in refund["lines"]:
                back[name] += units
        return back

    @property
    def is_paid(self) -> bool:
        """Whether all was received, or something paid back."""
        received = sum((self._amount(pair) for kind, pair in self._order["payments"] if kind != "AUTHORIZATION"), -0)
        refunded = sum((self._amount(pair) for kind, pair in self._order["payments"] if kind == "REFUND"), -0)
        placed = sum((self._part(line, line["quantity"]) for line in self._lines.values()), Decimal(0))
        return bool(refunded) or received - refunded >= placed + self._shipping(now=False)

    @property
    def is_left_without_units(self) -> bool:
        return bool(self._lines) and all(line["quantity"] == line["removed"] for line in self._lines.values())

    # ---- what the platform must have

    def order(self) -> Bill:
        return self._bill(self.now, {name: line["quantity"] - line["removed"] for name, line in self._lines.items()})

    def invoice(self) -> Bill:
        back = self._returned()
        units = {name: line["quantity"] - line["removed"] + back[name] for name, line in self._lines.items()}
        return self._bill(self.charged, units)

    def credit_note(self, refund: Row) -> Bill:
        units: Counter[str] = Counter()
        for name, number in refund["lines"]:
            units[name] -= number
        return self._bill(-self.paid_back(refund), units)

    def _bill(self, total: Decimal, units: Mapping[str, int]) -> Bill:
        found: Counter[str] = Counter()
        for name, number in units.items():
            line = self._lines[name]
            if line["variant"] is not None and not line["gift_card"]:
                found[f"{CONNECTION}:{line['variant']}"] += number
        return Bill(customer_of(self._order), self.currency, total, _units(found))


def _units(found: Mapping[str, int | Decimal]) -> frozenset[tuple[str, Decimal]]:
    return frozenset((name, Decimal(number)) for name, number in found.items() if number)


def customer_of(order: Row) -> str:
    """The key of the customer, or of the guest with this e-mail address."""
    if order["customer"]:
        return f"{CONNECTION}:{order['customer']}"
    email = (order["email"] or "").strip().casefold()
    return f"{CONNECTION}:guest-{hashlib.sha256(email.encode()).hexdigest()[:32]}" if email else f"{CONNECTION}:guest"


class Held:
    """What the platform has: the last body of each record, by resource and id; each was created once."""

    def __init__(self, effects: Iterable[Row]) -> None:
        self._bodies: dict[str, dict[str, Row]] = {}
        self.twice: list[str] = []
        for effect in effects:
            of_kind = self._bodies.setdefault(effect["resource"], {})
            if (effect["operation"] == "update") != (effect["id"] in of_kind):
                self.twice.append(f"{effect['resource']} {effect['id']} was made twice, or changed before it was made")
            of_kind[effect["id"]] = effect["body"]

    def of(self, resource: str) -> Iterator[Row]:
        yield from self._bodies.get(resource, {}).values()

    def external(self, resource: str, identity: str) -> str:
        return str(self._bodies[resource][identity]["externalId"])

    def bill(self, body: Row) -> Bill:
        total, units = Decimal(0), Counter[str]()
        for line in body["items"]:
            quantity, name = Decimal(line["quantity"]), self.external("product", line["productId"])
            total += quantity * Decimal(line["unitPrice"])
            if not name.startswith(f"{CONNECTION}:charge-"):
                units[name] += quantity  # type: ignore[assignment]  # exact quantities, which typeshed has as int
        return Bill(self.external("customer", body["customerId"]), body["currency"], total, _units(units))


def faults(shop: Row, effects: Iterable[Row], which: int) -> list[str]:
    """What differs; empty if nothing does. *which* currency: 0 for the shop's, 1 for the buyer's."""
    held = Held(effects)
    orders = [order for order in shop["orders"] if not order["test"]]
    sums = [OrderSums(order, which) for order in orders]
    due = [each for each in sums if each.is_paid]
    credited = [each.credit_note(refund) for each in sums for refund in each.refunds()]
    compared: dict[str, tuple[Counter[Any], Counter[Any]]] = {
        "orders": (
            Counter(
                (f"{CONNECTION}:{order['id']}", each.order(), _status(order, each), tuple(sorted(order["parcels"])))
                for order, each in zip(orders, sums, strict=True)
            ),
            Counter((body["externalId"], held.bill(body), body["status"], _parcels(body)) for body in held.of("order")),
        ),
        "invoices and credit notes": (
            Counter([*(each.invoice() for each in due), *credited]),
            Counter(held.bill(body) for body in held.of("invoice")),
        ),
        "customers": (
            Counter({f"{CONNECTION}:{each['id']}" for each in shop["customers"]} | set(map(customer_of, orders))),
            Counter(body["externalId"] for body in held.of("customer")),
        ),
        "products": (
            Counter(
                (f"{CONNECTION}:{each['id']}", Decimal(each["price"]), each["active"]) for each in shop["variants"]
            ),
            Counter(
                (body["externalId"], Decimal(body["unitPrice"]), body["active"])
                for body in held.of("product")
                if not body["externalId"].startswith(f"{CONNECTION}:charge-")
            ),
        ),
        "stock": (
            Counter(
                (f"{CONNECTION}:{each['item']}-{each['location']}", f"{CONNECTION}:{each['variant']}", each["on_hand"])
                for each in shop["levels"]
            ),
            Counter(
                (body["externalId"], held.external("product", body["productId"]), int(Decimal(body["quantity"])))
                for body in held.of("inventory_lot")
            ),
        ),
    }
    return held.twice + [
        f"{what}: missing or wrong {_some(wanted - found)}, found {_some(found - wanted)}"
        for what, (wanted, found) in compared.items()
        if wanted != found
    ]


def _status(order: Row, sums: OrderSums) -> str:
    """An order of which all units were refunded before they left is not to be shipped any more."""
    status = STATUSES[order["fulfillment_status"]]
    return "cancelled" if order["cancelled"] or (status == "open" and sums.is_left_without_units) else status


def _parcels(body: Row) -> tuple[str, ...]:
    return tuple(sorted(parcel["number"] for parcel in body.get("tracking") or ()))


def _some(records: Counter[Any]) -> str:
    return f"{records.total()}, such as {[*records.items()][:_SHOWN]}"


def main() -> int:
    shop, effects, currency = sys.argv[1:]
    found = faults(
        json.loads(Path(shop).read_text()),
        json.loads(Path(effects).read_text()),
        ("shop", "presentment").index(currency),
    )
    sys.stdout.writelines(f"{each}\n" for each in found)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
