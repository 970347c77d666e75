"""Why a load waits."""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec import structs
from tests.unit.migration.test_load_duration import at, config
from tests.unit.state.samples import AT

from crossdock.migration.wave_loading import reason_load_must_wait
from crossdock.state import Migration

MIGRATION = Migration(1, "acme", AT, "Ann", None, None, None, None, None, None, None, None)


def test_a_pause_comes_first() -> None:
    """Who paused it, when, and how it goes on."""
    paused = structs.replace(MIGRATION, paused_at=datetime(2027, 1, 15, 7, tzinfo=UTC), paused_by="Bob")
    why = reason_load_must_wait(paused, config(("08:00", "18:00", 0)), at(9))
    assert why == "paused by Bob since 2027-01-15 07:00:00Z; 'crossdock migrate resume' lets it go on"


def test_hours() -> None:
    """Hours of 0 percent say until when, in the zone of the config; others do not make it wait."""
    zone = "America/New_York"
    why = reason_load_must_wait(MIGRATION, config(("08:00", "18:00", 0), zone=zone), at(15))
    assert why == "the hours of the config allow no requests until 2027-01-15 18:00:00-05:00"
    assert reason_load_must_wait(None, config(("08:00", "18:00", 1)), at(9)) is None
    assert reason_load_must_wait(MIGRATION, config(), at(9)) is None
    never = config(("08:00", "18:00", 0), ("18:00", "08:00", 0))
    assert reason_load_must_wait(MIGRATION, never, at(9)) == "the hours of the config allow no requests at any time"
