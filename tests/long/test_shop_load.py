"""The first load of a shop at full size: ``pytest tests/long/test_shop_load.py -rP``, half an hour.

``CROSSDOCK_CHAOS_SEED`` gives another seed; ``-rP`` shows what was done.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.chaos.chance import chaos_seed
from tests.chaos.shop_load import Currency, shop_load


@pytest.mark.parametrize(("currency", "kills"), [("shop", 10), ("presentment", 0)])
def test_twenty_thousand_orders(tmp_path: Path, currency: Currency, kills: int) -> None:
    """As in the short form, with 50,000 lines; ten runs are killed."""
    print(shop_load(tmp_path / "load", seed=chaos_seed(), orders=20_000, kills=kills, currency=currency))
