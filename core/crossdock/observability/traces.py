"""Runs as traces of OpenTelemetry, one span a run and one a step: the only door to opentelemetry.

What fails here is told and costs no run anything: spans are made once a run has ended, and sent by a thread.
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

from crossdock.runs.timings import Timings

CLOSES_WITHIN_S = 3.0
_LIBRARY = logging.getLogger("opentelemetry")
_LIBRARY.addHandler(logging.NullHandler())
_LIBRARY.propagate = False  # it quotes headers and addresses, which may hold secrets


class Traces:
    """Sends traces over OTLP (protobuf over HTTP), as OpenTelemetry's environment variables say.

    Args:
        endpoint: Whom to name where they cannot be delivered.
        warn: Told that, also from another thread.
    """

    def __init__(self, endpoint: str, warn: Callable[[str], None]) -> None:
        self._receiver, self._warn = _without_secrets(endpoint), warn
        self._reason = _Reason()
        _LIBRARY.addHandler(self._reason)
        self._provider: TracerProvider | None = None
        try:
            self._provider = TracerProvider(resource=_resource(), shutdown_on_exit=False)
            self._provider.add_span_processor(BatchSpanProcessor(_Watched(OTLPSpanExporter(), self._undelivered)))
        except Exception as error:  # noqa: BLE001  of a wrong variable, for example; its text may quote a secret
            self._warn(f"no traces are sent: their settings cannot be used ({type(error).__name__})")

    def tell(self, timings: Timings) -> None:
        """Send the trace of a run that has ended, soon; nothing of one that never began."""
        report = timings.report
        if report is None or self._provider is None:
            return
        facts = {
            "crossdock.run": report.run,
            "crossdock.job": timings.job,
            "crossdock.business_date": report.business_date,
            "crossdock.status": report.status,
            "crossdock.requests": report.counters.requests,
            "crossdock.throttled": report.counters.throttled,
        }
        known = {name: value for name, value in facts.items() if value is not None}
        tracer = self._provider.get_tracer("crossdock", version("crossdock"))
        name = f"run {timings.job}" if timings.job else "run"
        run = tracer.start_span(name, Context(), attributes=known, start_time=_ns(timings.began, timedelta()))
        if report.status != "done":
            run.set_status(StatusCode.ERROR)
        within = set_span_in_context(run, Context())
        for step in timings.steps:
            span = tracer.start_span(step.name, within, start_time=_ns(timings.began, step.began))
            span.end(_ns(timings.began, step.began + step.lasted))
        run.end(_ns(timings.began, timedelta(seconds=report.seconds)))

    def close(self) -> None:
        """Send what is left, for at most `CLOSES_WITHIN_S`."""
        if self._provider is not None:
            closing = threading.Thread(target=self._provider.shutdown, name="traces", daemon=True)
            closing.start()
            closing.join(CLOSES_WITHIN_S)
            if closing.is_alive():
                self._undelivered()
                self._warn = _ignore
        _LIBRARY.removeHandler(self._reason)

    def _undelivered(self) -> None:
        self._warn(f"traces are not delivered to {self._receiver}{self._reason.taken()}")


class _Watched(SpanExporter):
    """Tells when *exporter* fails."""

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


class _Reason(logging.Handler):
    """Keeps of what the library logs only the status that the receiver answered."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self._status: int | None = None

    def emit(self, record: logging.LogRecord) -> None:
        facts: Any = record.args if isinstance(record.args, tuple) else ()
        self._status = next((fact for fact in facts if isinstance(fact, int)), self._status)

    def taken(self) -> str:
        """The reason, once."""
        status, self._status = self._status, None
        return "" if status is None else f": it answers {status}"


def _resource() -> Resource:
    """Who tells; the environment may say otherwise."""
    own = {"service.name": "crossdock", "service.version": version("crossdock")}
    return Resource.create({**own, **OTELResourceDetector().detect().attributes})


def _without_secrets(endpoint: str) -> str:
    try:
        parts = urlsplit(endpoint)
    except ValueError:
        return "a wrong address"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _ns(began: datetime, passed: timedelta) -> int:
    at = began + passed
    return round(at.timestamp() * 1_000_000) * 1_000


def _ignore(_: str) -> None:
    """It was told already."""
