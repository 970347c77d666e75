"""The short forms of what crossdock promises of its delivery; ``pytest tests/long -n 2`` runs the long ones.

``CROSSDOCK_CHAOS_SEED`` gives another seed; ``-rP`` shows what was injected.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.chaos import promises
from tests.chaos.systems import PARTNER, PLATFORM, System

from crossdock.testing.postgres_server import PostgresServer

STORED = ("spooled", "accepted", "waiting_written", "intents_added", "committed", "sent", "settle_written")
ENDED = ("index_written", "files_finished", "run_finished")
"""Failpoints of the short forms: one of each kind of change that a run makes to its state, its files or the target."""
SYSTEMS = pytest.mark.parametrize(
    ("system", "share"), [pytest.param(PLATFORM, 1, id="platform"), pytest.param(PARTNER, 2, id="partner")]
)  # the share is that of the size


@pytest.mark.nightly(but=["platform"])
@SYSTEMS
def test_nothing_is_lost_in_a_crash(tmp_path: Path, system: System, share: int) -> None:
    """Killed between two changes of what is stored and at random instants, nothing is lost and nothing done twice."""
    size, at = (120, (*STORED, *ENDED)) if system is PLATFORM else (80, ("committed", "sent", "settle_written"))
    promises.nothing_lost_in_a_crash(
        tmp_path, records=size, rounds=1, kills=2 // share, in_flight=4, sides=1, system=system, at=at
    )


@pytest.mark.nightly(but=["partner"])
@SYSTEMS
def test_each_record_has_one_effect(tmp_path: Path, system: System, share: int) -> None:
    """Lost, cut and false answers lose nothing and do nothing twice."""
    promises.one_effect_each(tmp_path, invoices=300 // share, in_flight=8, system=system)


@pytest.mark.nightly(but=["partner"])
@SYSTEMS
def test_a_key_stands_for_the_same_bytes(tmp_path: Path, system: System, share: int) -> None:
    """A restart with another serializer sends what was written down, byte for byte."""
    promises.same_key_same_bytes(tmp_path, invoices=80, kill_at=30, in_flight=4, system=system)


def test_a_rerun_is_harmless(tmp_path: Path) -> None:
    """The same night again has no effect."""
    promises.rerun_is_harmless(tmp_path, records=40, in_flight=8)


@pytest.mark.nightly
def test_another_order_of_members_is_no_change(tmp_path: Path) -> None:
    """A build that writes members in another order finds everything as it was delivered."""
    promises.another_order_is_no_change(tmp_path, records=40, in_flight=4)


def test_not_a_cent_drifts(tmp_path: Path) -> None:
    """Every amount comes back as it stood in the file."""
    promises.not_a_cent_drifts(tmp_path, amounts=120, in_flight=8)


@pytest.mark.nightly
@pytest.mark.postgres
def test_not_a_cent_drifts_on_postgresql(tmp_path: Path, postgres: PostgresServer) -> None:
    """The same through a state on PostgreSQL."""
    promises.not_a_cent_drifts(tmp_path, amounts=150, in_flight=8, state=postgres.create_database())
