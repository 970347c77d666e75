"""What the records of the platform refer to, and which of their members are personal."""

from __future__ import annotations

from typing import get_args

import pytest

from crossdock.mapping.resource_types import RESOURCES
from crossdock.resources import ResourceName
from crossdock.runs.platform_source.settings import (
    expanded_record_member,
    personal_members_with_expanded_records,
    reference_members,
)


@pytest.mark.parametrize("resource", get_args(ResourceName))
def test_every_reference_of_a_resource_can_be_expanded(resource: ResourceName) -> None:
    """The members that name other records name just the resources that a draft may refer to."""
    assert set(reference_members(resource).values()) == RESOURCES[resource].parents


def test_an_expanded_record_has_the_name_of_its_member() -> None:
    """Without the ending of an id."""
    assert [expanded_record_member(each) for each in reference_members("inventory_lot")] == ["product", "bin"]


def test_personal_columns_are_those_of_the_record_and_of_what_is_expanded() -> None:
    """An order has a personal address, and with its customer the personal members of a customer."""
    assert list(personal_members_with_expanded_records("order", [])) == ["shippingAddress"]
    assert {"shippingAddress", "customer.name", "customer.email"} <= {
        *personal_members_with_expanded_records("order", ["customerId"])
    }
    assert list(personal_members_with_expanded_records("product", [])) == []
