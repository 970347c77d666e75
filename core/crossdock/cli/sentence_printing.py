"""Prints the sentences and warnings of commands, which need no tables."""

from __future__ import annotations

import click

from crossdock.cli.shared_options import MOST
from crossdock.printable import printable


def say_how_many_shown(shown: int, total: int, what: str, *, err: bool = False) -> None:
    if shown < total:
        say(f"{shown:,} of {total:,} {what} are shown: --limit {min(total, MOST)} shows all", err=err)


def say(*lines: str, err: bool = False) -> None:
    """Print lines. Texts quoted in them cannot add a line or control the terminal."""
    click.echo("\n".join(map(printable, lines)), err=err)


def warn(text: str) -> None:
    say(f"crossdock: warning: {text}", err=True)
