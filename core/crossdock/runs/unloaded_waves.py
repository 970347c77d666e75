"""Refuses ordinary runs of streams that an open migration has not loaded yet."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from crossdock.config.project.project import Project
from crossdock.errors import RefusedError
from crossdock.state import State


def check_loaded(project: Project, state: State, names: AbstractSet[str]) -> None:
    """Refuse streams of waves that the open migration has not begun to load, since they would bypass its gates.

    Raises:
        RefusedError: If one of *names* is such a stream; it names the wave.
    """
    if project.migration is None:
        return
    with state.look() as tx:
        current = tx.migrations.current()
        begun = {each.wave for each in tx.migrations.runs(current.id)} if current else set()
    if current is None:
        return
    for name, wave in project.migration.waves.items():
        if name not in begun and (streams := sorted(project.selected(wave.streams) & names)):
            message = f"the migration {current.name} has not loaded its wave {name} yet: {', '.join(streams)}"
            hint = "'crossdock migrate load' loads it; name other streams to sync them now"
            raise RefusedError(message, hint=hint)
