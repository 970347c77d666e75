"""Orders out to each 3PL: every order is there once, whatever fails on the way; judged by the effects of its fake."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.partners import threepl_vendors as vendors
from tests.partners.amazon_site import MANY
from tests.partners.partner_server import Fault, PartnerRequest, PartnerServer, serving
from tests.partners.threepl_stage import Stage
from tests.partners.threepl_vendors import Vendor
from tests.waiting import eventually

from crossdock.sandbox import SandboxServer, SandboxSettings
from crossdock.testing import ManualClock
from crossdock.values.clock import Clock, SystemClock

UNPACED = SandboxSettings(rate_per_min=600_000, burst=100_000)
ORDERS = {f"SO-{number}": {"LAMP": number % 5 + 1} for number in range(1, 26)}
MORE = {f"MO-{number}": {"LAMP": number % 5 + 1} for number in range(1, 51)}
ONCE = Counter(f"shop:{key}" for key in ORDERS)
NewVendor = Callable[..., Vendor]


VENDORS: list[NewVendor] = [vendors.shipbob_vendor, vendors.amazon_vendor]


@pytest.fixture(params=VENDORS, ids=["shipbob", "amazon_mcf"])
def new_vendor(request: pytest.FixtureRequest) -> NewVendor:
    made: NewVendor = request.param
    return made


def writes(request: PartnerRequest) -> bool:
    return request.method != "GET" and "/auth/" not in request.path


@contextmanager
def staged(
    folder: Path, vendor: Vendor, clock: Clock, faults: dict[Fault, float], chosen: Any = writes, seed: int = 7
) -> Iterator[tuple[Stage, PartnerServer]]:
    """The stage with orders to send; at the end, everything was as the vendor's document says."""
    server = PartnerServer(vendor.partner, faults, seed, chosen)
    with serving(server), SandboxServer(folder / "sandbox", UNPACED) as sandbox:
        depot = vendor.connection(server.url, product_namespace="shop")
        stage = Stage(folder, sandbox, depot, vendor.order, vendor.secrets, clock)
        stage.export_shop(["LAMP"])
        stage.export_orders("1", ORDERS)
        vendor.stocked("LAMP", 10_000)
        yield stage, server
    assert vendor.violations() == []


@pytest.mark.nightly(but=["amazon_mcf"])
def test_every_order_is_there_once_whatever_the_network_does(tmp_path: Path, new_vendor: NewVendor) -> None:
    """Answers are lost, connections are refused, requests are throttled and answered with 503: one order each."""
    every_order_is_there_once(tmp_path, new_vendor, seed=0)


def every_order_is_there_once(folder: Path, new_vendor: NewVendor, seed: int) -> None:
    """Orders reach a 3PL over a network with every fault, chosen by *seed*."""
    clock = ManualClock(datetime(2026, 3, 1, 12, tzinfo=UTC))
    vendor = new_vendor(clock)
    faults: dict[Fault, float] = {"lost_answer": 0.15, "refused": 0.1, "throttled": 0.1, "unavailable": 0.1}
    with staged(folder, vendor, clock, faults, seed=seed) as (stage, server):
        stage.export_orders("2", MORE)
        for _ in range(5):
            report = stage.sync("shop")
            assert report.balanced
            if report.exit_code == 0:
                break
            clock.advance(3600)
        assert report.exit_code == 0, report.errors
        assert {fault for _, fault in server.requests} == {"none", *faults}, "a fault did not happen"
        assert stage.sync("shop").counters.requests == 0
    assert vendor.created() == ONCE + Counter(f"shop:{key}" for key in MORE)


@pytest.mark.nightly
def test_a_killed_sync_is_continued(tmp_path: Path, new_vendor: NewVendor) -> None:
    """After a SIGKILL in the middle of the orders, the next sync sends the rest, and none twice."""
    clock = SystemClock()
    vendor = new_vendor(clock, **({"limits": MANY} if new_vendor is vendors.amazon_vendor else {"limit": 10_000}))
    with staged(tmp_path, vendor, clock, {}) as (stage, _):
        process = stage.process("shop")
        try:
            eventually(lambda: len(vendor.created()) >= 5)
            process.kill()
        finally:
            process.communicate()
        assert 5 <= len(vendor.created()) < len(ORDERS), "it was killed too late"
        stage.clock = ManualClock(datetime.now(UTC))  # the pace of the vendor is not waited for
        report = stage.sync("shop")
        assert (report.exit_code, report.balanced) == (0, True), report.errors
    assert vendor.created() == ONCE


