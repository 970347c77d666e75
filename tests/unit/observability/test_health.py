"""The scheduler's vital signs: what machines are told of it, in a form that they can read."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from crossdock.observability.exposition import exposition
from crossdock.observability.health import Metrics
from crossdock.testing.manual_clock import ManualClock

AT = datetime(2026, 3, 15, 2, tzinfo=UTC)
NOW = AT.timestamp()
UNKNOWN = ("allowance_tokens", "allowance_burst_tokens", "allowance_rate_per_second")

Read = dict[str, dict[tuple[str, ...], float]]


def read(metrics: Metrics) -> Read:
    """What Prometheus' own parser makes of the metrics: values by name and label values."""
    text = exposition(metrics.families()).decode()
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


def test_a_loop_that_comes_round_is_alive(clock: ManualClock, metrics: Metrics) -> None:
    """Until its last beat is as old as the bound; from the start on, so that a start is no failure."""
    assert metrics.alive() == (True, "alive: the scheduler's loop came round 0 s ago")
    clock.advance(59.9)
    assert metrics.alive()[0]
    clock.advance(0.1)
    assert metrics.alive() == (False, "stuck: the scheduler's loop has not come round for 60 s")
    metrics.beat()
    assert metrics.alive()[0]


def test_a_scheduler_is_ready_once_all_parts_are(metrics: Metrics) -> None:
    """What is not usable is named, on one line."""
    assert metrics.ready() == (False, "not ready; config: not read yet; state: not opened yet")
    metrics.found("config")
    metrics.found("state", "sqlite:///x.db: is locked\n  wait\x1b for\ud800 it")
    assert metrics.ready() == (False, "not ready; state: sqlite:///x.db: is locked wait\\x1b for\\ud800 it")
    metrics.found("state")
    assert metrics.ready() == (True, "ready")


def test_an_idle_scheduler_has_metrics(metrics: Metrics) -> None:
    """Counters begin at nought, what nobody knows is left out, and every metric is described."""
    found = read(metrics)
    assert found == {"requests_total": {(): 0}, "throttled_total": {(): 0}, "heartbeat_timestamp_seconds": {(): NOW}}
    for family in text_string_to_metric_families(exposition(metrics.families()).decode()):
        assert family.documentation
        assert family.type in {"counter", "gauge"}


def test_the_names_are_those_of_the_trade(metrics: Metrics) -> None:
    """Counters end in _total and nothing else does; each name stands once, above its samples."""
    families = metrics.families()
    assert all((family.kind == "counter") == family.name.endswith("_total") for family in families)
    assert {family.name for family in families} == {
        f"crossdock_{name}"
        for name in (
            "nights_total", "night_seconds", "started_timestamp_seconds", "last_success_timestamp_seconds",
            "next_due_timestamp_seconds", "running", "requests_total", "throttled_total", "records_total",
            "heartbeat_timestamp_seconds", *UNKNOWN,
        )
    }  # fmt: skip
    assert len(families) == 13


def test_a_night_in_numbers(clock: ManualClock, metrics: Metrics) -> None:
    """From its due time over its run to its end: each is told as it is, and the other ends stand at nought."""
    metrics.due("nightly", AT)
    assert read(metrics)["running"] == {("nightly",): 0}
    assert read(metrics)["next_due_timestamp_seconds"] == {("nightly",): NOW}
    assert set(read(metrics)["nights_total"].values()) == {0}
    metrics.began("nightly")
    clock.advance(90)
    metrics.sent(10, 2)
    metrics.sent(5)
    metrics.counted("wms.lots", {"read": 7, "rejected": 0})
    metrics.counted("wms.lots", {"read": 1, "rejected": 1})
    metrics.allowance(tokens=12.5, rate_per_s=166.6, burst=2000)
    running = read(metrics)
    assert running["running"] == {("nightly",): 1}
    assert running["started_timestamp_seconds"] == {("nightly",): NOW}
    assert "night_seconds" not in running
    metrics.ended("nightly", "done", 90.0)
    metrics.due("nightly", AT.replace(day=16))
    ended = read(metrics)
    assert ended["running"] == {("nightly",): 0}
    assert ended["night_seconds"] == {("nightly",): 90}
    assert ended["last_success_timestamp_seconds"] == {("nightly",): NOW + 90}
    assert ended["next_due_timestamp_seconds"] == {("nightly",): NOW + 86_400}
    assert ended["nights_total"] == {
        ("nightly", "done"): 1, ("nightly", "incomplete"): 0, ("nightly", "failed"): 0, ("nightly", "skipped"): 0,
    }  # fmt: skip
    assert (ended["requests_total"], ended["throttled_total"]) == ({(): 15}, {(): 2})
    assert ended["records_total"] == {("wms.lots", "read"): 8, ("wms.lots", "rejected"): 1}
    assert [ended[name][()] for name in UNKNOWN] == [12.5, 2000, 166.6]


