"""``crossdock listen``: receives webhooks, and registers for them at vendors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from crossdock.cli import terminal_output
from crossdock.cli.project_and_state import load_project
from crossdock.cli.scheduler_and_webhook_service import (
    ServiceOptions,
    health_option,
    log_format_option,
    serve_until_stopped,
)
from crossdock.cli.shared_options_messages_and_signals import (
    CommandGroup,
    ListenAddress,
    common_options,
    config_option,
    help_example,
    listen_address_option,
    print_sentences,
    print_warning,
)
from crossdock.cli.web_console_serving_options import WebConsoleOptions, console_address_option, web_console_options

if TYPE_CHECKING:
    from crossdock.config.project.project import Project
    from crossdock.runs.audit_log import AuditedChange
    from crossdock.services.inbox.vendor_webhook_subscriptions import VendorSubscriptions
    from crossdock.services.scheduler.stderr_log import LogFormat
    from crossdock.webhooks import Subscription

_CONNECTION = click.argument("connection", metavar="CONNECTION")
_COLUMNS = ("id", "topic", "address", "active")


@click.group(
    cls=CommandGroup,
    invoke_without_command=True,
    epilog=help_example(
        "crossdock listen", "crossdock listen --address 0.0.0.0:8090", "crossdock listen register shop"
    ),
)
@listen_address_option(
    "--address",
    "listen_at",
    default="127.0.0.1:8090",
    show_default=True,
    help="Where to receive webhooks; beyond this machine, behind a proxy with TLS.",
)
@health_option
@web_console_options(console_address_option)
@log_format_option
@config_option
@click.pass_context
def listen(
    ctx: click.Context,
    config: Path,
    *,
    listen_at: ListenAddress,
    health: ListenAddress | None,
    console: WebConsoleOptions,
    log_format: LogFormat,
) -> int:
    """Receive webhooks, and sync the records that they are about within seconds.

    Each connection with a section 'webhooks' has the address /webhooks/CONNECTION. A webhook is verified and stored
    before it is answered; then its records are fetched from the source and delivered. It runs until SIGTERM.
    'crossdock schedule --listen PORT' does the same and runs the jobs, too.
    """
    ctx.obj = config  # an option -C before the subcommand counts for it
    if ctx.invoked_subcommand is not None:
        return 0
    options = ServiceOptions(log_format, health=health, listen=listen_at, runs_jobs=False, console=console)
    return serve_until_stopped(load_project(config), config, options)


@listen.command(epilog=help_example("crossdock listen register shop"))
@_CONNECTION
@common_options
def register(connection: str, config: Path, *, as_json: bool) -> int:
    """Subscribe to the webhooks of a connection at its vendor.

    They are sent to 'listen.public_url' of the config. What is subscribed already stays as it is. Exits with 3 if the
    vendor refuses a topic.
    """
    from crossdock.errors import worst_exit_code

    with _audited_access_to_subscriptions("listen register", config, connection) as (subscriptions, change):
        registered = subscriptions.register()
        topics = [each.topic for each in registered.subscriptions]
        change.set_before_and_after(
            after={"topics": topics} | ({"refused": [*registered.refused]} if registered.refused else {})
        )
    _print_subscriptions(registered.subscriptions, f"Subscriptions of {connection}", as_json=as_json)
    _print_new_secrets(registered.subscriptions)
    terminal_output.print_errors(registered.refused)
    return worst_exit_code(registered.refused.values())


@listen.command("list", epilog=help_example("crossdock listen list shop"))
@_CONNECTION
@common_options
def list_subscriptions(connection: str, config: Path, *, as_json: bool) -> None:
    """List the subscriptions of a connection at its vendor, those to other addresses included."""
    with _access_to_subscriptions(load_project(config), connection) as subscriptions:
        _print_subscriptions(
            list(subscriptions.subscriptions_at_vendor()), f"Subscriptions of {connection}", as_json=as_json
        )


@listen.command(epilog=help_example("crossdock listen remove shop"))
@_CONNECTION
@common_options
def remove(connection: str, config: Path, *, as_json: bool) -> None:
    """End the subscriptions of a connection to 'listen.public_url' of the config."""
    with _audited_access_to_subscriptions("listen remove", config, connection) as (subscriptions, change):
        removed = list(subscriptions.remove_own_subscriptions())
        change.set_before_and_after(after={"removed": [each.topic for each in removed]})
    _print_subscriptions(removed, f"Subscriptions of {connection} that were removed", as_json=as_json)


@contextmanager
def _access_to_subscriptions(loaded: Project, connection: str) -> Iterator[VendorSubscriptions]:
    from crossdock.services.inbox.vendor_webhook_subscriptions import open_subscriptions_of_connection
    from crossdock.values.clock import SystemClock

    with open_subscriptions_of_connection(loaded, connection, SystemClock()) as opened:
        yield opened


@contextmanager
def _audited_access_to_subscriptions(
    action: str, config: Path, connection: str
) -> Iterator[tuple[VendorSubscriptions, AuditedChange]]:
    from crossdock.runs.audit_log import audited_change_with_begin_and_end
    from crossdock.values.clock import SystemClock

    loaded = load_project(config)
    with (
        _access_to_subscriptions(loaded, connection) as subscriptions,
        audited_change_with_begin_and_end(
            loaded, action, f"connection {connection}", clock=SystemClock(), warn_unlogged=print_warning
        ) as change,
    ):
        yield subscriptions, change


def _print_subscriptions(found: Sequence[Subscription], title: str, *, as_json: bool) -> None:
    rows = [{name: getattr(each, name) for name in _COLUMNS} for each in found]
    if as_json:
        terminal_output.print_json(rows)
    elif not rows:
        print_sentences("no subscription")
    else:
        shown = [row | {"active": "yes" if row["active"] else "no"} for row in rows]
        terminal_output.print_rows(title, _COLUMNS, shown, numbers=())


def _print_new_secrets(found: Sequence[Subscription]) -> None:
    for each in found:
        if each.secret is not None:
            print_sentences(
                f"The vendor has made a secret for {each.topic}, and tells it only now:", f"  {each.secret}", err=True
            )
            print_sentences("Put it where webhooks.secrets of the connection refers to.", err=True)
