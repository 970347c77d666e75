"""Shared parts of commands: options, loading the config, confirmation, plain output and files, and stopping a run."""

from __future__ import annotations

import gc
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, redirect_stdout
from decimal import Decimal
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from crossdock.printable import printable

if TYPE_CHECKING:
    from crossdock.config.project.project import Project
    from crossdock.state import Transaction
    from crossdock.values.state_words import StateWord


from crossdock.errors import ConfigError, StateError
from crossdock.values.local_files import check_replaceable

_OVERRIDES = "crossdock.config_overrides"

F = TypeVar("F", bound=Callable[..., Any])

MOST = 2**31 - 1  # largest count or run number on the command line; databases accept at most 2**63 - 1

_DOCUMENT = "crossdock.document"  # the key of the standard output in the meta data of a command with --json


def _only_document(ctx: click.Context, _parameter: click.Parameter, wanted: bool) -> bool:
    """Let everything but the document go to standard error, such as what an author's code prints."""
    if wanted and _DOCUMENT not in ctx.meta:
        ctx.meta[_DOCUMENT] = sys.stdout
        ctx.with_resource(redirect_stdout(sys.stderr))
    return wanted


as_json = click.option("--json", "as_json", is_flag=True, callback=_only_document, help="Print one JSON document.")


def echo_document(text: str) -> None:
    """Print the document of a command with ``--json`` on standard output."""
    ctx = click.get_current_context(silent=True)
    click.echo(text, file=ctx.meta.get(_DOCUMENT) if ctx else None)


def config_option(command: F) -> F:
    return click.option(
        "-C",
        "--config",
        type=click.Path(path_type=Path),
        multiple=True,
        help="Config file; several override one another in order.",
        callback=_config,
    )(command)


def _config(ctx: click.Context, _parameter: click.Parameter, value: tuple[Path, ...]) -> Path:
    assert isinstance(ctx.obj, Path)
    return selected_config(ctx, value) if value else ctx.obj


def selected_config(ctx: click.Context, files: tuple[Path, ...]) -> Path:
    """Return the first of the selected config files; `overrides` returns the others."""
    first, *others = files
    ctx.meta[_OVERRIDES] = {first: others}
    return first


def overrides(config: Path) -> Sequence[Path]:
    others: Sequence[Path] = click.get_current_context().meta[_OVERRIDES].get(config, ())
    return others


def fleet_base(config: Path) -> Sequence[Path]:
    """Return the base files of a fleet: those named by ``-C`` or CROSSDOCK_CONFIG, without a default."""
    ctx = click.get_current_context()
    sources = {ctx.get_parameter_source("config"), ctx.find_root().get_parameter_source("config")}
    is_named = sources & {ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT}
    return (config, *overrides(config)) if is_named else ()


fleet_option = click.option(
    "--fleet",
    metavar="PATTERN",
    help="All tenants with a config in this folder, or as 'tenants/*.yaml'; -C names what they have in common.",
)


def utf8(_ctx: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    """Refuse an argument that is not UTF-8: it can be neither stored nor percent-encoded."""
    try:
        (value or "").encode()
    except UnicodeEncodeError:
        raise click.BadParameter("is not UTF-8") from None
    return value


def utf8_each(ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    for value in values:
        utf8(ctx, parameter, value)
    return values


def load(config: Path) -> Project:
    """Load the selected config. Its models are imported here, so that ``--help`` need not wait for them."""
    from crossdock.config.project import project

    loaded = project.load(config, *overrides(config))
    gc.freeze()  # what was imported stays: a collection that goes through it takes 0.1 s and finds nothing
    return loaded


@contextmanager
def look(config: Path) -> Iterator[tuple[Transaction, str]]:
    """Read the state of the selected config; yield it with the name of its tenant.

    Only what says where the state is is read of the config, all of it if the state cannot be opened: a mistake in the
    config may be the reason.
    """
    from crossdock.config import state_location
    from crossdock.state import State

    found = state_location.locate(config, *overrides(config))
    url, pin = found or ((loaded := load(config)).state_url, loaded.pin)
    with ExitStack() as stack:
        try:
            state = stack.enter_context(closing(State(url, pin, read_only=True)))
            tx = stack.enter_context(state.look())
        except StateError:
            load(config)
            raise
        yield tx, pin.tenant


def common_options(command: F) -> F:
    return config_option(as_json(command))


def example(*lines: str) -> str:
    return "\b\n" + "\n".join(("Example:", *(f"  {line}" for line in lines)))


def meanings(title: str, words: Iterable[StateWord], *, options: bool = False) -> str:
    lines = (f"{word.option if options else word.shown}: {word.meaning}." for word in words)
    return "\n\n" + "\n\n".join((f"{title}:", *lines))


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


def _notice(text: str) -> None:
    say("", text, err=True)


@contextmanager
def interruptible(notify: Callable[[str], None] = _notice) -> Iterator[threading.Event]:
    """Yield an event set by SIGINT and SIGTERM, so that a run stops in order. A second signal stops it at once."""
    stop = threading.Event()

    def request_stop(number: int, _frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        notify(f"{signal.Signals(number).name}: finishing requests in flight; repeat to stop at once")

    before = {number: signal.signal(number, request_stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


yes_option = click.option("--yes", is_flag=True, help="Do not ask; needed where no terminal is attached.")


def confirm(action: str, *, yes: bool) -> None:
    """Ask whether to do *action*, such as ``drop 45 records``. Raises ConfigError on no, or if nobody can be asked."""
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise ConfigError(f"this would {action}", hint="nothing was changed; add --yes to do it")
    if not click.confirm(printable(f"{action[0].upper()}{action[1:]}?"), err=True):
        raise ConfigError("not confirmed; nothing was changed")


def placed(path: Path | None) -> Path | None:
    """Return the absolute path, for a file that is written later: an author's code may change the working folder."""
    return None if path is None else path.absolute()


def check_writable(*paths: Path | None) -> None:
    for path in paths:
        if path is None:
            continue
        try:
            check_replaceable(path)
        except OSError as error:
            hint = "nothing was done; name a file in a folder that exists and can be written"
            raise ConfigError(f"cannot be written: {error.strerror}", where=str(path), hint=hint) from error
