"""A backup that is restored without a word: the run stops before it sends an invoice that was sent already."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.chaos.checks import Trial
from tests.chaos.depot import Depot, open_depot, open_sandbox
from tests.chaos.exports import Exports
from tests.chaos.failing import FAILPOINTS, Side
from tests.e2e.warehouse import pass_time

FORGOTTEN_S = 25 * 3_600  # the platform remembers idempotency keys for a day
POINTS: tuple[tuple[str, Side], ...] = tuple(
    (name, side) for name, point in FAILPOINTS.items() for side in point.sides
)  # at which moment of a scheduled run the backup was taken


def forgotten(folder: Path, points: Sequence[tuple[str, Side]], *, whole: bool) -> int:
    """Restore a backup of the middle of a run after its end and one run more; how many invoices were sent meanwhile.

    Args:
        whole: Everything in the folder was restored, so that only the platform's answers show it.
    """
    lost = 0
    with Trial(f"restored, {'whole folder' if whole else 'state alone'}") as trial:
        for number, (name, side) in enumerate(points):
            place = folder / str(number)
            place.mkdir()
            with open_sandbox(place) as sandbox, open_depot(place, sandbox, in_flight=16) as depot:
                lost += _forgotten_at(depot, Exports(trial.random), name, side, whole=whole)
            trial.injected[f"{name} {side}"] += 1
        trial.told["invoices sent since the backups"] = lost
    return lost


def _forgotten_at(depot: Depot, exports: Exports, name: str, side: Side, *, whole: bool) -> int:
    depot.export(exports.night(4, 4, 12, waiting=1, refused=1))
    depot.strike(name, 1, side)
    _copy(depot.folder, depot.folder / "backup", whole=whole)
    known = len(depot.sandbox.effects())
    assert depot.run("sync").exit_code in {0, 1}  # an invoice is refused, and one waits for the next night's customer
    depot.export(exports.night(4, 4, 12))
    assert depot.run("sync").exit_code in {0, 1}
    held = depot.sandbox.holdings()
    pass_time(depot.sandbox.base_url, FORGOTTEN_S)
    for file in depot.folder.glob("state.db-*"):
        file.unlink()
    _copy(depot.folder / "backup", depot.folder, whole=whole)
    for _ in range(3):
        stopped = depot.run("sync")
        assert stopped.exit_code == 4, f"{name} {side}: {stopped.exit_code}\n{stopped.stderr}{stopped.stdout}"
        assert "crossdock state restored" in stopped.stderr
        assert depot.sandbox.holdings() == held, f"{name} {side}: something was sent"
    assert depot.run("state", "restored").exit_code == 0
    depot.sync(expect=1)  # invoices that look new are in doubt
    assert depot.sandbox.holdings() == held
    return len(depot.sandbox.effects()) - known


def _copy(source: Path, target: Path, *, whole: bool) -> None:
    """The state's file and what SQLite keeps beside it; of the *whole* folder also what crossdock keeps there."""
    target.mkdir(exist_ok=True)
    for path in source.glob("state.db*"):
        if path.is_dir() and whole:
            shutil.copytree(path, target / path.name, dirs_exist_ok=True)
        elif path.name in {"state.db", "state.db-wal"}:
            shutil.copy2(path, target / path.name)


@pytest.mark.nightly
@pytest.mark.parametrize("whole", [False, True], ids=["the state alone", "the whole folder"])
def test_an_undeclared_backup_sends_nothing(tmp_path: Path, *, whole: bool) -> None:
    """Wherever in a run the backup was taken, the next run stops with exit 4 and says what to declare."""
    assert forgotten(tmp_path, [("settled", "after")], whole=whole) > 0
