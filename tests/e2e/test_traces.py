"""Traces of runs: received over OTLP by a server of the standard library, and what happens where nobody receives."""

from __future__ import annotations

import json
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
from tests.e2e.warehouse import PERSON, Front, Reply, Site
from tests.servers import served
from tests.waiting import eventually

ENDPOINT, TRACES_ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
SECRET = "otlp-canary-77"


class Receiver(ThreadingHTTPServer):
    """Takes traces in, and answers *status* once *hold* is set.

    Attributes:
        requests: All that came, as they were told by the published schema.
        paths: Where they went.
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
                """Say nothing."""

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
        """The only run that was told, and its steps in their order."""
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


def facts(span: Span) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value") or "") for each in span.attributes}


def test_a_run_is_a_trace_of_its_steps(site: Site, receiver: Receiver) -> None:
    """One span a run with its facts, and below it one for each step, which follow each other from begin to end."""
    site.setenv(ENDPOINT, f"{receiver.base}/")
    before = time.time_ns()
    result = site.sync()
    assert (result.code, result.err) == (0, "")
    root, steps = receiver.run()
    assert receiver.paths == ["/v1/traces"]
    assert root.name == "run"
    assert facts(root) == {
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
    told = {each.key: each.value.string_value for each in receiver.requests[0].resource_spans[0].resource.attributes}
    assert told["service.name"] == "crossdock"
    assert not any(text in str(receiver.requests) for text in (PERSON, *site.secrets))


def test_the_environment_says_who_tells(site: Site, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name of the service and the address of traces alone are those of the standard's variables."""
    monkeypatch.setenv("OTEL_SERVICE_NAME", "nights-of-acme")
    site.setenv(TRACES_ENDPOINT, f"{receiver.base}/mine")
    assert site.sync().code == 0
    told = {each.key: each.value.string_value for each in receiver.requests[0].resource_spans[0].resource.attributes}
    assert (told["service.name"], receiver.paths) == ("nights-of-acme", ["/mine"])


def schedule(site: Site, when: str) -> None:
    days = "[mon, tue, wed, thu, fri, sat, sun]"
    with site.config.open("a") as file:
        file.write(f"jobs:\n  nightly:\n    schedule: {{time_zone: UTC, {when}, days: {days}}}\n")
        file.write("    streams: [wms.products]\n")


def test_a_night_tells_its_job(site: Site, receiver: Receiver) -> None:
    """The trace of a scheduled run bears the job's name; one that has been run already leaves none."""
    site.setenv(ENDPOINT, receiver.base)
    schedule(site, 'at: "00:00"')
    day = (datetime.now(UTC) - timedelta(days=1)).date().isoformat()
    assert site.run("schedule", "--once", day).code == 0
    assert site.run("schedule", "--once", day).code == 0
    root, steps = receiver.run()
    assert root.name == "run nightly"
    assert (facts(root)["crossdock.job"], facts(root)["crossdock.business_date"]) == ("nightly", day)
    assert "sending wms.products" in {span.name for span in steps}


def test_a_service_tells_each_run(site: Site, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """While it goes on, and at its end what is left; each run is a trace of its own."""
    site.setenv(ENDPOINT, receiver.base)
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
    schedule(site, "every: 1s")
    command = [sys.executable, "-m", "crossdock", "-C", str(site.config), "schedule", "--log-format", "json"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            eventually(lambda: len(receiver.requests) >= 2)
            process.terminate()
            _, err = process.communicate(timeout=30)
        finally:
            process.kill()
    ended = {line["run"] for line in map(json.loads, err.splitlines()) if "status" in line}
    roots = [span for span in receiver.spans() if not span.parent_span_id]
    assert {int(facts(root)["crossdock.run"]) for root in roots} == ended
    assert len({root.trace_id for root in roots}) == len(roots) == len(ended) >= 2


def test_a_run_that_fails_is_a_trace_too(site: Site, receiver: Receiver) -> None:
    """Its span is in error, and says how it ended."""
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
    assert facts(root)["crossdock.status"] == "incomplete"


@pytest.mark.parametrize("off", [{"OTEL_SDK_DISABLED": "True"}, {"OTEL_TRACES_EXPORTER": "none"}])
def test_traces_can_be_switched_off(
    site: Site, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, off: dict[str, str]
) -> None:
    """As the standard says, though an address is set."""
    site.setenv(ENDPOINT, receiver.base)
    for name, value in off.items():
        monkeypatch.setenv(name, value)
    assert site.sync().code == 0
    assert receiver.requests == []


def test_a_receiver_that_refuses_is_told(site: Site, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one line, with its answer and without a secret; the run is as it is."""
    receiver.status = 401
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", f"no header, authorization={SECRET}")
    site.secrets.append(SECRET)
    site.setenv(ENDPOINT, f"http://user:{SECRET}@127.0.0.1:{receiver.server_port}")
    result = site.sync()
    assert result.code == 0
    assert result.err == f"crossdock: warning: traces were not delivered to {receiver.base}: HTTP 401\n"


@pytest.mark.parametrize("held", [False, True])
def test_a_receiver_that_is_away_costs_seconds(site: Site, receiver: Receiver, *, held: bool) -> None:
    """Whether nobody listens or nobody answers: the run is done and shown, the process ends, and one line says why."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        closed = taken.getsockname()[1]
    receiver.hold.clear()
    address = receiver.base if held else f"http://127.0.0.1:{closed}"
    site.setenv(ENDPOINT, address)
    result = site.process("sync", "--json")
    assert (result.code, result.json["status"]) == (0, "done")
    assert result.err == f"crossdock: warning: traces were not delivered to {address}\n"
    site.assert_everything_once()


def test_wrong_settings_cost_nothing(site: Site, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the library cannot work with is told, and the run goes on without traces."""
    site.setenv(ENDPOINT, receiver.base)
    monkeypatch.setenv("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "-1")
    result = site.sync()
    assert result.code == 0
    assert result.err.startswith("crossdock: warning: traces are not sent: invalid OpenTelemetry settings (")
    assert result.err.count("\n") == 1
    assert receiver.requests == []


WITHOUT = "import sys; sys.modules['opentelemetry.sdk'] = None; from crossdock.cli.main import main; main()"


def test_without_the_extra_a_run_goes_on(site: Site, receiver: Receiver) -> None:
    """One line says how to install it; nothing else is different."""
    site.setenv(ENDPOINT, receiver.base)
    command = [sys.executable, "-c", WITHOUT, "-C", str(site.config), "sync", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0
    told = f"traces are not sent, although {ENDPOINT} is set: pip install 'crossdock[otel]'"
    assert done.stderr == f"crossdock: warning: {told}\n"
    site.assert_everything_once()


def test_nothing_is_imported_unless_it_is_asked_for(site: Site) -> None:
    """A sync without the variables knows nothing of OpenTelemetry."""
    code = (
        "import sys\nfrom crossdock.cli.main import main\ntry:\n main()\nexcept SystemExit as ended:\n"
        " print('CODE', ended.code, [name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    command = [sys.executable, "-c", code, "-C", str(site.config), "sync"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout.endswith("CODE 0 []\n")
