"""A group of commands that imports the module of a command when the command is used."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from keyword import iskeyword
from typing import Any

import click


class LazyGroup(click.Group):
    """A group whose commands are found by name.

    Args:
        home: The package of the commands.
        homes: The module of each command in it, in the order of the help. The function has the command's name, with
            underscores for hyphens.
    """

    def __init__(self, *args: Any, home: str, homes: Mapping[str, str], **options: Any) -> None:
        super().__init__(*args, **options)
        self._home, self._homes = home, homes

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click's signature
        return list(self._homes)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand as error:  # click knows only commands that were added
            raise click.exceptions.NoSuchCommand(error.command_name, possibilities=self._homes, ctx=ctx) from None

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  click's signature
        if cmd_name not in self._homes:
            return None
        name = f"{cmd_name}_" if iskeyword(cmd_name) else cmd_name.replace("-", "_")
        command = getattr(import_module(f"{self._home}.{self._homes[cmd_name]}"), name)
        assert isinstance(command, click.Command)
        return command
