"""Streams with a cursor: nothing is lost and nothing stays stale, however the source lists and fails."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.chaos import vendors

from crossdock.state import parse_database_url


@pytest.mark.parametrize("seed", range(len(vendors.WAYS)))
def test_nothing_is_lost_or_stale(tmp_path: Path, seed: int) -> None:
    """In every order that is safe; with ties, skewed clocks, mixed offsets, changes while paging, pages that fail."""
    vendors.nothing_is_lost_or_stale(tmp_path, parse_database_url("sqlite:///state.db", tmp_path), seed=seed, runs=6)


def test_a_load_that_is_stopped_reads_little_twice(tmp_path: Path) -> None:
    """At most a tenth of the pages, although the source fails three times."""
    read, least = vendors.stopped_load(tmp_path, parse_database_url("sqlite:///state.db", tmp_path), pages=90, stops=3)
    assert least < read <= least * 1.1


def test_page_numbers_skip_a_record_if_another_moves(tmp_path: Path) -> None:
    """A list by oldest change first must not be read by page number: the guide warns of it."""
    read = vendors.read_while_a_record_moves(tmp_path, parse_database_url("sqlite:///state.db", tmp_path), numbers=True)
    assert read == {"b:K0", "b:K1", "b:K2", "b:K4", "b:K5"}


def test_pages_after_a_record_skip_none_if_another_moves(tmp_path: Path) -> None:
    """The same list, read by cursor."""
    read = vendors.read_while_a_record_moves(
        tmp_path, parse_database_url("sqlite:///state.db", tmp_path), numbers=False
    )
    assert read == {f"b:K{number}" for number in range(6)}
