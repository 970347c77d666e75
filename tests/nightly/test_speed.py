"""crossdock is as fast as it was, and the watch of its speed notices when a hot path becomes slower.

``CROSSDOCK_NO_SPEED=1`` leaves these out, on a machine that is too busy to measure anything.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace

import pytest
from tests.benchmarks import watch
from tests.benchmarks.ratios import Recorded, compare
from tests.benchmarks.slowed import slowed
from tests.benchmarks.watch_cases import CASES, Place, Sizes

pytestmark = pytest.mark.skipif(os.environ.get("CROSSDOCK_NO_SPEED") == "1", reason="CROSSDOCK_NO_SPEED is 1")

SMALL = Sizes(rows=20_000, records=2_000, requests=500, files=100)
HOT_PATHS = {
    "plan": "crossdock.config.project.project:load",
    "changed": "crossdock.delta.row_preparation:add_key_filter_and_fingerprint_columns",
    "load": "crossdock.runs.planning.planner:Planner._decide_chunk",
    "delivery": "crossdock.reading.transport.httpcore_client:HttpClient.send",
    "files": "crossdock.reading.formats.file_formats:read_rows",
}
PERCENT = 20


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with Place(tmp_path_factory.mktemp("speed"), SMALL) as place:
        yield place


@pytest.mark.parametrize("name", HOT_PATHS)
def test_a_slower_hot_path_is_noticed(name: str, place: Place) -> None:
    """A command that uses 20 % more CPU time where it calls the function is slower than its record of the same hour."""
    ours, peer = next(case for case in CASES if case.name == name).contestants(place)
    before, after = (
        replace(ours, command=slowed(ours.command, HOT_PATHS[name], percent), spent=[]) for percent in (0, PERCENT)
    )
    watch.in_turns([before, peer, after], watch.ROUNDS)
    best = watch.measured(before, peer)
    record = Recorded("2026-01-01", "0000000", best.ratio, best.cpu_s, best.peer_cpu_s)
    (verdict,) = compare({name: watch.measured(after, peer)}, {name: [record]})
    assert verdict.is_slower, (verdict.row(), before.cpu_s, after.cpu_s)


def test_crossdock_is_as_fast_as_it_was() -> None:
    """No ratio is more than 15 % above the best that is recorded."""
    assert not [each.row() for each in watch.compared() if each.is_slower]
