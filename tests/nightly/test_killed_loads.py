"""A migration that is killed again and again loses nothing, does nothing twice, and says each time where it stands."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.chaos.killed_loads import KilledLoads, Strike
from tests.chaos.processes import CROSSDOCK
from tests.e2e.migrated_folder import MigratedFolder
from tests.e2e.project_folder import UNPACED

from crossdock.sandbox import SandboxServer, SandboxSettings

STRIKES = (  # in this order, each in the wave that the one before has reached
    Strike("wave_begun", 1, "before", "customers", begun=False),
    Strike("accepted", 1, "after", "customers"),
    Strike("committed", 2, "before", "customers"),
    Strike("sent", 10, "after", "customers"),
    Strike("settle_written", 3, "after", "customers"),
    Strike("run_finished", 1, "before", "customers"),
    Strike("wave_begun", 2, "after", "products", begun=False),
    Strike("intents_added", 1, "after", "products"),
    Strike("sent", 15, "before", "products"),
    Strike("stream_finished", 2, "after", "products"),
    Strike("run_finished", 2, "after", "products"),
    Strike("settled", 5, "after", "invoices"),
    Strike("index_written", 1, "before", "invoices"),
    Strike("run_finished", 3, "after", "invoices"),
)
LEFT_OUT = {("accepted", 1), ("settle_written", 3), ("sent", 15), ("settled", 5), ("index_written", 1)}
"""Strikes that only tests/long has: the short form strikes close to each of them."""


def killed_loads(folder: Path, strikes: Sequence[Strike]) -> None:
    """After each SIGKILL status names the wave; in the end the platform's witness has each record once."""
    settings = SandboxSettings(rate_per_min=UNPACED.per_minute, burst=UNPACED.burst)
    with SandboxServer(folder / "sandbox", settings) as platform:
        migrated = MigratedFolder(folder / "project", platform)
        migrated.configure(platform={"in_flight": 4, "rate": {"per_minute": 600_000, "burst": 100_000}})
        loads = KilledLoads(migrated, customers=40, products=40, invoices=60)
        for strike in strikes:
            loads.strike(strike)
        done = loads.load(CROSSDOCK)
        assert done.exit_code == 0, done.stderr
        loads.assert_everything_once()
        assert set(migrated.states().values()) == {("done", "open")}
        assert sum(each["report"]["requests"] for each in loads.load(CROSSDOCK).document["runs"]) == 0


def test_kills_in_every_wave(tmp_path: Path) -> None:
    """When a wave begins, while it reads and sends, and when it ends; more of them are in tests/long."""
    killed_loads(tmp_path, [each for each in STRIKES if (each.point, each.nth) not in LEFT_OUT])
