"""Whether a stream's mapping has changed since its last import."""

from __future__ import annotations

from crossdock.project.connector_instances import BoundStream
from crossdock.state import Transaction


def since(tx: Transaction, bound: BoundStream) -> str:
    """Since when *bound* has another mapping than its last import had; empty if it has not."""
    name, version = bound.name, bound.stream.version
    finished = tx.intake.last_finished(name)
    if finished is not None:
        return "" if finished.version == version else f"since the import of {finished.at:%Y-%m-%d %H:%M}Z"
    stored = tx.cursors.version(name)
    return "" if stored is None or stored.partition(":")[0] == version else "since the last run"
