"""The short forms of what is promised of hostile texts; ``pytest tests/long/test_fuzz.py`` runs the long ones."""

from __future__ import annotations

from tests.fuzz import readers


def test_json_bytes() -> None:
    """Bytes are a value that comes back, or a ValueError that quotes nothing of them."""
    readers.json_bytes(100)


def test_header_fields() -> None:
    """Fields of rate limits and pauses are read within their bounds or passed over."""
    readers.header_fields(100)


def test_link_fields() -> None:
    """A Link field is read or refused, and hides no link that stands before it."""
    readers.link_fields(100)


def test_answers() -> None:
    """Any answer has one meaning with bounded texts."""
    readers.answers(60)
