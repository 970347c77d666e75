"""``crossdock console``: pages about the states of one config or of a fleet, until it is stopped."""

from __future__ import annotations

from pathlib import Path

import click

from crossdock.cli.interrupts import interruptible
from crossdock.cli.plain_text import say
from crossdock.cli.service import ListenAddress, address_option
from crossdock.cli.shared_options import config_option, example, fleet_base, fleet_option, overrides


@click.command(
    epilog=example("crossdock console", "crossdock -C base.yaml console --fleet 'tenants/*.yaml' --address 8400")
)
@address_option(
    "--address", default="127.0.0.1:8400", show_default=True, help="Where to serve the pages; port 0 takes a free one."
)
@click.option(
    "--allow-host", "allowed_hosts", multiple=True, metavar="HOST[:PORT]", help="Repeatable: an additional host name."
)
@fleet_option
@config_option
def console(config: Path, *, address: ListenAddress, allowed_hosts: tuple[str, ...], fleet: str | None) -> None:
    """Serve pages that show runs, open records and what needs a person, until SIGINT or SIGTERM.

    Reading them never delays a run. The users of this machine may do everything.
    """
    from crossdock.console import server, tenants
    from crossdock.values.clock import SystemClock

    found = tenants.fleet(fleet, fleet_base(config)) if fleet else tenants.one((config, *overrides(config)))
    with (
        interruptible(say) as interrupt,
        server.serve(found, SystemClock(), *address, allowed_hosts=allowed_hosts) as url,
    ):
        say(f"serving the console at {url}")
        interrupt.wait()
