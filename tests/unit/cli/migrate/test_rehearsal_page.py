"""The page of a rehearsal: what needs a person first, and any text as text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.report_page import HOSTILE, Page

from crossdock.cli.migrate import rehearsal_document_text_and_page
from crossdock.values.run_progress_and_messages import RunMessage
from crossdock.values.run_states_and_tally import Tally


def failed(text: str) -> dict[str, Any]:
    return RunMessage("error", "wms.invoices", text, "file_missing").as_json()


COLUMN: dict[str, Any] = {
    "name": HOSTILE, "filled": 5, "distinct": 5, "distinct_is_estimate": False, "shortest": 1, "longest": 16,
    "whole": 0, "decimal": 0, "dates": 0, "lengths": {"1": 2, "16": 3},
    "findings": {"control": {"cells": 1, "examples": [{"at": f"{HOSTILE}:1"}]}},
}  # fmt: skip
EXAMPLE = {"key": HOSTILE, "at": f"{HOSTILE}:2", "pointer": HOSTILE, "message": HOSTILE}
STREAM: dict[str, Any] = Tally().as_json() | {
    "wave": "all",
    "rejected_by_reason": {"bad_value": {"records": 7, "examples": [EXAMPLE]}},
    "rejected_before": 0,
    "repeated_keys": 2,
    "repeated_examples": [{"key": "T3", "at": ["a.csv:2", HOSTILE]}],
    "unresolved": [
        {"resource": "customer", "namespace": "wms", "references": 3, "records": 1, "why": {"not read": 1},
         "examples": [{"key": HOSTILE, "references": 3, "why": "not read"}]},
    ],
    "waiting": 3, "in_doubt": 0, "on_hold": 0, "already_there": 4, "conflicts": None,
    "matched": {"one": 1, "several": 1, "none": 0},
    "already_there_examples": [{"key": HOSTILE, "id": HOSTILE}],
    "take_over_examples": [{"key": "T1", "id": "prd_1"}],
    "ambiguous_examples": [{"key": "T2", "id": None, "message": HOSTILE}],
    "profile": {"rows": 9, "has_more_columns": True, "columns": [COLUMN]},
    "joined_profiles": {HOSTILE: {"rows": 8, "has_more_columns": False, "columns": [COLUMN]}},
}  # fmt: skip
WAVE = {
    "name": "all", "streams": ["wms.invoices"], "requests": 7, "begins_at": "2027-03-01T06:00:00Z",
    "ends_at": None, "seconds": None,
}  # fmt: skip
DOCUMENT: dict[str, Any] = {
    "migration": "acme", "tenant": "acme", "began_at": "2027-03-01T06:00:00Z", "ends_at": None, "requests": 7,
    "waves": [WAVE], "streams": {"wms.invoices": STREAM}, "warnings": [HOSTILE],
    "messages": [failed(HOSTILE)],
}  # fmt: skip


def made(**changes: Any) -> str:
    return rehearsal_document_text_and_page.render_rehearsal_page(DOCUMENT | changes, Path("/home/someone/acme.yaml"))


def test_any_text_is_text() -> None:
    """Names of columns and files, keys, messages and errors; no markup comes from them."""
    page = Page(made())
    assert not {"script", "img", "b"} & page.tags
    assert page.text.count("alert(1)") >= 8
    assert "/home/someone" not in made()


def test_what_needs_a_person_comes_first() -> None:
    """Errors and warnings, then the waves, then the streams."""
    text = Page(made(messages=[failed("cannot be read")], warnings=["wrong order"])).text
    places = [text.index(part) for part in ("cannot be read", "wrong order", "Waves", "Rejected", "resolve", "9 rows")]
    assert places == sorted(places)
    assert "4 of 0 creates on the platform already under our external id." in text
    assert "2 keys listed several times" in text
    assert "only the first columns are profiled" in text
    assert "8 rows" in text
    assert "T1: prd_1" in text
    assert "T3: a.csv:2, " in text


def test_a_share_is_of_all_records() -> None:
    """Of 28 records 7 were rejected for the only reason: a quarter of the bar, and every example is shown."""
    tally = Tally()
    tally.count("read", 28)
    examples = [EXAMPLE, EXAMPLE | {"key": "second"}]
    reasons = {"bad_value": {"records": 7, "examples": examples}}
    page = made(streams={"wms.invoices": STREAM | tally.as_json() | {"rejected_by_reason": reasons}})
    assert '<rect x="0" y="0" width="25" height="20"/>' in page
    assert "second at " in Page(page).text


def test_what_the_burst_allows_is_sent_at_once() -> None:
    """No time is stated that rounds to nothing."""
    ended = WAVE | {"seconds": 0.0, "ends_at": "2027-03-01T06:00:00Z"}
    assert Page(made(waves=[ended])).under("wave")[0][4] == "at once"
    assert Page(made(waves=[ended | {"seconds": 86_400.0}])).under("wave")[0][4] == "24 h"


def test_an_unknown_end_is_said() -> None:
    """The wave and the summary say so."""
    page = Page(made())
    assert page.under("wave")[0][:5] == ["all", "7", "2027-03-01 06:00:00Z", "unknown", "unknown"]


def test_lengths_between_two_classes_are_empty() -> None:
    """The histogram has a place for each class from the shortest to the longest."""
    assert rehearsal_document_text_and_page._length_histogram_counts({"1": 2, "16": 3}) == [2, 0, 0, 0, 3]
    assert rehearsal_document_text_and_page._length_histogram_counts({"4": 1}) == [1]
    assert rehearsal_document_text_and_page._length_histogram_counts({}) == []
