"""Undos, repairs and waves that are killed at a step boundary, with a new export before anybody looks."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.chaos import processes
from tests.chaos.failing import NOTE_VARIABLE
from tests.chaos.killed_syncs import FAILING
from tests.e2e.migrated_folder import MigratedFolder
from tests.e2e.project_folder import UNPACED
from tests.e2e.warehouse import ask

from crossdock.sandbox import SandboxServer, SandboxSettings

Undone = Literal["migration", "run"]
CUSTOMERS, PRODUCTS, MORE = 6, 4, 7
UNDO_POINTS = (
    ("undo_begun", 1, "before"),
    ("undo_begun", 1, "after"),
    ("intents_added", 1, "after"),
    ("committed", 1, "before"),
    ("committed", 1, "after"),
    ("sent", 1, "before"),
    ("sent", 1, "after"),
    ("sent", 3, "after"),
    ("sent", 5, "before"),
    ("sent", 6, "after"),
    ("settle_written", 1, "before"),
    ("settle_written", 1, "after"),
    ("settle_written", 2, "before"),
    ("settled", 1, "after"),
    ("settled", 2, "after"),
    ("run_finished", 1, "before"),
    ("run_finished", 1, "after"),
    ("undo_ended", 1, "before"),
    ("undo_ended", 1, "after"),
)
"""Step boundaries of the application of an undo."""
REPAIR_POINTS = (
    ("corrected", 1, "before"),
    ("corrected", 1, "after"),
    ("intents_added", 1, "after"),
    ("committed", 1, "before"),
    ("sent", 1, "before"),
    ("sent", 2, "after"),
    ("sent", 5, "after"),
    ("settle_written", 2, "after"),
    ("run_finished", 1, "before"),
)
WAVE_POINTS = (
    ("wave_begun", 1, "before"),
    ("committed", 1, "before"),
    ("sent", 1, "before"),
    ("sent", 4, "after"),
    ("sent", CUSTOMERS + 2, "after"),
    ("settle_written", 2, "before"),
    ("stream_finished", 1, "before"),
    ("run_finished", 1, "before"),
)


@dataclass
class Killed:
    """A migration of customers and products whose next commands may be killed."""

    migrated: MigratedFolder

    def strike(self, point: str, nth: int, side: str, *arguments: str) -> None:
        """Run a command that ends in SIGKILL at this boundary."""
        label, note = f"{point}:{nth}:{side}", self.migrated.folder / "struck"
        note.unlink(missing_ok=True)
        known = {
            **os.environ,
            "CROSSDOCK_API_KEY": self.migrated.platform.api_key,
            NOTE_VARIABLE: str(note),
        }
        command = ["-P", FAILING, label, "-C", str(self.migrated.config), *arguments]
        done = processes.finish(command, known)
        assert done.exit_code == -signal.SIGKILL, f"{label} ended with {done.exit_code}\n{done.stderr}{done.stdout}"
        assert note.read_text() == f"{label}\n"

    def code(self, *arguments: str) -> int:
        return self.migrated.run(*arguments).exit_code

    def effects(self) -> Counter[str]:
        return Counter(each["operation"] for each in self.migrated.effects())

    def names(self, resource: str) -> list[str]:
        """The external ids of what the platform has."""
        return sorted(each["externalId"] for each in self.migrated.stored()[resource])

    def call(self, method: str, path: str, body: bytes = b"") -> None:
        platform = self.migrated.platform
        headers = {"authorization": f"Bearer {platform.api_key}", "x-tenant-slug": platform.tenant}
        headers |= {"content-type": "application/json"} if body else {}
        reply = ask(platform.base_url.removeprefix("http://"), method, f"/api/v1/{path}", body, headers)
        assert reply.status < 300, reply.body


def opened(folder: Path, platform: SandboxServer) -> Killed:
    migrated = MigratedFolder(folder / "project", platform)
    migrated.configure(platform={"in_flight": 1, "rate": {"per_minute": 600_000, "burst": 100_000}})
    migrated.fill(CUSTOMERS, PRODUCTS, 0)
    assert migrated.migrate("load").exit_code == 0
    return Killed(migrated)


def sandbox(folder: Path) -> SandboxServer:
    return SandboxServer(folder / "sandbox", SandboxSettings(rate_per_min=UNPACED.per_minute, burst=UNPACED.burst))


def new_export(migrated: MigratedFolder) -> None:
    """A customer is changed and one is new; a product is changed."""
    migrated.write("CUST3.csv", "NO;NAME\nC0;Changed\nC99;New\n")
    migrated.write("PROD3.csv", "SKU;NAME;PRICE\nP0;Changed;2.50\n")


def killed_undo(folder: Path, undone: Undone, point: str, nth: int, side: str) -> None:
    """After the kill the undo is completed without a source, or nothing of it was done; nothing is created."""
    with sandbox(folder) as platform:
        killed = opened(folder, platform)
        migrated, plan = killed.migrated, str(folder / "undo.plan")
        command, customers, products, deleted = ["migrate", "undo"], [], [], CUSTOMERS + PRODUCTS
        if undone == "run":
            customers, products = killed.names("customer"), killed.names("product")
            migrated.write("CUST2.csv", "NO;NAME\n" + "".join(f"D{n};More {n}\n" for n in range(MORE)))
            migrated.write("PROD2.csv", "SKU;NAME;PRICE\nP1;Other;9.00\nP9;More;1.00\n")
            assert killed.code("sync") == 0
            command, deleted = ["undo", str(json.loads(migrated.run("runs", "--json").stdout)[0]["run"])], MORE + 1
        assert killed.code(*command, "-o", plan) == 0
        before = killed.effects()
        killed.strike(point, nth, side, "apply", plan)
        new_export(migrated)
        if point == "undo_begun":
            assert killed.effects() == before, "nothing of it was undone"
            assert killed.code("apply", plan) == 0, "an undo reads no source, so the plan is still valid"
        else:
            _blocked(killed, command)
            assert killed.code("apply", "--resume") == 0
        after = killed.effects() - before
        assert (after["create"], after["delete"]) == (0, deleted), "nothing was created, and each was deleted once"
        assert (killed.names("customer"), killed.names("product")) == (customers, products)
        _afterwards(killed, undone)


def killed_repair(folder: Path, point: str, nth: int, side: str, first: Literal["resume", "sync"]) -> None:
    """After the kill what was sent is settled without a source, and a sync makes the platform what the source says."""
    with sandbox(folder) as platform:
        killed = opened(folder, platform)
        migrated, plan = killed.migrated, str(folder / "repair.plan")
        ids = {each["externalId"]: each["id"] for each in migrated.stored()["customer"] + migrated.stored()["product"]}
        for name in ("wms:C0", "wms:C1", "wms:C2"):
            killed.call("PATCH", f"sales/customers/{ids[name]}", b'{"name": "Of others"}')
        for name in ("wms:C3", "wms:P1", "wms:P2"):
            killed.call("DELETE", f"{'sales/customers' if 'C' in name else 'catalog/products'}/{ids[name]}")
        assert killed.code("reconcile", "-o", plan) == 1
        killed.strike(point, nth, side, "apply", plan)
        new_export(migrated)
        if first == "resume":
            reads = migrated.run("apply", "--resume", "--json")
            assert reads.exit_code == 0, reads.stderr
            assert not any(each["rows"]["read"] for each in reads.document["streams"].values()), "no source is read"
        assert killed.code("sync") == 0
        if killed.code("reconcile", "-o", plan) == 1:
            assert killed.code("apply", plan) == 0
        assert killed.code("reconcile") == 0
        made = Counter(e["body"]["externalId"] for e in migrated.effects() if e["operation"] == "create")
        again = Counter(dict.fromkeys(("wms:C3", "wms:P1", "wms:P2"), 1))
        names = [f"wms:C{n}" for n in range(CUSTOMERS)] + ["wms:C99"] + [f"wms:P{n}" for n in range(PRODUCTS)]
        assert made == Counter(names) + again, "each once, and again what others have deleted"


def killed_wave(folder: Path, point: str, nth: int, side: str) -> None:
    """What a killed wave has sent is settled without a source, so that it can be undone; or the load goes on."""
    with sandbox(folder) as platform:
        migrated = MigratedFolder(folder / "project", platform)
        migrated.configure(platform={"in_flight": 1, "rate": {"per_minute": 600_000, "burst": 100_000}})
        migrated.fill(CUSTOMERS, PRODUCTS, 0)
        killed, plan = Killed(migrated), str(folder / "undo.plan")
        killed.strike(point, nth, side, "migrate", "load")
        new_export(migrated)
        before = killed.effects()
        refused = migrated.migrate("undo", "-o", plan)
        assert refused.exit_code in {0, 4}, refused.stderr
        if refused.exit_code == 4:
            assert "crossdock apply --resume" in refused.stderr
            assert killed.code("apply", "--resume") == 0
            assert (killed.effects() - before)["create"] <= CUSTOMERS, "only what had been decided is sent"
            assert "wms:C99" not in killed.names("customer"), "no source is read"
            assert migrated.migrate("undo", "-o", plan).exit_code == 0
        if Path(plan).exists():  # there was something to undo
            assert killed.code("apply", plan) == 0
        assert (killed.names("customer"), killed.names("product")) == ([], [])
        _afterwards(killed, "migration")


def _blocked(killed: Killed, undo: Sequence[str]) -> None:
    """Until the undo has ended, nothing else works on its streams, and each refusal names the command."""
    for command in (("sync",), ("migrate", "load"), ("plan",), undo):
        done = killed.migrated.run(*command)
        assert done.exit_code == 4, f"{command}: {done.exit_code} {done.stderr}{done.stdout}"
        assert "crossdock apply --resume" in done.stderr, f"{command}: {done.stderr}"


def _afterwards(killed: Killed, undone: Undone) -> None:
    """The streams are free again, and what the sources name is there once."""
    migrated = killed.migrated
    if undone == "migration":
        assert migrated.migrate("load").exit_code == 0
    done = migrated.run("sync")
    assert done.exit_code == 0, done.stderr + done.stdout
    expected = [f"wms:C{n}" for n in range(CUSTOMERS)] + ["wms:C99"]
    assert killed.names("customer") == sorted(expected)
    assert killed.names("product") == [f"wms:P{n}" for n in range(PRODUCTS)]
