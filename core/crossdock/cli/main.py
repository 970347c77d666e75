"""The ``crossdock`` command."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from crossdock.errors import CrossdockError, InternalError

_COMMANDS = {  # command -> module of crossdock.cli that holds it
    "demo": "demo",
    "sandbox": "sandbox",
    "init": "setup",
    "check": "setup",
    "plan": "plan",
    "sync": "sync",
    "apply": "sync",
    "runs": "history",
    "show": "history",
    "records": "records",
    "trace": "trace",
    "bindings": "bindings",
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
    sys.exit(_run(lambda: cli.main(args=arguments, prog_name="crossdock", standalone_mode=False)))


def _run(command: Callable[[], Any]) -> int:
    try:
        result = command()
    except CrossdockError as error:
        click.echo(f"crossdock: {error}", err=True)
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("crossdock: interrupted", err=True)
        return 130
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output went away, which is its right
        return 0
    except Exception:  # noqa: BLE001  a defect: shown whole, so that it can be mended
        traceback.print_exc()
        return InternalError.exit_code
    return result if isinstance(result, int) else 0
