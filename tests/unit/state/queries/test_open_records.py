"""Open records are counted by stream and state, from everything that is not settled."""

from __future__ import annotations

import pytest
from tests.report_page import AT, dead_letter, start, waiting
from tests.unit.state.samples import intent

from crossdock.state import State
from crossdock.state.tables.intents_and_stored_batches import Status
from crossdock.values.run_states_and_tally import NOTHING_OPEN, OpenCounts


def test_each_stream_has_its_counts(state: State) -> None:
    """Whatever run wrote them; dropped and other streams' records are not counted, and a stream may have none."""
    with state.begin() as tx:
        first, second = start(tx), start(tx, days=1)
        tx.dead_letters.put([dead_letter(1), dead_letter(2), dead_letter(3, stream="wms.lots")], run_id=first, at=AT)
        tx.dead_letters.put([dead_letter(4), dead_letter(5, key="")], run_id=second, at=AT)
        tx.dead_letters.mark_dropped("wms.invoices", [2])
        tx.waiting_records.put([waiting(6), waiting(7, stream="wms.lots")], run_id=second, at=AT)
        tx.intents.add([intent(8, stream="wms.lots", status="in_doubt")], run_id=first, fence=1, at=AT)
        assert tx.open_record_counts.by_stream(["wms.lots", "wms.bins", "wms.invoices"]) == {
            "wms.lots": OpenCounts(rejected=1, waiting=1, in_doubt=1),
            "wms.bins": NOTHING_OPEN,
            "wms.invoices": OpenCounts(rejected=3, waiting=1),
        }


@pytest.mark.parametrize(
    ("status", "counted"),
    [
        ("pending", OpenCounts(pending=1)),
        ("sending", OpenCounts(pending=1)),
        ("in_doubt", OpenCounts(in_doubt=1)),
        ("delivered", NOTHING_OPEN),
        ("rejected", NOTHING_OPEN),
        ("replaced", NOTHING_OPEN),
        ("dropped", NOTHING_OPEN),
    ],
)
def test_an_operation_is_open_until_it_is_settled(state: State, status: Status, counted: OpenCounts) -> None:
    """What the next run sends is pending; a rejected one is counted by its dead letter."""
    with state.begin() as tx:
        tx.intents.add([intent(1, status=status)], run_id=start(tx), fence=1, at=AT)
        assert tx.open_record_counts.by_stream(["wms.products"]) == {"wms.products": counted}
