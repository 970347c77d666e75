"""What pages about several business dates read, on both databases: only the dates that they show."""

from __future__ import annotations

from datetime import date, timedelta

from tests.report_page import AT, dead_letter, start
from tests.unit.state.samples import intent

from crossdock.state import DueRun, FileFacts, RunCountOfDate, RunResult, State
from crossdock.state.queries.run_details_and_deliveries import StreamReasonCount
from crossdock.values.run_progress_and_messages import RunMessage

FIRST, LAST = date(2026, 3, 28), date(2026, 3, 29)


def test_only_the_runs_of_the_span_are_read(state: State) -> None:
    """Scheduled ones in the order in which they were due, all runs as records and as numbers."""
    with state.begin() as tx:
        for day in (27, 28, 29, 30):
            run = DueRun("nightly", AT + timedelta(days=day - 29), date(2026, 3, day))
            tx.scheduled_runs.get_or_register_first_seen("nightly", AT - timedelta(days=9))
            tx.scheduled_runs.begin_unless_finished(run, at=run.due)
            tx.runs.start(business_date=f"2026-03-{day}", at=run.due, job="nightly")
        by_hand = start(tx)
        tx.runs.finish(by_hand, RunResult("done"), at=AT)
        tx.scheduled_runs.mark_unrecorded_runs_finished_until("nightly", AT - timedelta(days=5))
    with state.begin() as tx:
        assert [each.business_date.day for each in tx.scheduled_runs.runs_between_dates(FIRST, LAST)] == [28, 29]
        assert tx.scheduled_runs.start_of_recording_by_job() == {"nightly": AT - timedelta(days=5)}
        assert [run.business_date for run in tx.runs.tallies_of_runs_between_dates(FIRST, LAST)] == [
            "2026-03-28",
            "2026-03-29",
            "2026-03-29",
        ]
        assert sorted(tx.runs.counts_by_date(FIRST, LAST), key=lambda each: each.newest) == [
            RunCountOfDate("nightly", "2026-03-28", "incomplete", 1, 2),
            RunCountOfDate("nightly", "2026-03-29", "incomplete", 1, 3),
            RunCountOfDate(None, "2026-03-29", "done", 1, by_hand),
        ]
        assert [run.id for run in tx.runs.listed(limit=9, business_date="2026-03-29", is_manual=True)] == [by_hand]
        third = tx.runs.get(3)
        assert third is not None
        assert [run.id for run in tx.runs.run_and_predecessors(third, limit=2)] == [2, 3]


def test_what_belongs_to_runs_is_found(state: State) -> None:
    """Files by the time of their acceptance, messages by their first words, rejections by stream and by month."""
    files = [FileFacts(name, name, 1, AT, "s") for name in ("a.csv", "b.csv")]
    with state.begin() as tx:
        run = start(tx)
        for minutes, file in enumerate(files):
            tx.intake.accept("wms.items", "v", [file], at=AT + timedelta(minutes=minutes))
        said = [RunMessage("note", "", text) for text in ("no new file x", "100% done")]
        tx.runs.finish(run, RunResult("done", messages=said), at=AT)
        tx.dead_letters.put([dead_letter(1), dead_letter(2, stream="wms.lots")], run_id=run, at=AT)
    with state.begin() as tx:
        found = tx.intake.accepted_between(AT, AT + timedelta(seconds=1), limit=5)
        assert [(stream, file.name) for stream, file in found] == [("wms.items", "a.csv")]
        assert tx.runs.messages_starting_with("no new file", [run]) == [(run, said[0])]
        assert tx.runs.messages_starting_with("100%d", [run]) == []
        assert tx.run_details.rejections_by_stream_until_run(run) == [
            StreamReasonCount("wms.invoices", "bad_value", 1, 1),
            StreamReasonCount("wms.lots", "bad_value", 1, 1),
        ]
        assert tx.run_details.rejection_counts_by_month(FIRST, LAST) == {("2026-03", "bad_value"): 2}
        assert tx.run_details.rejection_counts_by_month(FIRST, FIRST) == {}


def test_of_a_run_the_first_operations_are_read(state: State) -> None:
    """Their delivered updates, with the payload that was sent where no other is stored."""
    update = {"operation": "update", "status": "delivered", "before": {"name": "a"}}
    some = [intent(1), intent(2, **update), intent(3, **update, after={"name": "b"}), intent(4, **update)]
    with state.begin() as tx:
        run = start(tx)
        tx.intents.add(some, run_id=run, fence=1, at=AT)
    with state.begin() as tx:
        first = tx.run_details.updates_among_first_operations(run, limit=3)
        assert (first.number, first.are_all) == (3, False)
        assert [(each.key, each.after) for each in first.updates] == [("K2", {"name": "é"}), ("K3", {"name": "b"})]
        assert tx.run_details.updates_among_first_operations(run, limit=4).are_all
