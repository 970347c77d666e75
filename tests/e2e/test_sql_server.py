"""Two nights of exports of a SQL Server database, brought to the platform by config alone."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.e2e import sql_server_truth
from tests.e2e.project_folder import UNPACED, SandboxProcess, balance, in_process
from tests.e2e.sql_server_exports import Night, Size, nights
from tests.e2e.sql_server_truth import Truth
from tests.ended_commands import Done

CONFIG = Path(__file__).with_name("sql_server.yaml")
RESOURCES = {
    "erp.accounts": "ledger_account",
    "erp.customers": "customer",
    "erp.products": "product",
    "erp.bins": "warehouse_bin",
    "erp.lots": "inventory_lot",
    "erp.orders": "order",
}
LONG_AGO = 1_300_000_000  # a file written just now would be watched for a while before it is read


class Stage:
    """A folder with the config, its exports and its state, and the platform."""

    def __init__(self, folder: Path, sandbox: SandboxProcess) -> None:
        self.sandbox, self.exports = sandbox, folder / "exports"
        self._configs = Path(shutil.copy(CONFIG, folder)), folder / "platform.json"
        rate = {"per_minute": UNPACED.per_minute, "burst": UNPACED.burst}
        platform = {"base_url": sandbox.base_url, "tenant": sandbox.tenant, "rate": rate}
        self._configs[1].write_text(json.dumps({"platform": platform}))

    def run(self, *arguments: str) -> Done:
        config, platform = self._configs
        environment = {"CROSSDOCK_API_KEY": self.sandbox.api_key}
        return in_process(config, "-C", str(platform), *arguments, environment=environment)

    def sync(self, night: Night) -> Done:
        night.write(self.exports)
        for file in self.exports.iterdir():
            os.utime(file, (LONG_AGO, LONG_AGO))
        done = self.run("sync", "--json")
        balance(done.document)
        return done

    def held(self) -> dict[str, dict[str, str]]:
        return sql_server_truth.held_by({name: self.sandbox.stored(name) for name in RESOURCES.values()})

    def listed(self, state: str) -> set[tuple[str, str]]:
        """(resource, external id) of each record in *state*."""
        records: list[dict[str, Any]] = json.loads(self.run("records", "list", "--json", "--state", state).stdout)
        return {(RESOURCES[one["stream"]], f"{sql_server_truth.NAMESPACE}:{one['key']}") for one in records}


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with SandboxProcess(tmp_path / "sandbox", UNPACED) as sandbox:
        stage = Stage(tmp_path, sandbox)
        done = stage.run("init")
        assert done.exit_code == 0, done.stderr
        yield stage


@pytest.mark.nightly
def test_two_nights_arrive_by_config_alone(stage: Stage) -> None:
    """The platform, the dead letters and the waiting records are what an independent script computes, after each night.

    The second night creates and updates just what differs, and a third sync sends nothing.
    """
    before = Truth()
    for number, night in enumerate(nights(1, Size(40, 30, 60)), 1):
        effects = len(stage.sandbox.effects())
        done = stage.sync(night)
        truth = sql_server_truth.of(stage.exports, number)

        assert done.exit_code == 1, done.stderr  # dead letters and waiting records are left
        assert stage.held() == truth.canonical()
        assert stage.listed("rejected") == truth.dead.keys()
        assert stage.listed("waiting") == truth.waiting.keys()
        caused = stage.sandbox.effects(after=effects)
        assert Counter((one["operation"], one["resource"]) for one in caused) == differences(before, truth)
        before = truth
    requests = stage.sandbox.requests()
    assert stage.run("sync", "--json").document["requests"] == 0
    assert stage.sandbox.requests() == requests


def differences(before: Truth, after: Truth) -> Counter[tuple[str, str]]:
    """The numbers of creates and updates of each resource that lead from one to the other."""
    found: Counter[tuple[str, str]] = Counter()
    old = before.canonical()
    for resource, bodies in after.canonical().items():
        for key, body in bodies.items():
            known = old.get(resource, {})
            if key not in known:
                found["create", resource] += 1
            elif known[key] != body:
                found["update", resource] += 1
    return found
