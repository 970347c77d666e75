"""Traces of runs, where OpenTelemetry's own environment variables ask for them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from crossdock.cli.shared_options import warn

if TYPE_CHECKING:
    from crossdock.runs.timings import Timings

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")


@contextmanager
def traced(warn: Callable[[str], None] = warn) -> Iterator[Callable[[Timings], None]]:
    """Gives what is to be told of each run that ended; nothing of OpenTelemetry is imported unless it is asked for.

    No failure here is the run's: it is told as a warning.
    """
    variable = asked(os.environ)
    if variable is None:
        yield _ignore
        return
    try:
        from crossdock.observability.traces import Traces
    except ImportError:
        warn(f"{variable} asks for traces, but none are sent: pip install 'crossdock[otel]'")
        yield _ignore
        return
    except ValueError as error:  # the library reads some of its variables when it is imported
        warn(f"no traces are sent: their settings cannot be used ({type(error).__name__})")
        yield _ignore
        return
    traces = Traces(os.environ[variable], warn)
    try:
        yield traces.tell
    finally:
        traces.close()


def asked(environment: Mapping[str, str]) -> str | None:
    """The variable that asks for traces; None if none does, or another one forbids it."""
    off = environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    others = "otlp" not in (environment.get("OTEL_TRACES_EXPORTER") or "otlp")
    return None if off or others else next((name for name in _ENDPOINTS if environment.get(name)), None)


def _ignore(_: Timings) -> None:
    """Nobody asked."""
