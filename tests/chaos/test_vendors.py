"""Streams with a cursor: nothing is lost and nothing stays stale, however the source lists and fails."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.chaos import vendors

from crossdock.state import parse_url


@pytest.mark.parametrize("seed", range(1, 13))
def test_nothing_is_lost_or_stale(tmp_path: Path, seed: int) -> None:
    """By cursor, page number or windows; sorted or not, with ties, skewed clocks, mixed offsets, changes and deletions while
    paging, and pages that fail."""
    vendors.nothing_is_lost_or_stale(tmp_path, parse_url("sqlite:///state.db", tmp_path), seed=seed, runs=6)


def test_a_load_that_is_stopped_reads_little_twice(tmp_path: Path) -> None:
    """At most a tenth of the pages, although the source fails ten times."""
    read, least = vendors.stopped_load(tmp_path, parse_url("sqlite:///state.db", tmp_path), pages=300, stops=10)
    assert least < read <= least * 1.1
