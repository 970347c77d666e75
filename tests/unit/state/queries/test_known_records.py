"""The records that the state knows of a stream: delivered ones, and open ones that are not delivered."""

from __future__ import annotations

from tests.report_page import AT, dead_letter, start, waiting
from tests.unit.state.samples import SCOPE, binding, intent

from crossdock.state import State

STREAM = "wms.products"


def test_each_record_counts_once(state: State) -> None:
    """A delivered record that is open as well, or one that is open twice, is one; other streams do not count."""
    with state.begin() as tx:
        run = start(tx)
        tx.bindings.put(SCOPE, [binding(number) for number in (1, 2, 3, 4)], run_id=run, at=AT)
        tx.bindings.mark_deleted(SCOPE, [4], at=AT)  # it is gone
        tx.dead_letters.put([dead_letter(number, stream=STREAM) for number in (1, 10, 11)], run_id=run, at=AT)
        tx.dead_letters.mark_dropped(STREAM, [11])
        tx.waiting_records.put([waiting(10, stream=STREAM), waiting(12, stream="wms.lots")], run_id=run, at=AT)
        tx.intents.add(
            [intent(2, status="sending"), intent(13), intent(14, status="delivered")], run_id=run, fence=1, at=AT
        )
        assert tx.known_record_counts.delivered(SCOPE) == 3
        assert tx.known_record_counts.not_delivered(STREAM, SCOPE) == 2  # 10 and 13
