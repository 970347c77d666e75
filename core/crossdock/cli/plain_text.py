"""Sentences of commands without tables, and the forms of places, counts and numbers in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

import click

from crossdock.cli.shared_options import MOST
from crossdock.printable import printable


def place_of(item: Mapping[str, Any]) -> str:
    """Return FILE:LINE, without a line if there is none, as for an undo."""
    return f"{item['source']}:{item['line']}" if item.get("line") else str(item["source"])


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def say_more(shown: int, total: int, what: str, *, err: bool = False) -> None:
    if shown < total:
        say(f"{shown:,} of {total:,} {what} are shown: --limit {min(total, MOST)} shows all", err=err)


def aligned_decimals(values: Iterable[Decimal]) -> list[str]:
    """Format numbers with all their digits and the same number of decimal places: ``9.50``, not ``9.5``."""
    numbers = list(values)
    places = max((-int(each.as_tuple().exponent) for each in numbers), default=0)
    return [f"{each:,.{max(places, 0)}f}" for each in numbers]


def parents_text(waits_for: Iterable[Mapping[str, Any]]) -> str:
    return ", ".join(f"{each['resource']} {each['namespace']}:{each['key']}" for each in waits_for)


def say(*lines: str, err: bool = False) -> None:
    """Print lines. Texts quoted in them cannot add a line or control the terminal."""
    click.echo("\n".join(map(printable, lines)), err=err)


def warn(text: str) -> None:
    say(f"crossdock: warning: {text}", err=True)
