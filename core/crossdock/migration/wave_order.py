"""References from a wave to a later one."""

from __future__ import annotations

from collections.abc import Sequence

from crossdock.config.project.project import Project
from crossdock.migration.waves import NumberedWave
from crossdock.planning.references import placeholder


def later_parents(project: Project, waves: Sequence[NumberedWave]) -> dict[str, dict[str, str]]:
    """Map each stream that may refer to records of later waves to the prefixes of their placeholders and these waves.

    See `crossdock.planning.references.placeholder`.
    """
    scopes, wave_of = project.scopes, {name: wave for wave in waves for name in sorted(wave.streams)}
    found: dict[str, dict[str, str]] = {}
    for name, wave in wave_of.items():
        parents, target = project.stream(name).resource_type.parents, scopes[name].target
        for other, later in wave_of.items():
            scope = scopes[other].whole
            if later.number > wave.number and scope.target == target and scope.resource in parents:
                found.setdefault(name, {})[placeholder(scope, "").removesuffix(">")] = later.name
    return found
