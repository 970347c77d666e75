"""``crossdock runs`` and ``crossdock show``."""

from __future__ import annotations

import re
from contextlib import closing

import pytest
from tests.report_page import finish, start
from tests.unit.cli.conftest import CommandLine


def test_runs_are_listed_and_shown(command_line: CommandLine) -> None:
    """A list, newest first; one run with its tally, its error and its timings; JSON with the same facts."""
    timings = {"steps": [["reading wms.products", 0, 2_000]], "samples": [[0, 10], [1_000, 2]]}
    with closing(command_line.state()) as state, state.begin() as tx:
        finish(tx, start(tx), created=3, timings=timings, error="a.csv: is short")
        start(tx, days=1)
    assert [run["run"] for run in command_line.run("runs", "--json").json] == [2, 1]
    assert "2026-03-29 01:30Z       1 h  incomplete" in command_line.run("runs").out
    shown = command_line.run("show", "1").out
    assert shown.startswith("error: a.csv: is short\n\nRows\n")
    assert "; the tally balances\n" in shown
    assert "Slowest steps" in shown
    assert "allowance: lowest 2 tokens, after 1.0 s; highest 10" in shown
    assert command_line.run("show", "1", "--json").json["allowance"]["lowest"] == 2
    assert "run 2, started at 2026-03-30 01:30:00Z, has no tally: incomplete" in command_line.run("show", "2").out
    with closing(command_line.state()) as state, state.hold_run_lease("this run"):
        with state.begin() as tx:
            start(tx, days=2)
        assert "run 3, started at 2026-03-31 01:30:00Z, has no tally: running" in command_line.run("show", "3").out
        assert "has no tally: incomplete" in command_line.run("show", "2").out
    missing = command_line.run("show", "4")
    assert (missing.code, "there is no run 4" in missing.err) == (2, True)


def test_a_list_that_is_cut_says_so(command_line: CommandLine) -> None:
    """With the number of runs and how to see all of them, beside JSON on stderr."""
    with closing(command_line.state()) as state, state.begin() as tx:
        for day in range(3):
            finish(tx, start(tx, days=day))
    cut = "2 of 3 runs are shown: --limit 3 shows all\n"
    assert command_line.run("runs", "--limit", "2").out.endswith(cut)
    assert command_line.run("runs", "--limit", "2", "--json").err == cut
    assert "shown" not in command_line.run("runs").out


def test_the_newest_run_is_shown_by_default(command_line: CommandLine) -> None:
    """Without a number, also as JSON and as a page; before the first run there is nothing to show."""
    missing = command_line.run("show")
    assert (missing.code, "there is no run yet" in missing.err) == (2, True)
    with closing(command_line.state()) as state, state.begin() as tx:
        finish(tx, start(tx), created=3)
        finish(tx, start(tx, days=1), created=4)
    assert command_line.run("show").out == command_line.run("show", "2").out
    assert command_line.run("show", "--json").json["run"] == 2
    assert "run 2: done; report written to " in command_line.run("show", "-o", str(command_line.folder / "r.html")).out


def test_a_run_that_read_nothing_has_no_empty_tables(command_line: CommandLine) -> None:
    """The error and the last line are all that is shown."""
    with closing(command_line.state()) as state, state.begin() as tx:
        finish(tx, start(tx), error="wms: cannot connect\n  look at the tunnel")
    assert command_line.run("show").out == (
        "error: wms: cannot connect\n  look at the tunnel\n\n"
        "run 1: incomplete, 1,234 requests (5 throttled) in 1 h; the tally balances\n"
    )


def test_times_are_in_utc_as_json(command_line: CommandLine) -> None:
    """ISO 8601 with Z."""
    with closing(command_line.state()) as state, state.begin() as tx:
        finish(tx, start(tx), created=3)
    assert command_line.run("show", "--json").json["started_at"] == "2026-03-29T01:30:00Z"


def test_a_month_is_written_and_printed(command_line: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a page with the name of the month, or as JSON; what is no month is refused."""
    monkeypatch.chdir(command_line.folder)
    with closing(command_line.state()) as state, state.begin() as tx:
        finish(tx, start(tx), created=3)
    written = command_line.run("report", "--month", "2026-03")
    assert written.out == "2026-03: 1 runs, 3 records delivered; report written to 2026-03.html\n"
    assert "2026-03-29" in (command_line.folder / "2026-03.html").read_text(encoding="utf-8")
    printed = command_line.run("report", "--month", "2026-03", "--json").json
    assert printed["totals"]["records delivered"] == {"number": 3, "before": 0}
    assert [day["delivered"] for day in printed["days"] if day["runs"]] == [3]
    for arguments in (("--month", "march"), ("1", "--month", "2026-03"), ("1", "--json")):
        assert command_line.run("report", *arguments).code == 2


def test_a_run_is_written_as_a_page(command_line: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """By default the newest one, named by its number, with the same page as ``show -o``."""
    monkeypatch.chdir(command_line.folder)
    with closing(command_line.state()) as state, state.begin() as tx:
        finish(tx, start(tx), created=3)
    assert command_line.run("report").out == "run 1: done; report written to run-1.html\n"
    assert command_line.run("show", "-o", "shown.html").code == 0
    pages = [(command_line.folder / name).read_text(encoding="utf-8") for name in ("run-1.html", "shown.html")]
    assert len({re.sub("as of .*", "", page) for page in pages}) == 1
