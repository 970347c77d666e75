"""The watch of crossdock's speed judges ratios by the best that is recorded, and writes them down."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.benchmarks import ratios, results, watch
from tests.benchmarks.delta_processes import Contestant, Spent
from tests.benchmarks.ratios import Measured, Recorded


@pytest.fixture(autouse=True)
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where this test records, in place of the real record; two ratios of the first case are there."""
    monkeypatch.setattr(ratios, "RATIOS", tmp_path / "ratios.json")
    monkeypatch.setattr(results, "RESULTS", tmp_path / "RESULTS.md")
    (tmp_path / "RESULTS.md").write_text("# Results\n")
    ratios.add({"help": Measured(0.2, 1.0)}, "2026-01-01", "0000001")
    ratios.add({"help": Measured(0.3, 1.0)}, "2026-01-02", "0000002")
    return tmp_path


def watched(monkeypatch: pytest.MonkeyPatch, found: Mapping[str, float], *arguments: str) -> int:
    """The exit code of the command when it has measured these ratios."""
    measured = {name: Measured(ratio * 2.0, 2.0) for name, ratio in found.items()}
    monkeypatch.setattr(watch, "measure", lambda *_: measured)
    monkeypatch.setattr("sys.argv", ["watch", *arguments])
    try:
        watch.main()
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


@pytest.mark.parametrize(
    ("ratio", "code", "row"),
    [
        (0.232, 1, "| help | 0.23 | 0.20 | +16.0% | slower |"),
        (0.228, 0, "| help | 0.23 | 0.20 | +14.0% | ok |"),
        (0.18, 0, "| help | 0.18 | 0.20 | -10.0% | ok, better than before |"),
    ],
)
def test_a_ratio_is_judged_by_the_best(
    ratio: float, code: int, row: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """More than 15 % above the best of all is a failure that names the case, whatever the last one was."""
    assert watched(monkeypatch, {"help": ratio}) == code
    assert row in capsys.readouterr().out


def test_a_case_without_a_record_is_no_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It says so, and the other cases are judged."""
    assert watched(monkeypatch, {"runs": 9.0, "help": 0.2}) == 0
    assert "| runs | 9.00 |  |  | no record |" in capsys.readouterr().out


def test_a_record_is_shown_beside_the_other_results(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last and the best ratio of each case, and a line for each date; other sections stay."""
    results.write("Another benchmark", ("what",), [("x",)])
    for _ in range(2):
        assert watched(monkeypatch, {"help": 0.25, "delivery": 3.0}, "--record") == 0
    text = (kept / "RESULTS.md").read_text()
    assert [line.split(",")[0] for line in text.splitlines() if line.startswith("## ")] == [
        "## Another benchmark",
        "## Ratios",
        "## Recorded ratios",
    ]
    assert "| help | crossdock --help | import polars, sqlalchemy | 0.25 | 0.20 | 0.19 |  |" in text
    assert (
        "| delivery | delivery of 3,000 requests | a bare client with as many threads | 3.00 | 3.00 |  | 1.33 |" in text
    )
    assert [line for line in text.splitlines() if line.startswith("| 2026-01")] == [
        "| 2026-01-01 | 0000001 | 0.20 |  |  |  |  |  |  |  |  |",
        "| 2026-01-02 | 0000002 | 0.30 |  |  |  |  |  |  |  |  |",
    ]
    assert ratios.load()["help"][0] == Recorded("2026-01-01", "0000001", 0.2, 0.2, 1.0)


def test_the_least_turn_counts_and_turns_go_on_until_it_is_steady(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first turn does not count, and one turn that happened to be short is not believed before another is."""
    turns = iter([0.1, 9.0, 4.0, 8.0, 5.0, 4.05, 1.0])
    monkeypatch.setattr(Contestant, "take_turn", lambda each: each.spent.append(Spent(0.0, next(turns), 0, "")))
    ours = Contestant("ours", ())
    watch.in_turns([ours], 2)
    assert ours.cpu_s == [9.0, 4.0, 8.0, 5.0, 4.05]
    assert watch.measured(ours, Contestant("peer", (), spent=[Spent(0.0, 2.0, 0, "")])).ratio == 2.0
