"""The waves of a config, numbered, with their streams by name."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from crossdock.config.project.migration_config import Gate, MigrationConfig
from crossdock.config.project.project import Project
from crossdock.errors import ConfigError
from crossdock.values import config_file


class NumberedWave(Struct, frozen=True):
    """One wave, numbered from 1. Its text is for people, such as ``wave 2 of 7: lots``."""

    name: str
    number: int
    of: int
    streams: frozenset[str]
    gate: Gate

    def __str__(self) -> str:
        return f"wave {self.number} of {self.of}: {self.name}"


def migration_config(project: Project) -> MigrationConfig:
    if project.migration is None:
        hint = "add 'migration: {waves: {NAME: {streams: [...]}}}'; see docs/how_to/migrate/"
        raise ConfigError(
            "the config has no section 'migration'", where=str(project.path), hint=hint, code="migration_not_configured"
        )
    return project.migration


def waves_numbered_in_config_order(project: Project) -> list[NumberedWave]:
    """Return the waves in the order in which they are loaded."""
    waves = migration_config(project).waves
    return [
        NumberedWave(name, number, len(waves), frozenset(project.selected_streams(wave.streams)), wave.gate)
        for number, (name, wave) in enumerate(waves.items(), 1)
    ]


def streams_of_all_waves(project: Project) -> set[str]:
    """Return the streams of all waves. Raise ConfigError if the config has no migration."""
    migration_config(project)
    return project.names_of_migrated_streams


def wave_named(waves: Sequence[NumberedWave], name: str) -> NumberedWave:
    for wave in waves:
        if wave.name == name:
            return wave
    advice = config_file.unknown_key_message(name, [wave.name for wave in waves]).removeprefix("unknown key; ")
    raise ConfigError(f"no wave is called {name!r}; {advice}", code="wave_unknown")
