"""Lists of a Shopify shop while it changes: no order is lost, and none stays as it was, whatever the clocks say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from tests.chaos.shop_dump import dump
from tests.chaos.shop_judge import faults
from tests.partners.shop_stage import ShopifyStage, shopify_stage
from tests.partners.shopify.order_lines import Line
from tests.partners.shopify.orders import Order
from tests.partners.shopify.site import Site

from crossdock.sandbox import SandboxServer, SandboxSettings
from crossdock.testing import ManualClock

UNPACED = SandboxSettings(rate_per_min=600_000, burst=100_000)
AUTUMN = datetime(2026, 10, 25, 0, tzinfo=UTC)
"""In Berlin the hour from 02:00 to 03:00 is repeated: from 00:00 to 02:00 UTC."""
MANY = 1
"""Multiplies the orders of a shop; tests/long has more."""
_RESOURCES = ("customer", "product", "inventory_lot", "order", "invoice")
Opened = Callable[..., AbstractContextManager[ShopifyStage]]


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[SandboxServer]:
    with SandboxServer(tmp_path / "sandbox", UNPACED) as sandbox:
        yield sandbox


def pages(folder: Path, sandbox: SandboxServer, site: Site) -> AbstractContextManager[ShopifyStage]:
    """A stage that reads five orders at a time, and no bulk operation."""
    return shopify_stage(folder, sandbox, site, page_size=5, bulk=False)


def placed(site: Site, number: int, *, apart_s: float = 60) -> list[Order]:
    """Orders one after the other."""
    orders = []
    for _ in range(number):
        site.clock.advance(apart_s)
        orders.append(site.shop.orders.place(Line(site.lamp, 2), email="ann@example.com", shipping=site.lamp.price))
    return orders


def ship(site: Site, order: Order) -> None:
    site.shop.shipments.ship(order.fulfillment_orders[0], company="UPS", number=f"1Z{order.number}")


def differences(stage: ShopifyStage) -> list[str]:
    """What the platform has otherwise than the shop."""
    effects = [effect for resource in _RESOURCES for effect in stage.effects(resource)]
    return faults(dump(stage.site.shop), effects, 0)


def synced(stage: ShopifyStage, *streams: str) -> int:
    """The number of orders that a sync without any error has read."""
    report = stage.sync(*streams)
    assert (report.exit_code, report.balanced) == (0, True), (report.errors, report.notes, stage.dead_letters())
    return report.tallies["shop.orders"].rows_read


class SkewedClock(ManualClock):
    """The clock of a machine beside that of the shop, so many seconds ahead."""

    def __init__(self, shop: ManualClock, ahead_s: float) -> None:
        super().__init__()
        self._shop, self._ahead = shop, timedelta(seconds=ahead_s)

    def now(self) -> datetime:
        return self._shop.now() + self._ahead

    def monotonic(self) -> float:
        return self._shop.monotonic()

    def sleep(self, seconds: float) -> None:
        self._shop.sleep(seconds)


@pytest.mark.nightly(but=["0"])
@pytest.mark.parametrize("seed", range(2))
def test_orders_that_change_while_they_are_listed_are_read_as_they_are(
    tmp_path: Path, sandbox: SandboxServer, seed: int
) -> None:
    """While every page is requested, orders ship and are placed; after the next run both sides agree."""
    orders_that_change_are_read(tmp_path, sandbox, seed)


def orders_that_change_are_read(tmp_path: Path, sandbox: SandboxServer, seed: int) -> None:
    site, random = Site(), Random(seed)
    orders = placed(site, 20 * MANY)
    site.clock.advance(3_600)

    def change(_: int) -> None:
        site.clock.advance(random.choice((0, 0.3, 20)))
        order = random.choice(orders)
        if order.fulfillment_orders[0].remaining:
            ship(site, order)
        orders.extend(placed(site, random.randrange(2), apart_s=0))

    with pages(tmp_path, sandbox, site) as stage:
        stage.watched.before = change
        synced(stage)
        stage.watched.before = lambda _: None
        site.clock.advance(3_600)
        synced(stage)
        assert differences(stage) == []


@pytest.mark.nightly
def test_orders_of_one_instant_on_several_pages_are_all_read(tmp_path: Path, sandbox: SandboxServer) -> None:
    """Orders that changed at the same microsecond fill several pages, in a first run and in a later one."""
    site, number = Site(), 11 * MANY
    orders = placed(site, number, apart_s=0)
    with pages(tmp_path, sandbox, site) as stage:
        site.clock.advance(3_600)
        assert synced(stage) == number
        assert stage.watched.asked.count("orders") == number // 5 + 1
        site.clock.advance(3_600)
        for order in orders:
            ship(site, order)
        site.clock.advance(3_600)
        assert synced(stage) == number
        assert differences(stage) == []


@pytest.mark.nightly
@pytest.mark.parametrize("ahead_s", [300, -300])
def test_a_clock_that_is_wrong_by_five_minutes_loses_nothing(
    tmp_path: Path, sandbox: SandboxServer, ahead_s: int
) -> None:
    """Orders that change just before, while and just after a run are as the shop has them after the next one."""
    site = Site()
    before, *meanwhile = placed(site, 8)

    def change(_: int) -> None:
        if meanwhile:
            ship(site, meanwhile.pop())

    with pages(tmp_path, sandbox, site) as stage:
        stage.clock = SkewedClock(site.clock, ahead_s)
        synced(stage)
        ship(site, before)
        stage.watched.before = change
        synced(stage)
        site.clock.advance(0.5)
        placed(site, 1, apart_s=0)
        site.clock.advance(1)
        synced(stage)
        assert differences(stage) == []


def test_changes_that_the_search_shows_late_are_read(tmp_path: Path, sandbox: SandboxServer) -> None:
    """The shop's search shows one change after five minutes, and a later one before it; both arrive."""
    site = Site()
    slow, quick = placed(site, 2)
    site.clock.advance(3_600)
    with pages(tmp_path, sandbox, site) as stage:
        synced(stage)
        site.clock.advance(3_600)
        site.shop.records.search_lag = timedelta(minutes=5)
        ship(site, slow)
        site.clock.advance(10)
        site.shop.records.search_lag = timedelta(0)
        ship(site, quick)
        site.clock.advance(1)
        synced(stage)
        assert len(differences(stage)) == 1
        site.clock.advance(300)
        synced(stage)
        assert differences(stage) == []


