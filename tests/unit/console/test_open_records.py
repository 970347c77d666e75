"""Open records on the page of a run: only those states that have records."""

from __future__ import annotations

from pathlib import Path

from tests.report_page import AT, dead_letter, finish, sqlite_state, start, waiting
from tests.unit.state.samples import intent

from crossdock.console.run_and_fleet_report import open_record_template_values


def test_states_without_records_are_left_out(tmp_path: Path) -> None:
    """Each section appears with its first record, and none of them before."""
    with sqlite_state(tmp_path) as state, state.begin() as tx:
        run = finish(tx, start(tx), created=1)

        def found() -> list[str]:
            return [name for name, value in open_record_template_values(tx.run_details, run).items() if value]

        assert found() == []
        tx.intents.add([intent(8)], run_id=run.id, fence=1, at=AT)
        assert found() == ["pending"]
        tx.waiting_records.put([waiting(4)], run_id=run.id, at=AT)
        assert found() == ["waiting", "pending"]
        tx.dead_letters.put([dead_letter(1)], run_id=run.id, at=AT)
        tx.intents.add([intent(7, status="in_doubt")], run_id=run.id, fence=1, at=AT)
        assert found() == ["rejected", "waiting", "in_doubt", "pending"]
