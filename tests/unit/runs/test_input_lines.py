"""What a stream found at its source, as a sentence."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from crossdock.reading.sources.stream_input_report import FileInInputReport, InputFacts
from crossdock.runs.tables_and_sentences_of_run import found_files_sentence

NEWEST = ("a.csv", datetime(2026, 3, 9, 1, 2, 3, tzinfo=UTC))


@pytest.mark.parametrize(
    ("facts", "text"),
    [
        (InputFacts("none"), "no file yet"),
        (InputFacts("none", newest=NEWEST), "no new file (newest: a.csv of 2026-03-09 01:02:03Z)"),
        (
            InputFacts("unchanged", [FileInInputReport("a.csv", None)]),
            "file unchanged: a.csv has the content that was read before",
        ),
        (
            InputFacts("unchanged", [FileInInputReport("a.csv", None), FileInInputReport("b.csv", None)]),
            "files unchanged: a.csv, b.csv have the content that was read before",
        ),
        (
            InputFacts("unchanged", [FileInInputReport(f"{number}.csv", None) for number in range(4)]),
            "files unchanged: 4 files: 0.csv to 3.csv have the content that was read before",
        ),
        (
            InputFacts("new", [FileInInputReport("a.csv", 1), FileInInputReport("b.csv", 2000)]),
            "read a.csv (1 row), b.csv (2,000 rows)",
        ),
        (InputFacts("new", [FileInInputReport("a.csv", None)]), "not imported: a.csv"),
        (
            InputFacts("new", [FileInInputReport(f"{number}.csv", 1) for number in range(4)]),
            "read 4 files: 0.csv to 3.csv",
        ),
    ],
)
def test_sentences(facts: InputFacts, text: str) -> None:
    """Few files are named with their rows, many by the first and the last."""
    assert found_files_sentence(facts.as_json()) == text


def test_other_sources_have_no_sentence() -> None:
    """A stream that reads no files has no such facts."""
    assert found_files_sentence({"notes": []}) is None
