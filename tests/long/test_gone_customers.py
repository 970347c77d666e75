"""Customers, orders and accounts that come and go: ``pytest tests/long/test_gone_customers.py``, two minutes."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.e2e.gone_customers import random_nights

from crossdock.sandbox import SandboxServer


@pytest.mark.parametrize("seed", range(10))
def test_nothing_dangles(tmp_path: Path, seed: int) -> None:
    """Each delete of a record that others refer to is held back, and carried out once they are gone."""
    with SandboxServer(tmp_path / "sandbox") as platform:
        random_nights(tmp_path / "project", platform, 12, seed)
