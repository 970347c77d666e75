"""Properties that the suite tests with few examples: ``pytest tests/long/test_properties.py -n 2``, a minute."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from tests.unit.planning.test_removals import ON_GONE, RUNS, ScheduledRun, removes_what_plain_sets_would
from tests.unit.runs.test_record_search import KEYS, is_found_by_each_of_its_texts

from crossdock.stream_facts import OnGone


@given(key=KEYS)
def test_any_key_is_found_by_each_of_its_texts(key: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """As in the source, in text form, and as an external id."""
    is_found_by_each_of_its_texts(key, tmp_path_factory.mktemp("state"))


@settings(max_examples=100)
@given(RUNS, ON_GONE)
def test_runs_remove_what_plain_sets_would(scheduled_runs: list[ScheduledRun], on_gone: OnGone) -> None:
    """Records come, go and come back, runs are killed: exactly the permitted records are removed."""
    removes_what_plain_sets_would(scheduled_runs, on_gone)
