"""Traces of runs, received over OTLP by a server of the standard library, and failures of receivers."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from tests.chaos import processes
from tests.chaos.soon_asking import SOON_ASKING
from tests.e2e.processes import SchedulerProcesses
from tests.e2e.warehouse import PERSON, Front, Reply, Site
from tests.servers import served

ENDPOINT, TRACES_ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
SECRET = "otlp-canary-77"


class Receiver(ThreadingHTTPServer):
    """Receives traces and answers *status* once *hold* is set.

    Attributes:
        requests: Parsed with the published schema.
        paths: Of the requests.
    """

    daemon_threads = True

    def __init__(self) -> None:
        self.requests: list[ExportTraceServiceRequest] = []
        self.paths: list[str] = []
        self.status = 200
        self.hold = threading.Event()
        self.hold.set()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                assert self.headers["content-type"] == "application/x-protobuf"
                receiver.requests.append(ExportTraceServiceRequest.FromString(body))
                receiver.paths.append(self.path)
                receiver.hold.wait(60)
                self.send_response_only(receiver.status)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Log nothing."""

        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def spans(self) -> list[Span]:
        return [
            span
            for request in self.requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def run(self) -> tuple[Span, list[Span]]:
        """The span of the only run, and those of its steps in order."""
        (root,) = [span for span in self.spans() if not span.parent_span_id]
        steps = [span for span in self.spans() if span.parent_span_id]
        assert {(span.parent_span_id, span.trace_id) for span in steps} == {(root.span_id, root.trace_id)}
        return root, sorted(steps, key=lambda span: span.start_time_unix_nano)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with served(Receiver()) as receiver:
        yield receiver
        receiver.hold.set()


@pytest.fixture(autouse=True)
def site(site: Site, monkeypatch: pytest.MonkeyPatch) -> Site:
    for name in (ENDPOINT, TRACES_ENDPOINT, "OTEL_SDK_DISABLED", "OTEL_TRACES_EXPORTER"):
        monkeypatch.delenv(name, raising=False)
    site.init()
    site.fill()
    return site


def attributes(span: Span) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value") or "") for each in span.attributes}


def test_a_run_is_a_trace_of_its_steps(site: Site, receiver: Receiver) -> None:
    """One span per run with its attributes, and below it one per step, without gaps from start to end."""
    site.setenv(ENDPOINT, f"{receiver.base}/")
    before = time.time_ns()
    result = site.sync()
    assert (result.code, result.err) == (0, "")
    root, steps = receiver.run()
    assert receiver.paths == ["/v1/traces"]
    assert root.name == "run"
    assert attributes(root) == {
        "crossdock.run": 1,
        "crossdock.business_date": result.json["business_date"],
        "crossdock.status": "done",
        "crossdock.requests": result.json["requests"],
        "crossdock.throttled": 0,
    }
    assert root.status.code == Status.STATUS_CODE_UNSET
    names = [span.name for span in steps]
    assert names[0] == "starting"
    place = names.index("reading wms.invoices")
    assert [name for name in names[place:] if name != "reading wms.invoices"] == [
        "fetching INV_1.csv",
        "sending wms.invoices",
        "remembering wms.invoices",
    ]
    assert before <= root.start_time_unix_nano == steps[0].start_time_unix_nano
    assert steps[-1].end_time_unix_nano == root.end_time_unix_nano <= time.time_ns()
    for one, after in pairwise(steps):
        assert one.end_time_unix_nano == after.start_time_unix_nano
    resource = {
        each.key: each.value.string_value for each in receiver.requests[0].resource_spans[0].resource.attributes
    }
    assert resource["service.name"] == "crossdock"
    assert not any(text in str(receiver.requests) for text in (PERSON, *site.secrets))


def test_the_environment_configures_the_export(site: Site, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """The service name and the endpoint for traces come from the standard variables."""
    monkeypatch.setenv("OTEL_SERVICE_NAME", "acme-sync")
    site.setenv(TRACES_ENDPOINT, f"{receiver.base}/mine")
    assert site.sync().code == 0
    resource = {
        each.key: each.value.string_value for each in receiver.requests[0].resource_spans[0].resource.attributes
    }
    assert (resource["service.name"], receiver.paths) == ("acme-sync", ["/mine"])


def schedule(site: Site, when: str) -> None:
    days = "[mon, tue, wed, thu, fri, sat, sun]"
    with site.config.open("a") as file:
        file.write(f"jobs:\n  nightly:\n    schedule: {{time_zone: UTC, {when}, days: {days}}}\n")
        file.write("    streams: [wms.products]\n")


def test_a_scheduled_run_has_its_job(site: Site, receiver: Receiver) -> None:
    """The trace of a scheduled run has the job's name; a run that was done before has no trace."""
    site.setenv(ENDPOINT, receiver.base)
    schedule(site, 'at: "00:00"')
    day = (datetime.now(UTC) - timedelta(days=1)).date().isoformat()
    assert site.run("schedule", "--once", day).code == 0
    assert site.run("schedule", "--once", day).code == 0
    root, steps = receiver.run()
    assert root.name == "run nightly"
    assert (attributes(root)["crossdock.job"], attributes(root)["crossdock.business_date"]) == ("nightly", day)
    assert "sending wms.products" in {span.name for span in steps}


@pytest.mark.nightly
def test_the_service_exports_each_run(site: Site, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each run is a trace; they are sent while the service runs, and the rest at its end."""
    site.setenv(ENDPOINT, receiver.base)
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
    schedule(site, "every: 1s")
    command = [*SOON_ASKING, "-C", str(site.config), "schedule", "--log-format", "json"]
    with SchedulerProcesses(command, site.folder / "log") as processes:
        processes.start()
        processes.until(lambda: len(receiver.requests) >= 2)
        assert processes.stop() == [0]
        ended = {line["run"] for line in map(json.loads, processes.log.splitlines()) if "status" in line}
    roots = [span for span in receiver.spans() if not span.parent_span_id]
    assert {int(attributes(root)["crossdock.run"]) for root in roots} == ended
    assert len({root.trace_id for root in roots}) == len(roots) == len(ended) >= 2


def test_a_failed_run_is_a_trace(site: Site, receiver: Receiver) -> None:
    """Its span has the status error and the run's status."""
    site.setenv(ENDPOINT, receiver.base)
    with Front(site.platform.base_url, lambda _: Reply(401)) as front:
        site.base_url = front.base_url
        site.configure()
        (site.folder / "state.db").unlink()
        site.init()
        assert site.sync().code == 3
    root, _ = receiver.run()
    assert root.status.code == Status.STATUS_CODE_ERROR
    assert root.status.message == ""
    assert attributes(root)["crossdock.status"] == "incomplete"


@pytest.mark.nightly(but=["off0"])
@pytest.mark.parametrize("off", [{"OTEL_SDK_DISABLED": "True"}, {"OTEL_TRACES_EXPORTER": "none"}])
def test_traces_can_be_disabled(
    site: Site, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, off: dict[str, str]
) -> None:
    """By the standard variables, although an endpoint is set."""
    site.setenv(ENDPOINT, receiver.base)
    for name, value in off.items():
        monkeypatch.setenv(name, value)
    assert site.sync().code == 0
    assert receiver.requests == []


def test_a_refusal_is_a_warning(site: Site, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has the HTTP status and no secret; the run is not affected."""
    receiver.status = 401
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", f"no header, authorization={SECRET}")
    site.secrets.append(SECRET)
    site.setenv(ENDPOINT, f"http://user:{SECRET}@127.0.0.1:{receiver.server_port}")
    result = site.sync()
    assert result.code == 0
    assert result.err == f"crossdock: warning: traces were not delivered to {receiver.base}: HTTP 401\n"


SOON_CLOSING = """
import runpy
from crossdock.services.observability import otel_traces
otel_traces.CLOSES_WITHIN_S = 0.5
runpy.run_module("crossdock", run_name="__main__", alter_sys=True)
"""


@pytest.mark.nightly(but=["False"])
@pytest.mark.parametrize("held", [False, True])
def test_an_unavailable_receiver_is_a_warning(site: Site, receiver: Receiver, *, held: bool) -> None:
    """Without a listener or a response, the run is done and shown, and the process ends with one warning."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        closed = taken.getsockname()[1]
    receiver.hold.clear()
    address = receiver.base if held else f"http://127.0.0.1:{closed}"
    site.setenv(ENDPOINT, address)
    program = site.folder / "soon_closing.py"
    program.write_text(SOON_CLOSING)
    done = processes.finish(("-P", str(program), "-C", str(site.config), "sync", "--json"), os.environ)
    assert (done.exit_code, done.document["status"]) == (0, "done")
    assert done.stderr == f"crossdock: warning: traces were not delivered to {address}\n"
    site.assert_everything_once()


@pytest.mark.nightly
def test_invalid_settings_are_a_warning(site: Site, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run continues without traces."""
    site.setenv(ENDPOINT, receiver.base)
    monkeypatch.setenv("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "-1")
    result = site.sync()
    assert result.code == 0
    assert result.err.startswith("crossdock: warning: traces are not sent: invalid OpenTelemetry settings (")
    assert result.err.count("\n") == 1
    assert receiver.requests == []


WITHOUT = "import sys; sys.modules['opentelemetry.sdk'] = None; from crossdock.cli.main import main; main()"


def test_a_missing_extra_is_a_warning(site: Site, receiver: Receiver) -> None:
    """It says how to install it; the run is not affected."""
    site.setenv(ENDPOINT, receiver.base)
    program = site.folder / "without.py"
    program.write_text(WITHOUT)
    done = processes.finish(("-P", str(program), "-C", str(site.config), "sync", "--json"), os.environ)
    assert done.exit_code == 0
    warning = f"traces are not sent, although {ENDPOINT} is set: pip install 'crossdock[otel]'"
    assert done.stderr == f"crossdock: warning: {warning}\n"
    site.assert_everything_once()


@pytest.mark.nightly
def test_the_library_is_imported_on_demand(site: Site) -> None:
    """A sync without the variables does not import OpenTelemetry."""
    code = (
        "import sys\nfrom crossdock.cli.main import main\ntry:\n main()\nexcept SystemExit as ended:\n"
        " print('CODE', ended.code, [name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    command = [sys.executable, "-c", code, "-C", str(site.config), "sync"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout.endswith("CODE 0 []\n")
