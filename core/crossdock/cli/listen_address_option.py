"""Addresses at which commands serve."""

from __future__ import annotations

import re
from functools import partial
from typing import NamedTuple

import click

from crossdock.errors import ConfigError

_ADDRESS = re.compile(r"(?:(?P<host>\[[0-9a-fA-F:.]+\]|[^\[\]:]+):)?(?P<port>[0-9]{1,5})")


class ListenAddress(NamedTuple):
    host: str
    port: int


def parse_listen_address(_: click.Context, option: click.Parameter, text: str | None) -> ListenAddress | None:
    """Parse ``[HOST:]PORT``. Without a host, only this machine can connect."""
    if text is None:
        return None
    found = _ADDRESS.fullmatch(text)
    if found is None or int(found["port"]) > 65_535:
        hint = "for example 8090 or 0.0.0.0:8090"
        raise ConfigError(f"{text!r} is not [HOST:]PORT", where=option.opts[0], hint=hint, code="option_value_invalid")
    return ListenAddress((found["host"] or "127.0.0.1").strip("[]"), int(found["port"]))


address_option = partial(click.option, metavar="[HOST:]PORT", callback=parse_listen_address)
