"""What commands share: options and parts of their help, sentences and warnings that they print, and signals."""

from __future__ import annotations

import re
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from datetime import datetime
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click
from click.core import ParameterSource

from crossdock.errors import ConfigError, NotConfirmedError
from crossdock.printable import printable
from crossdock.values.acting_person_and_process import LONGEST_NAME, current_actor
from crossdock.values.safe_local_files import raise_if_file_not_replaceable
from crossdock.values.texts_of_numbers_and_times import USABLE_YEARS, USABLE_YEARS_TEXT

if TYPE_CHECKING:
    from crossdock.values.run_states_and_tally import StateWord

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


listen_address_option = partial(click.option, metavar="[HOST:]PORT", callback=parse_listen_address)


def absolute_path(path: Path | None) -> Path | None:
    """Return the absolute path, for a file that is written later: an author's code may change the working folder."""
    return None if path is None else path.absolute()


def raise_if_not_writable(*paths: Path | None) -> None:
    for path in paths:
        if path is None:
            continue
        try:
            raise_if_file_not_replaceable(path)
        except OSError as error:
            hint = "nothing was done; name a file in a folder that exists and can be written"
            raise ConfigError(
                f"cannot be written: {error.strerror}", where=str(path), hint=hint, code="file_unwritable"
            ) from error


_OVERRIDES = "crossdock.config_overrides"

F = TypeVar("F", bound=Callable[..., Any])

MOST = 2**31 - 1  # largest count or run number on the command line; databases accept at most 2**63 - 1

_LONGEST = 1_000  # letters of the first sentence of a command's help

_DOCUMENT = "crossdock.document"  # the key of the standard output in the meta data of a command with --json


class CommandGroup(click.Group):
    """A group whose help has the whole first sentence of each command; click cuts those that are longer than a line."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        found = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        lines = [(name, each.get_short_help_str(_LONGEST)) for name, each in found if each and not each.hidden]
        with formatter.section("Commands"):
            formatter.write_dl(lines)


def _redirect_other_output(ctx: click.Context, _parameter: click.Parameter, wanted: bool) -> bool:
    """Let everything but the document go to standard error, such as what an author's code prints."""
    if wanted and _DOCUMENT not in ctx.meta:
        ctx.meta[_DOCUMENT] = sys.stdout
        ctx.with_resource(redirect_stdout(sys.stderr))
    return wanted


as_json = click.option(
    "--json", "as_json", is_flag=True, callback=_redirect_other_output, help="Print one JSON document."
)


def echo_document_text(text: str) -> None:
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
        callback=_given_or_inherited_config,
    )(command)


def _given_or_inherited_config(ctx: click.Context, _parameter: click.Parameter, value: tuple[Path, ...]) -> Path:
    assert isinstance(ctx.obj, Path)
    return store_selected_configs(ctx, value) if value else ctx.obj


def store_selected_configs(ctx: click.Context, files: tuple[Path, ...]) -> Path:
    """Return the first of the selected config files; `overriding_config_files` returns the others."""
    first, *others = files
    ctx.meta[_OVERRIDES] = {first: others}
    return first


def overriding_config_files(config: Path) -> Sequence[Path]:
    others: Sequence[Path] = click.get_current_context().meta[_OVERRIDES].get(config, ())
    return others


def explicitly_given_fleet_base_files(config: Path) -> Sequence[Path]:
    """Return the base files of a fleet: those named by ``-C`` or CROSSDOCK_CONFIG, without a default."""
    ctx = click.get_current_context()
    sources = {ctx.get_parameter_source("config"), ctx.find_root().get_parameter_source("config")}
    is_named = sources & {ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT}
    return (config, *overriding_config_files(config)) if is_named else ()


fleet_option = click.option(
    "--fleet",
    metavar="PATTERN",
    help="All tenants with a config in this folder, or as 'tenants/*.yaml'; -C names what they have in common.",
)


class UtcTime(click.DateTime):
    """The type of an option with a date or a time."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        found: datetime = super().convert(value, param, ctx)
        if found.year not in USABLE_YEARS:
            self.fail(f"{value!r} is not in {USABLE_YEARS_TEXT}", param, ctx)
        return found


def raise_if_value_not_utf8(_ctx: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    """Refuse an argument that is not UTF-8: it can be neither stored nor percent-encoded."""
    try:
        (value or "").encode()
    except UnicodeEncodeError:
        raise click.BadParameter("is not UTF-8") from None
    return value


def check_each_value_is_utf8(
    ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> tuple[str, ...]:
    for value in values:
        raise_if_value_not_utf8(ctx, parameter, value)
    return values


def common_options(command: F) -> F:
    return config_option(as_json(command))


def help_example(*lines: str) -> str:
    return "\b\n" + "\n".join(("Example:", *(f"  {line}" for line in lines)))


def help_meanings(title: str, words: Iterable[StateWord], *, options: bool = False) -> str:
    lines = (f"{word.option_value if options else word.display_text}: {word.meaning}." for word in words)
    return "\n\n" + "\n\n".join((f"{title}:", *lines))


yes_option = click.option("--yes", is_flag=True, help="Do not ask; needed where no terminal is attached.")


def ask_or_raise_not_confirmed(action: str, *, yes: bool) -> None:
    """Ask whether to do *action*, such as ``drop 45 records``. Raises NotConfirmedError on no, or without anybody."""
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise NotConfirmedError(f"this would {action}", hint="nothing was changed; add --yes to do it")
    if not click.confirm(printable(f"{action[0].upper()}{action[1:]}?"), err=True):
        raise NotConfirmedError("not confirmed; nothing was changed")


def _name_of_person(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str:
    if value is not None and not value.strip():
        raise click.BadParameter("is empty: say who you are, or leave it out for your user and host")
    name = (value or "").strip() or current_actor().name_with_host
    if len(name) > LONGEST_NAME:
        raise click.BadParameter(f"has more than {LONGEST_NAME} characters")
    return raise_if_value_not_utf8(ctx, parameter, name) or name


person_name_option = click.option(
    "--by", metavar="NAME", callback=_name_of_person, help="Who you are; by default your user and host."
)


def print_counts_if_not_all_shown(shown: int, total: int, what: str, *, err: bool = False) -> None:
    if shown < total:
        print_sentences(f"{shown:,} of {total:,} {what} are shown: --limit {min(total, MOST)} shows all", err=err)


def print_sentences(*lines: str, err: bool = False) -> None:
    """Print lines. Texts quoted in them cannot add a line or control the terminal."""
    click.echo("\n".join(map(printable, lines)), err=err)


def print_warning(text: str) -> None:
    print_sentences(f"crossdock: warning: {text}", err=True)


def _print_notice(text: str) -> None:
    print_sentences("", text, err=True)


@contextmanager
def stop_event_set_by_signals(notify: Callable[[str], None] = _print_notice) -> Iterator[threading.Event]:
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
