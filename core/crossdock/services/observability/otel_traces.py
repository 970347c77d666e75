"""OpenTelemetry traces: one span per run and one per step. Only this module imports opentelemetry.

Spans are created after the run ended and sent by a thread. A failure is a warning and never affects the run.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from importlib.metadata import version
from typing import Any
from urllib.parse import urlsplit

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import StatusCode, set_span_in_context

from crossdock.runs.run_report import Timings

CLOSES_WITHIN_S = 3.0
_LIBRARY = logging.getLogger("opentelemetry")
_LIBRARY.addHandler(logging.NullHandler())
_LIBRARY.propagate = False  # its messages quote headers and addresses, which may contain secrets


class RunTraceExporter:
    """Sends traces over OTLP (protobuf over HTTP). Warnings name *endpoint*, and may come from another thread."""

    def __init__(self, endpoint: str, warn: Callable[[str], None]) -> None:
        self._receiver, self._warn = _endpoint_without_secrets(endpoint), warn
        self._last_status = _LoggedHttpStatus()
        _LIBRARY.addHandler(self._last_status)
        self._provider: TracerProvider | None = None
        try:
            self._provider = TracerProvider(resource=_resource_of_service(), shutdown_on_exit=False)
            self._provider.add_span_processor(
                BatchSpanProcessor(_ExporterReportingFailures(OTLPSpanExporter(), self._warn_undelivered))
            )
        except Exception as error:  # noqa: BLE001  a wrong variable, for example; the text may quote a secret
            self._warn(f"traces are not sent: invalid OpenTelemetry settings ({type(error).__name__})")

    def add_run(self, timings: Timings) -> None:
        report = timings.report
        if report is None or self._provider is None:
            return
        attributes = {
            "crossdock.run": report.run,
            "crossdock.job": timings.job,
            "crossdock.business_date": report.business_date,
            "crossdock.status": report.status,
            "crossdock.requests": report.counters.requests,
            "crossdock.throttled": report.counters.throttled,
        }
        attributes = {name: value for name, value in attributes.items() if value is not None}
        tracer = self._provider.get_tracer("crossdock", version("crossdock"))
        name = f"run {timings.job}" if timings.job else "run"
        run = tracer.start_span(
            name, Context(), attributes=attributes, start_time=_epoch_ns(timings.began, timedelta())
        )
        if report.status != "done":
            run.set_status(StatusCode.ERROR)
        parent = set_span_in_context(run, Context())
        for step in timings.steps:
            span = tracer.start_span(step.name, parent, start_time=_epoch_ns(timings.began, step.began))
            span.end(_epoch_ns(timings.began, step.began + step.lasted))
        run.end(_epoch_ns(timings.began, report.lasted))

    def close(self) -> None:
        if self._provider is not None:
            closing = threading.Thread(target=self._provider.shutdown, name="traces", daemon=True)
            closing.start()
            closing.join(CLOSES_WITHIN_S)
            if closing.is_alive():
                self._warn_undelivered()
                self._warn = lambda _: None  # once is enough
        _LIBRARY.removeHandler(self._last_status)

    def _warn_undelivered(self) -> None:
        status = self._last_status.pop()
        self._warn(f"traces were not delivered to {self._receiver}" + (f": HTTP {status}" if status else ""))


class _ExporterReportingFailures(SpanExporter):
    def __init__(self, exporter: SpanExporter, failed: Callable[[], None]) -> None:
        self._exporter, self._failed = exporter, failed

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = SpanExportResult.FAILURE
        try:
            result = self._exporter.export(spans)
        finally:
            if result is not SpanExportResult.SUCCESS:
                self._failed()
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()


class _LoggedHttpStatus(logging.Handler):
    """Keeps only the HTTP status from the library's log."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self._status: int | None = None

    def emit(self, record: logging.LogRecord) -> None:
        arguments: Any = record.args if isinstance(record.args, tuple) else ()
        self._status = next((value for value in arguments if isinstance(value, int)), self._status)

    def pop(self) -> int | None:
        status, self._status = self._status, None
        return status


def _resource_of_service() -> Resource:
    own = {"service.name": "crossdock", "service.version": version("crossdock")}
    return Resource.create({**own, **OTELResourceDetector().detect().attributes})


def _endpoint_without_secrets(endpoint: str) -> str:
    try:
        parts = urlsplit(endpoint)
    except ValueError:
        return "an invalid address"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _epoch_ns(began: datetime, passed: timedelta) -> int:
    at = began + passed
    return round(at.timestamp() * 1_000_000) * 1_000
