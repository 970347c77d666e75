"""The ``crossdock`` command. A command's module is imported when the command is used."""

from __future__ import annotations

import gc
import io
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from keyword import iskeyword
from pathlib import Path
from typing import Any, TextIO

import click

from crossdock.cli.shared_options_messages_and_signals import CommandGroup, print_sentences, store_selected_configs
from crossdock.errors import CrossdockError, InternalError, StateError, StoppedError, text_with_code
from crossdock.printable import printable, printable_lines

_GARBAGE_AT = 200_000  # objects; imports create about as many that stay, and the default of 700 scans them repeatedly
# For the allocator of polars, which by default keeps what it has freed (pola-rs/polars#23128): a reconciliation of
# 300,000 records then takes an eighth more memory. Returned at once, each frame needs new pages of the system, which is
# 30 % of the CPU time of a plan of 2,000,000 rows; after 10 ms, from one arena, it needs few, and 3 to 8 % more memory.
_RETURN_FREED = "dirty_decay_ms:10,muzzy_decay_ms:0,narenas:1"
LEFT_THREADS_S = 10.0  # for threads that are left at the end of a command
_COMMANDS = {  # command -> module
    "demo": "demo",
    "sandbox": "sandbox",
    "new": "new.connector_project",
    "try": "try_stream",
    "layout": "layout",
    "init": "init_and_check",
    "connect": "connect",
    "check": "init_and_check",
    "plan": "plan",
    "sync": "sync",
    "apply": "sync",
    "approve": "approve",
    "stop": "stop",
    "schedule": "schedule",
    "listen": "listen",
    "migrate": "migrate",
    "reconcile": "reconcile",
    "undo": "undo",
    "jobs": "jobs",
    "runs": "runs",
    "show": "runs",
    "report": "report",
    "records": "records",
    "trace": "trace",
    "audit": "audit",
    "console": "console",
    "bindings": "bindings",
    "state": "state",
    "config": "config_and_schema",
    "schema": "config_and_schema",
    "explain": "explain",
}


class LazyGroup(CommandGroup):
    """A group whose commands are imported when they are used.

    *homes* has the module of each command in the package *home*, in the order of the help.
    """

    def __init__(self, *args: Any, home: str, homes: Mapping[str, str], **options: Any) -> None:
        super().__init__(*args, **options)
        self._home, self._homes = home, homes

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click's signature
        return list(self._homes)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand as error:  # click knows only commands that were added
            raise click.exceptions.NoSuchCommand(error.command_name, possibilities=self._homes, ctx=ctx) from None

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  click's signature
        if cmd_name not in self._homes:
            return None
        name = f"{cmd_name}_" if iskeyword(cmd_name) else cmd_name.replace("-", "_")
        command = getattr(import_module(f"{self._home}.{self._homes[cmd_name]}"), name)
        assert isinstance(command, click.Command)
        return command


@click.group(
    cls=LazyGroup,
    home="crossdock.cli",
    homes=_COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Start with 'crossdock demo'. The --help of each command has an example. An error or a warning ends with its"
    " code in brackets, which 'crossdock explain CODE' explains.",
)
@click.version_option(package_name="crossdock", prog_name="crossdock")
@click.option(
    "-C",
    "--config",
    type=click.Path(path_type=Path),
    multiple=True,
    envvar="CROSSDOCK_CONFIG",
    default=[Path("crossdock.yaml")],
    show_default=True,
    help="Config file; or set CROSSDOCK_CONFIG. Of several, later ones override earlier ones.",
)
@click.pass_context
def cli(ctx: click.Context, config: tuple[Path, ...]) -> None:
    """Move records from legacy warehouses, shops and 3PLs to an enterprise platform."""
    ctx.obj = store_selected_configs(ctx, config)


def main(arguments: list[str] | None = None) -> None:
    """Run a command and exit with its code. A `CrossdockError` is shown as a sentence, not as a traceback."""
    gc.set_threshold(_GARBAGE_AT)
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # otherwise pydantic searches all installed packages
    os.environ.setdefault("_RJEM_MALLOC_CONF", _RETURN_FREED)
    output = tolerate_failed_output()
    try:
        code = _run_and_report_errors(lambda: cli.main(args=arguments, prog_name="crossdock", standalone_mode=False))
    except KeyboardInterrupt:  # the second one, while the first was reported
        code = StoppedError.exit_code
    finally:
        if arguments is None:  # another Ctrl-C ends the process at once, without a traceback
            signal.signal(signal.SIGINT, signal.SIG_DFL)
    code = _report_failed_output(code, output)
    gc.freeze()  # no last collection before the process ends
    if arguments is None:
        with suppress(RuntimeError):  # where no further thread is allowed
            threading.Thread(target=_exit_despite_threads, args=(code,), name="end", daemon=True).start()
    sys.exit(code)


