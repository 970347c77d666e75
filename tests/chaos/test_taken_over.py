"""SIGKILL of real processes that take over what the platform has: no value is there twice, and nothing is lost."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml
from tests.chaos.chance import chaos_seed
from tests.chaos.killed_syncs import KilledSyncs
from tests.e2e.folder_project import table
from tests.e2e.project_folder import UNPACED

from crossdock.client import Client, Product
from crossdock.config.project import project
from crossdock.sandbox import SandboxServer, SandboxSettings
from crossdock.testing import sandbox_effects_comparison
from crossdock.testing.sandbox_syncs import write_private_file


def taken_over(folder: Path, *, records: int, kills: int) -> None:
    """Each value of the source that was there once is taken over once, a new one is created once, others never."""
    seed, limits = chaos_seed(), SandboxSettings(rate_per_min=UNPACED.per_minute, burst=UNPACED.burst)
    random = Random(seed)
    with SandboxServer(folder / "sandbox", limits) as server:
        there = Counter({f"S{number}": random.choice((0, 1, 1, 2)) for number in range(records)})
        with Client(server.base_url, server.tenant, server.api_key) as client:
            _fill(client, there)
            wanted = [sku for sku in there for _ in range(random.choice((1, 1, 1, 2)))]
            random.shuffle(wanted)
            syncs = _syncs(folder, server, random, wanted)
            before = len(_effects(folder))
            strikes = 0
            while syncs.happened["kills"] < kills:
                strikes += 1
                assert strikes < 3 * kills, f"seed {seed}: {syncs.happened}"
                syncs.struck_somewhere(12)
            for _ in range(3):
                report = syncs.sync()
            assert (report["exit"], report["requests"]) == (1, 0), f"seed {seed}: {report['said']}"
            found = Counter(each.sku for each in client.products.list(page_size=1000))
        assert found == Counter({sku: max(1, number) for sku, number in there.items()}), f"seed {seed}"
        written = Counter((each["operation"], each["body"]["sku"]) for each in _effects(folder)[before:])
        created = {("create", sku): 1 for sku, number in there.items() if number == 0}
        changed = {("update", sku): 1 for sku, number in there.items() if number == 1}
        assert written == Counter(created | changed), f"seed {seed}"


@pytest.mark.nightly
def test_kills_while_records_are_taken_over(tmp_path: Path) -> None:
    """Each value that was there once is taken over once, and a new one is created once, in spite of kills."""
    taken_over(tmp_path, records=100, kills=5)


def _fill(client: Client, there: Counter[str]) -> None:
    for sku, number in there.items():
        for copy in range(number):
            client.products.create(Product(external_id=f"erp-{sku}-{copy}", sku=sku, name="old"))


def _syncs(folder: Path, server: SandboxServer, random: Random, wanted: list[str]) -> KilledSyncs:
    platform = {
        "base_url": server.base_url,
        "tenant": server.tenant,
        "auth": {"kind": "api_key", "token": write_private_file(folder / "key", server.sandbox.new_key())},
        "rate": {"per_minute": UNPACED.per_minute, "burst": UNPACED.burst},
        "in_flight": 5,
    }
    facts = {"mode": "snapshot", "resource": "product", "adopt": {"by": "sku"}, "map": {"sku": "SKU", "name": "NAME"}}
    stream = table("P_*.csv", ["ID"], **facts)
    wms = {"kind": "folder_warehouse", "path": "out", "settle_s": 0, "streams": {"products": stream}}
    document = {"platform": platform, "state": "sqlite:///state.db", "connections": {"wms": wms}}
    (folder / "c.yaml").write_text(yaml.safe_dump(document))
    (folder / "out").mkdir()
    rows = [f"{number};{sku};Part" for number, sku in enumerate(wanted)]
    (folder / "out" / "P_1.csv").write_text("\n".join(["ID;SKU;NAME", *rows, ""]))
    syncs = KilledSyncs(folder=folder, environment={}, random=random)
    syncs.run("init")
    return syncs


def _effects(folder: Path) -> list[dict[str, Any]]:
    return list(sandbox_effects_comparison.list_effects_of_tenant(project.load(folder / "c.yaml").platform))
