"""Serves the console until it is stopped, in a thread of its process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from crossdock.console.page_request_context import Console
from crossdock.console.routes import PAGES
from crossdock.console.tenant_configs_and_states import Tenants
from crossdock.console.tenant_overviews import Overviews
from crossdock.console.tls_proxy_and_sign_in import Protection
from crossdock.console.visitors_and_roles import local_user_as_administrator
from crossdock.console.web_app import build_web_app
from crossdock.errors import ConfigError
from crossdock.values.clock import Clock
from crossdock.values.serving import ConnectionLimits, ServerLimits, ServerNames, serve_in_thread

_CLIENTS = ConnectionLimits(header_s=10.0, body_s=20.0, answer_s=30.0, connections=64)
_THIS_MACHINE = Protection()
_LIMITS = ServerLimits(clients=_CLIENTS, accepted_at_once=16, queued=128, stops_within_s=2)


@contextmanager
def serve(
    tenants: Tenants,
    clock: Clock,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    allowed_hosts: Iterable[str] = (),
    protection: Protection = _THIS_MACHINE,
) -> Iterator[str]:
    """Serve the pages and yield the base address. *allowed_hosts* are as in `ServerNames`.

    Raises ConfigError if the console would be reachable beyond this machine without TLS or sign-in.
    """

    def refused(error: OSError) -> ConfigError:
        hint = "Stop the process that listens there, or use another port."
        return ConfigError(
            f"cannot serve the console: {error.strerror}", where=f"{host}:{port}", hint=hint, code="port_unavailable"
        )

    protection.check_protected_before_serving(host)
    sign_in, user = protection.make_sign_in(clock), local_user_as_administrator()
    console = Console(tenants, Overviews(tenants, clock), clock, sign_in=sign_in)
    names = ServerNames(allowed_hosts, "crossdock console")
    served = build_web_app(console, PAGES, names, sign_in.person_of_session if sign_in else lambda _, __: user)
    guarded, tls = protection.wrap_app_with_proxy_checks(served), protection.self_renewing_tls_context()
    try:
        with serve_in_thread(guarded, _LIMITS, host, port, name="console", address_error=refused, tls=tls) as base_url:
            yield base_url
    finally:
        console.overviews.stop_background_reading()
        console.background_readings.wait_for_reads_in_progress()
        tenants.close_open_states()