def _exit_despite_threads(code: int) -> None:
    """End the process although threads of an author's code still run: Python would wait for them without limit."""
    while True:
        time.sleep(LEFT_THREADS_S)
        left = [each for each in threading.enumerate() if not each.daemon and each is not threading.main_thread()]
        if left and not any(map(_thread_runs_crossdock_code, left)):
            names = ", ".join(printable(each.name) for each in left)
            print_sentences(
                f"crossdock: the process ends, although threads that a connector has started go on: {names}", err=True
            )
            os._exit(code)


def _thread_runs_crossdock_code(thread: threading.Thread) -> bool:
    frame = sys._current_frames().get(thread.ident or 0)  # noqa: SLF001  the documented way
    return any(str(each.f_globals.get("__name__")).startswith("crossdock.") for each, _ in traceback.walk_stack(frame))


def _report_failed_output(code: int, output: FailureTolerantOutput | None) -> int:
    """Return *code*, or the code for incomplete output if the command itself succeeded."""
    if output is None:
        return code
    sys.stdout.flush()
    if output.failure is None or isinstance(output.failure, BrokenPipeError):
        return code
    reason = output.failure.strerror
    message = f"the output cannot be written ({reason}), so that it is not whole; the command itself went on to its end"
    print_sentences(f"crossdock: {message}", "crossdock runs and crossdock show have the results of runs", err=True)
    return code or StateError.exit_code


def _run_and_report_errors(command: Callable[[], Any]) -> int:
    try:
        result = command()
    except CrossdockError as error:
        print_sentences(*f"crossdock: {text_with_code(error)}".split("\n"), err=True)
        return error.exit_code
    except click.ClickException as error:
        _show_usage_error(error)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("crossdock: interrupted", err=True)
        return StoppedError.exit_code
    except (Exception, SystemExit) as error:  # noqa: BLE001  of any class: an author's code may have raised it
        return _show_author_error_or_defect(error)
    return result if isinstance(result, int) else 0


def _show_author_error_or_defect(error: BaseException) -> int:
    """Show an author's exception as a sentence, and a defect of crossdock with its traceback. Return the code."""
    from crossdock.values.author_code_errors import author_code_error_or_none

    found = author_code_error_or_none(error)
    if found is not None:
        print_sentences(*f"crossdock: {text_with_code(found)}".split("\n"), err=True)
        return found.exit_code
    if isinstance(error, SystemExit):
        raise error
    _show_traceback_without_text(error)
    return InternalError.exit_code


def _show_usage_error(error: click.ClickException) -> None:
    is_help = isinstance(error, click.exceptions.NoArgsIsHelpError)
    message = printable_lines(error.format_message()) if is_help else f"{printable(error.format_message())} [usage]"
    error.format_message = lambda: message  # type: ignore[method-assign]  # `show` calls it
    error.show()


def _show_traceback_without_text(error: BaseException) -> None:
    """Show where an error was raised, without its text, which may quote a record or a secret (law 8)."""
    chain = [error]
    while (before := _direct_cause(chain[-1])) is not None and before not in chain:
        chain.append(before)
    for number, each in enumerate(reversed(chain)):
        if number:
            click.echo("\nwhich led to:\n", err=True)
        click.echo("Traceback (most recent call last):", err=True)
        click.echo("".join(traceback.format_tb(each.__traceback__)), nl=False, err=True)
        click.echo(f"{type(each).__module__}.{type(each).__qualname__} (text omitted: it may contain data)", err=True)


def _direct_cause(error: BaseException) -> BaseException | None:
    return error.__cause__ or (None if error.__suppress_context__ else error.__context__)


class FailureTolerantOutput(io.FileIO):
    """A file descriptor that ignores writes that fail. *failure* is the first: BrokenPipeError without a reader.

    A document is not continued after it, since it would lack a part. A log, which *goes_on*, is: its disk may have
    room again.
    """

    failure: OSError | None = None
    goes_on = False

    def write(self, data: Any) -> int:
        if self.failure is None or self.goes_on:
            try:
                written: int = super().write(data)
            except OSError as error:
                self.failure = self.failure or error
            else:
                return written
        return memoryview(data).nbytes


def tolerate_failed_output() -> FailureTolerantOutput | None:
    """Replace standard output and error, and return the former; None if it is not the process's own, as in a test."""
    sys.stderr, messages = _stream_ignoring_failed_writes(sys.stderr, sys.__stderr__)
    if messages is not None:
        messages.goes_on = True
    sys.stdout, output = _stream_ignoring_failed_writes(sys.stdout, sys.__stdout__)
    return output


def _stream_ignoring_failed_writes(
    stream: TextIO | None, own: TextIO | None
) -> tuple[TextIO, FailureTolerantOutput | None]:
    if stream is None:  # closed before the command began, as by `>&-`
        return Path(os.devnull).open("w", encoding="utf-8"), None
    if stream is not own or not isinstance(stream, io.TextIOWrapper):
        return stream, None
    stream.flush()
    output = FailureTolerantOutput(stream.fileno(), "w", closefd=False)
    is_buffered = isinstance(stream.buffer, io.BufferedWriter)  # not with python -u or PYTHONUNBUFFERED
    kept = io.TextIOWrapper(
        io.BufferedWriter(output) if is_buffered else output,
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )
    return kept, output
