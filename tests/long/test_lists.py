"""Ten thousand lists of hostile APIs, and four thousand of orders: ``pytest tests/long/test_lists.py -n 2 -rP``.

It takes three quarters of an hour.

``CROSSDOCK_CHAOS_SEED`` gives other lists; ``-rP`` shows how many runs ended with each exit code.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.chaos.chance import chaos_seed
from tests.chaos.grouped_lists import no_order_is_made_of_two_moments
from tests.chaos.lists import no_record_is_lost_silently

from crossdock.state import parse_database_url

PARTS, CASES = 8, 1_250


@pytest.mark.parametrize("part", range(PARTS))
def test_no_record_is_lost_silently(tmp_path: Path, part: int) -> None:
    """The platform equals the list, or the exit code is not 0 and neither cursor nor deletes moved."""
    url = parse_database_url("sqlite:///state.db", tmp_path)
    told = no_record_is_lost_silently(tmp_path, url, chaos_seed() + part * CASES, CASES)
    print(f"{CASES:,} lists, runs by exit code: {dict(told)}")
    assert told[0]
    assert told[4]


@pytest.mark.parametrize("part", range(PARTS))
def test_no_order_is_made_of_two_moments(tmp_path: Path, part: int) -> None:
    """Each order of the platform has the lines that it had at one moment."""
    url, cases = parse_database_url("sqlite:///state.db", tmp_path), CASES * 2 // 5
    told = no_order_is_made_of_two_moments(tmp_path, url, chaos_seed() + part * cases, cases)
    print(f"{cases:,} lists of orders, runs by exit code: {dict(told)}")
    assert told[0]
    assert told[4]
