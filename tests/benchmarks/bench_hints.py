"""From a webhook to the platform's commit, while one process also loads a whole list that is limited by its rate.

Products change at random times over the load, half of them in the list that it reads; a changed product has another
title, by which it is found in the sandbox's effects log. The other way, for comparison: one ``crossdock sync`` of the
stream for each webhook, started at once, while nothing else runs.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any

import yaml
from tests.benchmarks import results
from tests.benchmarks.delaying_proxy import delayed
from tests.benchmarks.hints_shop import Shop
from tests.sandbox_load import Platform

ROUND_TRIP_MS = 50
RATE, BURST = 10_000, 2_000  # requests a minute to the platform, and at once
DEADLINE_S = 300.0
COLUMNS = ("way", "webhooks", "median s (goal 0.5)", "95 % s", "longest s", "times the median")
OTHERS = 1_000  # products of the list that the load does not read


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds from each change to its commit.

    Attributes:
        load_s: How long the load took.
    """

    hints: list[float]
    syncs: list[float]
    load_s: float


def finish(command: list[str], environment: Mapping[str, str]) -> None:
    """Run a command to its end, which must be a good one."""
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)


class _Site:
    """A project with two connections to one shop, and the platform."""

    def __init__(self, folder: Path, shop: Shop, platform: Platform, ports: tuple[int, int]) -> None:
        self._folder, self._shop, self._platform = folder, shop, platform
        self._config = folder / "crossdock.yaml"
        self._config.write_text(yaml.safe_dump(_config(platform.tenant, *ports)), encoding="utf-8")
        variables = {"BENCH_KEY": platform.api_key, "BENCH_SECRET": shop.secret}
        self._environment = {**os.environ, **variables, "CROSSDOCK_NO_TRACE": "1"}
        self._after = 0
        self._commits = dict[str, float]()
        self.loaded, self.last_load_at = 0, 0.0

    def run(self, *arguments: str) -> None:
        """Run a command to its end."""
        finish([sys.executable, "-m", "crossdock", *arguments, "-C", str(self._config)], self._environment)

    @contextmanager
    def service(self) -> Iterator[str]:
        """The service, with its job due; where it receives webhooks."""
        log = self._folder / "log"
        command = [sys.executable, "-m", "crossdock", "schedule", "--listen", "0", "-C", str(self._config)]
        with log.open("wb") as out, subprocess.Popen(command, env=self._environment, stderr=out) as process:
            try:
                yield _eventually(lambda: re.search(r"(http://\S+/webhooks/)\w+", log.read_text()))[1]
            finally:
                process.terminate()
        assert process.returncode == 0, log.read_text()

    def look(self) -> None:
        """Read what is new in the effects log."""
        path = "/_sandbox/effects?resource=product&limit=1000&after="
        while page := self._platform.call("GET", f"{path}{self._after}")["data"]:
            self._after = page[-1]["seq"]
            for effect in page:
                at = datetime.fromisoformat(effect["at"]).timestamp()
                if effect["body"]["name"] in self._shop.changed_at:
                    self._commits.setdefault(effect["body"]["name"], at)
                self.loaded += effect["body"]["name"].startswith("night") and effect["operation"] == "create"
                self.last_load_at = at

    def waits(self) -> list[float]:
        """Seconds from each change to its commit, once all are there; since the last call."""
        self.until(lambda: self._commits.keys() == self._shop.changed_at.keys())
        waits = [self._commits[title] - at for title, at in self._shop.changed_at.items()]
        self._commits.clear()
        self._shop.changed_at.clear()
        return waits

    def until(self, holds: Callable[[], bool]) -> None:
        """Wait until it holds of the effects log."""

        def looked() -> bool:
            self.look()
            return holds()

        _eventually(looked)


