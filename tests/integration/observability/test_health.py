"""The health server over real connections."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from urllib.parse import urlsplit

import httpx
import pytest
from msgspec import structs
from prometheus_client.parser import text_string_to_metric_families
from tests.integration.serving.test_guarded_connections import rest
from tests.waiting import WITHIN_S

from crossdock.errors import ConfigError
from crossdock.services.observability import monitoring_server
from crossdock.services.observability.health_and_metrics import Metrics
from crossdock.services.observability.monitoring_server import serve_monitoring_in_thread
from crossdock.testing.manual_clock import ManualClock

AT = datetime(2026, 3, 15, 2, tzinfo=UTC)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(AT)


@pytest.fixture
def metrics(clock: ManualClock) -> Metrics:
    return Metrics(clock, stalled_after_s=60)


@pytest.fixture
def client(metrics: Metrics) -> Iterator[httpx.Client]:
    with serve_monitoring_in_thread(metrics) as base_url, httpx.Client(base_url=base_url, trust_env=False) as client:
        yield client


def test_health_follows_the_loop(client: httpx.Client, clock: ManualClock, metrics: Metrics) -> None:
    """200 while the loop runs, 503 and a sentence when it does not, 200 when it does again."""
    answer = client.get("/healthz")
    assert (answer.status_code, answer.text) == (200, "alive: the scheduler loop ran 0 s ago\n")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["cache-control"] == "no-store"
    clock.advance(61)
    answer = client.get("/healthz")
    assert (answer.status_code, answer.text) == (503, "stuck: the scheduler loop has not run for 61 s\n")
    metrics.record_heartbeat()
    assert client.get("/healthz").status_code == 200


def test_readiness_follows_config_and_state(client: httpx.Client, metrics: Metrics) -> None:
    """503 with the reason until both are usable; health does not depend on it."""
    assert client.get("/readyz").status_code == 503
    metrics.report_component_status("config")
    metrics.report_component_status("state", "größer als der Platz")
    answer = client.get("/readyz")
    assert (answer.status_code, answer.text) == (503, "not ready; state: größer als der Platz\n")
    assert client.get("/healthz").status_code == 200
    metrics.report_component_status("state")
    assert (client.get("/readyz").status_code, client.get("/readyz").text) == (200, "ready\n")


@pytest.mark.parametrize("accept", ["*/*", "application/openmetrics-text; version=1.0.0, text/plain; version=1.0.0"])
def test_metrics_are_read_by_prometheus(client: httpx.Client, metrics: Metrics, accept: str) -> None:
    """In its text format, whatever formats the client accepts."""
    metrics.record_run_start("nächtlich")
    answer = client.get("/metrics", headers={"accept": accept})
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    samples = [sample for family in text_string_to_metric_families(answer.text) for sample in family.samples]
    assert ("crossdock_running", {"job": "nächtlich"}, 1) in [sample[:3] for sample in samples]


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
def test_it_is_read_only(client: httpx.Client, path: str) -> None:
    """HEAD is GET without the body; other methods are refused."""
    got, head = client.get(path), client.head(path)
    assert (head.status_code, head.content) == (got.status_code, b"")
    assert head.headers["content-length"] == got.headers["content-length"]
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
        assert client.request(method, path).status_code == 405


@pytest.mark.parametrize("path", ["/", "/docs", "/healthz/", "/metrics/../x", "/openapi.json", "//healthz"])
def test_there_are_no_other_paths(client: httpx.Client, path: str) -> None:
    """No index, no documents, no redirects."""
    assert client.get(path).status_code == 404


@pytest.mark.nightly(but=["foreign0-/healthz", "foreign0-/readyz", "foreign0-/metrics", "foreign0-/"])
@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics", "/"])
@pytest.mark.parametrize(
    "foreign", [{"host": "rebound.example"}, {"host": "localhost"}, {"origin": "http://evil.example"}]
)
def test_pages_of_other_sites_are_refused(client: httpx.Client, path: str, foreign: dict[str, str]) -> None:
    """A foreign Host or Origin is answered 403 everywhere, with a hint."""
    answer = client.get(path, headers=foreign)
    assert (answer.status_code, answer.headers["content-type"]) == (403, "application/problem+json")
    hint = "--allow-host NAME." if "host" in foreign else "Send the request from a page of this server"
    assert hint in answer.json()["detail"]


def test_local_and_allowed_names_are_served(metrics: Metrics) -> None:
    """Prometheus may use a name that the operator allowed."""
    with (
        serve_monitoring_in_thread(metrics, allowed_hosts=["metrics.example"]) as base_url,
        httpx.Client(trust_env=False) as client,
    ):
        port = urlsplit(base_url).port
        for host in (f"localhost:{port}", f"127.0.0.1:{port}", f"metrics.example:{port}", "metrics.example"):
            assert client.get(f"{base_url}/metrics", headers={"host": host}).status_code == 200


def test_an_incomplete_request_times_out(metrics: Metrics, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is answered 408 and closed."""
    limits = structs.replace(
        monitoring_server._LIMITS, clients=structs.replace(monitoring_server._CLIENTS, header_s=0.2)
    )
    monkeypatch.setattr(monitoring_server, "_LIMITS", limits)
    with serve_monitoring_in_thread(metrics) as base_url:
        address = urlsplit(base_url)
        with socket.create_connection((str(address.hostname), address.port or 0), timeout=WITHIN_S) as wire:
            wire.sendall(b"GET /healthz HTTP/1.1\r\nhost: ")
            assert rest(wire).startswith(b"HTTP/1.1 408")


