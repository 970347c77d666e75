"""Webhooks at full size: ``pytest tests/long/test_listen.py -rP``, five minutes.

``CROSSDOCK_CHAOS_SEED`` gives another seed; ``-rP`` shows what was done.
"""

from __future__ import annotations

from pathlib import Path

from tests.chaos.chance import chaos_seed
from tests.chaos.listen_kills import killed_listening


def test_five_thousand_webhooks(tmp_path: Path) -> None:
    """As in the short form, with sixteen kills, fifty bad requests of each kind, and slow bodies."""
    killed_listening(tmp_path, seed=chaos_seed(), webhooks=5_000, copies=3, bad=50, large=10, slow=20, kills=16)
