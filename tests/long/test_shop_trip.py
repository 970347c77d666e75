"""The trip of a shop's orders at full size: ``pytest tests/long/test_shop_trip.py -rP``, fifteen minutes.

``CROSSDOCK_CHAOS_SEED`` gives another seed; ``-rP`` shows what was done.
"""

from __future__ import annotations

from pathlib import Path

from tests.chaos.chance import chaos_seed
from tests.chaos.shop_trip import shop_trip


def test_a_thousand_orders(tmp_path: Path) -> None:
    """As in the short form, with faults of reads too."""
    print(shop_trip(tmp_path, seed=chaos_seed(), orders=1_000, nights=4, kills=5, reads=True))
