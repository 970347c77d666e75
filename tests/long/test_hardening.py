"""Suspended runs, restored backups and false answers at full size: ``pytest tests/long/test_hardening.py -s``."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.chaos.chance import chaos_seed
from tests.chaos.contest import Starter
from tests.chaos.test_hostile_platform import hostile_site, survives
from tests.chaos.test_restored import POINTS, forgotten
from tests.chaos.test_suspended import Profile, starter, suspended, warehouse

from crossdock.state import StateUrl

__all__ = ["starter"]  # a fixture


@pytest.mark.parametrize("profile", ["full", "no-idempotency"])
def test_many_suspended_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, starter: Starter, state_url: StateUrl, profile: Profile
) -> None:
    """As in the short form: fifty tries in all, over both databases, with and without idempotency keys."""
    with warehouse(tmp_path, monkeypatch, state_url, profile, in_flight=24) as site:
        waited = suspended(site, starter, state_url, profile, tries=13, invoices=120)
    print(
        f"\nsuspended, {profile} on {state_url.drivername}: seed {chaos_seed()}, 13 tries, {waited} waited, none twice"
    )


@pytest.mark.parametrize("whole", [False, True], ids=["the state alone", "the whole folder"])
def test_backups_of_every_moment(tmp_path: Path, *, whole: bool) -> None:
    """As in the short form, at every boundary of a record's way."""
    assert len(POINTS) >= 20
    assert forgotten(tmp_path, POINTS, whole=whole) > 0


@pytest.mark.parametrize("every", [20, 5])
def test_a_platform_that_often_answers_falsely(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state_url: StateUrl, every: int
) -> None:
    """As in the short form, with more records, and up to one answer in five false."""
    with hostile_site(tmp_path, monkeypatch, state_url, every=every) as (site, hostile):
        twisted = survives(site, hostile, rounds=12, records=60)
    print(f"\nhostile platform on {state_url.drivername}: seed {chaos_seed()}, one in {every}, {dict(twisted)}")
