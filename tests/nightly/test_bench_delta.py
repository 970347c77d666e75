"""The benchmark of the delta judges what it says it judges; its processes are forks here."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.benchmarks import bench_delta, delta_files
from tests.benchmarks.delta_stage import Stage
from tests.benchmarks.forked import forked_benchmarks, run
from tests.servers import require

from crossdock.testing.openssh_server import OpenSshServer

FACTS = """
    SELECT key_hash, key, record_fp, position, step, payload, etag, counter
    FROM bindings ORDER BY key
"""


@pytest.mark.openssh
def test_delta_finds_what_changed(tmp_path: Path) -> None:
    """Each contestant of a small night finds the changed rows and no others, and a plan is within its ratios' names."""
    require(OpenSshServer.available(), "OpenSSH")
    with OpenSshServer(tmp_path) as ssh, forked_benchmarks():
        finds_what_changed(ssh)


def finds_what_changed(ssh: OpenSshServer) -> None:
    rivals = bench_delta.delta(ssh, 1000, rounds=1)
    assert [len(rival.spent) for rival in rivals] == [1] * len(rivals)


def test_a_filled_state_is_as_a_loaded_one(tmp_path: Path) -> None:
    """The quick fill leaves the bindings that a first load leaves, but for the platform's ids."""
    facts = []
    with forked_benchmarks():
        for way in (["--fill"], []):
            stage = Stage(tmp_path / f"load{way}", 500, scheduled_runs=("first",))
            assert bench_delta.found(run(stage.load(*way)).told) == (500, 0)
            with closing(sqlite3.connect(stage.state / "state.db")) as database:
                facts.append(database.execute(FACTS).fetchall())
    assert facts[0] == facts[1]
    assert len(facts[0]) == 500


def test_nights_are_the_same_for_everybody(tmp_path: Path) -> None:
    """One seed gives one file; a night with changes differs in one row of a hundred, any other in its date alone."""

    def rows(night: int, *, changes: bool = False, seed: int = 6) -> list[bytes]:
        path = tmp_path / "night"
        differing = delta_files.write(path, 1000, night=night, changes=changes, seed=seed)
        assert differing == 10 * changes
        return path.read_bytes().replace(b"2026-11-02", b"2026-11-01").splitlines()

    first = rows(1)
    assert first == rows(1) == rows(2)
    assert sum(a != b for a, b in zip(first, rows(2, changes=True), strict=True)) == 10
    assert first != rows(1, seed=7)
