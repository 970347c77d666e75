"""Orders of a shop go to the platform and to a 3PL, and its parcels and stock come back, while everything fails."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import yaml
from tests.chaos import shop_trip_judge
from tests.chaos.killed_syncs import KilledSyncs
from tests.chaos.shop_trip_config import config
from tests.chaos.shop_trip_people import PLACES, ShopPeople, Staff
from tests.e2e import platform_faults
from tests.e2e.project_folder import UNPACED, SandboxProcess
from tests.installed_connector import installed
from tests.partners.partner_server import Fault, PartnerAnswer, PartnerRequest, PartnerServer, serving
from tests.partners.plain_3pl import API_KEY, Plain3pl
from tests.partners.plain_3pl_habits import Habits
from tests.partners.shopify.cost import Plan
from tests.partners.shopify.fake_shop import FakeShopify, Interruption

from crossdock.testing import ManualClock

RICH = Plan(restore_rate=50_000, maximum=100_000)
"""Points of the shop: what they limit is tested elsewhere, and would take an hour here."""
PARTNER_FAULTS: Mapping[Fault, float] = {"lost_answer": 0.05, "refused": 0.03, "throttled": 0.05, "unavailable": 0.02}
PLATFORM_FAULTS = {"lost_answer": 0.03, "error_after_commit": 0.02, "reset_before": 0.02, "throttle": 0.03}
INTERRUPTIONS: tuple[Interruption, ...] = ("internal_error", "internal_error_after", "html", "too_many")
INTERRUPTED = 0.06
LAST = 5  # orders that are shipped while the last sync runs
_UNITS = re.compile(r"\d+ of \d+(, \d+ of \d+)*")
_WRITES = (b"mutation fulfillmentCreate", b"mutation inventorySetQuantities")
_LOOK_UPS = (b"query shipments", b"query stockOf")


def is_of_target(request: PartnerRequest) -> bool:
    """Whether the shop is asked by a target, and not by a stream."""
    return any(text in request.body for text in (*_WRITES, *_LOOK_UPS))


class BusyShop:
    """A shop in which people act between requests, and some requests fail as Shopify's own errors do.

    Attributes:
        interrupted: The share of a target's requests that fail.
        haste: How likely something is done before a request.
        to_do: What buyers and the merchant will do, last first.
    """

    def __init__(self, shop: FakeShopify, random: Random) -> None:
        self.shop, self._random, self.effects = shop, random, shop.effects
        self.interrupted, self.haste = 0.0, 0.3
        self.to_do: list[Any] = []
        self.failed: Counter[str] = Counter()

    def throttled(self) -> PartnerAnswer:
        return self.shop.throttled()

    def answer(self, request: PartnerRequest) -> PartnerAnswer:
        if self.to_do and self._random.random() < self.haste:
            self.to_do.pop()()
        if is_of_target(request) and self._random.random() < self.interrupted:
            kind = self._random.choice(INTERRUPTIONS)
            self.failed[f"shop: {kind}"] += 1
            self.shop.interrupt(kind)
        return self.shop.answer(request)


@dataclass(kw_only=True)
class ShopTrip(KilledSyncs):
    """A shop, a platform, a 3PL, and the project between them."""

    sandbox: SandboxProcess
    shop: FakeShopify
    busy: BusyShop
    shop_server: PartnerServer
    partner: Plain3pl
    partner_server: PartnerServer
    people: ShopPeople = field(init=False)
    staff: Staff = field(init=False)

    def __post_init__(self) -> None:
        self.people = ShopPeople(self.shop, self.random, self.happened)
        self.staff = Staff(self.partner.warehouse, self.random, self.happened)

    def begin(self) -> None:
        """The config and the state."""
        sandbox, locations = self.sandbox, self.people.locations
        ids = {place: str(locations[place].legacy_resource_id) for place in PLACES}
        document = config(sandbox.base_url, sandbox.tenant, self.partner_server.url, self.shop_server.url, ids)
        (self.folder / "c.yaml").write_text(yaml.safe_dump(document))
        self.run("init")

    def night(self, orders: int) -> None:
        """So many orders are placed, changed and shipped, each before some request of the next syncs."""
        todo = [self.people.order] * orders + [self.people.change] * (orders // 10)
        self.random.shuffle(todo)
        self.busy.to_do += todo
        for _ in range(3 * orders):
            self.partner.meanwhile(lambda _: self.random.random() < self.busy.haste, self._work)

    def _work(self) -> None:
        self.partner.clock.advance(self.random.choice((0, 1, 60)))
        if not self.staff.ship() or self.random.random() < 0.1:
            self.staff.receive()

    @contextmanager
    def trouble(self, *, reads: bool) -> Iterator[None]:
        """All sides lose answers, refuse, throttle and fail; *reads*: also when they are read."""
        routes = ("",) if reads else ("POST", "PATCH")
        listed = [
            {"name": name, "probability": share, "route": route}
            for name, share in PLATFORM_FAULTS.items()
            for route in routes
        ]
        platform_faults.set_faults(self.sandbox.base_url, listed, self.random.randrange(10**6))
        self.partner_server.faults = self.shop_server.faults = PARTNER_FAULTS
        self.partner_server.chosen = lambda request: reads or request.method != "GET"
        self.shop_server.chosen = lambda request: reads or is_of_target(request)
        self.busy.interrupted = INTERRUPTED
        try:
            yield
        finally:
            self.partner_server.faults = self.shop_server.faults = {}
            self.busy.interrupted = 0.0
            for name, struck in platform_faults.end_faults(self.sandbox.base_url).items():
                self.happened[f"platform: {name}"] += struck

    # ---- the judge

    def finish(self) -> None:
        """Everybody ends their work. The last parcels leave in the middle of a sync: it reads the stock after them."""
        while self.busy.to_do:
            self.busy.to_do.pop()()
        self.settle()
        while self.staff.open_orders > LAST:
            self._work()
        self.partner.meanwhile(lambda request: request.path == "/v1/stock", self._ship_all)
        for _ in range(4):
            self.settle()

    def _ship_all(self) -> None:
        while self.staff.ship():
            self.partner.clock.advance(1)

    def settle(self) -> None:
        """A night without faults."""
        assert self.sync()["exit"] in {0, 1}

    def judge(self) -> None:
        """All sides agree, and one more sync writes nothing."""
        found = shop_trip_judge.faults(self._sides(), self.letters())
        assert not found, "\n".join(found)
        before = self.written()
        self.settle()
        assert self.written() == before

    def written(self) -> dict[str, int]:
        """The writes that each side received."""
        shop = sum(any(text in each.body for text in _WRITES) for each, _ in self.shop_server.requests)
        partner = sum(each.method != "GET" for each, _ in self.partner_server.requests)
        return {"shop": shop, "3PL": partner, "platform": len(self.sandbox.effects())}

    def letters(self) -> dict[tuple[str, str], tuple[str, str]]:
        """The reason of each record that was not delivered, by stream and key."""
        listed = json.loads(self.run("records", "list", "--json").stdout)
        return {(each["stream"], each["key"]): (each["state"], each["why"]) for each in listed}

    def _sides(self) -> shop_trip_judge.Sides:
        tables = self.partner.warehouse.tables
        levels = {
            (sku, place): level.units["on_hand"]
            for place, location in self.people.locations.items()
            for level in location.inventory_levels
            if (sku := level.item.sku) is not None
        }
        return shop_trip_judge.Sides(
            self.people.placed,
            levels,
            self.sandbox.effects(),
            {str(name): {each: row.members for each, row in rows.items()} for name, rows in tables.items()},
        )

    def told(self) -> str:
        """The figures."""
        servers = {"3PL": self.partner_server, "shop": self.shop_server}
        answered = Counter(
            f"{side}: {fault}" for side, server in servers.items() for _, fault in server.requests if fault != "none"
        )
        writes = {f"writes to the {side}": number for side, number in self.written().items()}
        reasons = Counter(f"{stream}: {_UNITS.sub('units', why)}" for (stream, _), (_, why) in self.letters().items())
        return json.dumps({**writes, **answered, **self.busy.failed, **self.happened, "not delivered": reasons})


@contextmanager
def opened(folder: Path, seed: int) -> Iterator[ShopTrip]:
    """All three at work."""
    random = Random(seed)
    shop = FakeShopify(lambda: datetime.now(UTC), plan=RICH, bulk_takes=timedelta())
    busy = BusyShop(shop, random)
    habits = Habits(
        idempotency_keys=False,
        repeated_reference=422,
        throttling="429_float",
        retry_after_s=Decimal("0.02"),
    )
    partner = Plain3pl(habits, clock=ManualClock(datetime.now(UTC)))
    with (
        serving(PartnerServer(busy, seed=seed)) as shop_server,
        serving(PartnerServer(partner, seed=seed + 1)) as partner_server,
        SandboxProcess(folder / "sandbox", UNPACED) as sandbox,
    ):
        keys = {"CROSSDOCK_API_KEY": sandbox.api_key, "DEPOT_KEY": API_KEY, "SHOP_TOKEN": shop.token}
        trip = ShopTrip(
            folder=folder,
            environment={**keys, **installed(folder / "installed", "hurried_shop", "tests.chaos.hurried_shop")},
            random=random,
            sandbox=sandbox,
            shop=shop,
            busy=busy,
            shop_server=shop_server,
            partner=partner,
            partner_server=partner_server,
        )
        trip.begin()
        yield trip


def shop_trip(folder: Path, *, seed: int, orders: int, nights: int, kills: int, reads: bool) -> str:
    """In each night people order, change and ship, syncs are killed, and one ends among faults.

    Returns:
        What happened, with figures.
    """
    size = -(-orders // nights)
    with opened(folder, seed) as trip:
        for _ in range(nights):
            trip.night(size)
            with trip.trouble(reads=reads):
                for _ in range(kills):
                    trip.struck_somewhere(size)
                trip.sync()
        trip.finish()
        told = f"shop trip, seed {seed}: {trip.told()}"
        trip.judge()
        assert trip.happened["kills"] >= nights * kills // 2, told
        return told
