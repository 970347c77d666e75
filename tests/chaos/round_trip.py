"""Orders of the platform go to a 3PL, and its work comes back, while processes are killed and answers are lost."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import yaml
from tests.chaos.killed_syncs import KilledSyncs
from tests.chaos.round_trip_config import config
from tests.chaos.round_trip_judge import faults
from tests.e2e import platform_faults
from tests.e2e.order_depot import HEADERS, REPEATED
from tests.e2e.project_folder import UNPACED, SandboxProcess
from tests.partners.partner_server import Fault, PartnerServer, serving
from tests.partners.plain_3pl import API_KEY, Plain3pl
from tests.partners.plain_3pl_habits import Habits
from tests.partners.plain_3pl_warehouse import Stored

from crossdock.client import Client, Customer, Line, Order, Product
from crossdock.runs.planning.binding_csv import COLUMNS

SKUS = ("0017", "0018", "0019")
PARTNER_FAULTS: Mapping[Fault, float] = {"lost_answer": 0.05, "refused": 0.03, "throttled": 0.05, "unavailable": 0.02}
PLATFORM_FAULTS = {"lost_answer": 0.05, "error_after_commit": 0.02, "reset_before": 0.02, "throttle": 0.03}
WRITES = ("POST", "PATCH")


@dataclass(kw_only=True)
class RoundTrip(KilledSyncs):
    """A platform, a 3PL, and the project between them.

    Attributes:
        orders: Ids of the platform's orders.
        edited: Those of which the platform changes quantities; the warehouse leaves them alone.
        haste: How likely the warehouse does each thing that is left to do, before a request.
    """

    sandbox: SandboxProcess
    client: Client
    partner: Plain3pl
    server: PartnerServer
    orders: list[str] = field(default_factory=list)
    edited: list[str] = field(default_factory=list)
    haste: float = 0.3

    def begin(self, resource: Mapping[str, Any]) -> None:
        """Products, a customer, stock, the config and the state."""
        document = config(self.sandbox.base_url, self.sandbox.tenant, self.server.url, dict(resource))
        (self.folder / "c.yaml").write_text(yaml.safe_dump(document))
        self.run("init")
        self.buyer = self.client.customers.create(Customer(external_id="C-1", name="Ann Example")).id
        self.products = {sku: self._product(sku) for sku in SKUS}
        rows = [("platform", "product", "plain", sku, self.products[sku]) for sku in SKUS]
        with (self.folder / "bindings.csv").open("w", newline="") as file:
            csv.writer(file).writerows([COLUMNS, *rows])
        self.run("bindings", "import", str(self.folder / "bindings.csv"))
        for place in ("A-01", "B-02"):
            self.partner.warehouse.add_location("acme", place)
        for owner, reference in (("acme", "by telephone"), ("globex", f"erp:{self.buyer}")):
            self._ship_for_others(owner, reference)

    def _ship_for_others(self, owner: str, reference: str) -> None:
        """An order that did not come from the platform, so that lists of shipments are never empty."""
        warehouse = self.partner.warehouse
        warehouse.receive(owner, SKUS[0], "L0", "A-01", 3)
        lines = [{"sku": SKUS[0], "quantity": 1, "unit_price": 1}]
        warehouse.ship(warehouse.add_order({"owner": owner, "reference": reference, "lines": lines}), {1: 1})

    def _product(self, sku: str) -> str:
        for owner in ("acme", "globex"):
            self.partner.warehouse.add_product(owner, sku)
        return self.client.products.create(Product(external_id=sku, sku=sku, name=f"Part {sku}")).id

    def requested(self) -> tuple[int, int]:
        """The writes that both sides received."""
        there = sum(request.method != "GET" for request, _ in self.server.requests)
        return there, sum(each["method"] in WRITES for each in self._log())

    def _log(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        while page := self.sandbox.request_log(len(found)):
            found += page
        return found

    # ---- what both sides do by themselves

    def place(self, number: int) -> None:
        """Customers place orders."""
        for _ in range(number):
            wanted = self.random.sample(SKUS, self.random.randrange(1, 4))
            lines = tuple(self._line(sku, self.random.randrange(1, 6)) for sku in wanted)
            about: Any = {"currency": "EUR", "placed_at": datetime(2026, 1, 1, tzinfo=UTC)}
            placed = self.client.orders.create(
                Order(external_id=f"O{len(self.orders)}", customer_id=self.buyer, items=lines, **about)
            )
            self.orders.append(placed.id)
            if self.random.random() < 0.2:
                self.edited.append(placed.id)

    def _line(self, sku: str, quantity: int) -> Line:
        return Line(product_id=self.products[sku], quantity=Decimal(quantity), unit_price=Decimal("9.5"))

    def edit(self, number: int) -> None:
        """Customers change quantities."""
        for order_id in self.random.sample(self.edited, min(number, len(self.edited))):
            line = self._line(self.random.choice(SKUS), self.random.randrange(1, 100))
            self.client.orders.update(order_id, {"items": [line.payload()]})

    def work(self, number: int) -> None:
        """The warehouse does so many things, each before some request of the next syncs."""
        for _ in range(number):
            self.partner.meanwhile(lambda _: self.random.random() < self.haste, self._work_once)

    def _work_once(self) -> None:
        warehouse, random = self.partner.warehouse, self.random
        self.partner.clock.advance(random.choice((0, 1, 60)))
        for sku in SKUS:
            place, lot = random.choice(("A-01", "B-02")), f"L{random.randrange(4)}"
            warehouse.receive("acme", sku, lot, place, random.randrange(5, 20))
        left_alone = {f"erp:{each}" for each in self.edited}
        chosen = [
            (order_id, order)
            for order_id, order in warehouse.tables["orders"].items()
            if order.members["reference"] not in left_alone and order.members["status"] in {"new", "part_shipped"}
        ]
        if chosen:
            self.happened[self._serve(*random.choice(chosen))] += 1

    def _serve(self, order_id: str, order: Stored) -> str:
        """Ship, substitute, give up or cancel some of an order; says which."""
        warehouse, random = self.partner.warehouse, self.random
        left = {
            line["line"]: remaining
            for line in order.members["lines"]
            if (remaining := line["quantity"] - line["shipped"] - line["short"])
        }
        line = random.choice(list(left))
        match random.choices(("whole", "part", "substituted", "short", "cancelled"), (5, 3, 1, 1, 1))[0]:
            case "part":
                warehouse.ship(order_id, {line: random.randint(1, left[line])})
                return "partly shipped"
            case "substituted":
                warehouse.substitute(order_id, line, 1, random.choice(SKUS))
                return "substituted"
            case "short":
                warehouse.short(order_id, line, left[line])
                return "short"
            case "cancelled" if warehouse.is_untouched(order_id):
                warehouse.cancel(order_id)
                return "cancelled"
        warehouse.ship(order_id, left)
        return "shipped"

    # ---- trouble

    @contextmanager
    def trouble(self, *, reads: bool) -> Iterator[None]:
        """Both sides lose answers, refuse, throttle and fail; *reads*: also when they are read."""
        routes = ("",) if reads else WRITES
        listed = [
            {"name": name, "probability": share, "route": route}
            for name, share in PLATFORM_FAULTS.items()
            for route in routes
        ]
        platform_faults.set_faults(self.sandbox.base_url, listed, self.random.randrange(10**6))
        self.server.faults = PARTNER_FAULTS
        self.server.chosen = lambda request: reads or request.method != "GET"
        try:
            yield
        finally:
            self.server.faults = {}
            for name, struck in platform_faults.end_faults(self.sandbox.base_url).items():
                self.happened[f"platform: {name}"] += struck

    # ---- the judge

    def converge(self) -> None:
        """As of any trip; the warehouse ends its work in the first sync."""
        self.haste = 1
        super().converge()

    def judge(self) -> None:
        """Both sides agree, and one more sync writes nothing."""
        found = self._differences()
        assert not found, "\n".join(found)
        before = self.requested(), len(self.sandbox.effects()), len(self.partner.effects)
        assert self.sync()["exit"] == 0
        assert (self.requested(), len(self.sandbox.effects()), len(self.partner.effects)) == before

    def _differences(self) -> list[str]:
        tables = self.partner.warehouse.tables
        records = {str(name): {each: row.members for each, row in rows.items()} for name, rows in tables.items()}
        return faults(self.sandbox.effects(), self.partner.effects, records)

    def told(self) -> str:
        """The figures."""
        answered = Counter(f"3PL: {fault}" for _, fault in self.server.requests if fault != "none")
        there, here = self.requested()
        writes = {"orders": len(self.orders), "writes to the 3PL": there, "writes to the platform": here}
        return json.dumps(
            {**writes, "reads of the 3PL": len(self.server.requests) - there, **answered, **self.happened}
        )


@contextmanager
def opened(folder: Path, seed: int, *, negative_stock: bool = False) -> Iterator[RoundTrip]:
    """Both sides at work. With an even *seed* the 3PL refuses a name twice, else it has idempotency keys."""
    unique = seed % 2 == 0
    habits = Habits(
        idempotency_keys=not unique,
        repeated_reference=422 if unique else None,
        throttling="429_float",
        retry_after_s=Decimal("0.02"),
        negative_stock=negative_stock,
    )
    partner = Plain3pl(habits)
    with (
        serving(PartnerServer(partner, seed=seed)) as server,
        SandboxProcess(folder / "sandbox", UNPACED) as sandbox,
        Client(sandbox.base_url, sandbox.tenant, sandbox.api_key) as client,
    ):
        keys = {"CROSSDOCK_API_KEY": sandbox.api_key, "DEPOT_KEY": API_KEY}
        trip = RoundTrip(
            folder=folder,
            environment=keys,
            random=Random(seed),
            sandbox=sandbox,
            client=client,
            partner=partner,
            server=server,
        )
        trip.begin(REPEATED if unique else HEADERS)
        yield trip


def round_trip(folder: Path, *, seed: int, orders: int, nights: int, kills: int, reads: bool) -> str:
    """In each night orders are placed and changed, the warehouse works, syncs are killed, and one ends among faults.

    Returns:
        What happened, with figures.
    """
    size = -(-orders // nights)
    with opened(folder, seed) as trip:
        for _ in range(nights):
            trip.place(size)
            trip.edit(size // 5)
            trip.work(size)
            with trip.trouble(reads=reads):
                for _ in range(kills):
                    trip.struck_somewhere(size)
                trip.sync()
        for _ in range(2):  # the first reads some lists before the warehouse has ended
            trip.converge()
        told = f"round trip, seed {seed}: {trip.told()}"
        trip.judge()
        assert trip.happened["kills"] >= nights * kills // 2, told
        return told
