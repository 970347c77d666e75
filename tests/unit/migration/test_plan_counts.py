"""What is collected of a plan: counts, a few examples, and why references will not resolve."""

from __future__ import annotations

from tests.report_page import dead_letter, waiting

from crossdock.migration.rehearsal import EXAMPLES, PlannedOutcomeCounts
from crossdock.state import RecordIdentity, Scope
from crossdock.values.raw_rows_and_records import Record
from crossdock.writing.delivery.operations_and_intents import Operation

SCOPES = {"wms.invoices": Scope("platform", "invoice", "wms"), "wms.customers": Scope("platform", "customer", "wms")}


def test_rejected_records_are_counted_by_reason_with_examples() -> None:
    """All are counted, and the first few shown with their place; never their data."""
    decisions = PlannedOutcomeCounts(SCOPES, {})
    listener = decisions.listener()
    for number in range(EXAMPLES + 2):
        listener.refused(dead_letter(number))
    listener.refused(dead_letter(9, code="conflict"))
    found = decisions.streams["wms.invoices"].rejected
    assert {code: each.records for code, each in found.items()} == {"bad_value": EXAMPLES + 2, "conflict": 1}
    assert [each.line for each in found["bad_value"].examples] == list(range(EXAMPLES))
    assert "canary" not in repr(decisions.streams)


def test_a_reference_will_not_resolve_for_a_reason() -> None:
    """The record is rejected, waits itself, or was never read."""
    decisions = PlannedOutcomeCounts(SCOPES, {})
    listener = decisions.listener()
    listener.refused(dead_letter(1, stream="wms.customers", key="C1"))
    listener.waiting(waiting(2, stream="wms.customers", key="C2"))
    for number in (1, 2, 3, 3):
        listener.waiting(waiting(number))
    found = decisions.streams["wms.invoices"]
    assert dict(found.missing["customer", "wms"]) == {"C1": 1, "C2": 1, "C3": 2}
    assert (found.waiting, found.has_open_records) == (4, True)
    why = [decisions.missing_parent_reason(("customer", "wms", key)) for key in ("C1", "C2", "C3")]
    assert why == ["rejected", "waiting", "not read"]


def operation(stream: str, **after: object) -> Operation:
    identity = RecordIdentity(stream, "K", 1, 1, None, "f.csv", 1)
    return Operation("create", identity, SCOPES[stream], Record("K", (), "f.csv", ()), after, after, None)


def test_references_to_a_later_wave_are_counted_once_for_each_record() -> None:
    """A placeholder anywhere in the payload counts; a record of another resource or an id does not."""
    decisions = PlannedOutcomeCounts(SCOPES, {"wms.invoices": {"<product wms:": "goods"}})
    listener = decisions.listener()
    item = {"productId": "<product wms:P1>"}
    listener.operation(operation("wms.invoices", items=[item, item], customerId="<customer wms:C1>"))
    listener.operation(operation("wms.invoices", items=[{"productId": "p-1"}], customerId="<customer wms:C1>"))
    listener.operation(operation("wms.customers", name="<product wms:P1>"))
    assert dict(decisions.streams["wms.invoices"].refers_to_later) == {"goods": 1}
    assert not decisions.streams["wms.customers"].refers_to_later
