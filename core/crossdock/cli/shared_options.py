"""Options that several commands share, and how a run is asked to end."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

import click

from crossdock.printable import printable

F = TypeVar("F", bound=Callable[..., Any])


MOST = 2**31 - 1  # of a count or a number of a run on the command line; databases take no more than 2**63 - 1


def utf8(_ctx: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    """A callback that refuses what can be neither stored nor percent-encoded; a shell may pass any bytes."""
    try:
        (value or "").encode()
    except UnicodeEncodeError:
        raise click.BadParameter("is not UTF-8") from None
    return value


as_json = click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")


def config_option(command: F) -> F:
    """``-C`` after the command too, where hands look for it."""
    return click.option(
        "-C", "--config", type=click.Path(path_type=Path), default=None, help="The config file.", callback=_config
    )(command)


def _config(ctx: click.Context, _parameter: click.Parameter, value: Path | None) -> Path:
    assert isinstance(ctx.obj, Path)
    return value or ctx.obj


def example(*lines: str) -> str:
    """The example at the end of a command's help, kept as it is written."""
    return "\b\n" + "\n".join(("Example:", *(f"  {line}" for line in lines)))


def counted(number: int, noun: str) -> str:
    """For example ``1 request`` and ``1,200 requests``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def say(*lines: str, err: bool = False) -> None:
    """Write lines; what they quote of others cannot make one more."""
    click.echo("\n".join(map(printable, lines)), err=err)


def warn(text: str) -> None:
    """Tell of something that a person should look at."""
    say(f"crossdock: warning: {text}", err=True)


def _tell(text: str) -> None:
    say("", text, err=True)


@contextmanager
def interruptible(tell: Callable[[str], None] = _tell) -> Iterator[threading.Event]:
    """An event that SIGINT and SIGTERM set, so that a run ends in order; a second signal ends it at once.

    Args:
        tell: Told which signal came.
    """
    asked = threading.Event()

    def ask(number: int, _frame: FrameType | None) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()
        tell(f"{signal.Signals(number).name}: finishing what is on its way; once more ends at once")

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
