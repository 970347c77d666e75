"""``crossdock console``, which serves if it is called without a subcommand."""

from __future__ import annotations

from pathlib import Path

import click

from crossdock.cli.console_accounts import account
from crossdock.cli.interrupts import interruptible
from crossdock.cli.plain_text import say
from crossdock.cli.service import ListenAddress, address_option
from crossdock.cli.shared_options import config_option, example, fleet_base, fleet_option, overrides

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.group(
    invoke_without_command=True,
    epilog=example(
        "crossdock console",
        "crossdock -C base.yaml console --fleet 'tenants/*.yaml' --address 8400",
        "crossdock console --behind-proxy 127.0.0.1 --accounts people",
    ),
)
@address_option(
    "--address", default="127.0.0.1:8400", show_default=True, help="Where to serve the pages; port 0 takes a free one."
)
@click.option(
    "--allow-host", "allowed_hosts", multiple=True, metavar="HOST[:PORT]", help="Repeatable: an additional host name."
)
@click.option("--tls-certificate", type=_FILE, metavar="FILE", help="PEM file of the certificate, with its chain.")
@click.option("--tls-key", type=_FILE, metavar="FILE", help="PEM file of its key, if the certificate's has none.")
@click.option(
    "--behind-proxy",
    multiple=True,
    metavar="ADDRESS",
    help="Repeatable: address or network of a proxy with TLS, which sends X-Forwarded-For and -Proto.",
)
@click.option(
    "--accounts", type=_FILE, metavar="FILE", help="People sign in with accounts of 'crossdock console account'."
)
@click.option("--oidc", type=_FILE, metavar="FILE", help="People sign in at the OpenID Connect provider in this file.")
@fleet_option
@config_option
@click.pass_context
def console(
    ctx: click.Context,
    config: Path,
    *,
    address: ListenAddress,
    allowed_hosts: tuple[str, ...],
    tls_certificate: Path | None,
    tls_key: Path | None,
    behind_proxy: tuple[str, ...],
    accounts: Path | None,
    oidc: Path | None,
    fleet: str | None,
) -> None:
    """Serve pages that show runs, open records and what needs a person, until SIGINT or SIGTERM.

    Reading them never delays a run. On loopback, the users of this machine may do everything. Elsewhere, TLS or a proxy
    with it is needed, and people sign in. docs/console.md has examples.
    """
    if ctx.invoked_subcommand:
        return
    from crossdock.console import server, tenants
    from crossdock.console.protection import Protection
    from crossdock.values.clock import SystemClock

    protection = Protection(tls_certificate, tls_key, behind_proxy, accounts, oidc)
    protection.check(address.host)
    found = tenants.fleet(fleet, fleet_base(config)) if fleet else tenants.one((config, *overrides(config)))
    served = server.serve(found, SystemClock(), *address, allowed_hosts=allowed_hosts, protection=protection)
    with interruptible(say) as interrupt, served as url:
        say(f"serving the console at {url}")
        interrupt.wait()


console.add_command(account)
