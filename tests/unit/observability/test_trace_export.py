"""Which environment variables enable the export of traces."""

from __future__ import annotations

import pytest

from crossdock.services.observability.optional_trace_export import endpoint_variable_if_enabled

TRACES, ALL = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"


@pytest.mark.parametrize(
    ("environment", "variable"),
    [
        ({}, None),
        ({ALL: ""}, None),
        ({ALL: "http://a"}, ALL),
        ({ALL: "http://a", TRACES: "http://b"}, TRACES),
        ({ALL: "http://a", "OTEL_SDK_DISABLED": " TRUE "}, None),
        ({ALL: "http://a", "OTEL_SDK_DISABLED": "false"}, ALL),
        ({ALL: "http://a", "OTEL_TRACES_EXPORTER": "none"}, None),
        ({ALL: "http://a", "OTEL_TRACES_EXPORTER": "otlp"}, ALL),
        ({ALL: "http://a", "OTEL_TRACES_EXPORTER": ""}, ALL),
    ],
)
def test_an_endpoint_enables_traces(environment: dict[str, str], variable: str | None) -> None:
    """The endpoint for traces comes first, unless traces are disabled."""
    assert endpoint_variable_if_enabled(environment) == variable
