"""The first load of a Shopify shop by processes that are killed, and the run after some of its orders have changed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any, Literal

import yaml
from tests.chaos import processes
from tests.chaos.processes import CROSSDOCK
from tests.chaos.shop_dump import dump
from tests.chaos.shop_load_orders import Generator, ShopClock
from tests.e2e.project_folder import UNPACED, SandboxProcess, balance
from tests.ended_commands import Done
from tests.partners.partner_server import PartnerServer, serving
from tests.partners.shop_stage import shopify
from tests.partners.shopify.cost import Plan
from tests.partners.shopify.fake_shop import FakeShopify
from tests.partners.shopify.watched import WatchedShop
from tests.waiting import eventually

Currency = Literal["shop", "presentment"]
JUDGE = Path(__file__).with_name("shop_judge.py")
UNLIMITED = Plan(100_000, 1_000_000)  # where points are not the subject, they must not take time
LOAD_S = 3_600.0


@dataclass
class ShopLoad:
    """A shop, a platform, and the project between them."""

    folder: Path
    watched: WatchedShop
    made: Generator
    server: PartnerServer
    sandbox: SandboxProcess
    currency: Currency
    random: Random
    happened: Counter[str] = field(default_factory=Counter)

    def begin(self) -> None:
        """Write the config and create the state."""
        patient = {"timeout_s": 600, "total_timeout_s": 1_200}  # the fake makes a file while a request waits for it
        document = {
            "platform": {
                "base_url": self.sandbox.base_url,
                "tenant": self.sandbox.tenant,
                "auth": {"kind": "api_key", "token": "env:CROSSDOCK_API_KEY"},
                "rate": {"per_minute": UNPACED.per_minute, "burst": UNPACED.burst},
            },
            "state": f"sqlite:///{self.folder / 'state.db'}",
            "connections": {
                "shop": shopify(
                    self.folder, self.server.url, self.watched.shop.token, currency=self.currency, **patient
                )
            },
        }
        (self.folder / "c.yaml").write_text(yaml.safe_dump(document))
        assert self._finish("init").exit_code == 0

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "CROSSDOCK_API_KEY": self.sandbox.api_key}

    def _finish(self, *arguments: str) -> Done:
        command = [*CROSSDOCK, "-C", str(self.folder / "c.yaml"), *arguments]
        return processes.finish(command, self._environment(), LOAD_S)

    def sync(self, exit_code: int = 0) -> dict[str, Any]:
        """A sync that is not killed; its tally balances."""
        done = self._finish("sync", "--json")
        assert done.exit_code == exit_code, f"{done.stderr}{done.stdout}"
        balance(done.document)
        return done.document

    # ---- kills

    def kill_while_reading(self, requests: int) -> None:
        """A sync that is killed at a request to the shop."""
        command = [*CROSSDOCK, "-C", str(self.folder / "c.yaml"), "sync"]
        process = processes.start(command, self._environment(), self.folder / "out", self.folder / "out")
        last = len(self.watched.asked) + requests

        def strike(number: int) -> None:
            if number == last:
                process.kill()

        self.watched.before = strike
        self._ended(process)
        self.watched.before = lambda _: None

    def kill_while_delivering(self, effects: int) -> None:
        """A sync that is killed once the platform has so many effects."""
        command = [*CROSSDOCK, "-C", str(self.folder / "c.yaml"), "sync"]
        process = processes.start(command, self._environment(), self.folder / "out", self.folder / "out")
        eventually(lambda: process.exitcode is not None or self.sandbox.has_effects(effects), LOAD_S)
        process.kill()
        self._ended(process)

    def _ended(self, process: Any) -> None:
        process.join(LOAD_S)
        said = (self.folder / "out").read_text()
        assert process.exitcode in {0, -signal.SIGKILL}, said
        self.happened["kills" if process.exitcode == -signal.SIGKILL else "ended before the kill"] += 1
        self.sandbox.settle()

    def kill(self, times: int, records: int) -> None:
        """Kill so many syncs of the first load, at random: while they read, and while they deliver."""
        reading = times // 2
        points = sorted(self.random.randrange(1, records) for _ in range(times - reading))
        for number in range(reading):
            self.kill_while_reading(self.random.randrange(1, 12 + number * 3))
        for point in points:
            self.kill_while_delivering(point)

    # ---- the judge

    def judge(self) -> list[dict[str, Any]]:
        """The judge finds nothing; returns the effects."""
        effects = self.sandbox.effects()
        paths = self.folder / "dump.json", self.folder / "effects.json"
        paths[0].write_text(json.dumps(dump(self.watched.shop)))
        paths[1].write_text(json.dumps(effects, default=str))
        command = [sys.executable, "-I", str(JUDGE), *map(str, paths), self.currency]
        judged = subprocess.run(command, capture_output=True, text=True, check=False)
        assert judged.returncode == 0, f"{judged.stdout[:6_000]}{judged.stderr[-3_000:]}"
        return effects


@contextmanager
def opened(folder: Path, seed: int, orders: int, currency: Currency) -> Iterator[ShopLoad]:
    """A shop with so many orders, and an empty platform."""
    folder.mkdir(exist_ok=True)
    clock = ShopClock()
    shop = FakeShopify(clock.now, plan=UNLIMITED, bulk_takes=timedelta(milliseconds=300))
    made = Generator(shop, clock, Random(seed))
    made.fill(orders)
    watched = WatchedShop(shop)
    with (
        serving(PartnerServer(watched)) as server,
        SandboxProcess(folder / "sandbox", UNPACED) as sandbox,
    ):
        load = ShopLoad(folder, watched, made, server, sandbox, currency, Random(seed))
        load.begin()
        yield load


def loaded(folder: Path, *, seed: int, orders: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A shop after a first load, and the effects at the platform, both as the judge reads them."""
    with opened(folder, seed, orders, "shop") as load:
        load.sync()
        effects: list[dict[str, Any]] = json.loads(json.dumps(load.judge(), default=str))
        return dump(load.watched.shop), effects


