"""A live shop, django-oscar with django-oscar-api, in place of our fakes: ``pytest tests/long/test_live_oscar.py -rP``.

The packages of ``tests/long/peers/oscar/requirements.txt`` are installed from PyPI into an environment of the test's
own; without PyPI the test is skipped. ``CROSSDOCK_CHAOS_SEED`` gives another seed.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from tests.chaos.chance import chaos_seed
from tests.long.peers.oscar.server import OscarServer, installed
from tests.long.peers.oscar.trip import opened
from tests.servers import require


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = installed(tmp_path_factory.mktemp("environment"))
    require(found is not None, "django-oscar from PyPI", optional_by="CROSSDOCK_PYPI_OPTIONAL")
    assert found is not None
    return found


def test_a_shop_that_sells_while_syncs_are_killed(python: Path, tmp_path: Path) -> None:
    """Products, customers, stock and orders agree to the cent, and so do statuses and the depot's stock there."""
    with OscarServer(python) as shop, opened(tmp_path, shop, Random(chaos_seed())) as trip:
        trip.open_shop(products=280, customers=190, orders=300)
        for _ in range(5):
            trip.night(acts=80, kills=3)
        trip.finish()
        assert trip.happened["kills"] >= 5
        print(trip.told())
