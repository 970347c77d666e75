"""The promises of tests/chaos at larger sizes: ``pytest tests/long/test_chaos_more.py -s``, some minutes."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.chaos.chance import chaos_seed
from tests.chaos.conftest import platform
from tests.chaos.contest import Starter
from tests.chaos.doubt_systems import Opener
from tests.chaos.test_doubt import SYSTEMS, parked, verified
from tests.chaos.test_one_winner import ON_POSTGRES, hung_up, kills, race, site, starter, told, zombies
from tests.chaos.test_outage import outage
from tests.chaos.test_taken_over import taken_over
from tests.chaos.test_tally import balances
from tests.chaos.test_two_ways import changes_reach_the_other, not_overwritten
from tests.e2e.warehouse import Site
from tests.nightly.test_converges import converges
from tests.nightly.test_joined_nights import newest_header_and_lines
from tests.nightly.test_killed_loads import STRIKES, killed_loads

from crossdock.sandbox import SandboxServer
from crossdock.state import State, StateUrl

__all__ = ["platform", "site", "starter"]  # fixtures


def test_many_graphs_converge(tmp_path: Path, platform: SandboxServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the short form, with more and larger graphs."""
    print(f"\nconverges: seed {chaos_seed()}, {converges(tmp_path, platform, monkeypatch, graphs=20, nodes=300)}")


def test_many_races(site: Site, starter: Starter, state_url: StateUrl) -> None:
    """As in the short form, twice as often, and with more entrants."""
    told("races", state_url, lambda: race(site, starter, races=20, entrants=5))


def test_many_sleepers(site: Site, starter: Starter, state_url: StateUrl) -> None:
    """As in the short form, more often."""
    told("zombies", state_url, lambda: zombies(site, starter, state_url, number=8, invoices=80))


def test_many_kills(site: Site, starter: Starter, state_url: StateUrl) -> None:
    """As in the short form, more often."""
    told("kills", state_url, lambda: kills(site, starter, number=8, invoices=80))


@ON_POSTGRES
def test_many_lost_sessions(site: Site, starter: Starter, state_url: StateUrl) -> None:
    """As in the short form, more often."""
    told("sessions", state_url, lambda: hung_up(site, starter, state_url, number=8, invoices=80))


def test_many_books_balance(tmp_path: Path, state_url: StateUrl, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the short form, with many more examples."""
    balances(tmp_path, state_url, monkeypatch, examples=60, steps=30)


@SYSTEMS
def test_much_doubt_is_parked(tmp_path: Path, system: Opener, share: int) -> None:
    """As in the short form, with many more records."""
    with system(tmp_path, look_up=False) as opened:
        print(f"\ndoubt, parked: seed {chaos_seed()}, {parked(opened, records=2_000 // share)}")


@SYSTEMS
def test_much_doubt_is_looked_up(tmp_path: Path, system: Opener, share: int) -> None:
    """As in the short form, with many more records."""
    with system(tmp_path, look_up=True) as opened:
        print(f"\ndoubt, verified: seed {chaos_seed()}, {verified(opened, records=1_500 // share)}")


def test_a_long_queue_behind_an_outage(state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the short form, with ten times the records."""
    print(f"\noutage: {outage(state, monkeypatch, records=20_000)}")


@pytest.mark.parametrize("seed", range(chaos_seed(), chaos_seed() + 10))
def test_many_joined_nights(
    tmp_path: Path, platform: SandboxServer, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """As in the short form, with more seeds."""
    happened = newest_header_and_lines(tmp_path, platform, monkeypatch, seed=seed, nights=6)
    print(f"\njoined nights: seed {seed}, {happened}")


def test_many_kills_while_records_are_taken_over(tmp_path: Path) -> None:
    """As in the short form, with more records and more often."""
    taken_over(tmp_path, records=400, kills=20)


def test_many_kills_in_every_wave(tmp_path: Path) -> None:
    """As in the short form, at more failpoints."""
    killed_loads(tmp_path, STRIKES)


@pytest.mark.parametrize("seed", range(chaos_seed(), chaos_seed() + 5))
def test_many_changes_of_both_sides(tmp_path: Path, seed: int) -> None:
    """As in the short form, with more seeds and longer."""
    changes_reach_the_other(tmp_path, seed, nights=12)


@pytest.mark.parametrize("seed", range(chaos_seed(), chaos_seed() + 5))
def test_many_changes_of_the_other_owner(tmp_path: Path, seed: int) -> None:
    """As in the short form, with more seeds and longer."""
    not_overwritten(tmp_path, seed, nights=12)
