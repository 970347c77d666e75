"""``crossdock console``, which serves if it is called without a subcommand."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from crossdock.cli.console_accounts import account
from crossdock.cli.interrupts import interruptible
from crossdock.cli.listen_address_option import address_option
from crossdock.cli.sentence_printing import say
from crossdock.cli.shared_options import (
    CommandGroup,
    config_option,
    explicitly_given_fleet_base_files,
    fleet_option,
    help_example,
    overriding_config_files,
)
from crossdock.cli.web_console_serving_options import (
    WebConsoleOptions,
    console_tenant_of_config,
    console_tenants_of_fleet,
    web_console_options,
)

_address = address_option(
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
    with interruptible(say) as interrupt, console.serve_console(found, allowed_hosts) as url:
        say(f"serving the console at {url}")
        interrupt.wait()


console.add_command(account)
