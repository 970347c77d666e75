"""Both sides change the same records, against a sequential model: no change is lost, and none goes round in circles.

The 3PL owns the currency of an order, the platform its address. One stream writes each of them to the other side.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Any

import pytest
from tests.chaos.chance import chaos_seed
from tests.integration.platform_source.reading import Reading, reading
from tests.partners.partner_server import Fault, PartnerServer, serving
from tests.partners.plain_3pl import API_KEY, Plain3pl
from tests.partners.plain_3pl_habits import Habits
from tests.unit.cli.conftest import CommandLine

from crossdock.client import Customer, Product
from crossdock.resources import ShippingAddress
from crossdock.runs import sync_and_replay
from crossdock.testing.sandbox_syncs import write_private_file
from crossdock.values import exact_json
from crossdock.values.run_progress_and_messages import SilentProgress

ADDRESSES = {
    "read": "order",
    "to": "plain.orders",
    "contributes": ["ship_to"],
    "matches": "origin",
    "conflicts": "reject",
    "skip": {"none": {"field": "shippingAddress.city", "empty": True}},
    "map": {"ship_to": {"object": {"city": "shippingAddress.city"}}},
}
ORDERS = {
    "path": "/v1/orders",
    "params": {"owner": "acme", "updated_since": "{since}"},
    "records": "items",
    "mode": "incremental",
    "cursor": {"column": "updated_at", "as": "instant"},
    "key": ["id"],
    "resource": "order",
    "conflicts": "reject",
    "map": {
        "customerId": "customer.code",
        "currency": "currency",
        "placedAt": {"from": "placed_at", "as": "instant"},
        "items": {
            "of": "lines",
            "each": {"productId": "sku", "quantity": {"from": "quantity", "as": "decimal"}, "unitPrice": {"const": 1}},
        },
    },
}
MEMBERS = {
    "owner": {"type": "text", "required": True},
    "ship_to": {"type": "object", "members": {"city": "text"}},
}
RESOURCE = {
    "members": MEMBERS,
    "name": "reference",
    "create": "POST /v1/orders",
    "update": "PATCH /v1/orders/{id}",
    "read": "GET /v1/orders/{id}",
    "idempotency_header": "Idempotency-Key",
    "conditional": True,
}
CURRENCIES = ("EUR", "USD", "GBP", "CHF", "SEK")
CITIES = ("Bergen", "Cork", "Delft", "Esbjerg", "Faro")


class TwoWays:
    """A platform and a 3PL with the same orders.

    Attributes:
        ids: Of the orders at the 3PL.
    """

    def __init__(self, erp: Reading, partner: Plain3pl, server: PartnerServer, random: Random) -> None:
        self.erp, self.partner, self.server, self.random = erp, partner, server, random
        buyer = erp.client.customers.create(Customer(external_id="C", name="Ann Example")).id
        product = erp.client.products.create(Product(external_id="P", sku="P", name="Part")).id
        partner.warehouse.add_product("acme", product)
        self.ids = [partner.warehouse.add_order(self._order(number, buyer, product)) for number in range(6)]
        plain = {
            "kind": "http_json",
            "base_url": server.url,
            "auth": {"kind": "header", "name": "Api-Key", "value": write_private_file(erp.folder / "key", API_KEY)},
            "pagination": {"kind": "cursor_in_body", "path": "next_cursor"},
            "rate": {"per_minute": 600_000, "burst": 10_000},
            "target": {
                "settle_s": 0,
                "retry": {"base_s": Decimal("0.01"), "cap_s": Decimal("0.05")},
                "resources": {"orders": RESOURCE},
            },
            "streams": {"orders": ORDERS},
        }
        erp.configure({"addresses": ADDRESSES}, plain=plain)

    @staticmethod
    def _order(number: int, buyer: str, product: str) -> dict[str, Any]:
        lines = [{"sku": product, "quantity": number + 1}]
        placed = {"customer": {"code": buyer}, "currency": "EUR", "placed_at": "2026-01-01T00:00:00Z"}
        return {"owner": "acme", "reference": f"by hand {number}", "lines": lines, **placed}

    def night(self) -> Counter[str]:
        """A sync; how many records it wrote and rejected."""
        self.erp.clock.advance(3600)
        report = sync_and_replay.sync(
            self.erp.project, [], clock=self.erp.clock, progress=SilentProgress(), interrupt=threading.Event()
        )
        assert report.exit_code in {0, 1}, report.errors
        assert report.balanced
        done = Counter[str]()
        for tally in report.tallies.values():
            done.update({name: tally.records[name] for name in ("created", "updated", "rejected")})
        return done

    # ---- what people change

    def set_there(self, order_id: str, **members: Any) -> None:
        """Somebody changes an order at the 3PL."""
        self.partner.clock.advance(1)
        stored = self.partner.warehouse.tables["orders"][order_id]
        self.partner.warehouse.replace_order(order_id, stored.members | members)

    def set_here(self, order_id: str, **members: Any) -> None:
        """Somebody changes an order on the platform."""
        self.erp.client.orders.update(self.here()[order_id].id, members)

    def there(self) -> dict[str, dict[str, Any]]:
        return {each: stored.members for each, stored in self.partner.warehouse.tables["orders"].items()}

    def here(self) -> dict[str, Any]:
        """The platform's orders, by the id that they have at the 3PL."""
        return {each.external_id.partition(":")[2]: each for each in self.erp.client.orders.list()}

    def conflicts(self) -> set[str]:
        """The orders that are dead letters, each because somebody else has changed its currency."""
        listed = json.loads(CommandLine(self.erp.folder).run("records", "list", "--json").out)
        assert all("somebody else has changed currency" in each["why"] for each in listed), listed
        return {each["key"] for each in listed}

    def agreed(self) -> tuple[dict[str, str], dict[str, str | None]]:
        """The currencies on the platform, and the cities at the 3PL."""
        cities = {each: order.get("ship_to", {}).get("city") for each, order in self.there().items()}
        return {each: order.currency for each, order in self.here().items()}, cities