def shop_load(folder: Path, *, seed: int, orders: int, kills: int, currency: Currency, share: float = 0.01) -> str:
    """A first load with kills, a run after changes, and a run after none; each is judged.

    Returns:
        What happened, with figures.
    """
    with opened(folder, seed, orders, currency) as load:
        lines = sum(len(order.line_items) for order in load.made.placed)
        began = time.monotonic()
        load.kill(kills, orders * 2)
        load.sync()
        loaded_s = time.monotonic() - began
        first = load.judge()
        assert load.happened["kills"] >= kills // 2, load.happened
        figures = {
            "orders": orders, "lines": lines, "currency": currency, **load.happened,
            "requests": len(load.watched.asked), "points": load.watched.points, "effects": len(first),
            "seconds": round(loaded_s),
        }  # fmt: skip
        changed = _change(load, share, len(first))
        return json.dumps({**figures, **changed})


def _change(load: ShopLoad, share: float, before: int) -> dict[str, Any]:
    """Only what changed is read, only real changes are sent, and then nothing."""
    touched, noted = load.made.change(share)
    asked, points, began = len(load.watched.asked), load.watched.points, time.monotonic()
    report = load.sync()
    seconds = time.monotonic() - began
    effects = load.judge()[before:]
    read = report["streams"]["shop.orders"]["rows"]["read"]
    assert read == len(touched), f"{read} orders were read, and {len(touched)} had changed"
    sent = {effect["body"]["externalId"].partition(":")[2] for effect in effects if effect["resource"] == "order"}
    quiet = {gid.rpartition("/")[2] for gid in noted}
    assert not sent & quiet, f"orders without a real change were sent: {sorted(sent & quiet)[:5]}"
    figures = {
        "changed orders": len(touched), "requests after": len(load.watched.asked) - asked,
        "points after": load.watched.points - points, "effects after": len(effects), "seconds after": round(seconds),
    }  # fmt: skip
    writes = len(load.sandbox.effects())
    load.sync()
    assert len(load.sandbox.effects()) == writes
    return figures
