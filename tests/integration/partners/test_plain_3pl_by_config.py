"""crossdock reads one owner's records from the fake 3PL with a plain API by a config alone."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.integration.partners.plain_3pl_account import Account
from tests.partners.partner_server import Fault, PartnerServer, serving
from tests.partners.plain_3pl import API_KEY, Plain3pl
from tests.partners.plain_3pl_habits import Habits

from crossdock.config.project import project
from crossdock.runs import sync_and_replay
from crossdock.sandbox import SandboxServer, SandboxSettings
from crossdock.testing import sandbox_effects_comparison
from crossdock.testing.sandbox_syncs import write_private_file
from crossdock.values import exact_json
from crossdock.values.run_progress_and_messages import SilentProgress

pytestmark = pytest.mark.nightly

CONFIG = """
x-changed: &changed
  records: items
  mode: incremental
  params: {owner: acme, limit: 2, updated_since: "{since}"}
  cursor: &cursor {column: updated_at, as: instant, timezone: ZONE}
platform:
  tenant: sandbox
  rate: {per_minute: 600000, burst: 100000}
state: sqlite:///state.db
connections:
  depot:
    kind: http_json
    auth: {kind: header, name: Api-Key}
    pagination: {kind: cursor_in_body, path: next_cursor}
    throttled: [{status: 403, text: retry after}]
    streams:
      products:
        <<: *changed
        path: /v1/products
        key: [sku]
        resource: product
        map: {sku: sku, name: name, unitOfMeasure: unit, active: {from: active, as: boolean}}
      locations:
        <<: *changed
        path: /v1/locations
        key: [code]
        resource: warehouse_bin
        map: {code: code, warehouse: warehouse}
      stock:
        path: /v1/stock
        params: {owner: acme, limit: 2}
        records: items
        mode: snapshot
        key: [sku, lot, location, state]
        resource: inventory_lot
        on_gone: delete
        gone: {at_most_percent: 100, rows_within_percent: 100}
        map:
          productId: {ref: product, key: sku}
          lotNumber: lot
          binId: {ref: warehouse_bin, key: location}
          quantity: {from: quantity, as: decimal}
          unitOfMeasure: unit
          status: state
      buyers:
        <<: *changed
        path: /v1/orders
        key: [customer.code]
        order_by: [*cursor]
        resource: customer
        map: {name: customer.name}
      orders:
        <<: *changed
        path: /v1/orders
        key: [reference]
        resource: order
        map:
          customerId: {ref: customer, key: customer.code}
          currency: currency
          placedAt: {from: placed_at, as: instant}
          status: {from: status, table: {Awaiting: open, PartDespatched: partial, Despatched: done}}
          items:
            of: lines
            each:
              productId: {ref: product, key: sku}
              quantity: {from: quantity, as: decimal}
              unitPrice: {from: unit_price, as: decimal}
      shipments:                                       # each is invoiced
        <<: *changed
        path: /v1/shipments
        key: [id]
        resource: invoice
        map:
          customerId: {ref: customer, key: customer.code}
          currency: currency
          items:
            of: lines
            each:
              productId: {ref: product, key: sku}
              quantity: {from: quantity, as: decimal}
              unitPrice: {from: unit_price, as: decimal}
