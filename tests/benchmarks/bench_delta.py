"""What finding 1 % of changes costs, next to reading the file, to a script by hand and to dlt: whole processes.

All read the same file where it lies, and crossdock once more by SFTP, from an OpenSSH server of this machine whose own
time and memory are not counted. The contestants take turns, so that what else the machine does hurts them alike, and
each begins with the state of the night before. What they find is checked before any figure is written down.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.benchmarks import results
from tests.benchmarks.delta_processes import Contestant, Spent, TooSlowError, python, run
from tests.benchmarks.delta_stage import STREAM, Stage

from crossdock.testing.openssh_server import OpenSshServer

HERE = Path(__file__).parent
ROUNDS = 5
PREPARING_S = 3600.0
KEPT_FROM = 100_000  # rows; a smaller run shows that it works, and is not kept
LOAD_ROWS = 200_000
LOAD_GOAL = 3000  # records a second
DLT = ("dlt[duckdb,filesystem,parquet]>=1.31", "pandas>=3")
READ, SCRIPT = "pl.read_csv", "script by hand, 1 % changed"
SAME, CHANGED = "crossdock plan, nothing changed", "crossdock plan, 1 % changed"
DLTS = {way: f"dlt, {way} path, 1 % changed" for way in ("arrow", "usual")}
RATIOS: Sequence[tuple[str, str, Mapping[int, str]]] = (  # with the goals, by the number of rows
    (SAME, READ, {1_000_000: "at most 5", 5_000_000: "at most 4"}),
    (CHANGED, READ, {1_000_000: "at most 7", 5_000_000: "at most 5.5"}),
    (CHANGED, SCRIPT, {100_000: "at most 2.5"}),
    (SCRIPT, CHANGED, {1_000_000: "at least 1.5"}),
    (DLTS["arrow"], CHANGED, {1_000_000: "at least 3"}),
    (DLTS["usual"], CHANGED, {1_000_000: "at least 15"}),
)


def delta(ssh: OpenSshServer, rows: int, dlt: str | None = None, *, rounds: int = ROUNDS) -> list[Contestant]:
    """Measure a night of *rows*, of which 1 % have changed.

    Args:
        dlt: The Python of an environment that has dlt, if it shall take part.
    """
    stage = Stage(ssh.folder / "delta", rows, ssh=ssh)
    sync = first_nights(stage)
    rivals = list(_rivals(stage, dlt))
    for _ in range(rounds):
        for rival in rivals:
            rival.take_turn()
    return [*rivals, Contestant("crossdock sync, nothing changed", (), spent=[sync])]


def first_nights(stage: Stage) -> Spent:
    """Leave the state as nights do; what the sync of the second night took, in which nothing had changed."""
    run(stage.load("--fill"), limit_s=PREPARING_S)
    sync = run(stage.crossdock("second", "sync", "--json"), limit_s=PREPARING_S)
    assert found(sync.told) == (0, stage.rows)
    return sync


def read_csv(export: Path) -> list[str]:
    """A process that only reads *export*."""
    return python("-c", f"import polars as pl; pl.read_csv({str(export)!r}, separator='|', infer_schema=False)")


def found(told: str) -> tuple[int, int]:
    """How many records a plan or a sync would deliver or has delivered, and how many are unchanged."""
    records = json.loads(told)["streams"][STREAM]["records"]
    return records["delivered"], records["unchanged"]


def _rivals(stage: Stage, dlt: str | None) -> Iterator[Contestant]:
    """All that take turns, once what they need of the night before is there."""
    export, changed = stage.export("changed"), stage.changed
    yield Contestant(READ, read_csv(export))
    yield Contestant("crossdock plan, no new file", stage.crossdock("second", "plan", "--json"), found, (0, 0))
    yield Contestant(SAME, stage.crossdock("same", "plan", "--json"), found, (0, stage.rows))
    wanted = (changed, stage.rows - changed)
    yield Contestant(CHANGED, stage.crossdock("changed", "plan", "--json"), found, wanted)
    yield Contestant("SFTP log-in and fetch alone", stage.fetch("changed"))
    yield Contestant(f"{CHANGED}, by SFTP", stage.crossdock("changed", "plan", "--json", by_sftp=True), found, wanted)
    kept, used, told = (stage.folder / f"script.{name}" for name in ("kept", "used", "delta"))
    script = python(HERE / "delta_script.py")
    run([*script, str(stage.export("first")), str(kept), str(told)])
    yield Contestant(SCRIPT, [*script, str(export), str(used), str(told)], int, changed, (kept, used))
    for way, name in DLTS.items() if dlt else ():
        kept, used = (stage.folder / f"dlt.{way}.{name}" for name in ("kept", "used"))
        kept.mkdir()
        command = [str(dlt), str(HERE / "delta_dlt.py"), way]
        rival = Contestant(name, [*command, str(export), str(used)], int, changed, (kept, used))
        try:
            run([*command, str(stage.export("first")), str(kept)])
        except TooSlowError as error:
            rival.stopped = f"first load {error}"
        yield rival


def environment_with_dlt(folder: Path) -> str:
    """Make one with pip; its Python.

    Raises:
        AssertionError, TooSlowError: If it cannot be had, with what pip said.
    """
    run(python("-m", "venv", folder))
    there = str(folder / "bin" / "python")
    run([there, "-m", "pip", "install", "--quiet", *DLT], limit_s=PREPARING_S)
    return there


def ratios(rivals: Sequence[Contestant], rows: int) -> Iterator[tuple[str, str, str, str]]:
    """Ratios of the best and of the median runs with their goals, and the peak memory with its formula."""
    named = {rival.name: rival for rival in rivals if rival.spent}
    for one, other, goals in RATIOS:
        if one in named and other in named:
            best, median = (f"{a / b:.2f}" for a, b in zip(named[one].seconds, named[other].seconds, strict=True))
            yield f"{one} / {other}", best, median, goals.get(rows, "")
    for name in (SAME, CHANGED):
        peak = named[name].peak_mib if name in named else ""
        yield f"{name}: peak, MiB", f"{peak}", "", f"at most {(400e6 + 40 * rows) / 2**20:.0f}"


def first_load(ssh: OpenSshServer, rows: int) -> tuple[object, ...]:
    """Load *rows* into an empty state, stubbed at the sender: the row of a table."""
    stage = Stage(ssh.folder / "load", rows, scheduled_runs=("first",))
    try:
        spent = run(stage.load(), limit_s=60 + 2 * rows / LOAD_GOAL)
    except TooSlowError as error:
        return rows, str(error), "", LOAD_GOAL, ""
    assert found(spent.told) == (rows, 0)
    return f"{rows:,}", f"{spent.seconds:.1f}", f"{rows / spent.seconds:,.0f}", f"{LOAD_GOAL:,}", spent.peak_mib


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--load-rows", type=int, help=f"of the first load; as many, up to {LOAD_ROWS:,}, without it")
    parser.add_argument("--with-dlt", action="store_true", help="let dlt take part, from an environment made for it")
    given = parser.parse_args()
    rows, load_rows, notes = given.rows, given.load_rows or min(given.rows, LOAD_ROWS), ""
    with tempfile.TemporaryDirectory() as folder:
        served, dlt = Path(folder, "served"), None
        served.mkdir()
        if given.with_dlt:
            try:
                dlt = environment_with_dlt(Path(folder, "dlt"))
            except (AssertionError, TooSlowError) as error:
                notes = f"Without dlt: {error}"
        with OpenSshServer(served) as ssh:
            rivals = delta(ssh, rows, dlt)
            loaded = first_load(ssh, load_rows)
    tell = results.write if rows >= KEPT_FROM else _print
    tell(
        "Delta, whole processes",
        ("work", "best, s", "median, s", "peak, MiB", "runs"),
        [rival.row() for rival in rivals],
        f"{rows:,} rows of 12 columns. {notes}".strip(),
    )
    columns = ("what", "best runs", "medians", "goal")
    tell("Delta, runs compared", columns, list(ratios(rivals, rows)))
    tell(
        "First load, an empty SQLite state, stubbed at the sender, a whole process",
        ("records", "seconds", "records a second", "goal, at least", "peak, MiB"),
        [loaded],
    )


def _print(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], notes: str = "") -> None:
    print(title, columns, *rows, notes, sep="\n")


if __name__ == "__main__":
    main()
