"""What look-ups of parcels and stock say: only a whole answer shows that something is not there."""

from __future__ import annotations

from typing import Any

import pytest

from crossdock import RecordError
from crossdock_connectors.shop.woocommerce import parcel_writes_and_look_ups, stock_writes_and_look_ups


def item(number: Any, tracking_id: Any = "abc") -> dict[str, Any]:
    return {"tracking_id": tracking_id, "tracking_number": number}


def test_a_parcel_is_there_if_its_number_is() -> None:
    """Items of others, which may be without a number, are other parcels; a plugin may write a number as one."""
    there = parcel_writes_and_look_ups.outcome_of_parcel_look_up([item(""), item("N0"), item(47, "def")], "17|47", None)
    assert (there.kind, there.target_id) == ("found", "17-def")
    assert parcel_writes_and_look_ups.outcome_of_parcel_look_up([item(""), item("N0")], "17|47", None).kind == "absent"
    assert parcel_writes_and_look_ups.outcome_of_parcel_look_up([item("N0")], None, "17-abc").kind == "found"
    assert parcel_writes_and_look_ups.outcome_of_parcel_look_up([item("N0")], None, "17-def").kind == "absent"


@pytest.mark.parametrize("odd", [None, "odd", {}, item(None), item("N1", None), {"tracking_number": "N1"}])
def test_an_item_that_cannot_be_read_may_be_the_parcel(odd: Any) -> None:
    """Told again, the parcel would be there twice."""
    with pytest.raises(RecordError):
        parcel_writes_and_look_ups.outcome_of_parcel_look_up([item("N0"), odd], "17|N1", None)


def test_a_created_item_with_a_number_as_a_number() -> None:
    """It is the parcel that was sent."""
    outcome = parcel_writes_and_look_ups.outcome_of_parcel_creation(item(47), 201, "17|47")
    assert (outcome.kind, outcome.target_id) == ("delivered", "17-abc")


@pytest.mark.parametrize("odd", [None, "odd", {}, {"id": 5, "sku": None}])
def test_a_product_that_cannot_be_read_may_have_the_sku(odd: Any) -> None:
    """An answer with it does not show that the shop has no such product."""
    with pytest.raises(RecordError):
        stock_writes_and_look_ups.outcome_of_sku_look_up([odd], "LAMP")
    assert stock_writes_and_look_ups.outcome_of_sku_look_up([{"id": 5, "sku": "LAMP-2"}], "LAMP").kind == "absent"
