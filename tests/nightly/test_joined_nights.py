"""Orders made of header and line files over random nights, judged by the platform's effects log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest
from tests.chaos.chance import chaos_seed
from tests.e2e.test_joined_files import begin, orders, reasons
from tests.e2e.test_joined_window import HEAD, LINE, later
from tests.e2e.warehouse import BREAK, FORWARD, LOSE, Fate, Front, Reply, Seen, Site, open_site

from crossdock.sandbox import SandboxServer

WITHIN = 7  # days, the default
REFUSED = ("no file matches out/HEAD_", "have no row of the main source")
PLATFORM = "platform:\n  retry: {attempts: 2, base_s: 0.01, give_up_after_s: 0.1}\n  lookup: {settle_s: 0.01}\n"


@dataclass
class Sent:
    """What the sender has sent of one order: the day and the content of each row."""

    heads: list[tuple[int, str]] = field(default_factory=list)
    lines: dict[int, list[tuple[int, str, int]]] = field(default_factory=dict)

    @property
    def is_within(self) -> bool:
        """Whether all rows arrived so close together that they belong together."""
        days = [day for day, _ in self.heads] + [day for rows in self.lines.values() for day, *_ in rows]
        return max(days) - min(days) < WITHIN

    @property
    def newest(self) -> tuple[str, list[tuple[str, int]]]:
        lines = sorted((f"wms:{rows[-1][1]}", rows[-1][2]) for rows in self.lines.values())
        return f"wms:{self.heads[-1][1]}", lines


def send(site: Site, random: Random, night: int, day: int, sent: dict[int, Sent]) -> None:
    """Export headers, lines or both; names do not sort by time."""
    heads = {random.randrange(1, 9): f"S{random.randrange(4)}" for _ in range(3)} | ({} if night else {1: "S1"})
    places = {(random.randrange(1, 9), random.randrange(1, 4)) for _ in range(5)} | (set() if night else {(1, 1)})
    name = random.choice((f"{night}", f"{99 - night}", f"X{night:03}"))
    if not night or random.random() < 0.75:
        site.export(f"HEAD_{name}.csv", HEAD + "".join(f"{n};{s};2026-01-01\n" for n, s in heads.items()))
        for number, store in heads.items():
            sent.setdefault(number, Sent()).heads.append((day, store))
    if not night or random.random() < 0.75:
        rows = [(*place, random.choice(("P1", "P2")), random.randrange(1, 9)) for place in sorted(places)]
        site.export(f"LINE_{name}.csv", LINE + "".join(f"{n};{k};{sku};{q};1.50\n" for n, k, sku, q in rows))
        for number, line, sku, quantity in rows:
            sent.setdefault(number, Sent()).lines.setdefault(line, []).append((day, sku, quantity))


def failing(night: int) -> Callable[[Seen], Fate]:
    def fate(seen: Seen) -> Fate:
        return Random(f"{night} {seen.method} {seen.path} {seen.key}").choice((FORWARD, LOSE, BREAK, Reply(503)))

    return fate


def newest_header_and_lines(
    folder: Path, platform: SandboxServer, monkeypatch: pytest.MonkeyPatch, *, seed: int, nights: int
) -> Counter[str]:
    """Orders whose header and lines come, change and are interrupted at random stand as they were sent last.

    Returns:
        What happened.
    """
    random, day, sent, happened = Random(seed), 0, dict[int, Sent](), Counter[str]()
    with open_site(folder, platform, monkeypatch) as site, Front(platform.base_url) as front:
        site.base_url = front.base_url
        begin(site)
        site.edit("platform:\n", PLATFORM)
        site.edit("files:", "order: modified, files:", within="headers:")
        site.edit("files:", "order: modified\n        files:", within="lines:")
        site.edit("        key: [ORDERNO]\n", "        key: [ORDERNO]\n        changes: {at_most: 1000}\n")
        site.export("STORE_2.csv", "STOREID;NAME;CUR\n" + "".join(f"S{n};N;EUR\n" for n in range(4)))
        currency = ["currency: store.CUR", "currency: {const: EUR}"]
        for night in range(nights):
            if night and (days := random.choice((0, 0, 1, 2, 3))):
                later(site, days)
                day += days
            send(site, random, night, day, sent)
            if random.random() < 0.3:
                front.fate = failing(night)
                site.sync()
                front.fate = lambda _: FORWARD
                happened["run among failures"] += 1
            if random.random() < 0.2:
                site.edit(*currency)
                currency.reverse()
                happened["changed mapping"] += 1
            result = site.sync()
            assert result.code in {0, 1} or any(reason in result.err for reason in REFUSED), result.err
            assert site.sync().json["requests"] == 0
        held, rejected = orders(site), reasons(site)
        for number, order in sent.items():
            if not (order.heads and order.lines):
                assert rejected[str(number)] == "unmatched"
                assert f"wms:{number}" not in held
                happened["incomplete order"] += 1
            elif order.is_within:
                store, _, lines = held[f"wms:{number}"]
                assert (store, sorted((sku, int(quantity)) for sku, quantity, _ in lines)) == order.newest
                assert str(number) not in rejected
                happened["whole order"] += 1
        created = site.names("order")
        assert len(created) == len(set(created))
    return happened


def test_every_order_has_its_newest_header_and_lines(
    tmp_path: Path, platform: SandboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever arrives first, after interrupted runs and changed mappings too; what is incomplete is rejected."""
    happened = Counter[str]()
    for seed in range(chaos_seed(), chaos_seed() + 2):
        folder = tmp_path / str(seed)
        folder.mkdir()
        happened += newest_header_and_lines(folder, platform, monkeypatch, seed=seed, nights=4)
    print(f"\njoined nights: seed {chaos_seed()}, {happened}")
    assert set(happened) == {"run among failures", "changed mapping", "incomplete order", "whole order"}
