"""Confirmation before a command makes a change that a person may not have meant."""

from __future__ import annotations

import sys

import click

from crossdock.errors import ConfigError
from crossdock.printable import printable

yes_option = click.option("--yes", is_flag=True, help="Do not ask; needed where no terminal is attached.")


def confirm(action: str, *, yes: bool) -> None:
    """Ask whether to do *action*, a phrase such as ``drop 45 records``.

    Raises:
        ConfigError: If the answer is no, or if nobody can be asked and *yes* is not set.
    """
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise ConfigError(f"this would {action}", hint="nothing was changed; add --yes to do it")
    if not click.confirm(printable(f"{action[0].upper()}{action[1:]}?"), err=True):
        raise ConfigError("not confirmed; nothing was changed")
