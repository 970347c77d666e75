"""All bad answers at once: ``pytest tests/long/test_bad_api_answers.py``, a minute."""

from __future__ import annotations

from tests.e2e.test_bad_api_answers import AT_ONCE, Shops, end_their_stream_alone, installed, shops

__all__ = ["installed", "shops"]  # fixtures


def test_all_bad_answers_end_their_stream_alone(shops: Shops) -> None:
    """One check, plan and sync of all cases: an error names each one, and everything else is delivered."""
    end_their_stream_alone(shops, AT_ONCE)