@pytest.mark.nightly(but=["shipbob"])
def test_a_target_that_throttles_is_waited_for(tmp_path: Path, new_vendor: NewVendor) -> None:
    """The vendor's own limit is kept to: without injected faults nothing is refused."""
    clock = ManualClock(datetime(2026, 3, 1, 12, tzinfo=UTC))
    vendor = new_vendor(clock)
    with staged(tmp_path, vendor, clock, {}) as (stage, _):
        report = stage.sync("shop")
        assert (report.exit_code, report.counters.throttled) == (0, 0)
    assert vendor.created() == ONCE


@pytest.mark.nightly(but=["shipbob"])
def test_a_cancelled_order_is_cancelled_there(tmp_path: Path, new_vendor: NewVendor) -> None:
    """An order that the shop marks as cancelled is cancelled once, also if the answer is lost."""
    clock = ManualClock(datetime(2026, 3, 1, 12, tzinfo=UTC))
    vendor = new_vendor(clock)
    lost: list[bool] = []

    def first_cancellation(request: PartnerRequest) -> bool:
        is_first = "cancel" in request.path and not lost
        lost.extend([True] * is_first)
        return is_first

    with staged(tmp_path, vendor, clock, {"lost_answer": 1.0}, first_cancellation) as (stage, _):
        assert stage.sync("shop").exit_code == 0
        clock.advance(3600)
        stage.export_orders("2", {"SO-3": ORDERS["SO-3"]}, state="cancelled")
        report = stage.sync("shop")
        assert (report.exit_code, report.balanced) == (0, True), (report.errors, stage.dead_letters())
        cancelled = [each for each in vendor.partner.effects if each["kind"] == "order_cancelled"]
        assert (len(cancelled), lost) == (1, [True])
        assert stage.sync("shop").counters.requests == 0
    assert vendor.created() == ONCE


@pytest.mark.nightly(but=["shipbob"])
def test_an_order_that_the_3pl_has_cancelled_is_done(tmp_path: Path, new_vendor: NewVendor) -> None:
    """The shop cancels it later: the 3PL refuses that, and shows that it is cancelled, so nothing is left to do."""
    clock = ManualClock(datetime(2026, 3, 1, 12, tzinfo=UTC))
    vendor = new_vendor(clock)
    with staged(tmp_path, vendor, clock, {}) as (stage, _):
        assert stage.sync("shop").exit_code == 0
        vendor.cancel("shop:SO-3")
        clock.advance(3600)
        stage.export_orders("2", {"SO-3": ORDERS["SO-3"]}, state="cancelled")
        report = stage.sync("shop")
        assert (report.exit_code, report.balanced) == (0, True), (report.errors, stage.dead_letters())
        assert sum(each["kind"] == "order_cancelled" for each in vendor.partner.effects) == 1
        assert stage.sync("shop").counters.requests == 0


@pytest.mark.nightly(but=["amazon_mcf"])
def test_a_restored_state_finds_what_was_sent(tmp_path: Path, new_vendor: NewVendor) -> None:
    """With a backup of the state from before the orders, they are looked up by their names, and none is sent again."""
    clock = ManualClock(datetime(2026, 3, 1, 12, tzinfo=UTC))
    vendor = new_vendor(clock)
    with staged(tmp_path, vendor, clock, {}) as (stage, server):
        assert stage.sync("shop.products", "shop.customers").exit_code == 0
        shutil.copy2(tmp_path / "state.db", tmp_path / "backup.db")
        assert stage.sync("shop.orders_out").exit_code == 0
        stage.restore(tmp_path / "backup.db")
        written = sum(writes(request) for request, _ in server.requests)
        report = stage.sync("shop.orders_out")
        assert (report.exit_code, report.balanced) == (0, True), (report.errors, stage.dead_letters())
        assert sum(writes(request) for request, _ in server.requests) == written
    assert vendor.created() == ONCE


def test_what_a_vendor_refuses_is_a_dead_letter_with_its_reason(tmp_path: Path, new_vendor: NewVendor) -> None:
    """An order of a SKU that the vendor does not know is refused alone, in the vendor's words."""
    clock = ManualClock(datetime(2026, 3, 1, 12, tzinfo=UTC))
    vendor = new_vendor(clock)
    with staged(tmp_path, vendor, clock, {}) as (stage, _):
        stage.export_orders("2", {"SO-X": {"NO-SUCH-SKU": 1}})
        report = stage.sync("shop.orders_out")
        assert (report.exit_code, report.balanced) == (1, True)
        ((key, reason),) = stage.dead_letters().items()
        assert key == "shop.orders_out SO-X"
        assert reason.startswith("rejected")
        assert "NO-SUCH-SKU" in reason or "SellerSKU" in reason
    assert vendor.created() == ONCE
