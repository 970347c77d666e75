"""Whether a command that is only named has the subcommand and the options that it shows."""

from __future__ import annotations

import click

from crossdock.cli.main import cli


def check_options(words: list[str]) -> None:
    """Check the *words* after ``crossdock``; words in capitals, and lists such as ``init | check``, stand for any.

    Raises:
        AssertionError: If a subcommand or an option does not exist.
    """
    command: click.Command = cli
    options = {name for parameter in cli.params for name in parameter.opts}
    for word in words:
        if isinstance(command, click.Group) and (below := command.get_command(click.Context(command), word)):
            command = below
            options |= {name for parameter in command.params for name in parameter.opts}
        elif word.startswith("-"):
            assert word.partition("=")[0] in {*options, "--help", "--version"}, f"{word} of {' '.join(words)}"
    assert command is not cli or "|" in words or words[0].isupper() or words[0].startswith("-"), " ".join(words)
