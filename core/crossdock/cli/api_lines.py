"""The requests of a run to its source APIs, in the same form on the terminal and in a report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from crossdock.cli.shared_options import counted
from crossdock.values.times_as_text import duration_text

COLUMNS = ("connection", "requests", "throttled", "waited for the rate limit")
Cells = tuple[str, int, int, str]


def rows(apis: Mapping[str, Any]) -> Iterator[Cells]:
    for name, usage in apis.items():
        yield name, usage["requests"], usage["throttled"], duration_text(timedelta(milliseconds=usage["waited_ms"]))


def sentences(apis: Mapping[str, Any]) -> Iterator[str]:
    for name, requests, throttled, waited in rows(apis):
        wait = f", waited {waited} for the rate limit" if apis[name]["waited_ms"] >= 1000 else ""
        yield f"{name}: {counted(requests, 'API request')} ({throttled:,} throttled){wait}"
