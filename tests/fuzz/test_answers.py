"""The short forms of what is promised of hostile servers; ``pytest tests/long/test_fuzz.py`` runs the long ones."""

from __future__ import annotations

from tests.fuzz import hungry, raw_answers

QUICK = ["exponents", "digits", "depth", "too many", "a pointer", "bytes after the packed answer", "packed nothing"]


def test_raw_answers() -> None:
    """Whatever bytes come as an answer, it is read whole or fails with an error of ours that quotes none of them."""
    raw_answers.raw_answers(60, seed=1)


def test_memory() -> None:
    """Texts and answers that are made to fill memory take at most 400 MiB, with all that Python needs."""
    assert hungry.most_mib(QUICK) <= 400
