"""Open records in a report: only those states that have records."""

from __future__ import annotations

from pathlib import Path

from tests.report_page import AT, dead_letter, finish, sqlite_state, start, waiting
from tests.unit.state.samples import intent

from crossdock.cli import html_open_records


def test_states_without_records_are_left_out(tmp_path: Path) -> None:
    """Each section appears with its first record, and none of them before."""
    with sqlite_state(tmp_path) as state, state.begin() as tx:
        run = finish(tx, start(tx), created=1)

        def titles() -> list[str]:
            text = "".join(html_open_records.sections(tx.reporting, run))
            return [part.partition("</h2>")[0] for part in text.split("<h2>")[1:]]

        assert titles() == []
        tx.intents.add([intent(8)], run_id=run.id, fence=1, at=AT)
        assert titles() == ["Pending"]
        tx.waiting_records.put([waiting(4)], run_id=run.id, at=AT)
        assert titles() == ["Waiting", "Pending"]
        tx.dead_letters.put([dead_letter(1)], run_id=run.id, at=AT)
        tx.intents.add([intent(7, status="in_doubt")], run_id=run.id, fence=1, at=AT)
        assert titles() == ["Rejected", "Waiting", "In doubt", "Pending"]
