"""``crossdock runs`` and ``crossdock show``."""

from __future__ import annotations

from contextlib import closing

from tests.report_page import finish, start
from tests.unit.cli.conftest import CommandLine


def test_runs_are_listed_and_shown(command_line: CommandLine) -> None:
    """A list, newest first; one run with its tally, its error and its timings; JSON with the same facts."""
    timings = {"steps": [["reading wms.products", 0, 2_000]], "samples": [[0, 10], [1_000, 2]]}
    with closing(command_line.state()) as state, state.begin() as tx:
        finish(tx, start(tx), created=3, timings=timings, error="a.csv: is short")
        start(tx, days=1)
    assert [run["run"] for run in command_line.run("runs", "--json").json] == [2, 1]
    assert "2026-03-29 01:30:00Z  3600.0 s  incomplete" in command_line.run("runs").out
    shown = command_line.run("show", "1").out
    assert "; the tally balances\nerror: a.csv: is short\n" in shown
    assert "Slowest steps" in shown
    assert "allowance: lowest 2 tokens, after 1.0 s; highest 10" in shown
    assert command_line.run("show", "1", "--json").json["allowance"]["lowest"] == 2
    assert "run 2, started at 2026-03-30 01:30:00Z, has no tally: running" in command_line.run("show", "2").out
    missing = command_line.run("show", "3")
    assert (missing.code, "there is no run 3" in missing.err) == (2, True)