def test_a_list_is_read_on_when_its_cursor_expires(tmp_path: Path, sandbox: SandboxServer) -> None:
    """Cursors live for a minute, and each second page comes later; every order is read."""
    site = Site(cursor_life=timedelta(minutes=1))
    placed(site, 15 * MANY)
    site.clock.advance(3_600)
    with pages(tmp_path, sandbox, site) as stage:
        stage.watched.before = lambda number: site.clock.advance(61 * (number % 2))
        synced(stage)
        assert stage.watched.asked.count("orders") > 3 * MANY
        assert differences(stage) == []


def test_an_order_that_changes_before_the_cursor_expires_does_not_hide_others(
    tmp_path: Path, sandbox: SandboxServer
) -> None:
    """All of a page change just before it is listed at their old places; the list is not read on from those changes."""
    site = Site(cursor_life=timedelta(minutes=1))
    orders = placed(site, 20)
    site.clock.advance(3_600)

    def change(number: int) -> None:
        if stage.watched.asked.count("orders") == 2 and stage.watched.asked[-1] == "orders":
            site.shop.records.search_lag = timedelta(minutes=5)
            for order in orders[5:10]:
                ship(site, order)
        elif stage.watched.asked.count("orders") == 3:
            site.clock.advance(61)

    with pages(tmp_path, sandbox, site) as stage:
        stage.watched.before = change
        synced(stage, "shop.products", "shop.customers", "shop.orders")
        assert len(stage.stored("order")) == 20


@pytest.mark.nightly
def test_cursors_that_expire_at_once_end_the_stream_with_a_reason(tmp_path: Path, sandbox: SandboxServer) -> None:
    """A list of one instant cannot be read on without its cursor: the run ends, and says what the shop said."""
    site = Site(cursor_life=timedelta(seconds=1))
    placed(site, 12, apart_s=0)
    site.clock.advance(3_600)
    with pages(tmp_path, sandbox, site) as stage:
        stage.watched.before = lambda _: site.clock.advance(2)
        report = stage.sync()
        reason = "answered with GraphQL errors: Invalid cursor for current pagination sort."
        assert str(report.errors["shop.orders"]).endswith(reason)
        assert stage.stored("order") == {}
        stage.watched.before = lambda _: None
        assert synced(stage) == 12


@pytest.mark.nightly
def test_times_in_the_repeated_hour_of_autumn_are_instants(tmp_path: Path, sandbox: SandboxServer) -> None:
    """Answers with the shop's own offsets, cursors that expire, and the clocks set back meanwhile: all is read."""
    site, zone = Site(cursor_life=timedelta(minutes=1)), ZoneInfo("Europe/Berlin")
    site.clock.advance((AUTUMN - site.clock.now()).total_seconds())
    orders = placed(site, 12 * MANY, apart_s=600 / MANY)

    def local(_: str, body: Any) -> Any:
        """*body* with the shop's offset in place of UTC in each time of a record."""
        if isinstance(body, dict):
            return {name: local(name, value) for name, value in body.items()}
        if isinstance(body, list):
            return [local("", value) for value in body]
        if isinstance(body, str) and len(body) == 20 and body.endswith("Z"):
            return datetime.fromisoformat(body).astimezone(zone).isoformat()
        return body

    with pages(tmp_path, sandbox, site) as stage:
        stage.watched.changed = local
        stage.watched.before = lambda number: site.clock.advance(61 * (number % 2))
        synced(stage)
        for order in orders[::3]:
            site.clock.advance(60)
            ship(site, order)
        site.clock.advance(3_600)
        synced(stage)
        assert differences(stage) == []
        at = {body["externalId"]: datetime.fromisoformat(body["placedAt"]) for body in stage.stored("order").values()}
        assert at == {f"shop:{order.legacy_resource_id}": order.processed_at for order in orders}
