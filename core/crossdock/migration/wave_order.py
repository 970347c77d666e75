"""The streams of each wave, and references that point to a later wave."""

from __future__ import annotations

from collections.abc import Mapping

from crossdock.planning.references import placeholder
from crossdock.project.migration_config import MigrationConfig
from crossdock.project.project import Project


def streams_of_waves(project: Project, migration: MigrationConfig) -> dict[str, tuple[str, ...]]:
    """The names of the streams of each wave, in the order of the config."""
    selected = {name: project.selected(wave.streams) for name, wave in migration.waves.items()}
    return {wave: tuple(name for name in project.scopes if name in names) for wave, names in selected.items()}


def later_parents(project: Project, waves: Mapping[str, tuple[str, ...]]) -> dict[str, dict[str, str]]:
    """For each stream that may refer to records of later waves: how their placeholders begin, and the later wave.

    Without the streams for which there is none. See `crossdock.planning.references.placeholder`.
    """
    order, scopes = list(waves), project.scopes
    wave_of = {name: number for number, wave in enumerate(order) for name in waves[wave]}
    found: dict[str, dict[str, str]] = {}
    for name, number in wave_of.items():
        parents, target = project.stream(name).resource_type.parents, scopes[name].target
        for other, later in wave_of.items():
            scope = scopes[other].whole
            if later > number and scope.target == target and scope.resource in parents:
                found.setdefault(name, {})[placeholder(scope, "").removesuffix(">")] = order[later]
    return found
