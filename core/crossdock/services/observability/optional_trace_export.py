"""Trace export of runs, enabled by OpenTelemetry's environment variables."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crossdock.runs.run_report import Timings

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")


@contextmanager
def open_trace_export(warn: Callable[[str], None]) -> Iterator[Callable[[Timings], None]]:
    """Yield a function to call with each ended run. OpenTelemetry is imported only if it is enabled."""
    variable = endpoint_variable_if_enabled(os.environ)
    if variable is None:
        yield _discard_run_timings
        return
    try:
        from crossdock.services.observability.otel_traces import RunTraceExporter  # noqa: PLC0415  an extra
    except ImportError:
        warn(f"traces are not sent, although {variable} is set: pip install 'crossdock[otel]'")
        yield _discard_run_timings
        return
    except ValueError as error:  # the library reads some of its variables when it is imported
        warn(f"traces are not sent: invalid OpenTelemetry settings ({type(error).__name__})")
        yield _discard_run_timings
        return
    traces = RunTraceExporter(os.environ[variable], warn)
    try:
        yield traces.add_run
    finally:
        traces.close()


def endpoint_variable_if_enabled(environment: Mapping[str, str]) -> str | None:
    """Return the variable that enables traces; None if there is none, or another one disables them."""
    disabled = environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    other_exporter = "otlp" not in (environment.get("OTEL_TRACES_EXPORTER") or "otlp")
    return None if disabled or other_exporter else next((name for name in _ENDPOINTS if environment.get(name)), None)


def _discard_run_timings(_: Timings) -> None:
    """Do nothing: traces are disabled."""
