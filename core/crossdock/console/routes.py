"""All addresses of the console, each with what answers and the role that it needs."""

from __future__ import annotations

from crossdock.console import runs, today
from crossdock.console.app import Page

PAGES = (
    Page("/", today.of_all),
    Page("/t/{tenant}", today.of_tenant),
    Page("/t/{tenant}/runs", runs.listed),
    Page("/t/{tenant}/runs/{run}", runs.one),
)
