"""Undos that have begun and not ended."""

from __future__ import annotations

import pytest
from tests.unit.state.samples import AT

from crossdock.state import BegunUndo
from crossdock.state.tables.pending_approvals_and_begun_undos import packed_key_hashes

KEYS = (0, 7, 2**64, 2**128 - 1)


@pytest.mark.parametrize("others", [(1, 8, 2**127)])
def test_it_covers_exactly_its_keys(others: tuple[int, ...]) -> None:
    """Each key that was approved, and none between them."""
    begun = BegunUndo("wms.products", 1, AT, {}, packed_key_hashes(KEYS))
    assert all(begun.covers_record(each) for each in KEYS)
    assert not any(begun.covers_record(each) for each in others)
    assert not BegunUndo("wms.products", 1, AT, {}, b"").covers_record(7)
