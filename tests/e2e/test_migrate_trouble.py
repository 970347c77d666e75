"""What disturbs a load ends in a listed exit code or is lived through; a wave is never half loaded without a word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.migrated_folder import MigratedFolder
from tests.e2e.platform_faults import end_faults, set_faults
from tests.e2e.test_state_in_trouble import no_room, struck

from crossdock.config.project import project
from crossdock.sandbox import SandboxServer, SandboxSettings
from crossdock.sandbox.access_control import Caller
from crossdock.sandbox.rate_limiter import RateLimiter

PER_MINUTE, BURST = 12_000, 100
PRODUCTS = 100  # enough for several pages of a database; tests/long has more


@pytest.fixture
def migrated(tmp_path: Path) -> Iterator[MigratedFolder]:
    with SandboxServer(tmp_path / "sandbox", SandboxSettings(rate_per_min=PER_MINUTE, burst=BURST)) as platform:
        yield MigratedFolder(tmp_path / "project", platform)


@pytest.mark.nightly(but=["intents"])
@pytest.mark.parametrize("table", ["intents", "bindings"])
def test_a_disk_that_is_full(migrated: MigratedFolder, table: str) -> None:
    """Exit 3 with the wave and what to do; with space again the load does the rest, once."""
    migrated.fill(products=PRODUCTS)
    migrated.load("--until", "customers")
    with struck(table, 0, no_room):
        done = migrated.migrate("load")
    assert done.exit_code == 3, done.stderr
    assert "crossdock: wave 2 of 3: products: " in done.stderr
    assert "database or disk is full" in done.stderr
    assert "free space on its disk" in done.stderr
    states = migrated.states()
    assert (states["products"], states["invoices"]) == (("incomplete", None), ("not begun", None))
    migrated.load()
    assert Counter(migrated.created()) == {"customer": 3, "product": PRODUCTS, "invoice": 6}


def test_a_state_that_another_run_uses(migrated: MigratedFolder) -> None:
    """Exit 3 and the usual sentence; nothing is sent. Status, pause and resume work meanwhile."""
    migrated.fill()
    migrated.load("--until", "customers")
    with project.load(migrated.config).open_state_exclusively():
        done = migrated.migrate("load")
        assert done.exit_code == 3
        assert "another run is using this state" in done.stderr
        assert [migrated.migrate(command).exit_code for command in ("status", "pause", "resume")] == [0, 0, 0]
        assert migrated.migrate("go", "customers").exit_code == 0
    assert Counter(migrated.created()) == {"customer": 3}


HALF_DAYS = ({"from": "00:00", "to": "12:00", "percent": 50}, {"from": "12:00", "to": "00:00", "percent": 50})
OF_A_MINUTE, BUCKET = 600, 50


@pytest.mark.nightly(but=["hours0-options0-False"])
@pytest.mark.parametrize(
    ("hours", "options", "reduced"), [((), [], False), ((), ["--percent", "50"], True), (HALF_DAYS, [], True)]
)
def test_a_part_of_the_allowance(
    migrated: MigratedFolder, hours: Sequence[Mapping[str, Any]], options: list[str], *, reduced: bool
) -> None:
    """With half of the allowance half of the bucket is left for others; without a limit most of it is used."""
    migrated.platform.sandbox._rate_limiter = RateLimiter(OF_A_MINUTE, BUCKET, "none")
    migrated.configure(platform={"in_flight": 40, "rate": {"per_minute": OF_A_MINUTE, "burst": BUCKET}})
    migrated.waves(hours=hours)
    migrated.fill(customers=60)
    (run,) = migrated.load("--until", "customers", *options)["runs"]
    shown = migrated.run("show", str(run["run"]), "--json").document
    assert (shown["allowance"]["lowest"] >= 0.45 * BUCKET) is reduced


class Halved(RateLimiter):
    """Halves its limit after so many requests, and says nothing about it in headers.

    Attributes:
        later: Requests that met the new limit.
    """

    def __init__(self, after: int) -> None:
        super().__init__(PER_MINUTE, BURST, "none")
        self._left, self._new, self.later = after, RateLimiter(PER_MINUTE // 2, BURST // 2, "none"), 0

    def take_token_or_refuse(self, caller: Caller, now: float) -> dict[str, str]:
        if self._left > 0:
            self._left -= 1
            return super().take_token_or_refuse(caller, now)
        self.later += 1
        return self._new.take_token_or_refuse(caller, now)


@pytest.mark.nightly
def test_a_limit_that_is_halved(migrated: MigratedFolder) -> None:
    """The platform halves its limit in the middle of a wave: the load slows down, and each record is there once."""
    migrated.configure(platform={"in_flight": 40, "rate": {"per_minute": PER_MINUTE, "burst": BURST}})
    migrated.fill(customers=400, products=3, invoices=200)
    migrated.platform.sandbox._rate_limiter = limiter = Halved(after=150)
    document = migrated.load()
    throttled = sum(each["report"]["throttled"] for each in document["runs"])
    assert Counter(migrated.created()) == {"customer": 400, "product": 3, "invoice": 200}
    assert limiter.later >= 603 - 150
    assert throttled > 0, "the new limit was never met, so nothing was shown"


@pytest.mark.usefixtures("soon_probing")
def test_a_platform_that_is_gone(migrated: MigratedFolder) -> None:
    """Exit 3 names the wave; what was written down is sent by the next load."""
    migrated.fill()
    migrated.load("--until", "customers")
    set_faults(migrated.platform.base_url, [{"name": "error_before", "probability": 1.0, "route": "POST"}], 1)
    done = migrated.migrate("load")
    assert done.exit_code == 3, done.stderr
    assert "wave 2 of 3: products: did not reach its end" in done.stderr
    assert migrated.states()["products"] == ("incomplete", None)
    faults = end_faults(migrated.platform.base_url)
    assert faults["error_before"] > 0
    migrated.load()
    assert Counter(migrated.created()) == {"customer": 3, "product": 3, "invoice": 6}
