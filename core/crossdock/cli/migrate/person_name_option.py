"""The user of the command line, for the decisions that a migration records."""

from __future__ import annotations

import click

from crossdock.cli.shared_options import check_value_is_utf8
from crossdock.values.actor import LONGEST_NAME, current_actor


def _name_of_person(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str:
    if value is not None and not value.strip():
        raise click.BadParameter("is empty: say who you are, or leave it out for your user and host")
    name = (value or "").strip() or current_actor().name_with_host
    if len(name) > LONGEST_NAME:
        raise click.BadParameter(f"has more than {LONGEST_NAME} characters")
    return check_value_is_utf8(ctx, parameter, name) or name


by_option = click.option(
    "--by", metavar="NAME", callback=_name_of_person, help="Who you are; by default your user and host."
)
