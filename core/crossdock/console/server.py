"""Serves the console until it is stopped, in a thread of its process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from starlette.requests import Request

from crossdock.console.app import app
from crossdock.console.overviews import Overviews
from crossdock.console.people import Person, user_of_this_machine
from crossdock.console.routes import PAGES
from crossdock.console.tenants import Tenants
from crossdock.console.visits import Console
from crossdock.errors import ConfigError
from crossdock.values.clock import Clock
from crossdock.values.serving import ConnectionLimits, ServerLimits, ServerNames, serve_in_thread
from crossdock.values.serving.page_forms import Session

_CLIENTS = ConnectionLimits(header_s=10.0, body_s=20.0, answer_s=30.0, connections=64)
_LIMITS = ServerLimits(clients=_CLIENTS, accepted_at_once=16, queued=128, stops_within_s=2)


@contextmanager
def serve(
    tenants: Tenants, clock: Clock, host: str = "127.0.0.1", port: int = 0, *, allowed_hosts: Iterable[str] = ()
) -> Iterator[str]:
    """Serve the pages and yield the base address. *allowed_hosts* are as in `ServerNames`."""

    def refused(error: OSError) -> ConfigError:
        hint = "Stop the process that listens there, or use another port."
        return ConfigError(f"cannot serve the console: {error.strerror}", where=f"{host}:{port}", hint=hint)

    user = user_of_this_machine()

    def who_is(_: Request, __: Session) -> Person:
        return user

    console = Console(tenants, Overviews(tenants, clock), clock)
    served = app(console, PAGES, ServerNames(allowed_hosts, "crossdock console"), who_is)
    try:
        with serve_in_thread(served, _LIMITS, host, port, name="console", refused=refused) as base_url:
            yield base_url
    finally:
        tenants.close()
