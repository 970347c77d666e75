"""What a reconciliation shows first, and how much of it."""

from __future__ import annotations

from datetime import UTC, datetime

from crossdock.cli import reconcile
from crossdock.runs.platform_and_state_comparison import CLASSES, Difference, DifferenceClass
from crossdock.runs.reconciliation.reconciliation_result import Reconciliation
from crossdock.state import Scope

PRODUCTS, INVOICES = (Scope("platform", resource, "wms") for resource in ("product", "invoice"))


def reconciliation() -> Reconciliation:
    """Many rejected products, and one invoice of each other class."""
    found = Reconciliation(datetime(2027, 3, 1, tzinfo=UTC), None)
    for number in range(9):
        made = Difference("rejected", PRODUCTS, f"P{number}")
        found.undelivered["rejected", "wms.products", number] = made
    compared: tuple[DifferenceClass, ...] = ("stale", "diverged", "extra", "duplicate", "missing")
    for number, name in enumerate(compared):
        found.differences[INVOICES, str(number)] = Difference(name, INVOICES, str(number))
    return found


def test_the_most_severe_class_is_first() -> None:
    """Whatever the resource; a limit counts for each class, so that none hides another."""
    shown = [each.difference for each in reconciliation().first_differences_of_each_class(2)]
    assert shown == ["missing", "duplicate", "diverged", "extra", "stale", "rejected", "rejected"]


def test_one_class_is_shown_alone() -> None:
    """The counts are of all."""
    found = reconciliation()
    assert [each.key for each in found.first_differences_of_each_class(2, "rejected")] == ["P0", "P1"]
    assert found.counts_by_resource_and_class["product", "rejected"] == 9


def test_a_record_with_two_differences_differs_once() -> None:
    """The confidence of a sample is about records."""
    found = reconciliation()
    found.differences[PRODUCTS, "P0"] = Difference("diverged", PRODUCTS, "P0")
    assert found.count_differing_records("product") == 9
    assert len(found.sorted_differences()) == 15


def test_the_command_knows_all_classes() -> None:
    """It names them without waiting for the state to be imported."""
    assert reconcile.CLASSES == CLASSES
