"""Properties that the suite tests with few examples: ``pytest tests/long/test_properties.py -n 2``, some minutes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import ALL
from tests.unit.runs.planning.test_removals import ON_GONE, RUNS, ScheduledRun, removes_what_plain_sets_would
from tests.unit.runs.test_record_trace import KEYS, is_found_by_each_of_its_texts
from tests.unit.sandbox.test_least_power import (
    OWN,
    SCOPES,
    SLUG,
    World,
    does_what_its_scopes_permit,
    has_no_more_power_than_its_client,
    world,
)
from tests.unit.sources.test_source_allowance import (
    is_read_without_many_refusals,
    is_used_without_a_report,
    of_any_bucket,
    of_any_silent_bucket,
)

from crossdock.mapping.stream_declaration import OnGone

__all__ = ["world"]  # a fixture

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("part", ["unit", "integration"])
def test_every_property_holds_for_all_examples(part: str) -> None:
    """All tests of the suite that hypothesis gives examples to, with each number of examples as it is written."""
    chosen = ["-m", "hypothesis", f"--hypothesis-profile={ALL}", "-p", "no:cacheprovider", f"tests/{part}"]
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *chosen], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout[-8_000:]
    assert " passed" in ended.stdout


@settings(max_examples=100)
@given(key=KEYS)
def test_any_key_is_found_by_each_of_its_texts(key: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """As in the source, in text form, and as an external id."""
    is_found_by_each_of_its_texts(key, tmp_path_factory.mktemp("state"))


@settings(max_examples=100)
@given(RUNS, ON_GONE)
def test_runs_remove_what_plain_sets_would(scheduled_runs: list[ScheduledRun], on_gone: OnGone) -> None:
    """Records come, go and come back, runs are killed: exactly the permitted records are removed."""
    removes_what_plain_sets_would(scheduled_runs, on_gone)


@settings(max_examples=200)
@given(data=st.data(), scopes=SCOPES, own=OWN, slug=SLUG)
def test_forbidden_requests_have_no_effect_and_permitted_ones_pass(
    world: World, data: st.DataObject, scopes: list[str], own: str, slug: str
) -> None:
    """For a key, a token, and a token with fewer scopes than its client."""
    does_what_its_scopes_permit(world, data, scopes, own, slug)


@settings(max_examples=100)
@given(data=st.data(), scopes=SCOPES)
def test_a_token_with_fewer_scopes_has_no_more_power_than_its_client(
    world: World, data: st.DataObject, scopes: list[str]
) -> None:
    """Whatever a token leaves out, it does nothing that a key with its client's scopes could not do."""
    has_no_more_power_than_its_client(world, data, scopes)


@settings(max_examples=60)
@of_any_bucket
def test_any_bucket_is_read_without_many_refusals(**bucket: Any) -> None:
    """At most one request in ten is refused, in each of three runs."""
    is_read_without_many_refusals(**bucket)


@settings(max_examples=30)
@of_any_silent_bucket
def test_any_bucket_that_is_not_reported_is_used(**bucket: Any) -> None:
    """After 3,000 requests at least 80 %, in later runs too, and again after the limit has changed."""
    is_used_without_a_report(**bucket)
