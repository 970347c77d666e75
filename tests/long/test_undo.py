"""Other edits after the plan of an undo: ``pytest tests/long/test_undo.py``, five seconds."""

from __future__ import annotations

import pytest
from tests.e2e.conftest import platform, site
from tests.e2e.test_undo import an_edit_after_the_plan_is_noticed, synced
from tests.e2e.warehouse import Site

__all__ = ["platform", "site", "synced"]  # fixtures


@pytest.mark.parametrize(("member", "key"), [("barcode", "P2"), ("name", "P3")])
def test_an_edit_after_the_plan_is_noticed(synced: Site, member: str, key: str) -> None:
    """Nothing is done then, whether the record would be restored or deleted; a new plan leaves it alone."""
    an_edit_after_the_plan_is_noticed(synced, member, key)