def address(city: str) -> ShippingAddress:
    return ShippingAddress(line1="1 Quay", city=city, postal_code="1000", country="IE")


@contextmanager
def two_ways(folder: Path, seed: int, faults: Mapping[Fault, float] = MappingProxyType({})) -> Iterator[TwoWays]:
    partner = Plain3pl(Habits(conditional="accepted"))
    server = PartnerServer(partner, faults, seed=seed, chosen=lambda request: request.method != "GET")
    with serving(server), reading(folder) as erp:
        yield TwoWays(erp, partner, server, Random(seed))


def changes_reach_the_other(folder: Path, seed: int, *, nights: int) -> None:
    """Changes come between nights and inside of them; in the end both have what its owner set last."""
    with two_ways(folder, seed, {"lost_answer": 0.2}) as both:
        both.night()
        currencies: dict[str, str] = dict.fromkeys(both.ids, "EUR")
        cities: dict[str, str | None] = dict.fromkeys(both.ids)
        random = both.random

        def change() -> None:
            order_id = random.choice(both.ids)
            if random.random() < 0.5:
                currencies[order_id] = random.choice(CURRENCIES)
                both.set_there(order_id, currency=currencies[order_id])
            else:
                city = cities[order_id] = random.choice(CITIES)
                both.set_here(order_id, shipping_address=address(city))

        for _ in range(nights):
            for _ in range(random.randrange(4)):
                change()
            for _ in range(random.randrange(3)):
                both.partner.meanwhile(lambda _: random.random() < 0.5, change)
            both.night()
        both.server.faults = {}
        both.partner.meanwhile(lambda _: True, change)
        for _ in range(3):
            both.night()
        assert both.agreed() == (currencies, cities)
        assert sum(both.night().values()) == 0


def test_changes_of_both_sides_reach_the_other(tmp_path: Path) -> None:
    """Both have what its owner set last."""
    changes_reach_the_other(tmp_path, chaos_seed(), nights=8)


