"""Tests of the suite at larger sizes: ``pytest tests/long/test_larger_sizes.py``, a minute."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.chaos.mappings import Bench
from tests.integration.inbox_desk import InboxDesk
from tests.integration.test_inbox_worker import desk, stop_at_the_limits
from tests.integration.test_sandbox_webhooks import lose_no_event_and_invent_none
from tests.integration.test_waiting_across_parts import bench, children_before_their_parents
from tests.unit.migration.test_source_profile import the_number_of_columns_is_bounded
from tests.unit.pacing.test_bucket_share import no_more_than_the_percentage_is_taken, others_use_the_rest
from tests.unit.sources.test_source_allowance import most_buckets_are_used_almost_fully

from crossdock.migration.source_profile import MAX_COLUMNS

__all__ = ["bench", "desk"]  # fixtures


def test_kills_lose_no_event_and_invent_none(tmp_path: Path) -> None:
    """SIGKILL ten times amid creations and deliveries."""
    lose_no_event_and_invent_none(tmp_path, kills=10)


def test_children_before_their_parents_are_delivered_in_the_same_run(bench: Bench) -> None:
    """The same for 2,500 children, in parts as they are read."""
    children_before_their_parents(bench, 2_500, a_page=100)


def test_deletions_one_by_one_stop_at_the_limits(desk: InboxDesk) -> None:
    """The same for 40 records."""
    stop_at_the_limits(desk, deletions=40)


@pytest.mark.parametrize("percent", [1, 20, 99])
def test_no_more_than_the_percentage_is_taken(percent: int) -> None:
    """The same over five minutes of requests."""
    no_more_than_the_percentage_is_taken(percent, seconds=300)


def test_the_number_of_columns_is_bounded() -> None:
    """The same at the limit that users have."""
    the_number_of_columns_is_bounded(MAX_COLUMNS)


def test_most_buckets_that_are_not_reported_are_used_almost_fully() -> None:
    """The same for 30 buckets."""
    most_buckets_are_used_almost_fully(30)


def test_others_use_the_rest() -> None:
    """The same for 20,000 requests."""
    others_use_the_rest(work=20_000)
