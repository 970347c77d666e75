"""What the commands of a migration share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crossdock.errors import ConfigError

if TYPE_CHECKING:
    from crossdock.project.migration_config import MigrationConfig
    from crossdock.project.project import Project


def migration_of(loaded: Project) -> MigrationConfig:
    """The section ``migration``.

    Raises:
        ConfigError: If the config has none.
    """
    if loaded.migration is None:
        hint = "it names the waves; see docs/migrate.md"
        raise ConfigError("the config has no section 'migration'", where=str(loaded.path), hint=hint)
    return loaded.migration


def wave_streams(loaded: Project) -> set[str]:
    """The streams of all waves.

    Raises:
        ConfigError: As `migration_of`.
    """
    waves = migration_of(loaded).waves.values()
    return {name for wave in waves for name in loaded.selected(wave.streams)}
