"""Health and metrics of the scheduler, as Prometheus' own parser reads them."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Mapping
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from crossdock.services.notifications.run_events_and_messages import Status
from crossdock.services.observability.health_and_metrics import Metrics
from crossdock.testing.manual_clock import ManualClock
from crossdock.values.run_states_and_tally import OpenCounts

AT = datetime(2026, 3, 15, 2, tzinfo=UTC)
NOW = AT.timestamp()
UNKNOWN = ("allowance_tokens", "allowance_burst_tokens", "allowance_rate_per_second")

Read = dict[str, dict[tuple[str, ...], float]]


def read(metrics: Metrics) -> Read:
    """The values by name and label values."""
    text = metrics.prometheus_exposition()[0].decode()
    found: Read = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = tuple(sample.labels.values())
            values = found.setdefault(sample.name.removeprefix("crossdock_"), {})
            assert labels not in values
            values[labels] = sample.value
    return found


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(AT)


@pytest.fixture
def metrics(clock: ManualClock) -> Metrics:
    return Metrics(clock, stalled_after_s=60)


def test_a_running_loop_is_alive(clock: ManualClock, metrics: Metrics) -> None:
    """It is alive from the start, until its last beat reaches the age limit."""
    assert metrics.liveness() == (True, "alive: the scheduler loop ran 0 s ago")
    clock.advance(59.9)
    assert metrics.liveness()[0]
    clock.advance(0.1)
    assert metrics.liveness() == (False, "stuck: the scheduler loop has not run for 60 s")
    metrics.record_heartbeat()
    assert metrics.liveness()[0]


def test_a_scheduler_is_ready_once_all_parts_are(metrics: Metrics) -> None:
    """Parts that are not usable are named on one line."""
    assert metrics.readiness() == (False, "not ready; config: not read yet; state: not opened yet")
    metrics.report_component_status("config")
    metrics.report_component_status("state", "sqlite:///x.db: is locked\n  wait\x1b for\ud800 it")
    assert metrics.readiness() == (False, "not ready; state: sqlite:///x.db: is locked wait\\x1b for\\ud800 it")
    metrics.report_component_status("state")
    assert metrics.readiness() == (True, "ready")


def test_an_idle_scheduler_has_metrics(metrics: Metrics) -> None:
    """Counters start at zero, unknown values are omitted, and every metric has a help text."""
    found = read(metrics)
    assert found == {"requests_total": {(): 0}, "throttled_total": {(): 0}, "heartbeat_timestamp_seconds": {(): NOW}}
    for family in text_string_to_metric_families(metrics.prometheus_exposition()[0].decode()):
        assert family.documentation
        assert family.type in {"counter", "gauge"}


def test_metric_names_follow_the_conventions(metrics: Metrics) -> None:
    """Names of counters end in _total and no others do; each name is described once."""
    text, content_type = metrics.prometheus_exposition()
    types = re.findall(r"^# TYPE (\S+) (\S+)$", text.decode(), re.MULTILINE)
    assert content_type == "text/plain; version=0.0.4; charset=utf-8"
    assert all((kind == "counter") == name.endswith("_total") for name, kind in types)
    assert {name for name, _ in types} == {
        f"crossdock_{name}"
        for name in (
            "nights_total", "night_seconds", "started_timestamp_seconds", "last_success_timestamp_seconds",
            "next_due_timestamp_seconds", "running", "requests_total", "throttled_total", "records_total",
            "open_records", "inbox_records", "inbox_slow_seconds", "webhooks_refused_total",
            "heartbeat_timestamp_seconds", *UNKNOWN,
        )
    }  # fmt: skip
    assert len(types) == 17


def test_slow_partners_are_there_while_they_are_slow(metrics: Metrics) -> None:
    """The value of one that is slow no more is gone."""
    metrics.set_slow_partners({("shop", "platform"): 61.5})
    metrics.set_slow_partners({("erp", "depot"): 90.0})
    text = metrics.prometheus_exposition()[0].decode()
    assert re.findall("^crossdock_inbox_slow_seconds.*$", text, re.MULTILINE) == [
        'crossdock_inbox_slow_seconds{connection="erp",target="depot"} 90.0'
    ]


def test_webhooks_that_are_not_processed_are_counted_by_reason(metrics: Metrics) -> None:
    """Each number is added; one that names no connection has an empty label."""
    metrics.count_refused_webhooks("shop", "wrong_signature", 3)
    metrics.count_refused_webhooks("shop", "wrong_signature", 2)
    metrics.count_refused_webhooks("", "unknown_connection", 1)
    found = read(metrics)["webhooks_refused_total"]
    assert found == {("shop", "wrong_signature"): 5, ("", "unknown_connection"): 1}


def test_a_run_in_numbers(clock: ManualClock, metrics: Metrics) -> None:
    """Each step of a run, from its due time to its end, sets its metrics; the other statuses stay at zero."""
    metrics.set_next_due("nightly", AT)
    assert read(metrics)["running"] == {("nightly",): 0}
    assert read(metrics)["next_due_timestamp_seconds"] == {("nightly",): NOW}
    assert set(read(metrics)["nights_total"].values()) == {0}
    metrics.record_run_start("nightly")
    clock.advance(90)
    metrics.count_requests(10, 2)
    metrics.count_requests(5)
    metrics.count_records("wms.lots", {"read": 7, "rejected": 0})
    metrics.count_records("wms.lots", {"read": 1, "rejected": 1})
    metrics.set_request_allowance(tokens=12.5, rate_per_s=166.6, burst=2000)
    running = read(metrics)
    assert running["running"] == {("nightly",): 1}
    assert running["started_timestamp_seconds"] == {("nightly",): NOW}
    assert "night_seconds" not in running
    metrics.record_run_end("nightly", "done", 90.0)
    metrics.set_next_due("nightly", AT.replace(day=16))
    ended = read(metrics)
    assert ended["running"] == {("nightly",): 0}
    assert ended["night_seconds"] == {("nightly",): 90}
    assert ended["last_success_timestamp_seconds"] == {("nightly",): NOW + 90}
    assert ended["next_due_timestamp_seconds"] == {("nightly",): NOW + 86_400}
    assert ended["nights_total"] == {
        ("nightly", "done"): 1, ("nightly", "degraded"): 0, ("nightly", "incomplete"): 0, ("nightly", "failed"): 0,
        ("nightly", "skipped"): 0,
    }  # fmt: skip
    assert (ended["requests_total"], ended["throttled_total"]) == ({(): 15}, {(): 2})
    assert ended["records_total"] == {("wms.lots", "read"): 8, ("wms.lots", "rejected"): 1}
    assert [ended[name][()] for name in UNKNOWN] == [12.5, 2000, 166.6]


def test_a_skipped_run_ends_no_other(clock: ManualClock, metrics: Metrics) -> None:
    """The running one stays running, and the duration is that of the last run."""
    metrics.record_run_start("nightly")
    metrics.record_run_end("nightly", "done", 30.0)
    metrics.record_run_start("nightly")
    clock.advance(10)
    metrics.record_run_end("nightly", "skipped", 0.0)
    found = read(metrics)
    assert found["running"] == {("nightly",): 1}
    assert found["night_seconds"] == {("nightly",): 30}
    assert found["nights_total"]["nightly", "skipped"] == 1
    assert found["last_success_timestamp_seconds"] == {("nightly",): NOW}


@pytest.mark.parametrize("status", ["failed", "incomplete", "degraded"])
def test_an_unsuccessful_run_is_no_success(clock: ManualClock, metrics: Metrics, status: Status) -> None:
    """The time of the last success stays."""
    metrics.record_run_end("nightly", "done", 5.0)
    clock.advance(86_400)
    metrics.record_run_end("nightly", status, 5.0)
    assert read(metrics)["last_success_timestamp_seconds"] == {("nightly",): NOW}
    assert read(metrics)["running"] == {("nightly",): 0}


def test_open_records_are_those_after_the_last_run(metrics: Metrics) -> None:
    """Each state has its number, zeros too, so that an alert ends when the records are settled."""
    metrics.set_open_records("wms.lots", OpenCounts(rejected=6, waiting=45))
    metrics.set_open_records("wms.lots", OpenCounts(waiting=2))
    states = {"rejected": 0, "waiting": 2, "pending": 0, "in_doubt": 0, "overdue": 0, "unverified": 0}
    assert read(metrics)["open_records"] == {(state, "wms.lots"): number for state, number in states.items()}


def test_an_unscheduled_job_has_no_due_time(metrics: Metrics) -> None:
    """A stale one would look like a missed run."""
    metrics.set_next_due("nightly", AT)
    metrics.set_next_due("nightly", None)
    metrics.set_next_due("other", None)
    assert "next_due_timestamp_seconds" not in read(metrics)


HOSTILE = 'a\\"} 1\n# TYPE x counter\ncrossdock_requests_total 99\r\\n\u2028\x00\ud800,b="'


def test_a_hostile_name_stays_a_name(metrics: Metrics) -> None:
    """It adds no line and no label, and is read back unchanged."""
    metrics.record_run_start(HOSTILE)
    metrics.count_records(HOSTILE, {HOSTILE: 3})
    name = HOSTILE.replace("\ud800", "\\ud800")
    found = read(metrics)
    assert found["running"] == {(name,): 1}
    assert found["records_total"] == {(name, name): 3}
    assert found["requests_total"] == {(): 0}


@given(st.dictionaries(st.tuples(st.text(), st.text()), st.integers(min_value=0, max_value=2**50), max_size=5))
def test_any_name_is_read_back(counts: Mapping[tuple[str, str], int]) -> None:
    """The parser reads what was counted."""
    metrics = Metrics(ManualClock())
    for (stream, term), number in counts.items():
        metrics.count_records(stream, {term: number})
    whole = {tuple(_whole(text) for text in names): number for names, number in counts.items()}
    assert read(metrics).get("records_total", {}) == whole


def _whole(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def test_concurrent_threads_lose_no_count(metrics: Metrics) -> None:
    """Runs report at once while a reader collects."""

    def report() -> None:
        for _ in range(500):
            metrics.count_requests(1, 1)
            metrics.count_records("s", {"read": 1})
            metrics.collect()

    threads = [threading.Thread(target=report) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert read(metrics)["requests_total"] == {(): 2000}
    assert read(metrics)["records_total"] == {("s", "read"): 2000}


@pytest.mark.nightly
def test_the_library_is_imported_on_demand() -> None:
    """Only a reader of /metrics needs prometheus_client."""
    code = (
        "import sys\nfrom crossdock.values.clock import SystemClock\n"
        "from crossdock.services.observability import monitoring_server\n"
        "from crossdock.services.observability.health_and_metrics import Metrics\n"
        "metrics = Metrics(SystemClock())\nprint('prometheus_client' in sys.modules, end=' ')\n"
        "metrics.prometheus_exposition()\nprint('prometheus_client' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False True\n"
