"""Whether the mapping of a stream has changed, so that all records that its source still has are mapped again."""

from __future__ import annotations

from crossdock.state import Transaction


def text_of_mapping_change(tx: Transaction, name: str, version: str) -> str:
    """Return since when a stream has another mapping than its last import had; empty if it has not."""
    finished = tx.intake.last_finished(name)
    if finished is not None:
        return "" if finished.version == version else f"since the import of {finished.at:%Y-%m-%d %H:%M}Z"
    stored = tx.cursors.mapping_version_of_cursor(name)
    return "" if stored is None or stored.partition(":")[0] == version else "since the last run"
