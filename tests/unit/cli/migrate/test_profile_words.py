"""A column's profile in words."""

from __future__ import annotations

import pytest

from crossdock.cli.migrate import rehearsal_document_text_and_page
from crossdock.migration.source_profile import FINDINGS


@pytest.mark.parametrize(
    ("number", "of", "text"),
    [
        (0, 1_000, "0 %"),
        (1, 1_000, "< 1 %"),
        (5, 1_000, "1 %"),
        (505, 1_000, "51 %"),
        (995, 1_000, "100 %"),
        (996, 1_000, "> 99 %"),
        (1_000, 1_000, "100 %"),
        (0, 0, ""),
    ],
)
def test_a_share_in_percent(number: int, of: int, text: str) -> None:
    """Neither 0 % nor 100 % is said of what is only nearly so."""
    assert rehearsal_document_text_and_page.percent_text(number, of) == text


def test_every_finding_has_words() -> None:
    """So that a new one is not forgotten."""
    assert tuple(rehearsal_document_text_and_page.FINDINGS) == FINDINGS


def test_a_column_is_described() -> None:
    """An estimate is marked, a single length is not a range, and shares are of the filled cells."""
    column = {
        "filled": 4, "distinct": 9_000, "distinct_is_estimate": True, "shortest": 3, "longest": 3,
        "whole": 1, "decimal": 0, "dates": 3,
        "findings": {"control": {"cells": 1_200, "examples": [{"at": "a.csv:2"}, {"at": "a.csv:9", "value": "x\n"}]}},
    }  # fmt: skip
    assert rehearsal_document_text_and_page.distinct_count_text(column) == "~9,000"
    assert rehearsal_document_text_and_page.distinct_count_text(column | {"distinct_is_estimate": False}) == "9,000"
    assert rehearsal_document_text_and_page.length_text(column) == "3"
    assert rehearsal_document_text_and_page.length_text(column | {"longest": 1_000}) == "3 to 1,000"
    assert rehearsal_document_text_and_page.number_and_date_shares_text(column) == "25 % whole, 75 % dates"
    assert (
        rehearsal_document_text_and_page.findings_text(column)
        == r"1,200 with control characters (a.csv:2, a.csv:9 'x\n')"
    )
