"""No text and no exception of a mapping ends a run, unbalances it, or makes a plan untrue; small forms."""

from __future__ import annotations

from pathlib import Path

from tests.chaos import mappings, raisers

from crossdock.state import StateUrl


def _few(url: StateUrl, number: int) -> int:
    return number if url.drivername == "sqlite" else number // 2


def test_any_text_in_any_cell(tmp_path: Path, state_url: StateUrl) -> None:
    """Each record is delivered, waits or is a dead letter with a known reason, as the plan said; the tally balances."""
    seen = mappings.any_text(tmp_path, state_url, examples=_few(state_url, 4))
    assert {"delivered", "bad_value", "invalid_draft"} <= set(seen)


def test_any_exception_at_any_record(tmp_path: Path, state_url: StateUrl) -> None:
    """Each record is delivered or a dead letter, or its stream stops beyond the limits; once mended nothing is lost."""
    seen = mappings.any_exception(tmp_path, state_url, examples=_few(state_url, 3))
    assert seen["stopped"] > 0
    assert set(raisers.FATES) <= set(seen)


def test_dates_that_mean_never_end_no_run(tmp_path: Path, state_url: StateUrl) -> None:
    """Night after night they are bad values where UTC has no such time, and nothing where ``empty`` names them."""
    mappings.never_and_always(tmp_path, state_url)