def measure(folder: Path, records: int, webhooks: int, syncs: int, others: int = OTHERS) -> Measured:
    """Load *records* while *webhooks* arrive; then bring *syncs* changes by a command each."""
    rng, shop = Random(1), Shop({"night": records, "shop": others})
    with (
        shop.served() as shop_port,
        _sandbox(folder / "sandbox") as platform,
        delayed(shop_port, ROUND_TRIP_MS) as shop_delayed,
        delayed(int(platform.base_url.rpartition(":")[2]), ROUND_TRIP_MS) as platform_delayed,
    ):
        site = _Site(folder, shop, platform, (shop_delayed, platform_delayed))
        site.run("init")
        site.run("sync", "shop")
        site.look()
        site.loaded = 0
        hints, load_s = _beside_a_load(site, shop, (records, others), rng, webhooks)
        for key in rng.sample(range(others // 2), syncs):
            shop.change("shop", str(key))
            site.run("sync", "shop")
        return Measured(hints, site.waits(), load_s)


def _beside_a_load(
    site: _Site, shop: Shop, sizes: tuple[int, int], rng: Random, webhooks: int
) -> tuple[list[float], float]:
    records, others = sizes
    keys = rng.sample(range(records), (webhooks + 1) // 2), rng.sample(range(others // 2, others), webhooks // 2)
    changes = [("night", str(key)) for key in keys[0]] + [("shop", str(key)) for key in keys[1]]
    rng.shuffle(changes)
    expected_s = max(1.0, (records - BURST) / (RATE / 60))
    with site.service() as address:
        site.until(lambda: site.loaded > 0)
        began = time.time()
        for at, change in zip(sorted(rng.uniform(0, expected_s) for _ in changes), changes, strict=True):
            time.sleep(max(0.0, began + at - time.time()))
            shop.announce(address + change[0], *change)
        site.until(lambda: site.loaded == records)
        return site.waits(), site.last_load_at - began


def _config(tenant: str, shop_port: int, platform_port: int) -> dict[str, Any]:
    def connection(name: str) -> dict[str, Any]:
        stream = {
            "path": f"/{name}",
            "records": "products",
            "mode": "snapshot",
            "key": ["id"],
            "fetch": {"path": f"/{name}/{{id}}"},
            "resource": "product",
            "map": {"sku": "id", "name": "title"},
        }
        return {
            "kind": "http_json",
            "base_url": f"http://127.0.0.1:{shop_port}",
            "pagination": {"kind": "link_header"},
            "streams": {"products": stream},
            "webhooks": {"secrets": ["env:BENCH_SECRET"], "hints": [{"stream": "products", "key": "/id"}]},
        }

    return {
        "platform": {
            "base_url": f"http://127.0.0.1:{platform_port}",
            "tenant": tenant,
            "auth": {"kind": "api_key", "token": "env:BENCH_KEY"},
        },
        "state": "sqlite:///bench.db",
        "connections": {name: connection(name) for name in ("night", "shop")},
        "jobs": {
            "nightly": {
                "streams": ["night.products"],
                "schedule": {"time_zone": "UTC", "every": "2s"},  # soon, and not while it runs
                "overlap": "skip",
            }
        },
    }


@contextmanager
def _sandbox(folder: Path) -> Iterator[Platform]:
    command = [sys.executable, "-m", "crossdock", "sandbox", "--data", str(folder)]
    limits = ["--rate", str(RATE), "--burst", str(BURST)]
    with subprocess.Popen([*command, *limits], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            facts: Mapping[str, str] = json.loads(process.stdout.readline())
            yield Platform(facts["base_url"], facts["tenant"], facts["api_key"])
        finally:
            process.terminate()


def _eventually(found: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + DEADLINE_S
    while not (value := found()):
        assert time.monotonic() < deadline, "it takes too long"
        time.sleep(0.05)
    return value


def _row(way: str, waits: list[float], median_s: float) -> tuple[object, ...]:
    ordered = sorted(waits)
    at_95 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]
    own = statistics.median(ordered)
    return way, len(ordered), f"{own:.2f}", f"{at_95:.2f}", f"{ordered[-1]:.2f}", f"{own / median_s:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=10_000)
    parser.add_argument("--webhooks", type=int, default=200)
    parser.add_argument("--syncs", type=int, default=20)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder), given.records, given.webhooks, given.syncs)
    median_s = statistics.median(found.hints)
    rows = [
        _row(f"schedule --listen, beside a load of {given.records:,}", found.hints, median_s),
        _row("a sync for each webhook, nothing else", found.syncs, median_s),
    ]
    notes = (
        f"Round trips of {ROUND_TRIP_MS} ms to the shop and to the platform, which permits {RATE:,} requests a minute"
        f" with a burst of {BURST:,}. The load took {found.load_s:.0f} s; webhooks came at random times over it, half"
        " of them about its own records."
    )
    results.write("From a webhook to the platform's commit", COLUMNS, rows, notes)


if __name__ == "__main__":
    main()
