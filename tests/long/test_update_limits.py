"""150 products and the default limit: ``pytest tests/long/test_update_limits.py``, ten seconds."""

from __future__ import annotations

import pytest
from tests.e2e import test_update_limits as short
from tests.e2e.conftest import platform, site, soon_probing
from tests.e2e.test_update_limits import (
    stocked,
    test_a_changed_mapping_says_so,
    test_a_corrected_file_needs_no_approval,
    test_a_mapping_that_changes_no_payload_is_no_update,
    test_an_interrupted_approval_stays_valid,
    test_approved_updates_are_carried_out_once,
    test_other_updates_are_not_approved,
    test_the_limits_are_settings,
    test_usual_nights_never_stop,
)

__all__ = [
    "platform",
    "site",
    "soon_probing",
    "stocked",
    "test_a_changed_mapping_says_so",
    "test_a_corrected_file_needs_no_approval",
    "test_a_mapping_that_changes_no_payload_is_no_update",
    "test_an_interrupted_approval_stays_valid",
    "test_approved_updates_are_carried_out_once",
    "test_other_updates_are_not_approved",
    "test_the_limits_are_settings",
    "test_usual_nights_never_stop",
]


@pytest.fixture(autouse=True)
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(short, "AT_MOST", 100)
    monkeypatch.setattr(short, "PRODUCTS", 150)
