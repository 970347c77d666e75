"""A live shop, Medusa 2, in place of our fakes: ``pytest tests/long/test_live_medusa.py -rP``.

The packages of ``tests/long/peers/medusa/shop`` are installed from the npm registry, 640 MB; without it, or without
PostgreSQL, the test is skipped. ``CROSSDOCK_CHAOS_SEED`` gives another seed.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from tests.chaos.chance import chaos_seed
from tests.consumers.generated_clients import npm_registry_answers
from tests.long.peers.medusa.server import MedusaServer, installed
from tests.long.peers.medusa.trip import opened
from tests.servers import require

from crossdock.testing.postgres_server import PostgresServer


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require(npm_registry_answers(), "access to the npm registry", optional_by="CROSSDOCK_NPM_OPTIONAL")
    return installed(tmp_path_factory.mktemp("packages"))


def test_a_shop_that_sells_while_syncs_are_killed(packages: Path, tmp_path: Path) -> None:
    """Products, customers, stock and orders agree to the cent, and so do statuses and the depot's stock there."""
    require(PostgresServer.available(), "a PostgreSQL server")
    with (
        PostgresServer() as database,
        MedusaServer(packages, database) as shop,
        opened(tmp_path, shop.url, Random(chaos_seed())) as trip,
    ):
        trip.open_shop(products=290, customers=190, orders=300)
        for _ in range(5):
            trip.night(acts=80, kills=3)
        trip.finish()
        assert trip.happened["kills"] >= 5
        print(trip.told())
