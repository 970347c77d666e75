"""Hundreds of records: ``pytest tests/long/test_migrate_trouble.py``, ten seconds."""

from __future__ import annotations

import pytest
from tests.e2e import test_migrate_trouble as short
from tests.e2e.test_migrate_trouble import migrated, test_a_disk_that_is_full, test_a_limit_that_is_halved

__all__ = ["migrated", "test_a_disk_that_is_full", "test_a_limit_that_is_halved"]


@pytest.fixture(autouse=True)
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"PRODUCTS": 400, "CUSTOMERS": 400, "INVOICES": 200, "AFTER": 150}
    for name, size in sizes.items():
        monkeypatch.setattr(short, name, size)
