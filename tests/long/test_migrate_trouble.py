"""Hundreds of records: ``pytest tests/long/test_migrate_trouble.py``, ten seconds."""

from __future__ import annotations

import pytest
from tests.e2e import test_migrate_trouble as short
from tests.e2e.test_migrate_trouble import migrated, test_a_disk_that_is_full

__all__ = ["migrated", "test_a_disk_that_is_full"]


@pytest.fixture(autouse=True)
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(short, "PRODUCTS", 400)
