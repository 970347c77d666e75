"""Settled operations in the tallies of a run."""

from __future__ import annotations

import pytest
from tests.unit.state.samples import intent

from crossdock.runs.run_report import Report, SettlementCount
from crossdock.writing.delivery.state_writer import Settlement
from crossdock.writing.targets.answer_outcomes import Outcome


def settled(*, untouched: bool = False, **facts: object) -> Settlement:
    return Settlement(intent(1, **facts), Outcome("delivered"), untouched=untouched)


@pytest.mark.parametrize(
    ("item", "term"),
    [
        (settled(status="delivered"), "created"),
        (settled(status="delivered", operation="update"), "updated"),
        (settled(status="delivered", operation="delete"), "deleted"),
        (settled(status="delivered", untouched=True), "suppressed"),
        (settled(status="rejected"), "rejected"),
        (settled(status="in_doubt"), "carried_on"),
        (settled(status="pending"), "carried_on"),
    ],
)
def test_each_operation_is_counted_once(item: Settlement, term: str) -> None:
    """A settled operation counts under exactly one term of its stream."""
    report = Report(1, "2026-03-29")
    assert SettlementCount(report).count_settled_operation(item)
    assert {name: {k: v for k, v in t.records.items() if v} for name, t in report.tallies.items()} == {
        "wms.products": {term: 1}
    }


def test_a_record_delivered_in_two_steps_is_created_once() -> None:
    """The first step counts nothing, and the update that completes it counts as created."""
    report = Report(1, "2026-03-29")
    count = SettlementCount(report)
    assert not count.count_settled_operation(settled(status="delivered", step="open"))
    assert count.count_settled_operation(settled(status="delivered", operation="update"))
    assert +report.tally("wms.products").records == {"created": 1}


@pytest.mark.parametrize("resuming", [False, True])
def test_a_rejected_first_step_is_a_rejected_record(*, resuming: bool) -> None:
    """It is counted as carried over as well if an earlier run left it, since its record no longer waits."""
    report = Report(1, "2026-03-29")
    count = SettlementCount(report)
    item = settled(status="rejected", step="open")
    count.resuming = {item.intent.id} if resuming else {item.intent.id + 1}
    assert not count.count_settled_operation(item)
    expected = {"rejected": 1, "carried_over": 1} if resuming else {"rejected": 1}
    assert +report.tally("wms.products").records == expected


def test_what_an_earlier_run_left_is_carried_over() -> None:
    """First steps are not counted: their records wait, and are counted there."""
    report = Report(1, "2026-03-29")
    SettlementCount(report).count_carried_over([intent(1), intent(2, step="open"), intent(3, stream="wms.b")])
    assert {name: tally.records["carried_over"] for name, tally in report.tallies.items()} == {
        "wms.products": 1,
        "wms.b": 1,
    }