def test_it_stops_with_the_block(metrics: Metrics) -> None:
    """Also while idle clients and incomplete requests are connected; the port is free again."""
    with serve_monitoring_in_thread(metrics) as base_url:
        host, port = str(urlsplit(base_url).hostname), urlsplit(base_url).port or 0
        silent = socket.create_connection((host, port))
        half = socket.create_connection((host, port))
        half.sendall(b"GET /healthz HTTP/1.1\r\nhost: ")
        assert httpx.get(f"{base_url}/healthz", trust_env=False).status_code == 200
    with closing(silent), closing(half), pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, port))
    with serve_monitoring_in_thread(metrics, port=port) as again:
        assert again == base_url


def test_a_port_in_use_is_an_error() -> None:
    """It is raised on entering, with the address and a hint."""
    metrics = Metrics(ManualClock())
    with serve_monitoring_in_thread(metrics) as base_url:
        port = urlsplit(base_url).port or 0
        with (
            pytest.raises(ConfigError, match=f"127.0.0.1:{port}: cannot serve the health endpoints: ") as refused,
            serve_monitoring_in_thread(metrics, port=port),
        ):
            pass
    assert refused.value.hint == "Stop the process that listens there, or use another port."


def test_it_listens_on_loopback_by_default(metrics: Metrics) -> None:
    with serve_monitoring_in_thread(metrics) as base_url:
        assert base_url.startswith("http://127.0.0.1:")


def test_an_exception_in_the_block_stops_it(metrics: Metrics) -> None:
    """The exception is raised unchanged."""
    with pytest.raises(KeyError), serve_monitoring_in_thread(metrics) as base_url:
        raise KeyError
    with pytest.raises(httpx.ConnectError):
        httpx.get(base_url, trust_env=False)


def _has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


@pytest.mark.skipif(not _has_ipv6(), reason="this machine has no IPv6")
def test_it_serves_ipv6(metrics: Metrics) -> None:
    """The address in its URL is in brackets."""
    with serve_monitoring_in_thread(metrics, "::1") as base_url:
        assert base_url.startswith("http://[::1]:")
        assert httpx.get(f"{base_url}/healthz", trust_env=False).status_code == 200
