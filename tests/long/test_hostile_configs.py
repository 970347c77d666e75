"""Hostile config files at full size: ``pytest tests/long/test_hostile_configs.py``, three minutes."""

from __future__ import annotations

import pytest
from tests import hostile_configs


@pytest.mark.parametrize("_round", range(4))
def test_every_document_is_judged_in_bounded_memory(_round: int) -> None:
    """Mutations of right configs, damaged texts and bombs end in findings, never in another error, within 400 MB."""
    hostile_configs.in_bounded_memory(3_000, bombs=len(hostile_configs.BOMBS))
