"""What tests/chaos/test_mappings.py shows, with many examples: ``pytest tests/long/test_mappings.py -rP``."""

from __future__ import annotations

from pathlib import Path

from tests.chaos import mappings, raisers

from crossdock.state import StateUrl

EXAMPLES = 100


def test_any_text_in_any_cell(tmp_path: Path, state_url: StateUrl) -> None:
    """As in the short form."""
    seen = mappings.any_text(tmp_path, state_url, examples=EXAMPLES)
    assert set(seen) == {"delivered", "waiting", "bad_value", "invalid_draft", "rows_disagree"}


def test_any_exception_at_any_record(tmp_path: Path, state_url: StateUrl) -> None:
    """As in the short form; each kind of exception was met."""
    seen = mappings.any_exception(tmp_path, state_url, examples=EXAMPLES)
    assert seen["stopped"] > EXAMPLES / 10
    assert set(raisers.FATES) <= set(seen)