"""


class Syncs:
    """A fake at work, and a sandbox that is filled from it; both and crossdock share the fake's clock."""

    def __init__(
        self, partner: Plain3pl, depot: PartnerServer, sandbox: SandboxServer, folder: Path, time_format: str = ""
    ) -> None:
        self.partner, self.depot = partner, depot
        config = yaml.safe_load(CONFIG.replace("ZONE", partner.habits.timezone or "UTC"))
        for stream in config["connections"]["depot"]["streams"].values():
            stream.update({"time_format": time_format} if time_format and "cursor" in stream else {})
        key = {"kind": "api_key", "token": write_private_file(folder / "platform-key", sandbox.api_key)}
        config["platform"] |= {"base_url": sandbox.base_url, "auth": key}
        config["connections"]["depot"]["base_url"] = depot.url
        config["connections"]["depot"]["auth"]["value"] = write_private_file(folder / "depot-key", API_KEY)
        (folder / "crossdock.yaml").write_bytes(exact_json.dumps(config))
        self._project = project.load(folder / "crossdock.yaml")
        self._project.create_or_upgrade_state()

    def sync(self, after_s: float = 3600) -> int:
        """Sync *after_s* seconds after the last time; returns the number of operations."""
        self.partner.clock.advance(after_s)
        before = len(self.effects())
        report = sync_and_replay.sync(
            self._project, [], clock=self.partner.clock, progress=SilentProgress(), interrupt=threading.Event()
        )
        assert (report.exit_code, report.balanced) == (0, True), report.errors
        return len(self.effects()) - before

    def effects(self) -> list[dict[str, Any]]:
        return [dict(each) for each in sandbox_effects_comparison.list_effects_of_tenant(self._project.platform)]

    def stored(self) -> dict[str, Counter[Any]]:
        """What the platform has, by resource: its facts without ids."""
        bodies: dict[str, dict[str, Any]] = {}
        for effect in self.effects():
            if effect["operation"] == "delete":
                del bodies[effect["id"]]
            else:
                bodies[effect["id"]] = effect["body"] | {"resource": effect["resource"]}
        found: dict[str, Counter[Any]] = {name: Counter() for name in _FACTS}
        for body in bodies.values():
            found[body["resource"]][_FACTS[body["resource"]](body)] += 1
        return found


def _lines(body: dict[str, Any], price: str) -> tuple[Any, ...]:
    name = "items" if "items" in body else "lines"
    return tuple((line["quantity"], line[price]) for line in body[name])


_FACTS: dict[str, Any] = {
    "product": lambda body: body["sku"],
    "warehouse_bin": lambda body: body["code"],
    "inventory_lot": lambda body: (body["lotNumber"], body["status"], body["quantity"]),
    "customer": lambda body: body["name"],
    "order": lambda body: (body["status"], _lines(body, "unitPrice")),
    "invoice": lambda body: _lines(body, "unitPrice"),
}
_STATUSES = {"Awaiting": "open", "PartDespatched": "partial", "Despatched": "done"}


def expected(account: Account, owner: str) -> dict[str, Counter[Any]]:
    """What the lists of the fake have for *owner*."""
    lists = {name: account.listed(name, owner=owner) for name in account.warehouse.tables}
    return {
        "product": Counter(each["sku"] for each in lists["products"]),
        "warehouse_bin": Counter(each["code"] for each in lists["locations"]),
        "inventory_lot": Counter((each["lot"], each["state"], each["quantity"]) for each in lists["stock"]),
        "customer": Counter({each["customer"]["code"]: each["customer"]["name"] for each in lists["orders"]}.values()),
        "order": Counter((_STATUSES[each["status"]], _lines(each, "unit_price")) for each in lists["orders"]),
        "invoice": Counter(_lines(each, "unit_price") for each in lists["shipments"]),
    }


def filled(account: Account) -> list[str]:
    """Stock, four orders and a shipment of each owner, with other quantities; returns the orders of acme."""
    ids = []
    for owner, factor in (("acme", 1), ("globex", 10)):
        account.warehouse.add_location(owner, "A-01")
        for lot in ("L1", "L2"):
            account.warehouse.receive(owner, "0017", lot, "A-01", 7 * factor)
        account.warehouse.receive(owner, "0018", "L1", "A-01", 7 * factor, state="hold")
        for number in range(4):
            line = {"sku": "0017", "quantity": (number + 1) * factor, "unit_price": Decimal("9.5")}
            about = {"currency": "EUR", "placed_at": "2026-01-01T00:00:00Z", "lines": [line]}
            customer = {"code": f"C{number % 2}", "name": f"{owner} {number % 2}"}
            body = {"owner": owner, "reference": f"SO-{number}", "customer": customer, **about}
            ids.append(account.send("POST", "/orders", body)[1]["id"])
        account.warehouse.ship(ids[-1], {1: factor})
    return ids[:4]


