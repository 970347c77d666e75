"""Reading APIs at full size: ``pytest tests/long/test_killed_reads.py -n 2 -rP``, twenty minutes.

``CROSSDOCK_CHAOS_SEED`` gives another seed; ``-rP`` shows what was done.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.chaos import deletes, killed_platform_reads, killed_reads, vendors
from tests.chaos.chance import chaos_seed
from tests.chaos.deletes import STREAMS, Way

from crossdock.mapping.stream_declaration import OnGone
from crossdock.state import parse_database_url


def test_a_first_load_of_100_000_killed_ten_times(tmp_path: Path) -> None:
    """It reads at most a tenth more pages than one that is not killed, and creates each record once."""
    read, least = killed_reads.first_load(tmp_path, records=100_000, page_size=250, kills=10, within_s=3_600)
    print(f"\n{read} pages read, {least} without kills")
    assert read <= least * 1.1


@pytest.mark.parametrize("number", range(10))
def test_many_kills_while_records_change(tmp_path: Path, number: int) -> None:
    """As in the short form, more often."""
    seed = chaos_seed() + number
    print(f"\nkills, seed {seed}: {killed_reads.killed_anywhere(tmp_path, seed=seed, records=2_500, kills=8)}")


@pytest.mark.parametrize("number", range(5))
def test_many_kills_while_the_platform_is_read(tmp_path: Path, number: int) -> None:
    """As in the short form, with more records and more often."""
    seed = chaos_seed() + number
    happened = killed_platform_reads.killed_reads(tmp_path, seed=seed, records=2_000, kills=10)
    print(f"\nkills, seed {seed}: {happened}")


@pytest.mark.parametrize("first", range(0, 300, 30))
def test_many_vendors(tmp_path: Path, first: int) -> None:
    """As in the short form, with more seeds and longer."""
    for seed in range(chaos_seed() + first, chaos_seed() + first + 30):
        folder = tmp_path / str(seed)
        folder.mkdir()
        happened = vendors.nothing_is_lost_or_stale(
            folder, parse_database_url("sqlite:///state.db", folder), seed=seed, runs=12
        )
        print(f"\nvendor, seed {seed}: {happened}")


def test_a_load_that_is_stopped_ten_times(tmp_path: Path) -> None:
    """As in the short form, with more pages."""
    read, least = vendors.stopped_load(
        tmp_path, parse_database_url("sqlite:///state.db", tmp_path), pages=300, stops=10
    )
    assert least < read <= least * 1.1


@pytest.mark.parametrize("on_gone", ["delete", "archive"])
@pytest.mark.parametrize("way", STREAMS)
def test_many_deletions(tmp_path: Path, way: Way, on_gone: OnGone) -> None:
    """As in the short form, with more seeds."""
    for seed in range(chaos_seed(), chaos_seed() + 8):
        folder = tmp_path / str(seed)
        folder.mkdir()
        url = parse_database_url("sqlite:///state.db", folder)
        happened = deletes.nothing_deleted_stays(folder, url, way=way, on_gone=on_gone, seed=seed)
        print(f"\ndeletions, seed {seed}: {happened}")
