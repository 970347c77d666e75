"""The options of a console, and how a command serves it beside its own work."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from crossdock.cli.shared_options_messages_and_signals import ListenAddress, listen_address_option

if TYPE_CHECKING:
    from crossdock.console.tenant_configs_and_states import Tenants

F = TypeVar("F", bound=Callable[..., Any])
_FILE = click.Path(path_type=Path, dir_okay=False)


class WebConsoleOptions(NamedTuple):
    """Where to serve the console, if at all, and what protects it beyond this machine."""

    address: ListenAddress | None
    tls_certificate: Path | None
    tls_key: Path | None
    behind_proxy: tuple[str, ...]
    accounts: Path | None
    oidc: Path | None

    @contextmanager
    def serve_console(self, find: Callable[[], Tenants], allowed_hosts: Sequence[str]) -> Iterator[str | None]:
        """Serve the console during the block, and yield its address; None without one."""
        if self.address is None:
            yield None
            return
        from crossdock.console import web_server
        from crossdock.console.tls_proxy_and_sign_in import Protection
        from crossdock.values.clock import SystemClock

        protection = Protection(*self[1:])
        protection.raise_if_unprotected(self.address.host)
        with web_server.serve_console_in_thread(
            find(), SystemClock(), *self.address, allowed_hosts=allowed_hosts, protection=protection
        ) as url:
            yield url

    @contextmanager
    def serve_console_in_own_process(
        self, files: Sequence[Path], pattern: str | None, allowed_hosts: Sequence[str], warn: Callable[[str], None]
    ) -> Iterator[str | None]:
        """Do the same from a process of its own, for the config in *files*, or a fleet whose base it is."""
        if self.address is None:
            yield None
            return
        from crossdock.console import console_server_in_subprocess
        from crossdock.console.tls_proxy_and_sign_in import Protection

        console = console_server_in_subprocess.ConsoleOptions(
            files, pattern, *self.address, allowed_hosts, Protection(*self[1:])
        )
        with console_server_in_subprocess.serve_in_subprocess(console, warn) as url:
            yield url


_PROTECTION = (
    click.option("--tls-certificate", type=_FILE, metavar="FILE", help="PEM file of the certificate, with its chain."),
    click.option("--tls-key", type=_FILE, metavar="FILE", help="PEM file of its key, if the certificate's has none."),
    click.option(
        "--behind-proxy",
        multiple=True,
        metavar="ADDRESS",
        help="Repeatable: address or network of a proxy with TLS, which sends X-Forwarded-For and -Proto.",
    ),
    click.option(
        "--accounts", type=_FILE, metavar="FILE", help="People sign in with accounts of 'crossdock console account'."
    ),
    click.option(
        "--oidc", type=_FILE, metavar="FILE", help="People sign in at the OpenID Connect provider in this file."
    ),
)


def console_tenant_of_config(files: Sequence[Path]) -> Tenants:
    from crossdock.console import tenant_configs_and_states

    return tenant_configs_and_states.single_tenant(files)


def console_tenants_of_fleet(pattern: str, base_files: Sequence[Path]) -> Tenants:
    from crossdock.console import tenant_configs_and_states

    return tenant_configs_and_states.fleet_tenants(pattern, base_files)


console_address_option = listen_address_option(
    "--console", "address", help="Serve the console as well; by default on 127.0.0.1 only."
)


def web_console_options(address: Callable[[Any], Any]) -> Callable[[F], F]:
    """Add the options of a console, of which *address* says where it is served, as one argument ``console``."""

    def decorate(command: F) -> F:
        @wraps(command)
        def collected(*args: Any, **given: Any) -> Any:
            options = WebConsoleOptions(**{name: given.pop(name) for name in WebConsoleOptions._fields})
            return command(*args, console=options, **given)

        decorated: Any = collected
        for option in reversed((address, *_PROTECTION)):
            decorated = option(decorated)
        found: F = decorated
        return found

    return decorate
