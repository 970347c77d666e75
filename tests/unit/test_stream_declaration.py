"""What is declared about a stream: which records may be removed, and which are taken over."""

from __future__ import annotations

import pytest

from crossdock.mapping.resource_types import WRITABLE_RESOURCE_TYPES, ResourceType
from crossdock.mapping.stream_declaration import AdoptBy, OnGone, adopt_option_problem, removal_problem
from crossdock.resources import CustomerDraft


@pytest.mark.parametrize(
    ("deletes", "on_gone", "refusal"),
    [
        (False, "delete", "is written once, and never archived or deleted"),
        (True, "delete", None),
        (True, "archive", "is written once, and never changed"),
        (True, "nothing", None),
    ],
)
def test_what_is_written_once_is_deleted_only_if_its_target_permits_it(
    *, deletes: bool, on_gone: OnGone, refusal: str | None
) -> None:
    """An order may be cancelled although it is never changed; an invoice may not."""
    kind = ResourceType("orders", CustomerDraft, write_once=True, deletes=deletes)
    found = removal_problem(kind, "snapshot", on_gone, finds_deleted=False)
    assert (found is None) == (refusal is None)
    assert (refusal or "") in (found or "")


@pytest.mark.parametrize(
    ("resource", "member", "refusal"),
    [
        ("product", "sku", None),
        ("customer", "email", None),
        ("inventory_lot", "lotNumber", None),
        ("ledger_account", "code", None),
        ("product", "skus", "unknown member; did you mean 'sku'?"),
        ("product", "unitPrice", "unitPrice is not a text; members that are: sku, name, "),
        ("ledger_account", "type", "type is not a text; members that are: code, name, currency"),
        ("inventory_lot", "productId", "productId is not a text; members that are: lotNumber, "),
        ("customer", "billingAddress", "billingAddress is not a text"),
        ("invoice", "currency", "is impossible: an invoice is written once, and never changed"),
        ("lot_movement", "lotId", "is impossible"),
    ],
)
def test_records_are_matched_by_a_text_of_what_can_be_changed(resource: str, member: str, refusal: str | None) -> None:
    """Neither numbers nor ids of other records nor fixed values tell one record from another."""
    found = adopt_option_problem(WRITABLE_RESOURCE_TYPES[resource], AdoptBy(by=member), "platform", ())
    assert (found is None) == (refusal is None)
    assert (found or "").startswith(refusal or "")


def test_only_whole_records_of_the_platform_are_taken_over() -> None:
    """A contribution says itself which record it is about, and the lists of partners are not read."""
    product, by = WRITABLE_RESOURCE_TYPES["product"], AdoptBy(by="sku")
    assert "go to the platform" in (adopt_option_problem(product, by, "plain.items", ()) or "")
    assert "write whole records" in (adopt_option_problem(product, by, "platform", ("sku",)) or "")
    assert adopt_option_problem(product, by, "platform", (), {"sku": "SKU"}) is None
    assert adopt_option_problem(product, by, "platform", (), {"name": "NAME"}) == "map does not make sku"
    assert adopt_option_problem(WRITABLE_RESOURCE_TYPES["invoice"], "external_id", "platform", ()) is None
