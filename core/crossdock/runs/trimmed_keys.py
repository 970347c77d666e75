"""White space around the keys of a stream: what was stored with it keeps its name, and the report says where it was."""

from __future__ import annotations

from collections.abc import Iterable

from crossdock.planning.references import earlier_keys
from crossdock.project.connector_instances import BoundStream
from crossdock.state import State


def keep_names(bound: BoundStream, state: State) -> None:
    """Let the stream name records as the state does that stored them before keys were trimmed."""
    if bound.stream.trim_keys:
        with state.look() as tx:
            bound.stream.earlier_keys = earlier_keys(tx, bound.scope, bound.name)


def remark(bound: BoundStream, trimmed: Iterable[int]) -> None:
    """Note in the report in how many rows keys were trimmed."""
    if number := sum(trimmed):
        rows = "1 row" if number == 1 else f"{number:,} rows"
        bound.context.run.note(bound.name, f"white space around the key was removed in {rows}")
