"""Changes of a stream's mapping since its last import, and stored records that it filters out now."""

from __future__ import annotations

from collections.abc import Sequence

from crossdock.config.project.connector_instances import BoundStream
from crossdock.delta.records_of_rows import filtered_keys
from crossdock.state import DeadLetter, Transaction, WaitingRecord


def since(tx: Transaction, bound: BoundStream) -> str:
    """Return since when *bound* has another mapping than its last import had; empty if it has not."""
    name, version = bound.name, bound.stream.version
    finished = tx.intake.last_finished(name)
    if finished is not None:
        return "" if finished.version == version else f"since the import of {finished.at:%Y-%m-%d %H:%M}Z"
    stored = tx.cursors.version(name)
    return "" if stored is None or stored.partition(":")[0] == version else "since the last run"


def newly_filtered(bound: BoundStream, state: str, kept: Sequence[WaitingRecord | DeadLetter]) -> set[int]:
    """Return the key hashes of *kept* records that a filter of *bound* excludes now, and note it in the report.

    Args:
        state: The state in which they remain, such as ``waiting``.
    """
    found = filtered_keys(bound.stream, [(each.identity, each.raw) for each in kept])
    if found:
        which = f"1 record that is {state}" if len(found) == 1 else f"{len(found):,} records that are {state}"
        text = f"filters (skip) exclude {which}, so that nothing was sent"
        bound.context.run.note(bound.name, f"{text}; 'crossdock records drop {bound.name} KEY' removes one")
    return found
