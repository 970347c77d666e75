"""Each state and term has one name and one sentence, wherever it is shown."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import get_args

import pytest
from click.testing import CliRunner

from crossdock.cli import records
from crossdock.cli.main import cli
from crossdock.console import run_and_fleet_report
from crossdock.reading.sources import stream_input_report
from crossdock.runs import run_report, tables_and_sentences_of_run
from crossdock.services.notifications import run_events_and_messages
from crossdock.services.observability import health_and_metrics
from crossdock.state.tables import run_history, scheduled_runs
from crossdock.values.run_states_and_tally import (
    IN,
    OUT,
    InputState,
    OpenCounts,
    PlanTerm,
    RecordState,
    RecordTerm,
    RowTerm,
    RunState,
    StateWord,
    Tally,
    Term,
)

DOCS = Path(__file__).parents[2] / "docs"
ELSEWHERE = {RecordState.HANDED_OVER, RecordState.DROPPED, RecordState.INBOX}
OPEN = [state for state in RecordState if state not in ELSEWHERE]


def test_states_are_those_of_the_words() -> None:
    """What is stored, counted, measured and sent has no other state, and each of the words is one of them."""
    ended = {state.value for state in RunState} - {RunState.RUNNING}
    assert set(get_args(scheduled_runs.Status)) == set(RunState)
    assert (
        set(get_args(run_events_and_messages.Status))
        == set(run_events_and_messages._OUTCOMES)
        == set(health_and_metrics._STATUSES)
        == ended
    )
    assert set(get_args(run_report.Status)) == ended - {RunState.SKIPPED}
    assert set(run_and_fleet_report._WORST_FIRST) == set(RunState) - {RunState.SKIPPED}
    assert ended > run_history.COMPLETED
    assert {each.name for each in fields(OpenCounts)} == set(OPEN)
    assert set(records._STATES) == {state.option_value for state in RecordState}
    assert {*IN, *OUT} == set(get_args(Term)) == set(RecordTerm)
    assert Tally().as_json()["rows"].keys() == set(RowTerm)
    assert set(get_args(stream_input_report.InputState)) == set(InputState)


def test_tables_use_the_words() -> None:
    """Columns of a tally and counts of open records have the names of the words."""
    tally = Tally(1, {"old": 1}, 1, 1, 1)
    for term in get_args(Term):
        tally.count(term)
    rows, records = tables_and_sentences_of_run.tally_tables({"wms.a": tally.as_json()})
    assert rows.columns == ("stream", "read", "skip old", "superseded", "rejected", "in records")
    assert list(records.columns[1:]) == [RecordTerm(term).display_text for term in (*IN, *OUT)]
    counts = OpenCounts(**dict.fromkeys(OPEN, 1))
    assert str(counts) == ", ".join(f"1 {RecordState(each.name).display_text}" for each in fields(OpenCounts))


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["runs"], [state for state in RunState if state is not RunState.SKIPPED]),
        (["jobs", "list"], RunState),
        (["plan"], PlanTerm),
        (["show"], [*RowTerm, *RecordTerm]),
        (["records", "list"], RecordState),
    ],
)
def test_help_explains_the_words(command: list[str], words: Iterable[StateWord]) -> None:
    """The help of each command that shows states has the sentence of each."""
    shown = " ".join(CliRunner().invoke(cli, [*command, "--help"]).output.split())
    for word in words:
        assert f": {word.meaning}." in shown


def test_the_documentation_explains_the_words() -> None:
    """Its tables are the words, in their order."""
    page = (DOCS / "how_to" / "run" / "read_a_report.md").read_text()
    for title, words in {
        "row": RowTerm,
        "record": RecordTerm,
        "open or dropped": RecordState,
        "status": RunState,
    }.items():
        table = re.search(rf"^\| {title} \| meaning \|.*\n\|[-|]+\n((?:\|.*\n)+)", page, re.MULTILINE)
        assert table is not None, title
        found = [[cell.strip() for cell in line.split("|")[1:3]] for line in table[1].splitlines()]
        assert found == [[f"`{word.display_text}`", word.meaning] for word in words]
