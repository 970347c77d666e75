"""Commands that run until they are interrupted, and what commands are given that ask a person."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import click

from crossdock.cli.main import cli

_DEFAULT_PORTS = {"console": "8400", "listen": "8090"}


@dataclass(frozen=True, slots=True)
class Service:
    """Attributes:
    arguments: With a free port where the command has a port by default.
    """

    name: str
    arguments: list[str]

    @property
    def takes(self) -> object:
        """What two services cannot both have."""
        if self.name == "sandbox":
            return self.name, _after("--data", [*self.arguments, "--data", ""])
        return self.name

    def is_ready(self, log: str) -> bool:
        return "\n" in log


def _after(option: str, arguments: list[str]) -> str:
    return arguments[arguments.index(option) + 1]


def service_of(arguments: list[str], port: Callable[[str], str]) -> Service | None:
    """The service that a command is; None for a command that ends by itself."""
    words, options = words_and_options(arguments)
    name = words[0] if words else ""
    if name == "schedule" and not {"--once", "--preview"} & options:
        return Service(name, arguments)
    if name == "demo" and "--serve" in options:
        return Service(name, arguments)
    if words not in (["console"], ["listen"], ["sandbox"]):
        return None
    if name in _DEFAULT_PORTS and "--address" not in options:
        return Service(name, [*arguments, "--address", port(_DEFAULT_PORTS[name])])
    return Service(name, arguments)


def answered(arguments: list[str]) -> list[str]:
    """A command that asks, as a person at a terminal answers it."""
    words, options = words_and_options(arguments)
    if words == ["connect"]:
        return [*arguments, "--no-browser"]
    command: click.Command = cli
    for word in words:
        assert isinstance(command, click.Group)
        command = command.get_command(click.Context(command), word) or command
    asks = any("--yes" in parameter.opts for parameter in command.params)
    return [*arguments, "--yes"] if asks and "--yes" not in options else arguments


def words_and_options(arguments: list[str]) -> tuple[list[str], set[str]]:
    """The command and its subcommands, and the options that are given."""
    command: click.Command = cli
    words: list[str] = []
    context = click.Context(cli)
    for word in arguments:
        below = command.get_command(context, word) if isinstance(command, click.Group) else None
        if below:
            command = below
            words.append(word)
    return words, {word.partition("=")[0] for word in arguments if word.startswith("-")}
