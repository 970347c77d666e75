"""The ``crossdock`` command."""

from __future__ import annotations

import gc
import os
import sys
import traceback
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from crossdock.cli.shared_options import say
from crossdock.errors import CrossdockError, InternalError
from crossdock.printable import printable

_GARBAGE_AT = 200_000  # objects: as many are imported and stay, and from 700 on Python would look through them all
_COMMANDS = {  # command -> module of crossdock.cli that holds it
    "demo": "demo",
    "sandbox": "sandbox",
    "init": "init_and_check",
    "check": "init_and_check",
    "plan": "plan",
    "sync": "sync",
    "apply": "sync",
    "approve": "approve",
    "schedule": "schedule",
    "jobs": "jobs",
    "runs": "runs",
    "show": "runs",
    "records": "records",
    "trace": "trace",
    "bindings": "bindings",
    "state": "state",
    "config": "config",
    "schema": "config",
}


class _Lazy(click.Group):
    """Imports a command's module only when that command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click's signature
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  click's signature
        if cmd_name not in _COMMANDS:
            return None
        command = getattr(import_module(f"crossdock.cli.{_COMMANDS[cmd_name]}"), cmd_name)
        assert isinstance(command, click.Command)
        return command


@click.group(
    cls=_Lazy,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Begin with 'crossdock demo'. Each command has an example in its --help.",
)
@click.version_option(package_name="crossdock", prog_name="crossdock")
@click.option(
    "-C",
    "--config",
    type=click.Path(path_type=Path),
    envvar="CROSSDOCK_CONFIG",
    default=Path("crossdock.yaml"),
    show_default=True,
    help="The config file; also CROSSDOCK_CONFIG.",
)
@click.pass_context
def cli(ctx: click.Context, config: Path) -> None:
    """Moves records from legacy warehouses, shops and 3PLs onto an enterprise platform."""
    ctx.obj = config


def main(arguments: list[str] | None = None) -> None:
    """Run a command and exit with its code; errors of ours are shown as sentences, never as tracebacks."""
    gc.set_threshold(_GARBAGE_AT)
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # else every installed package is asked for one
    code = _run(lambda: cli.main(args=arguments, prog_name="crossdock", standalone_mode=False))
    gc.freeze()  # nor does it need to look through them once more before they all go
    sys.exit(code)


def _run(command: Callable[[], Any]) -> int:
    try:
        result = command()
    except CrossdockError as error:
        say(*f"crossdock: {error}".split("\n"), err=True)
        return error.exit_code
    except click.ClickException as error:
        _show_usage(error)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("crossdock: interrupted", err=True)
        return 130
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output went away, which is its right
        return 0
    except Exception as error:  # noqa: BLE001  a defect: its way is shown, so that it can be mended
        _show_defect(error)
        return InternalError.exit_code
    return result if isinstance(result, int) else 0


def _show_usage(error: click.ClickException) -> None:
    """Show what is wrong with a command; it may quote any argument."""
    message = printable(error.format_message())
    error.format_message = lambda: message  # type: ignore[method-assign]  # which `show` asks
    error.show()


def _show_defect(error: BaseException) -> None:
    """Tell where an error came from, and not what it says, which may quote a record or a secret (law 8)."""
    chain = [error]
    while (before := _cause(chain[-1])) is not None and before not in chain:
        chain.append(before)
    for number, link in enumerate(reversed(chain)):
        if number:
            click.echo("\nwhich led to:\n", err=True)
        click.echo("Traceback (most recent call last):", err=True)
        click.echo("".join(traceback.format_tb(link.__traceback__)), nl=False, err=True)
        click.echo(
            f"{type(link).__module__}.{type(link).__qualname__} (its text is left out: it may hold data)", err=True
        )


def _cause(error: BaseException) -> BaseException | None:
    return error.__cause__ or (None if error.__suppress_context__ else error.__context__)
