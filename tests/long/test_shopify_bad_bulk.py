"""Each bad bulk operation alone: ``pytest tests/long/test_shopify_bad_bulk.py``, ten seconds."""

from __future__ import annotations

from typing import Any

import pytest
from tests.e2e.test_shopify_bad_bulk import (
    BAD_SHAPES,
    WITHOUT_ID,
    bulk,
    bulk_operations_are_told,
    records_without_an_id_are_rejected,
    site,
)
from tests.partners.shop_stage import ShopifyStage

__all__ = ["bulk", "site"]  # fixtures


@pytest.mark.parametrize("shape", BAD_SHAPES)
def test_a_bulk_operation_that_cannot_be_understood_is_told(bulk: ShopifyStage, shape: tuple[str, Any, str]) -> None:
    """Whatever the shop answers in place of a bulk operation has a reason, and the next run reads all."""
    bulk_operations_are_told(bulk, [shape])


@pytest.mark.parametrize("line", WITHOUT_ID)
def test_a_record_without_an_id_is_rejected_and_all_others_arrive(bulk: ShopifyStage, line: bytes) -> None:
    """A line of a bulk file that could be any record is rejected with a reason."""
    records_without_an_id_are_rejected(bulk, [line])
