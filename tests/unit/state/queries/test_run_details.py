"""What a report reads from the state: counts, the first rows of each kind, and never a record's data."""

from __future__ import annotations

from datetime import timedelta

from tests.report_page import AT, dead_letter, finish, start, waiting
from tests.unit.state.samples import intent

from crossdock.state import State
from crossdock.state.queries.run_details_and_deliveries import ReasonCount, StreamDelivery

DATA = {"raw", "mapped", "body", "before", "after"}


def test_reasons_are_counted_for_a_run_and_what_came_before_it(state: State) -> None:
    """The most frequent reason comes first; rejections of later runs and dropped ones are not counted."""
    with state.begin() as tx:
        first, second, third = (start(tx, days=days) for days in range(3))
        tx.dead_letters.put([dead_letter(1), dead_letter(2, code="conflict"), dead_letter(9)], run_id=first, at=AT)
        tx.dead_letters.put(
            [dead_letter(3), dead_letter(4, code="conflict"), dead_letter(5, code="conflict")], run_id=second, at=AT
        )
        tx.dead_letters.put([dead_letter(6)], run_id=third, at=AT)
        tx.dead_letters.mark_dropped("wms.invoices", [9])
    with state.begin() as tx:
        assert tx.run_details.rejections_by_reason_until_run(second) == [
            ReasonCount("conflict", 3, 2),
            ReasonCount("bad_value", 2, 1),
        ]
        assert tx.run_details.rejections_by_reason_until_run(first) == [
            ReasonCount("bad_value", 1, 1),
            ReasonCount("conflict", 1, 1),
        ]
        assert [tx.run_details.count_rejected_records_of_runs_after(run) for run in (first, second, third)] == [4, 1, 0]


def test_a_run_shows_its_own_dead_letters_first(state: State) -> None:
    """They come in the order of their file, then those of earlier runs; no more than asked for, and without data."""
    with state.begin() as tx:
        first, second = start(tx), start(tx, days=1)
        tx.dead_letters.put([dead_letter(1), dead_letter(2)], run_id=first, at=AT)
        tx.dead_letters.put([dead_letter(20), dead_letter(10), dead_letter(3, code="conflict")], run_id=second, at=AT)
    with state.begin() as tx:
        rows = tx.run_details.dead_letters_with_reason_until_run(second, "bad_value", limit=3)
        assert [(row["key"], row["run_id"]) for row in rows] == [("K10", second), ("K20", second), ("K1", first)]
        assert not DATA & set(rows[0])
        assert tx.run_details.dead_letters_with_reason_until_run(second, "nothing", limit=3) == []


def test_what_waits_and_what_is_in_doubt_is_counted_and_cut_off(state: State) -> None:
    """The whole number and the oldest; what was minted and not settled is counted apart."""
    unsettled = [intent(number, status="in_doubt", attempts=2, first_sent_at=AT) for number in (1, 2, 3)]
    with state.begin() as tx:
        run = start(tx)
        tx.waiting_records.put([waiting(1)], run_id=run, at=AT + timedelta(hours=1))
        tx.waiting_records.put([waiting(2), waiting(3)], run_id=run, at=AT)
        tx.intents.add([*unsettled, intent(4), intent(5, status="sending")], run_id=run, fence=1, at=AT)
    with state.begin() as tx:
        number, rows = tx.run_details.count_and_list_oldest_waiting(limit=2)
        assert (number, [row["key"] for row in rows]) == (3, ["W2", "W3"])
        assert not DATA & set(rows[0])
        number, rows = tx.run_details.count_and_list_oldest_unsettled("in_doubt", limit=2)
        assert (number, [row["key"] for row in rows]) == (3, ["K1", "K2"])
        assert not DATA & set(rows[0])
        assert tx.run_details.count_all_unsent_operations() == 2


def test_deliveries_are_a_runs_own_and_the_slowest_comes_first(state: State) -> None:
    """From the first operation to the last settlement; what an operator settled later is not included."""
    quick, slow, late = intent(1, stream="wms.a"), intent(2, stream="wms.b"), intent(3, stream="wms.c")
    with state.begin() as tx:
        run, other = start(tx), start(tx, days=1)
        tx.intents.add([quick, slow, late], run_id=run, fence=1, at=AT)
        for item, minutes in ((quick, 1), (slow, 2), (late, 61)):
            item.status = "delivered"
            tx.intents.write_outcomes([item], at=AT + timedelta(minutes=minutes))
        assert tx.run_details.delivery_times_by_stream(finish(tx, run)) == [
            StreamDelivery("wms.b", 1, AT, AT + timedelta(minutes=2)),
            StreamDelivery("wms.a", 1, AT, AT + timedelta(minutes=1)),
        ]
        assert tx.run_details.delivery_times_by_stream(finish(tx, other)) == []
