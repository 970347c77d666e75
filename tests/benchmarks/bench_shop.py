"""How much of Shopify's allowance is used while orders are read in pages, and what a first load by a bulk file costs.

The shop is a fake in this process. Pages are read in virtual time: a wait costs none, and an answer takes none. The
bulk file is read in real time, without the time in which the fake makes it.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random

from tests.benchmarks import results
from tests.chaos.shop_load_orders import Generator, ShopClock
from tests.partners.partner_transport import transport
from tests.partners.shopify.bulk_records import BulkOperation
from tests.partners.shopify.fake_shop import FakeShopify
from tests.partners.shopify.watched import WatchedShop

from crossdock import RawBatch
from crossdock.testing.connector_context_and_reading import context
from crossdock.testing.manual_clock import ManualClock
from crossdock_connectors.shop.shopify import CONNECTOR
from crossdock_connectors.shop.shopify.settings import ShopifySettings
from crossdock_connectors.shop.shopify.shop_reader import ShopifyReader

PAGED = ("orders", "requests", "points", "minutes", "used, % (goal 95)", "throttled (goal 0)")
BULK = ("orders", "MiB", "seconds", "file alone, seconds", "of which refunds, requests")
NOTES = (
    "Used: of the points that the full bucket had and that came back until the last request, 100 each second. "
    "The orders of a first load are written to the run's folder with their refunds; the file alone is parsed line by "
    "line by Python's json. Requests to the fake are executed in the same process, and are part of the seconds."
)


@dataclass(frozen=True)
class Paged:
    """What reading in pages took. *seconds* are virtual."""

    orders: int
    requests: int
    points: int
    seconds: float
    used: float
    throttled: int


@dataclass(frozen=True)
class Loaded:
    """What reading a bulk file took, and parsing the file alone."""

    orders: int
    size: int
    seconds: float
    file_seconds: float
    refund_requests: int


class _Shop:
    """A shop with so many orders, and a stream that reads them."""

    def __init__(self, orders: int) -> None:
        self.clock = ManualClock(datetime(2027, 1, 1, tzinfo=UTC))
        present = ShopClock(self.clock.now)
        self.watched = WatchedShop(FakeShopify(present.now))
        Generator(self.watched.shop, present, Random(1)).fill(orders)

    def read(self, folder: Path, *, bulk: bool) -> int:
        """Read all orders; returns how many there were."""
        (folder / "token").touch(mode=0o600)
        (folder / "token").write_text(self.watched.shop.token)
        settings = {"base_url": "http://localhost", "token": f"file:{folder / 'token'}", "bulk": bulk}
        ctx = context(CONNECTOR, settings, transport=transport(self.watched), folder=folder, clock=self.clock)
        assert isinstance(ctx.settings, ShopifySettings)
        read = [batch.rows for batch in ShopifyReader(ctx.settings).orders(ctx, None) if isinstance(batch, RawBatch)]
        return sum(len(rows) for rows in read if not isinstance(rows, Path))


def paged(folder: Path, orders: int) -> Paged:
    """Read orders in pages, in virtual time."""
    shop = _Shop(orders)
    plan, began = shop.watched.shop.bucket.plan, shop.clock.monotonic()
    number = shop.read(folder, bulk=False)
    seconds = shop.clock.monotonic() - began
    permitted = plan.maximum + plan.restore_rate * seconds
    watched = shop.watched
    return Paged(number, len(watched.asked), watched.points, seconds, watched.points / permitted, watched.throttles)


def loaded(folder: Path, orders: int) -> Loaded:
    """Read orders by a bulk operation; its file is made before the time is taken."""
    shop = _Shop(orders)
    shop.watched.before = lambda _: shop.clock.advance(20)
    shop.read(folder, bulk=True)
    shop.watched.before = lambda _: None
    asked, began = len(shop.watched.asked), time.perf_counter()
    number = shop.read(folder, bulk=True)
    seconds = time.perf_counter() - began
    (operation,) = shop.watched.shop.records.all(BulkOperation)
    file_began = time.perf_counter()
    for line in operation.content.splitlines():
        json.loads(line)
    file_seconds = time.perf_counter() - file_began
    refunds = shop.watched.asked[asked:].count("refunds")
    return Loaded(number, len(operation.content), seconds, file_seconds, refunds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--paged-orders", type=int, default=3_000)
    parser.add_argument("--bulk-orders", type=int, default=20_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        pages = paged(Path(name), given.paged_orders)
    with tempfile.TemporaryDirectory() as name:
        load = loaded(Path(name), given.bulk_orders)
    row = (
        pages.orders, pages.requests, f"{pages.points:,}", f"{pages.seconds / 60:.1f}", f"{100 * pages.used:.1f}",
        pages.throttled,
    )  # fmt: skip
    results.write("Reading a Shopify shop in pages", PAGED, [row])
    figures = f"{load.size / 2**20:.1f}", f"{load.seconds:.1f}", f"{load.file_seconds:.1f}", load.refund_requests
    results.write("First load of a Shopify shop by a bulk file", BULK, [(load.orders, *figures)], NOTES)


if __name__ == "__main__":
    main()
