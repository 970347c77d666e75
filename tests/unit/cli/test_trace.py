"""``crossdock trace``: rows of the state as JSON values."""

from __future__ import annotations

from datetime import UTC, datetime

from crossdock.cli.trace import _plain


def test_hashes_are_hex_and_times_are_text() -> None:
    """Nested attempts too; a row without fingerprint, as after a removal, shows none."""
    at = datetime(2026, 3, 29, 1, 30, tzinfo=UTC)
    row = {"key_hash": 255, "record_fp": None, "settled_at": at, "sendings": [{"number": 1, "ended_at": at}]}
    text = "2026-03-29T01:30:00+00:00"
    assert _plain(row) == {
        "key_hash": f"{255:032x}",
        "record_fp": None,
        "settled_at": text,
        "sendings": [{"number": 1, "ended_at": text}],
    }
