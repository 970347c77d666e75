"""The user of the command line, for the decisions that a migration records."""

from __future__ import annotations

import getpass
import os
import socket

import click

from crossdock.cli.shared_options import utf8

LONGEST = 128  # characters, as the state keeps them


def _person(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str:
    if value is not None and not value.strip():
        raise click.BadParameter("is empty: say who you are, or leave it out for your user and host")
    name = (value or "").strip() or _user_and_host()
    if len(name) > LONGEST:
        raise click.BadParameter(f"has more than {LONGEST} characters")
    return utf8(ctx, parameter, name) or name


def _user_and_host() -> str:
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())  # a container may have no name for it
    return f"{user}@{socket.gethostname()}"[:LONGEST]


by_option = click.option("--by", metavar="NAME", callback=_person, help="Who you are; by default your user and host.")
