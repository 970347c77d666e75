"""A config with an initialised state, which is also that of commands."""

from tests.unit.cli.conftest import command_line

__all__ = ["command_line"]
