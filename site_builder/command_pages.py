"""Pages about the commands, from click."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping

import click

from crossdock.cli.main import cli
from site_builder.json_pages import documents_of
from site_builder.markdown_text import code, escaped, fenced, table

FOLDER = "reference/commands"


def pages() -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each page: one for each command below ``crossdock``, and an index."""
    top = click.Context(cli, info_name="crossdock")
    commands = {name: _command(cli, top, name) for name in cli.list_commands(top)}
    yield f"{FOLDER}/index.md", _index(commands, top)
    for name, command in commands.items():
        text = "\n".join(_sections(command, click.Context(command, info_name=name, parent=top), 1))
        yield f"{FOLDER}/{name}.md", text


def _command(group: click.Group, context: click.Context, name: str) -> click.Command:
    found = group.get_command(context, name)
    assert found is not None
    return found


def _index(commands: Mapping[str, click.Command], context: click.Context) -> str:
    rows = [
        (f"[`crossdock {name}`]({name}.md)", escaped(each.get_short_help_str(200))) for name, each in commands.items()
    ]
    return "\n".join(
        (
            "# Commands\n",
            "Every command of `crossdock`. `--help` after a command prints the same text.\n",
            table(("command", "what it does"), rows),
            "## Options before a command\n",
            _options(cli, context),
            "[Exit codes](../exit_codes.md) says what the exit code of a command means.\n",
        )
    )


def _sections(command: click.Command, context: click.Context, level: int) -> Iterator[str]:
    yield f"{'#' * level} {context.command_path}\n"
    yield _description(command)
    yield fenced("text", " ".join((context.command_path, *command.collect_usage_pieces(context))))
    yield _options(command, context)
    yield _example(command)
    yield documents_of(context.command_path.removeprefix("crossdock "))
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = _command(command, context, name)
            yield from _sections(below, click.Context(below, info_name=name, parent=context), level + 1)


def _description(command: click.Command) -> str:
    """Return the help; a paragraph that click leaves as it is, which begins with a backspace, is a block of text."""
    paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    return (
        "\n\n".join(
            fenced("text", each.partition("\n")[2]) if each.startswith("\b") else escaped(each) for each in paragraphs
        )
        + "\n"
    )


def _options(command: click.Command, context: click.Context) -> str:
    rows = []
    for option in command.get_params(context):
        record = option.get_help_record(context)
        if isinstance(option, click.Option) and record is not None and "--help" not in option.opts:
            extra = option.get_help_extra(context)
            rows.append((code(record[0]), escaped(str(extra.get("default", ""))), escaped(option.help or "")))
    return table(("option", "default", "meaning"), rows)


def _example(command: click.Command) -> str:
    lines = inspect.cleandoc(command.epilog or "").removeprefix("\b\n").splitlines()
    if not lines or lines[0] != "Example:":
        return ""
    return "Example:\n\n" + fenced("sh", re.sub("^  ", "", "\n".join(lines[1:]), flags=re.MULTILINE))
