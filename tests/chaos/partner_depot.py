"""A warehouse on SFTP, the fake 3PL with a plain API, and crossdock between them: invoices become orders of the 3PL."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any, get_args

from tests.chaos.depot import SQLITE, Depot
from tests.chaos.exports import NAMESPACE, Exports, Invoice, ScheduledRun, exact, external_id
from tests.e2e.retail_truth import Holdings, canonical
from tests.installed_connector import installed
from tests.partners.partner_server import Fault, PartnerAnswer, PartnerRequest, PartnerServer, serving
from tests.partners.plain_3pl import API_KEY, Plain3pl
from tests.waiting import eventually

from crossdock.testing.sftp_server import SftpServer

OWNER = "acme"
_OURS = ("owner", "reference", "currency", "customer", "lines")
_NUMBERS = ("quantity", "unit_price")


class OrderExports(Exports):
    """Nights whose invoices become orders; customers and products are not sent."""

    def expect(self, night: ScheduledRun) -> None:
        """Each invoice that is not refused is one order, under a reference of its own."""
        refused = set(night.refused)
        orders = (_order(each) for each in night.invoices if each.number not in refused)
        self.expected.invoices.update(map(canonical, orders))
        self.refused += night.refused

    def _quantity(self) -> str:
        """The 3PL ships more than nothing."""
        return self.random.choice(["1", "2", "12.5", "0.001", str(self.random.randrange(1, 500))])


def _order(invoice: Invoice) -> dict[str, object]:
    lines = [
        {"sku": sku, "quantity": exact(quantity), "unit_price": exact(price)} for sku, quantity, price in invoice.lines
    ]
    head = {"owner": OWNER, "reference": external_id(invoice.number), "currency": invoice.currency}
    return {**head, "customer": {"code": invoice.customer}, "lines": lines}


class _Counted(Plain3pl):
    """A 3PL that counts its answers by status."""

    def __init__(self) -> None:
        super().__init__()
        self.statuses: Counter[str] = Counter()

    def answer(self, request: PartnerRequest) -> PartnerAnswer:
        answer = super().answer(request)
        self.statuses[str(answer.status)] += 1
        return answer


class Witness3pl:
    """What really happened at a 3PL, told as `SandboxProcess` tells it of the platform."""

    tenant, api_key = "acme", "unused"

    def __init__(self, server: PartnerServer, plain: _Counted) -> None:
        self.server, self._plain = server, plain

    @property
    def base_url(self) -> str:
        return self.server.url

    def stock(self, night: ScheduledRun) -> None:
        """Register the products of a night."""
        warehouse = self._plain.warehouse
        for sku in {sku for each in night.invoices for sku, _, _ in each.lines}:
            if not warehouse.has_product(OWNER, sku):
                warehouse.add_product(OWNER, sku)

    def settle(self) -> None:
        """Wait until what had come in is answered, when whoever sent it is gone."""
        eventually(lambda: self.server.answering == 0)

    def by_status(self) -> Mapping[str, int]:
        return self._plain.statuses

    def request_log(self, after: int) -> list[dict[str, Any]]:
        keys = [request.headers.get("idempotency-key", "") for request, _ in self.server.requests[after:]]
        return [{"seq": number, "idempotencyKey": key} for number, key in enumerate(keys, after + 1)]

    def effects(self) -> list[dict[str, Any]]:
        """The effects, oldest first; all of them are creates."""
        assert {effect["kind"] for effect in self._plain.effects} <= {"order_created"}
        told = {"operation": "create", "resource": "order", "idempotencyKey": ""}
        effects = enumerate(self._plain.effects, 1)
        return [{"seq": number, "id": each["id"], "body": _as_sent(each["body"]), **told} for number, each in effects]

    def has_effects(self, number: int) -> bool:
        return len(self._plain.effects) >= number

    def holdings(self) -> Holdings:
        """The orders that are stored, as they were sent."""
        orders = [order.members for order in self._plain.warehouse.tables["orders"].values()]
        return Holdings(invoices=Counter(canonical(_as_sent(order)) for order in orders))


class PartnerDepot(Depot):
    """A folder whose config sends invoices to a 3PL."""

    def __init__(self, folder: Path, witness: Witness3pl, *args: Any, **more: Any) -> None:
        self._witness = witness
        self._installed = installed(folder / "packages", "chaos_orders", "tests.chaos.order_target")
        super().__init__(folder, witness, *args, **more)

    def configure(self, config: dict[str, Any], in_flight: int, base_url: str) -> None:
        """Replace the platform by the 3PL, as the target of the only stream."""
        wms = config["connections"][NAMESPACE]
        invoices = {name: value for name, value in wms["streams"]["invoices"].items() if name != "resource"}
        lines = {"sku": "SKU", "quantity": _decimal("QTY"), "unit_price": _decimal("PRICE")}
        invoices["to"] = "plain.orders"
        invoices["map"] = {
            "owner": {"const": OWNER},
            "currency": "CURRENCY",
            "customer": {"object": {"code": "CUSTNO"}},
            "lines": {"each": lines},
        }
        wms["streams"] = {"invoices": invoices}
        config["platform"]["base_url"] = "http://127.0.0.1:9"  # no stream writes to it
        plain = {"kind": "chaos_orders", "base_url": base_url, "key": "env:PLAIN_KEY", "in_flight": in_flight}
        config["connections"]["plain"] = plain

    def export(self, night: ScheduledRun, name: str = "") -> None:
        """As for the platform; the 3PL knows the products."""
        self._witness.stock(night)
        super().export(night, name)

    def environment(self) -> dict[str, str]:
        return {**super().environment(), **self._installed, "PLAIN_KEY": API_KEY}

    def set_faults(self, rates: Mapping[str, float], seed: int, **more: int) -> None:
        """From now on every write meets these faults of a `PartnerServer`; it has none of *more*."""
        self._begin = len(self._witness.server.requests)
        self._witness.server.faults = {fault: rates[fault] for fault in get_args(Fault) if fault in rates}

    def end_faults(self) -> Counter[str]:
        """No more faults; returns how often each struck."""
        self._witness.server.faults = {}
        struck = Counter(fault for _, fault in self._witness.server.requests[self._begin :])
        del struck["none"]
        return Counter[str](struck)


def _decimal(column: str) -> dict[str, str]:
    return {"from": column, "as": "decimal"}


@contextmanager
def open_3pl(folder: Path) -> Iterator[Witness3pl]:
    """An empty 3PL that no limit holds back."""
    plain = _Counted()
    with serving(PartnerServer(plain, chosen=lambda request: request.method != "GET")) as server:
        yield Witness3pl(server, plain)


@contextmanager
def open_partner_depot(
    folder: Path, witness: Witness3pl, *, in_flight: int, state: str = SQLITE, base_url: str = ""
) -> Iterator[PartnerDepot]:
    """As `open_depot`, before a 3PL."""
    served = folder / "served"
    (served / "out").mkdir(parents=True)
    with SftpServer(served) as sftp:
        yield PartnerDepot(
            folder, witness, sftp, in_flight=in_flight, state=state, base_url=base_url or witness.base_url
        )


def _as_sent(order: Mapping[str, Any]) -> dict[str, Any]:
    """An order without what the 3PL adds; its numbers are decimals, as in `OrderExports.expected`."""
    lines = [{"sku": line["sku"], **{name: Decimal(line[name]) for name in _NUMBERS}} for line in order["lines"]]
    return {**{name: order[name] for name in _OURS}, "lines": lines}
