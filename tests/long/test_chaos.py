"""What crossdock promises of its delivery, at full size: ``pytest tests/long/test_chaos.py -n 2 -rP``, some minutes.

``CROSSDOCK_CHAOS_SEED`` gives another seed; ``-rP`` shows what was injected.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.chaos import promises
from tests.chaos.depot import SQLITE
from tests.chaos.systems import PARTNER

from crossdock.testing.postgres_server import PostgresServer


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def state(request: pytest.FixtureRequest) -> str:
    """What a config names as its state, once on each database."""
    if request.param == "sqlite":
        return SQLITE
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.create_database()


def test_nothing_is_lost_in_a_crash(tmp_path: Path, state: str) -> None:
    """Killed at every boundary of a record's way and at random instants, nothing is lost and nothing done twice."""
    promises.nothing_lost_in_a_crash(tmp_path, records=5_000, rounds=2, kills=24, in_flight=8, state=state)


def test_nothing_is_lost_in_a_crash_before_a_3pl(tmp_path: Path) -> None:
    """The same with another target."""
    promises.nothing_lost_in_a_crash(tmp_path, records=1_000, rounds=2, kills=8, in_flight=8, system=PARTNER)


def test_each_order_has_one_effect_at_a_3pl(tmp_path: Path) -> None:
    """Lost answers and false ones of another target lose nothing and do nothing twice."""
    promises.one_effect_each(tmp_path, invoices=1_000, in_flight=16, system=PARTNER)


def test_a_key_of_a_3pl_stands_for_the_same_bytes(tmp_path: Path) -> None:
    """A restart with another serializer sends to another target what was written down."""
    promises.same_key_same_bytes(tmp_path, invoices=400, kill_at=100, in_flight=8, system=PARTNER)


def test_each_record_has_one_effect(tmp_path: Path) -> None:
    """Lost, cut and false answers lose nothing and do nothing twice."""
    promises.one_effect_each(tmp_path, invoices=10_000, in_flight=32)


def test_a_key_stands_for_the_same_bytes(tmp_path: Path) -> None:
    """A restart with another serializer sends what was written down, byte for byte."""
    promises.same_key_same_bytes(tmp_path, invoices=2_000, kill_at=200, in_flight=16)


def test_a_rerun_is_harmless(tmp_path: Path) -> None:
    """The same night again has no effect."""
    promises.rerun_is_harmless(tmp_path, records=5_000, in_flight=32)


def test_not_a_cent_drifts(tmp_path: Path, state: str) -> None:
    """Every amount comes back as it stood in the file."""
    promises.not_a_cent_drifts(tmp_path, amounts=2_000, in_flight=16, state=state)
