"""Receiving webhooks in processes that are killed: each accepted one is delivered, and nothing twice."""

from __future__ import annotations

from pathlib import Path

from tests.chaos.chance import chaos_seed
from tests.chaos.listen_kills import killed_listening


def test_nothing_is_lost_when_receivers_are_killed(tmp_path: Path) -> None:
    """Between inbox and answer, between answer and delivery, and anywhere else."""
    killed_listening(tmp_path, seed=chaos_seed(), webhooks=100, copies=3, bad=2, large=1, slow=0, kills=4)
