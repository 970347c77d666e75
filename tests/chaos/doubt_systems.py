"""Targets without idempotency keys for the promise about doubt: the platform, and a 3PL with a plain API."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Protocol

import pytest
from tests.chaos.chance import chaos_seed
from tests.e2e import order_depot, platform_faults, warehouse
from tests.e2e.warehouse import CUSTOMERS, PRODUCTS, Site, open_site
from tests.ended_commands import Done
from tests.partners.partner_server import Fault
from tests.partners.plain_3pl_habits import Habits

from crossdock.sandbox import SandboxServer, SandboxSettings

ORDERS = """\
      orders:
        mode: append
        files: "out/ORD_*"
        format: {kind: delimited, delimiter: ";"}
        key: [INVNO]
        group_by: [INVNO]
        resource: order
        map:
          customerId: {ref: customer, key: CUSTNO}
          currency: CURRENCY
          placedAt: {const: "2026-01-02T03:04:00Z"}
          items:
            each:
              productId: {ref: product, key: SKU}
              quantity: {from: QTY, as: decimal}
              unitPrice: {from: PRICE, as: decimal}
"""


class Doubtful(Protocol):
    """A target, its own account of what happened to it, and a project that sends records to it.

    Attributes:
        stream: Of the records.
        faults: The share of writes with each fault; none of them tells the sender whether the record is there.
    """

    stream: str
    faults: Mapping[str, float]

    def export(self, records: int) -> None:
        """Put so many records into the source, with the keys N0, N1, ..."""

    def begin_faults(self) -> None:
        """From now on the target misbehaves."""

    def end_faults(self) -> Counter[str]:
        """No more faults; returns how often each struck, by the target's own account."""

    def run(self, *arguments: str) -> Done:
        """Run a command."""

    def created(self) -> list[tuple[str, str]]:
        """Key and id of everything that was created, by the target's effects; nothing else happened to a record."""

    def is_whole(self) -> bool:
        """Whether the effects are those of all records, each once, member for member."""


Opener = Callable[..., AbstractContextManager[Doubtful]]


class DoubtfulPlatform:
    """Invoices go to a platform of which nothing can be asked, or orders to one that looks them up by name."""

    faults: Mapping[str, float] = {
        "lost_answer": 0.05,
        "reset_before": 0.05,
        "cut_body": 0.03,
        "error_after_commit": 0.02,
    }

    def __init__(self, site: Site, resource: str) -> None:
        self._site, self._resource, self._text = site, resource, ""
        self.stream = f"wms.{resource}s"

    def export(self, records: int) -> None:
        rows = [f"N{n};C{1 + n % 2};P{1 + n % 2};{n + 1};1.50;EUR" for n in range(records)]
        self._text = "\n".join(["INVNO;CUSTNO;SKU;QTY;PRICE;CURRENCY", *rows, ""])
        self._site.export(f"{'INV' if self._resource == 'invoice' else 'ORD'}_1.csv", self._text)

    def begin_faults(self) -> None:
        route = f"POST {self._resource}"
        faults = [{"name": name, "probability": share, "route": route} for name, share in self.faults.items()]
        platform_faults.set_faults(self._site.platform.base_url, faults, chaos_seed())

    def end_faults(self) -> Counter[str]:
        return platform_faults.end_faults(self._site.platform.base_url)

    def run(self, *arguments: str) -> Done:
        result = self._site.run(*arguments)
        return Done(result.code, result.out, result.err)

    def created(self) -> list[tuple[str, str]]:
        effects = self._site.effects(self._resource)
        assert {effect["operation"] for effect in effects} <= {"create"}
        quantities = [(int(Decimal(each["body"]["items"][0]["quantity"])), each["id"]) for each in effects]
        return [(f"N{quantity - 1}", own_id) for quantity, own_id in quantities]

    def is_whole(self) -> bool:
        return self._site.invoices(self._resource) == warehouse.expected(self._text)


class DoubtfulPartner:
    """Orders go to a 3PL that ignores idempotency keys, and takes another order with a name that it has."""

    stream = "wms.orders"
    faults: Mapping[Fault, float] = {"lost_answer": 0.08, "refused": 0.07}

    def __init__(self, depot: order_depot.Depot) -> None:
        self._depot, self.run = depot, depot.run
        self._orders: dict[str, list[order_depot.Line]] = {}

    def export(self, records: int) -> None:
        self._orders = {f"N{n}": [("0017", str(n + 1), "1.5")] for n in range(records)}
        self._depot.export(self._orders)

    def begin_faults(self) -> None:
        self._depot.server.faults = self.faults

    def end_faults(self) -> Counter[str]:
        self._depot.server.faults = {}
        return Counter[str](fault for _, fault in self._depot.server.requests if fault != "none")

    def created(self) -> list[tuple[str, str]]:
        effects = self._depot.partner.effects
        assert {effect["kind"] for effect in effects} <= {"order_created"}
        return [(each["body"]["reference"].removeprefix("wms:"), each["id"]) for each in effects]

    def is_whole(self) -> bool:
        return self._depot.held() == order_depot.expected(self._orders)


@contextmanager
def platform(folder: Path, *, look_up: bool) -> Iterator[DoubtfulPlatform]:
    """The platform, with the customers and products that the records name; *look_up*: orders, else invoices."""
    settings = SandboxSettings(rate_per_min=600_000, burst=100_000, profile="no-idempotency" if look_up else "bare")
    with (
        SandboxServer(folder / "platform", settings) as server,
        pytest.MonkeyPatch.context() as monkeypatch,
        open_site(folder, server, monkeypatch) as site,
    ):
        site.edit("retry: {attempts: 2, base_s: 0.01, give_up_after_s: 0.1}", "retry: {base_s: 0.01}")
        site.edit("in_flight: 4", "in_flight: 16\n  idempotency: {enabled: false}")
        if not look_up:
            site.edit("lookup: {settle_s: 0.05}", "lookup: {enabled: false}\n  conditional_updates: false")
        site.config.write_text(site.config.read_text() + ORDERS)
        site.init()
        site.export("CUST_1.csv", CUSTOMERS)
        site.export("PROD_1.csv", PRODUCTS)
        assert site.sync().code == 0
        yield DoubtfulPlatform(site, "order" if look_up else "invoice")


@contextmanager
def partner(folder: Path, *, look_up: bool) -> Iterator[DoubtfulPartner]:
    """The 3PL; *look_up*: whether it lists orders by name."""
    habits, resource = Habits(idempotency_keys=False, look_up=look_up), {"look_up": order_depot.LOOK_UP}
    with order_depot.depot(folder, habits, resource if look_up else {}, seed=chaos_seed()) as depot:
        yield DoubtfulPartner(depot)
