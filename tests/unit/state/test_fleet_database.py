"""The database of a fleet: who leads, and what was last known."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, date, datetime

import pytest
from sqlalchemy import create_engine, text
from tests.conftest import PIN

from crossdock.errors import StateBusyError, StateError
from crossdock.state import ScheduledRun, StateUrl, create_or_upgrade_state
from crossdock.state.db import run_lease
from crossdock.state.fleet_leadership_and_jobs import FleetDatabase, JobFacts

SINCE = datetime(2026, 6, 1, 2, 0, 0, 125, tzinfo=UTC)
RUN = ScheduledRun("a", SINCE, date(2026, 5, 31), "degraded", 2, 7, SINCE, SINCE, "open: 1 rejected")
FACTS = [JobFacts("a", SINCE, paused=False, expected_s=1.5, last=RUN), JobFacts("b", SINCE, paused=True)]


@pytest.fixture
def database(state_url: StateUrl) -> Iterator[FleetDatabase]:
    with closing(FleetDatabase(state_url)) as opened:
        yield opened


def test_what_was_written_is_read_by_the_next_leader(database: FleetDatabase, state_url: StateUrl) -> None:
    """Exactly, also from another process; the last word counts."""
    with database.hold_leadership("first") as leader:
        leader.write_job_facts({"acme": [JobFacts("a", SINCE, paused=True)], "bolt": FACTS})
        leader.write_job_facts({"acme": FACTS})
    with closing(FleetDatabase(state_url)) as other, other.hold_leadership("second") as leader:
        assert other.job_facts_by_tenant() == {name: {each.job: each for each in FACTS} for name in ("acme", "bolt")}
        leader.delete_job_facts_of_tenants(["bolt", "unknown"])
        assert list(other.job_facts_by_tenant()) == ["acme"]


def test_one_scheduler_leads(database: FleetDatabase, state_url: StateUrl) -> None:
    """Another one is refused until the first has ended."""
    with closing(FleetDatabase(state_url)) as other:
        with (
            database.hold_leadership("host:1"),
            pytest.raises(StateBusyError, match="host:1"),
            other.hold_leadership("host:2"),
        ):
            pass
        with other.hold_leadership("host:2"):
            """It is free."""


def test_a_leader_that_was_overtaken_writes_nothing(
    database: FleetDatabase, state_url: StateUrl, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that was suspended for longer than its lease finds out at its next write."""
    with closing(FleetDatabase(state_url)) as other:
        sleeper = database.hold_leadership("host:1")
        leader = sleeper.__enter__()
        with database._engine.begin() as connection:
            connection.execute(text("UPDATE leases SET until = '2000-01-01 00:00:00+00:00'"))
        monkeypatch.setattr(run_lease, "_GRACE_S", 0.0)
        with other.hold_leadership("host:2") as new:
            with pytest.raises(StateError, match="has taken over"):
                leader.write_job_facts({"acme": FACTS})
            new.write_job_facts({})
            assert other.job_facts_by_tenant() == {}
        sleeper.__exit__(None, None, None)


def test_the_state_of_a_tenant_is_no_database_of_a_fleet(state_url: StateUrl) -> None:
    """Their leases would be one."""
    create_or_upgrade_state(state_url, PIN)
    with pytest.raises(StateError, match="is the state of a tenant"):
        FleetDatabase(state_url)


def test_the_table_of_another_version_is_made_anew(database: FleetDatabase, state_url: StateUrl) -> None:
    """What it knew is read from the states again."""
    with database.hold_leadership("host:1") as leader:
        leader.write_job_facts({"acme": FACTS})
    engine = create_engine(state_url)
    with engine.begin() as connection:
        connection.execute(text("ALTER TABLE fleet_jobs ADD COLUMN another TEXT"))
    engine.dispose()
    with closing(FleetDatabase(state_url)) as other:
        assert other.job_facts_by_tenant() == {}
        with other.hold_leadership("host:2") as leader:
            leader.write_job_facts({"acme": FACTS})
