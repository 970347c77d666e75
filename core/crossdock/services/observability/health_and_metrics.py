"""Health and metrics of the scheduler. Only this module imports prometheus_client."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Literal, cast

from crossdock.printable import printable
from crossdock.services.notifications.run_events_and_messages import Status
from crossdock.values.clock import Clock
from crossdock.values.run_states_and_tally import OpenCounts

if TYPE_CHECKING:
    from prometheus_client import Metric
    from prometheus_client.registry import Collector

ServiceComponent = Literal["config", "state", "clock", "executor", "inbox"]
STALLED_AFTER_S = 60.0
_STATUSES: tuple[Status, ...] = ("done", "degraded", "incomplete", "failed", "skipped")
METRICS: Mapping[str, tuple[str, tuple[str, ...]]] = {  # help and labels by name; names of counters end in _total
    "nights_total": ("Scheduled runs that ended, by how.", ("job", "status")),
    "night_seconds": ("Duration of the last run.", ("job",)),
    "started_timestamp_seconds": ("When the last run began.", ("job",)),
    "last_success_timestamp_seconds": ("When the last run ended after which no record was open.", ("job",)),
    "next_due_timestamp_seconds": ("When the next run is due.", ("job",)),
    "running": ("1 while a run is active.", ("job",)),
    "requests_total": ("Requests that scheduled runs sent to the platform.", ()),
    "throttled_total": ("Requests that the platform answered with 429.", ()),
    "records_total": ("Records by term of the tally.", ("stream", "term")),
    "open_records": (
        "Open records after the last scheduled run of the stream; absent before it.",
        ("stream", "state"),
    ),
    "inbox_records": ("Records that are to be fetched because of webhooks.", ("state",)),
    "inbox_slow_seconds": (
        "For how long the same records that webhooks named have been worked on, if it is more than a minute.",
        ("connection", "target"),
    ),
    "webhooks_refused_total": ("Webhooks that were not processed.", ("connection", "reason")),
    "allowance_tokens": ("Requests that can be sent now.", ()),
    "allowance_burst_tokens": ("Size of the token bucket.", ()),
    "allowance_rate_per_second": ("Refill rate of the token bucket.", ()),
    "heartbeat_timestamp_seconds": ("When the loop of the service last ran.", ()),
    "fleet_tenants": ("Tenants of the fleet whose config can be used, or not.", ("state",)),
    "fleet_runs_waiting": ("Runs that are due and have not been given to the executor.", ()),
    "fleet_leading": ("1 if this scheduler leads the fleet, 0 if it stands by.", ()),
}
RUN_METRICS = (
    "nights_total",
    "night_seconds",
    "started_timestamp_seconds",
    "last_success_timestamp_seconds",
    "next_due_timestamp_seconds",
    "running",
    "requests_total",
    "throttled_total",
    "records_total",
    "open_records",
)
"""Metrics of runs, which a fleet has for each tenant with the label ``tenant``."""


class _MetricValues:
    def __init__(self, clock: Clock) -> None:
        self.clock, self.lock = clock, threading.Lock()
        self.by_name: dict[str, dict[tuple[str, ...], float]] = {name: {} for name in METRICS}

    def set(self, name: str, value: float | None, *labels: str) -> None:
        if value is None:
            self.by_name[name].pop(labels, None)
        else:
            self.by_name[name][labels] = value

    def increase(self, name: str, amount: float, *labels: str) -> None:
        self.by_name[name][labels] = self.by_name[name].get(labels, 0) + amount

    def current_epoch_s(self) -> float:
        return self.clock.now().timestamp()


class RunMetrics:
    """The metrics of all runs, or of those of one tenant. Thread-safe; every call is fast."""

    def __init__(self, values: _MetricValues, *labels: str) -> None:
        self._values, self._labels = values, labels

    def set_next_due(self, job: str, instant: datetime | None) -> None:
        """Record when *job* is due next; None if it is no longer scheduled."""
        with self._values.lock:
            self._initialize_job_metrics(job)
            self._set("next_due_timestamp_seconds", instant.timestamp() if instant else None, job)

    def set_last_success(self, job: str, at: datetime) -> None:
        """Record when a run of *job* ended after which no record was open, before this process began."""
        with self._values.lock:
            self._set("last_success_timestamp_seconds", at.timestamp(), job)

    def record_run_start(self, job: str) -> None:
        with self._values.lock:
            self._initialize_job_metrics(job)
            self._set("running", 1, job)
            self._set("started_timestamp_seconds", self._values.current_epoch_s(), job)

    def record_run_end(self, job: str, status: Status, seconds: float) -> None:
        """Record that a run of *job* ended. A skipped run does not affect one that is running."""
        with self._values.lock:
            self._initialize_job_metrics(job)
            self._increase("nights_total", 1, job, status)
            if status != "skipped":
                self._set("running", 0, job)
                self._set("night_seconds", seconds, job)
            if status == "done":
                self._set("last_success_timestamp_seconds", self._values.current_epoch_s(), job)

    def count_requests(self, requests: int, throttled: int = 0) -> None:
        with self._values.lock:
            self._increase("requests_total", requests)
            self._increase("throttled_total", throttled)

    def count_records(self, stream: str, terms: Mapping[str, int]) -> None:
        with self._values.lock:
            for term, number in terms.items():
                self._increase("records_total", number, stream, term)

    def set_open_records(self, stream: str, counts: OpenCounts) -> None:
        with self._values.lock:
            for state, number in counts.as_json().items():
                self._set("open_records", number, stream, state)

    def _initialize_job_metrics(self, job: str) -> None:
        self._increase("running", 0, job)
        for status in _STATUSES:
            self._increase("nights_total", 0, job, status)

    def _set(self, name: str, value: float | None, *labels: str) -> None:
        self._values.set(name, value, *self._labels, *labels)

    def _increase(self, name: str, amount: float, *labels: str) -> None:
        self._values.increase(name, amount, *self._labels, *labels)


class Metrics(RunMetrics):
    """The metrics of the scheduler. Its loop counts as stuck *stalled_after_s* after the last `record_heartbeat`."""

    def __init__(self, clock: Clock, *, stalled_after_s: float = STALLED_AFTER_S, of_fleet: bool = False) -> None:
        self._stalled_after_s, self._of_fleet = stalled_after_s, of_fleet
        self._problems: dict[ServiceComponent, str | None] = {"config": "not read yet", "state": "not opened yet"}
        super().__init__(_MetricValues(clock))
        if not of_fleet:
            self.count_requests(0)
        self.record_heartbeat()

    def tenant_metrics(self, tenant: str) -> RunMetrics:
        found = RunMetrics(self._values, tenant)
        found.count_requests(0)
        return found

    def remove_tenant(self, tenant: str) -> None:
        with self._values.lock:
            for name in RUN_METRICS:
                values = self._values.by_name[name]
                for labels in [labels for labels in values if labels[0] == tenant]:
                    del values[labels]

    def set_fleet_counts_and_leading(self, *, usable: int, broken: int, waiting: int, leads: bool) -> None:
        with self._values.lock:
            self._values.set("fleet_tenants", usable, "usable")
            self._values.set("fleet_tenants", broken, "broken")
            self._values.set("fleet_runs_waiting", waiting)
            self._values.set("fleet_leading", leads)

    def record_heartbeat(self) -> None:
        with self._values.lock:
            self._beat = self._values.clock.monotonic()
            self._values.set("heartbeat_timestamp_seconds", self._values.current_epoch_s())

    def report_component_status(self, part: ServiceComponent, problem: str | None = None) -> None:
        """Record whether *part* is usable. *problem* is a sentence without secrets."""
        with self._values.lock:
            self._problems[part] = problem

    def set_inbox_record_counts(self, waiting: int, failing: int) -> None:
        with self._values.lock:
            self._values.set("inbox_records", waiting, "waiting")
            self._values.set("inbox_records", failing, "failing")

    def set_slow_partners(self, seconds: Mapping[tuple[str, str], float]) -> None:
        """Record the seconds by connection and target. They replace those of the last call."""
        with self._values.lock:
            self._values.by_name["inbox_slow_seconds"] = {(*labels,): value for labels, value in seconds.items()}

    def count_refused_webhooks(self, connection: str, reason: str, number: int) -> None:
        with self._values.lock:
            self._values.increase("webhooks_refused_total", number, connection, reason)

    def set_request_allowance(self, *, tokens: float | None, rate_per_s: float | None, burst: int | None) -> None:
        with self._values.lock:
            self._values.set("allowance_tokens", tokens)
            self._values.set("allowance_rate_per_second", rate_per_s)
            self._values.set("allowance_burst_tokens", burst)

    def liveness(self) -> tuple[bool, str]:
        with self._values.lock:
            age = self._values.clock.monotonic() - self._beat
        if age < self._stalled_after_s:
            return True, f"alive: the scheduler loop ran {age:.0f} s ago"
        return False, f"stuck: the scheduler loop has not run for {age:.0f} s"

    def readiness(self) -> tuple[bool, str]:
        with self._values.lock:
            problems = [f"{part}: {_one_line(text)}" for part, text in self._problems.items() if text is not None]
        return not problems, "; ".join(("not ready", *problems)) if problems else "ready"

    def prometheus_exposition(self) -> tuple[bytes, str]:
        from prometheus_client import CollectorRegistry  # noqa: PLC0415  only --health needs the library
        from prometheus_client.exposition import choose_encoder  # noqa: PLC0415

        registry = CollectorRegistry()
        registry.register(cast("Collector", self))
        encode, content_type = choose_encoder("")
        return encode(registry), content_type

    def collect(self) -> list[Metric]:
        """Return all metrics at one moment. prometheus_client calls this method of a collector."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily  # noqa: PLC0415

        families: list[Metric] = []
        with self._values.lock:
            shown = (name for name in METRICS if self._of_fleet or not name.startswith("fleet_"))
            for name, (help_text, labels) in ((name, METRICS[name]) for name in shown):
                kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
                by_tenant = self._of_fleet and name in RUN_METRICS
                family = kind(f"crossdock_{name}", help_text, labels=("tenant", *labels) if by_tenant else labels)
                for values, value in self._values.by_name[name].items():
                    family.add_metric([_with_surrogates_escaped(text) for text in values], value)
                families.append(family)
        return families


def _one_line(text: str) -> str:
    return " ".join(printable(line.strip()) for line in text.split("\n"))


def _with_surrogates_escaped(text: str) -> str:
    """Escape lone surrogates, which UTF-8 does not encode."""
    return text.encode("utf-8", "backslashreplace").decode()
