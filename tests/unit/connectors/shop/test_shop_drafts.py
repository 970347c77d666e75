"""Records that are written back to shops: their members and their keys."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from pydantic import ValidationError

from crossdock import RecordError
from crossdock_connectors.shop.written_back_record_models import Fulfillment, StockLevel, split_key_in_two


def test_units_are_whole() -> None:
    """A decimal without a fraction is a number of units, as a config's ``as: decimal`` makes it."""
    parcel = Fulfillment.model_validate({"items": [{"sku": "0017", "quantity": Decimal("2.0")}]})
    assert parcel.payload() == {"items": [{"sku": "0017", "quantity": 2}], "notify": False}
    assert StockLevel.model_validate({"quantity": Decimal(-3)}).payload() == {"quantity": -3}


@pytest.mark.parametrize("quantity", [Decimal("1.5"), 0, -1, 2**31, "2", None])
def test_what_is_no_number_of_units_is_refused(quantity: Any) -> None:
    """A parcel has at least one unit of each of its products, and no parts of one."""
    with pytest.raises(ValidationError):
        Fulfillment.model_validate({"items": [{"sku": "0017", "quantity": quantity}]})


def test_a_parcel_without_any_product_is_refused() -> None:
    """No list at all means all that is left; an empty one is a mistake."""
    with pytest.raises(ValidationError):
        Fulfillment.model_validate({"items": []})


def test_a_key_has_two_parts() -> None:
    """Each may have any character; another number of parts is refused with what they should be."""
    assert split_key_in_two("1001|1Z%7C7", "the order and the number") == ("1001", "1Z|7")
    for key in ("1001", "1001|1Z|7"):
        with pytest.raises(RecordError, match="the key must be the order and the number, in this order"):
            split_key_in_two(key, "the order and the number")