def test_a_night_that_is_skipped_ends_no_other(clock: ManualClock, metrics: Metrics) -> None:
    """One that is still running goes on, and the last one's time stands."""
    metrics.began("nightly")
    metrics.ended("nightly", "done", 30.0)
    metrics.began("nightly")
    clock.advance(10)
    metrics.ended("nightly", "skipped", 0.0)
    found = read(metrics)
    assert found["running"] == {("nightly",): 1}
    assert found["night_seconds"] == {("nightly",): 30}
    assert found["nights_total"]["nightly", "skipped"] == 1
    assert found["last_success_timestamp_seconds"] == {("nightly",): NOW}


@pytest.mark.parametrize("status", ["failed", "incomplete"])
def test_a_night_that_is_not_done_is_no_success(clock: ManualClock, metrics: Metrics, status: str) -> None:
    """The last success stays that of before."""
    metrics.ended("nightly", "done", 5.0)
    clock.advance(86_400)
    metrics.ended("nightly", "failed" if status == "failed" else "incomplete", 5.0)
    assert read(metrics)["last_success_timestamp_seconds"] == {("nightly",): NOW}
    assert read(metrics)["running"] == {("nightly",): 0}


def test_a_job_that_is_due_no_more_has_no_due_time(metrics: Metrics) -> None:
    """A stale one would look like a night that was missed."""
    metrics.due("nightly", AT)
    metrics.due("nightly", None)
    metrics.due("other", None)
    assert "next_due_timestamp_seconds" not in read(metrics)


HOSTILE = 'a\\"} 1\n# TYPE x counter\ncrossdock_requests_total 99\r\\n\u2028\x00\ud800,b="'


def test_a_hostile_name_stays_a_name(metrics: Metrics) -> None:
    """It makes no line and no label of its own, and comes back as it was."""
    metrics.began(HOSTILE)
    metrics.counted(HOSTILE, {HOSTILE: 3})
    name = HOSTILE.replace("\ud800", "\\ud800")
    found = read(metrics)
    assert found["running"] == {(name,): 1}
    assert found["records_total"] == {(name, name): 3}
    assert found["requests_total"] == {(): 0}


@given(st.dictionaries(st.tuples(st.text(), st.text()), st.integers(min_value=0, max_value=2**50), max_size=5))
def test_any_names_come_back(counts: Mapping[tuple[str, str], int]) -> None:
    """What a parser reads is what was counted."""
    metrics = Metrics(ManualClock())
    for (stream, term), number in counts.items():
        metrics.counted(stream, {term: number})
    whole = {tuple(_whole(text) for text in names): number for names, number in counts.items()}
    assert read(metrics).get("records_total", {}) == whole


def _whole(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def test_threads_lose_no_count(metrics: Metrics) -> None:
    """Many runs tell at once, while a reader looks on."""

    def tell() -> None:
        for _ in range(500):
            metrics.sent(1, 1)
            metrics.counted("s", {"read": 1})
            metrics.families()

    threads = [threading.Thread(target=tell) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert read(metrics)["requests_total"] == {(): 2000}
    assert read(metrics)["records_total"] == {("s", "read"): 2000}