def not_overwritten(folder: Path, seed: int, *, nights: int) -> None:
    """If the platform changes a currency, the next one of the 3PL is a conflict, until one side agrees again."""
    with two_ways(folder, seed) as both:
        both.night()
        random, happened = both.random, Counter[str]()
        there, here, written = (dict.fromkeys(both.ids, "EUR") for _ in range(3))
        conflicts = set[str]()
        for _ in range(nights):
            before = dict(there)
            for _ in range(3):
                order_id, currency = random.choice(both.ids), random.choice(CURRENCIES)
                if random.random() < 0.3:
                    here[order_id] = currency
                    both.set_here(order_id, currency=currency)
                else:
                    there[order_id] = currency
                    both.set_there(order_id, currency=currency)
            happened += both.night()
            for order_id in both.ids:
                if there[order_id] == before[order_id]:
                    continue
                conflicts.discard(order_id)
                if there[order_id] == written[order_id]:
                    continue
                if here[order_id] in {written[order_id], there[order_id]}:
                    here[order_id] = written[order_id] = there[order_id]
                else:
                    conflicts.add(order_id)
            assert both.agreed()[0] == here
            assert both.conflicts() == conflicts
        assert happened["rejected"], "no conflict was tried"
        assert happened["updated"], "no change was tried"


@pytest.mark.nightly
def test_a_member_of_the_other_owner_is_not_overwritten(tmp_path: Path) -> None:
    """A change by the side that does not own the member is a conflict."""
    not_overwritten(tmp_path, chaos_seed(), nights=8)


WHOLE = {
    "read": "order",
    "to": "plain.orders",
    "map": {
        "owner": {"const": "acme"},
        "currency": "currency",
        "placed_at": {"from": "placedAt", "as": "instant"},
        "customer": {"object": {"code": "customerId"}},
        "lines": {"of": "items", "each": {"sku": "productId", "quantity": {"from": "quantity", "as": "decimal"}}},
    },
}
WHOLE_MEMBERS = {
    "owner": {"type": "text", "required": True},
    "currency": {"type": "text", "required": True},
    "placed_at": "instant",
    "customer": {"type": "object", "members": {"code": "text"}},
    "lines": {"type": "list", "required": True, "members": {"sku": "text", "quantity": "number"}},
}


def test_an_order_of_either_side_is_created_at_the_other_once(tmp_path: Path) -> None:
    """Orders are copied in both directions: what crossdock created is recognized when it is read, and not sent back."""
    with two_ways(tmp_path, chaos_seed()) as both:
        resources = {"orders": RESOURCE | {"members": WHOLE_MEMBERS}}
        plain: dict[str, Any] = exact_json.loads(both.erp.config.read_bytes())["connections"]["plain"]
        plain["target"]["resources"] = resources
        plain["streams"] = {"orders": ORDERS | {"reads": "plain.orders"}}
        both.erp.configure({"orders": WHOLE}, plain=plain)
        (product,) = (each.id for each in both.erp.client.products.list())
        ours = both.erp.order([product], key="ours")
        done = [both.night() for _ in range(3)]
        assert sum((each["created"] for each in done), 0) == len(both.ids) + 1
        assert done[-1] == Counter()
        references = [each["reference"] for each in both.there().values()]
        assert sorted(references) == sorted([f"erp:{ours.id}", *(f"by hand {number}" for number in range(6))])
        assert {each.external_id for each in both.erp.client.orders.list()} == {
            "ours",
            *(f"plain:{n}" for n in both.ids),
        }

        both.set_there(both.ids[0], currency="USD")
        both.erp.client.orders.update(ours.id, {"currency": "CHF"})
        assert both.night()["updated"] == 2
        assert both.night() == Counter()
        copied = next(each for each in both.there().values() if each["reference"] == f"erp:{ours.id}")
        assert (both.here()[both.ids[0]].currency, copied["currency"]) == ("USD", "CHF")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"matches": "origin"}, "matches: origin needs reads"),
        ({"reads": "plain.order"}, "reads: unknown resource; did you mean 'orders'?"),
        ({"reads": "depot.orders"}, "reads: no connection 'depot' is a target"),
        ({"reads": "plain.orders", "key": ["id", "owner"]}, "reads needs a key of one column"),
    ],
)
def test_what_is_read_must_be_a_resource_of_a_target(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    """A config that could not recognize what crossdock wrote is refused."""
    with two_ways(tmp_path, 0) as both:
        document = json.loads(both.erp.config.read_text())
        stream = document["connections"]["plain"]["streams"]["orders"]
        stream |= {"contributes": ["currency"], "map": {"currency": "currency"}, **changes}
        both.erp.config.write_text(json.dumps(document))
        assert message in CommandLine(both.erp.folder).run("plan").err
