"""The round trip at full size: ``pytest tests/long/test_round_trip.py -n 2 -rP``, ten minutes.

``CROSSDOCK_CHAOS_SEED`` gives another seed; ``-rP`` shows what was done.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.chaos.chance import chaos_seed
from tests.chaos.round_trip import round_trip


@pytest.mark.parametrize("number", range(2))
def test_two_thousand_orders(tmp_path: Path, number: int) -> None:
    """As in the short form, with faults of reads too; one 3PL has idempotency keys, the other refuses names twice."""
    print(round_trip(tmp_path, seed=chaos_seed() + number, orders=2_000, nights=5, kills=5, reads=True))