@pytest.mark.nightly(but=["careful"])
@pytest.mark.parametrize(
    ("habits", "faults"),
    [
        (Habits(), {"unavailable": 0.1, "throttled": 0.1}),
        (Habits(errors="in_200", throttling="403_milliseconds", timezone="Europe/Berlin"), {"throttled": 0.2}),
        (Habits(throttling="429_date"), {"throttled": 0.2}),
    ],
    ids=["careful", "awkward", "dates"],
)
def test_one_owners_records_are_read_by_a_config_alone(
    tmp_path: Path, habits: Habits, faults: Mapping[Fault, float]
) -> None:
    """All of them and none of another owner, whatever the habits; a second sync sends nothing; changes follow."""
    account = Account(habits)
    orders = filled(account)
    depot = PartnerServer(account.partner, faults, seed=3)
    limits = SandboxSettings(rate_per_min=600_000, burst=100_000)
    with serving(depot), SandboxServer(tmp_path / "sandbox", limits) as sandbox:
        syncs = Syncs(account.partner, depot, sandbox, tmp_path)
        first = syncs.sync()
        assert syncs.stored() == expected(account, "acme")
        assert first == sum(found.total() for found in syncs.stored().values())
        assert [syncs.sync() for _ in range(2)] == [0, 0]  # the first lists show how many lots there usually are
        account.warehouse.ship(orders[1], {1: 2})
        account.warehouse.ship(orders[2], {1: 1})
        account.warehouse.lose(account.listed("stock", owner="acme")[0]["id"])
        assert syncs.sync() == 6  # two statuses, two shipments, one quantity, one lost lot
        assert syncs.stored() == expected(account, "acme")
    assert {fault for _, fault in depot.requests} == {"none", *faults}


@pytest.mark.nightly
def test_local_times_lose_no_change_while_the_clock_repeats_an_hour(tmp_path: Path) -> None:
    """An API west of UTC that is asked in its local time shows each change of that night."""
    account = Account(Habits(timezone="America/Chicago"))
    account.clock.advance((datetime(2026, 11, 1, 5, 40, tzinfo=UTC) - account.clock.now()).total_seconds())
    orders = filled(account)
    limits = SandboxSettings(rate_per_min=600_000, burst=100_000)
    depot = PartnerServer(account.partner)
    with serving(depot), SandboxServer(tmp_path / "sandbox", limits) as sandbox:
        syncs = Syncs(account.partner, depot, sandbox, tmp_path, "%Y-%m-%dT%H:%M:%S")
        syncs.sync()
        for order in orders[:3]:  # at 01:40, and at 01:10 and 01:40 when the hour is repeated
            account.warehouse.ship(order, {1: 1})
            syncs.sync(900)
            assert syncs.stored() == expected(account, "acme")
            account.clock.advance(900)


def test_a_wait_in_the_text_of_a_refusal_is_obeyed(tmp_path: Path) -> None:
    """After 403 with "retry after 90000 milliseconds", the reader waits so long before it asks again."""
    account = Account(Habits(throttling="403_milliseconds", retry_after_s=Decimal(90)))
    filled(account)
    depot = PartnerServer(account.partner, {"throttled": 0.1}, seed=3)
    limits = SandboxSettings(rate_per_min=600_000, burst=100_000)
    with serving(depot), SandboxServer(tmp_path / "sandbox", limits) as sandbox:
        syncs = Syncs(account.partner, depot, sandbox, tmp_path)
        began = account.clock.now()
        syncs.sync()
        lasted_s = (account.clock.now() - began).total_seconds() - 3600
    refused = sum(fault == "throttled" for _, fault in depot.requests)
    assert refused
    assert lasted_s >= refused * 90
