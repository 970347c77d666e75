"""``crossdock console``, which serves without a subcommand, and the accounts with which people sign in."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from crossdock.cli.shared_options_messages_and_signals import (
    CommandGroup,
    config_option,
    explicitly_given_fleet_base_files,
    fleet_option,
    help_example,
    listen_address_option,
    overriding_config_files,
    print_sentences,
    stop_event_set_by_signals,
)
from crossdock.cli.web_console_serving_options import (
    WebConsoleOptions,
    console_tenant_of_config,
    console_tenants_of_fleet,
    web_console_options,
)
from crossdock.errors import ConfigError

if TYPE_CHECKING:
    from crossdock.console.sign_in.accounts import AccountFile

_ROLES = ("viewer", "operator", "administrator")
_ACCOUNT = "crossdock console account"
_file_option = click.option(
    "--accounts",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    required=True,
    help="The private file of the accounts.",
)
_tenant_option = click.option(
    "--tenant", "tenants", multiple=True, metavar="NAME", help="Repeatable: only at this tenant; by default at all."
)


@click.group(cls=CommandGroup)
def account() -> None:
    """Add, list, change and remove accounts.

    A running console notices at once, and ends the sessions of an account that is removed or has another password.
    """


@account.command(
    "add",
    epilog=help_example(
        f"{_ACCOUNT} add anna --role viewer --accounts people",
        f"{_ACCOUNT} add ben --role viewer --tenant a --accounts people",
    ),
)
@click.argument("name")
@click.option("--role", type=click.Choice(_ROLES), required=True, help="What the person may do.")
@_tenant_option
@_file_option
def add(name: str, role: str, tenants: tuple[str, ...], accounts: Path) -> None:
    """Add an account. The file is created, with mode 0600, if there is none.

    The password is asked for, or is the first line of standard input. A viewer sees everything but personal data. An
    operator also sees personal data, repairs and runs. An administrator also approves, undoes and changes settings.
    """
    from crossdock.console.visitors_and_roles import ALL_TENANTS, Role

    roles = dict.fromkeys(tenants or (ALL_TENANTS,), Role[role.upper()])
    _account_file_at(accounts).add(name, _read_password(), roles)
    print_sentences(f"added {name}")


@account.command("list", epilog=help_example(f"{_ACCOUNT} list --accounts people"))
@_file_option
def list_(accounts: Path) -> None:
    """List the accounts with their roles; * stands for all other tenants."""
    from crossdock.cli import terminal_output

    rows = [
        (each.name, ", ".join(f"{role.display_name} at {tenant}" for tenant, role in each.roles.items()))
        for each in _account_file_at(accounts).all().values()
    ]
    terminal_output.output_console().print(terminal_output.make_fitting_table("Accounts", ("name", "roles"), rows))


@account.command("role", epilog=help_example(f"{_ACCOUNT} role ben --role none --tenant b --accounts people"))
@click.argument("name")
@click.option("--role", type=click.Choice((*_ROLES, "none")), required=True, help="none: take the role away.")
@_tenant_option
@_file_option
def change_role(name: str, role: str, tenants: tuple[str, ...], accounts: Path) -> None:
    """Change the role of an account at some tenants, or where none is named the one at all others."""
    from crossdock.console.visitors_and_roles import ALL_TENANTS, Role

    file = _account_file_at(accounts)
    roles = dict(file.get(name).roles)
    for tenant in tenants or (ALL_TENANTS,):
        roles.pop(tenant, None)
        if role != "none":
            roles[tenant] = Role[role.upper()]
    file.set_roles(name, roles)
    print_sentences(f"changed {name}")


@account.command("password", epilog=help_example(f"{_ACCOUNT} password anna --accounts people"))
@click.argument("name")
@_file_option
def set_password(name: str, accounts: Path) -> None:
    """Set another password, which is asked for or is the first line of standard input. Sessions end."""
    file = _account_file_at(accounts)
    file.get(name)
    file.set_password(name, _read_password())
    print_sentences(f"changed {name}")


@account.command("remove", epilog=help_example(f"{_ACCOUNT} remove ben --accounts people"))
@click.argument("name")
@_file_option
def remove(name: str, accounts: Path) -> None:
    """Remove an account. Its sessions end."""
    _account_file_at(accounts).remove(name)
    print_sentences(f"removed {name}")


def _account_file_at(path: Path) -> AccountFile:
    from crossdock.console.sign_in.accounts import AccountFile

    return AccountFile(path)


def _read_password() -> str:
    if sys.stdin.isatty():
        given: str = click.prompt("Password", hide_input=True, confirmation_prompt="The same again", err=True)
        return given
    line = sys.stdin.readline().rstrip("\r\n")
    if not line:
        raise ConfigError(
            "there is no password in standard input", hint="send it as the first line", code="options_incomplete"
        )
    return line


_address = listen_address_option(
    "--address", default="127.0.0.1:8400", show_default=True, help="Where to serve the pages; port 0 takes a free one."
)


@click.group(
    cls=CommandGroup,
    invoke_without_command=True,
    epilog=help_example(
        "crossdock console",
        "crossdock -C base.yaml console --fleet 'tenants/*.yaml' --address 8400",
        "crossdock console --behind-proxy 127.0.0.1 --accounts people",
    ),
)
@web_console_options(_address)
@click.option(
    "--allow-host", "allowed_hosts", multiple=True, metavar="HOST[:PORT]", help="Repeatable: an additional host name."
)
@fleet_option
@config_option
@click.pass_context
def console(
    ctx: click.Context,
    config: Path,
    *,
    console: WebConsoleOptions,
    allowed_hosts: tuple[str, ...],
    fleet: str | None,
) -> None:
    """Serve pages that show runs, open records and what needs a person, until SIGINT or SIGTERM.

    Reading them never delays a run. On loopback, the users of this machine may do everything. Elsewhere, TLS or a proxy
    with it is needed, and people sign in. docs/how_to/console/ has examples.
    """
    if ctx.invoked_subcommand:
        return
    found = (
        partial(console_tenants_of_fleet, fleet, explicitly_given_fleet_base_files(config))
        if fleet
        else partial(console_tenant_of_config, (config, *overriding_config_files(config)))
    )
    with stop_event_set_by_signals(print_sentences) as interrupt, console.serve_console(found, allowed_hosts) as url:
        print_sentences(f"serving the console at {url}")
        interrupt.wait()


console.add_command(account)
