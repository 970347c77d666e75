"""The cases of `tests.benchmarks.watch`: each a process of crossdock beside a peer's."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

from tests.benchmarks import bench_delta, bench_read_only_commands, bench_small_files, slow_server
from tests.benchmarks.delta_processes import IMPORTS, Contestant, python
from tests.benchmarks.delta_stage import Stage

IMPORTING = "import polars, sqlalchemy"
READING = "pl.read_csv"
PEER_ROWS = 5  # of the first load's peer, for each record


@dataclass(frozen=True)
class Sizes:
    """How much each case has to do: rows of a night, records of a first load, requests, small files."""

    rows: int = 500_000
    records: int = 10_000
    requests: int = 3_000
    files: int = 1_000


FULL = Sizes()


class Place:
    """Where the cases run; what several have in common is made when the first one needs it. A context manager."""

    def __init__(self, folder: Path, sizes: Sizes = FULL) -> None:
        self.folder, self.sizes, self._opened = folder, sizes, ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    @cached_property
    def nights(self) -> tuple[Stage, tuple[Path, Path]]:
        """The nights, and the state before the third one: a copy, and where it lies."""
        stage = Stage(self.folder / "nights", self.sizes.rows)
        bench_delta.first_nights(stage)
        return stage, stage.kept_state()

    @cached_property
    def port(self) -> int:
        """Of a server that answers at once."""
        return self._opened.enter_context(slow_server.running(0))

    def small_files(self, name: str, files: int) -> Path:
        """A new folder with that many files, and an empty state."""
        folder = self.folder / name
        bench_small_files.write(folder, range(files))
        bench_small_files.step(folder, "init")
        return folder


Pair = tuple[Contestant, Contestant]


@dataclass(frozen=True)
class Case:
    """What is watched.

    Attributes:
        name: For the command line and the record.
        work: What the process of crossdock does.
        peer: What the other process does.
        contestants: The two.
        goal: Of the ratio.
        requests: How many the work makes; their extra cost is told too.
    """

    name: str
    work: str
    peer: str
    contestants: Callable[[Place], Pair]
    goal: float | None = None
    requests: int = 0


def _importing() -> Contestant:
    return Contestant(IMPORTING, IMPORTS)


def _ended(name: str, command: Sequence[str]) -> Contestant:
    """A process of which only its good end is checked."""
    return Contestant(name, command, bool, wanted=True)


def _help(place: Place) -> Pair:
    return _ended("help", python("-m", "crossdock", "--help")), _importing()


def _runs(place: Place) -> Pair:
    folder = place.folder / "runs"
    folder.mkdir()
    bench_read_only_commands.load(folder, 1_000)
    return _ended("runs", bench_read_only_commands.command(folder, "runs")), _importing()


def _plan(place: Place) -> Pair:
    folder = place.small_files("plan", 1)
    return _ended("plan", bench_read_only_commands.command(folder, "plan")), _importing()


def _night(place: Place, name: str, night: str, changed: int) -> Contestant:
    stage, fresh = place.nights
    wanted = (changed, stage.rows - changed)
    return Contestant(name, stage.crossdock(night, "plan", "--json"), bench_delta.found, wanted, fresh)


def _unchanged(place: Place) -> Pair:
    stage, _ = place.nights
    return _night(place, "unchanged", "same", 0), Contestant(READING, bench_delta.read_csv(stage.export("same")))


def _changed(place: Place) -> Pair:
    stage, _ = place.nights
    ours = _night(place, "changed", "changed", stage.changed)
    return ours, Contestant(READING, bench_delta.read_csv(stage.export("changed")))


def _sync(place: Place) -> Pair:
    stage, fresh = place.nights
    sync = stage.crossdock("same", "sync", "--json")
    return (
        Contestant("sync", sync, bench_delta.found, (0, stage.rows), fresh),
        _night(place, "its plan", "same", 0),
    )


def _load(place: Place) -> Pair:
    records = place.sizes.records
    stage = Stage(place.folder / "load", records, scheduled_runs=("first",))
    ours = Contestant("load", stage.load(), bench_delta.found, (records, 0), stage.kept_state())
    written = PEER_ROWS * records  # so that it takes long enough to be measured
    return ours, Contestant("writes", python("-m", "tests.benchmarks.load_peer", written), int, written)


def _delivery(place: Place) -> Pair:
    port, count = place.port, place.sizes.requests
    ours = python("-m", "tests.benchmarks.bench_delivery", "--port", port, "--count", count)
    peer = python("-m", "tests.benchmarks.delivery_peer", port, count)
    return Contestant("delivery", ours, int, count), Contestant("bare client", peer, int, count)


def _small_files(place: Place) -> Pair:
    kept, used = place.small_files("small files", place.sizes.files), place.folder / "used"
    shutil.copytree(kept, used)
    command = bench_small_files.command(used, "sync", "--json")
    return Contestant("files", command, bench_small_files.created, place.sizes.files, (kept, used)), _importing()


CASES = (
    Case("help", "crossdock --help", IMPORTING, _help, 0.19),
    Case("runs", "crossdock runs", IMPORTING, _runs, 0.5),
    Case("plan", "crossdock plan of one row", IMPORTING, _plan, 0.75),
    Case("unchanged", f"plan of {FULL.rows:,} rows, nothing changed", READING, _unchanged, 2.0),
    Case("changed", f"plan of {FULL.rows:,} rows, 1 % changed", READING, _changed, 2.5),
    Case("sync", f"sync of {FULL.rows:,} rows, nothing changed", "its plan", _sync, 1.2),
    Case(
        "load",
        f"first load of {FULL.records:,} records",
        f"{PEER_ROWS * FULL.records:,} rows in SQLite, three writes each",
        _load,
    ),
    Case(
        "delivery",
        f"delivery of {FULL.requests:,} requests",
        "a bare client with as many threads",
        _delivery,
        requests=FULL.requests,
    ),
    Case("files", f"first sync of {FULL.files:,} files of one row", IMPORTING, _small_files),
)
