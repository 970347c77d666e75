"""Steps and allowance of a run in words and numbers."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.report_page import AT

from crossdock.runs import tables_and_sentences_of_run
from crossdock.state import RunRecord


def run(**kept: Any) -> RunRecord:
    found = {"steps": [], "samples": []} | kept
    return RunRecord(1, None, "2026-03-29", AT, AT, "done", 0, 0, None, None, messages=(), timings=found)


def test_the_slowest_steps_come_first() -> None:
    """Steps of one name are added up; at most ten are shown, with their share, and none below 50 ms."""
    many = [[f"fetching {number}", 0, 100 + number] for number in range(20)]
    steps = [["reading", 0, 4_000], ["fetching", 4_000, 1_000], ["reading", 5_000, 3_000], ["blink", 8_000, 49], *many]
    found = tables_and_sentences_of_run.slowest_steps(run(steps=steps))
    assert [(step.name, step.lasted.total_seconds()) for step in found[:3]] == [
        ("reading", 7),
        ("fetching", 1),
        ("fetching 19", 0.119),
    ]
    assert len(found) == tables_and_sentences_of_run.SLOWEST
    whole = 8_049 + sum(range(100, 120))
    assert found[0].share == pytest.approx(100 * 7_000 / whole)
    assert tables_and_sentences_of_run.slowest_steps(run(steps=[["blink", 0, 49]])) == []


def test_the_allowance_in_a_sentence() -> None:
    """The lowest value, when it was first reached, and how long the allowance was low."""
    samples = [[0, 2_000], [12_000, 20], [13_000, 19], [14_000, 499], [700_000, 1_990], [701_000, 19], [731_500, 400]]
    summary = tables_and_sentences_of_run.allowance_summary(run(samples=samples))
    assert str(summary) == "lowest 19 tokens, after 13.0 s; highest 2,000; below a quarter of that for 32.5 s"
    summary = tables_and_sentences_of_run.allowance_summary(run(samples=[[0, 2_000], [61_000, 500]]))
    assert str(summary) == "lowest 500 tokens, after 1 min 1 s; highest 2,000; never below a quarter of that"
    assert str(tables_and_sentences_of_run.allowance_summary(run(samples=[[5, 7], [9, 7]]))) == "7 tokens throughout"


def test_a_run_without_timings() -> None:
    """A killed run has no timings, and one that sent nothing has no allowance."""
    killed = RunRecord(1, None, "2026-03-29", AT, None, "incomplete", 0, 0, None, None)
    assert (
        tables_and_sentences_of_run.slowest_steps_and_allowance_document(killed),
        tables_and_sentences_of_run.slowest_steps(killed),
        tables_and_sentences_of_run.allowance_summary(killed),
    ) == (
        {},
        [],
        None,
    )
    assert tables_and_sentences_of_run.slowest_steps_and_allowance_document(run()) == {
        "slowest_steps": [],
        "allowance": None,
        "apis": {},
    }


def test_the_facts_for_scripts() -> None:
    """JSON has the same numbers, in seconds and percent."""
    assert tables_and_sentences_of_run.slowest_steps_and_allowance_document(
        run(steps=[["a", 0, 2_000], ["b", 2_000, 1_000]], samples=[[0, 8], [1_500, 0], [2_000, 1]])
    ) == {
        "slowest_steps": [
            {"step": "a", "seconds": 2.0, "percent": 66.7},
            {"step": "b", "seconds": 1.0, "percent": 33.3},
        ],
        "allowance": {"lowest": 0, "highest": 8, "seconds_below_a_quarter": 0.5},
        "apis": {},
    }


SAMPLES = st.lists(st.tuples(st.integers(0, 10**8), st.integers(0, 10_000)), min_size=1, max_size=50).map(sorted)


@given(SAMPLES)
def test_it_is_never_low_for_longer_than_it_was_sampled(samples: list[tuple[int, int]]) -> None:
    """Nor between two high samples; the lowest and the highest value are samples."""
    summary = tables_and_sentences_of_run.allowance_summary(run(samples=[list(sample) for sample in samples]))
    assert summary is not None
    tokens = [each for _, each in samples]
    assert (summary.lowest, summary.highest) == (min(tokens), max(tokens))
    assert timedelta() <= summary.short <= timedelta(milliseconds=samples[-1][0] - samples[0][0] + 1)
    if min(tokens) * 4 >= max(tokens):
        assert summary.short == timedelta()
