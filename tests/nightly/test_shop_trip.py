"""The trip of a shop's orders to the platform and a 3PL and back, in small; the full size is in tests/long."""

from __future__ import annotations

from pathlib import Path

from tests.chaos.chance import chaos_seed
from tests.chaos.shop_trip import shop_trip


def test_each_parcel_is_at_the_shop_once_whatever_fails(tmp_path: Path) -> None:
    """Parcels, statuses, tracking, stock and invoices agree on all three sides; then nothing is written."""
    print(shop_trip(tmp_path, seed=chaos_seed(), orders=20, nights=2, kills=1, reads=False))
