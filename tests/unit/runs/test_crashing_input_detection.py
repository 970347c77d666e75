"""Inputs at which a process was killed are read by another process first."""

from __future__ import annotations

from contextlib import closing, nullcontext
from pathlib import Path

import pytest

from crossdock.errors import RefusedError
from crossdock.runs.session_shared_by_runs import open_crash_marker
from crossdock.state import PinnedTenant, State, create_or_upgrade_state, parse_database_url
from crossdock.state.tables.inputs_of_streams import CrashMark
from crossdock.values.clock import SystemClock

PIN = PinnedTenant("https://api.example.com", "acme")


def opened(folder: Path) -> State:
    url = parse_database_url("sqlite:///state.db", folder)
    create_or_upgrade_state(url, PIN)
    return State(url, PIN, keys=folder / "keys")


@pytest.mark.parametrize("kills", [False, True])
@pytest.mark.parametrize(("name", "times"), [("P.csv", 1), ("", 2)])
def test_an_input_that_was_cut_off_is_tried_first(tmp_path: Path, name: str, times: int, *, kills: bool) -> None:
    """It is set aside if it kills another process, and is not suspected any more once it was read."""
    clock, tried = SystemClock(), list[str]()
    mark = CrashMark("wms.p", name, name)

    def kill(stream: str) -> bool:
        tried.append(stream)
        return kills

    with closing(opened(tmp_path)) as state:
        for number in range(times):
            with state.begin() as tx:
                tx.crashing_inputs.record_kill(mark, at=clock.now())
            with state.begin_read_only() as tx:
                found = tx.crashing_inputs.get(mark)
                assert found
                assert found.needs_trial_process == (number + 1 == times)
        refused = pytest.raises(RefusedError, match=f"killed the process {times + 1} times") if kills else nullcontext()
        with open_crash_marker(state, clock, kill) as reading, refused, reading.mark_stream_being_read("wms.p"):
            if name:
                reading.mark_file_being_read(name, name)
            reading.count_batch_of_marked_stream()
        assert tried == ["wms.p"]
        with state.begin_read_only() as tx:
            assert [each.name for each in tx.crashing_inputs.list_set_aside()] == [name] * kills
            assert tx.crashing_inputs.has_any() == kills
