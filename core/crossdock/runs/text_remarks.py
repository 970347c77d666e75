"""Remarks of the report about the text of a stream: trimmed keys, and cells that look damaged."""

from __future__ import annotations

from crossdock.config.project.connector_instances import BoundStream
from crossdock.delta.latest_records import Scan
from crossdock.planning.references import earlier_keys
from crossdock.state import State


def keep_names(bound: BoundStream, state: State) -> None:
    """Let the stream keep the names of records that the state stored before keys were trimmed."""
    if bound.stream.trim_keys:
        with state.look() as tx:
            bound.stream.earlier_keys = earlier_keys(tx, bound.scope, bound.name)


def remark(bound: BoundStream, scan: Scan) -> None:
    """Note in how many rows keys were trimmed, and which cells look damaged."""
    note = bound.context.run.note
    if number := sum(scan.trimmed_rows):
        rows = "1 row" if number == 1 else f"{number:,} rows"
        note(bound.name, f"white space around the key was removed in {rows}")
    for found in scan.suspicious.found:
        note(bound.name, str(found))
