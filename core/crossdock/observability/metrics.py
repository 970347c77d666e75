"""The scheduler's vital signs: what it tells of itself while it works, and what machines ask."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Literal, TypeVar

from crossdock.clock import Clock
from crossdock.notifications.events import Status
from crossdock.observability.exposition import Family, Sample
from crossdock.printable import printable

L = TypeVar("L", bound=str)
Part = Literal["config", "state", "clock"]
STALLED_AFTER_S = 60.0
_STATUSES: tuple[Status, ...] = ("done", "incomplete", "failed", "skipped")


class Metrics:
    """What the scheduler tells of itself while it works. Thread safe; every call is quick.

    Args:
        stalled_after_s: The loop is taken for stuck when its last `beat` is older.
    """

    def __init__(self, clock: Clock, *, stalled_after_s: float = STALLED_AFTER_S) -> None:
        self._clock, self._stalled_after_s = clock, stalled_after_s
        self._lock = threading.Lock()
        self._problems: dict[Part, str | None] = {"config": "not read yet", "state": "not opened yet"}
        self._due: dict[str, float] = {}
        self._began: dict[str, float] = {}
        self._running: dict[str, int] = {}
        self._nights: Counter[tuple[str, Status]] = Counter()
        self._seconds: dict[str, float] = {}
        self._succeeded: dict[str, float] = {}
        self._requests = self._throttled = 0
        self._records: Counter[tuple[str, str]] = Counter()
        self._tokens: float | None = None
        self._rate_per_s: float | None = None
        self._burst: int | None = None
        self.beat()

    # What the scheduler tells

    def beat(self) -> None:
        """The loop has come round once more."""
        with self._lock:
            self._beat, self._beat_at = self._clock.monotonic(), self._clock.now().timestamp()

    def found(self, part: Part, problem: str | None = None) -> None:
        """Whether *part* is usable now; *problem* is a sentence without secrets."""
        with self._lock:
            self._problems[part] = problem

    def due(self, job: str, instant: datetime | None) -> None:
        """When *job* is due next; None if it is not any more."""
        with self._lock:
            self._running.setdefault(job, 0)
            if instant is None:
                self._due.pop(job, None)
            else:
                self._due[job] = instant.timestamp()

    def began(self, job: str) -> None:
        with self._lock:
            self._running[job], self._began[job] = 1, self._clock.now().timestamp()

    def ended(self, job: str, status: Status, seconds: float) -> None:
        """A night of *job* has ended; one that was skipped took no time, and may have met a running one."""
        with self._lock:
            self._running.setdefault(job, 0)
            self._nights[job, status] += 1
            if status != "skipped":
                self._running[job], self._seconds[job] = 0, seconds
            if status == "done":
                self._succeeded[job] = self._clock.now().timestamp()

    def sent(self, requests: int, throttled: int = 0) -> None:
        """So many more requests have left, and so many of them were answered 429."""
        with self._lock:
            self._requests += requests
            self._throttled += throttled

    def counted(self, stream: str, terms: Mapping[str, int]) -> None:
        """So many more records of *stream*, by term of the tally: its own terms, no sums of them."""
        with self._lock:
            self._records.update({(stream, term): number for term, number in terms.items()})

    def allowance(self, *, tokens: float | None, rate_per_s: float | None, burst: int | None) -> None:
        """What could leave now, and what is known of the bucket; None for what nobody knows."""
        with self._lock:
            self._tokens, self._rate_per_s, self._burst = tokens, rate_per_s, burst

    # What machines ask

    def alive(self) -> tuple[bool, str]:
        """Whether the loop comes round, and a sentence about it."""
        with self._lock:
            age = self._clock.monotonic() - self._beat
        if age < self._stalled_after_s:
            return True, f"alive: the scheduler's loop came round {age:.0f} s ago"
        return False, f"stuck: the scheduler's loop has not come round for {age:.0f} s"

    def ready(self) -> tuple[bool, str]:
        """Whether all parts are usable, and a sentence about those that are not."""
        with self._lock:
            problems = [f"{part}: {_in_one(why)}" for part, why in self._problems.items() if why is not None]
        return not problems, "; ".join(("not ready", *problems)) if problems else "ready"

    def families(self) -> list[Family]:
        """All metrics, as of one moment."""
        with self._lock:
            scheduled_runs = {(job, status): self._nights[job, status] for job in self._running for status in _STATUSES}
            return [
                _counter("nights_total", "Nights that ended.", _labelled(scheduled_runs, "job", "status")),
                _gauge("night_seconds", "How long the last night took.", _by_job(self._seconds)),
                _gauge("started_timestamp_seconds", "When the last night began.", _by_job(self._began)),
                _gauge("last_success_timestamp_seconds", "When a night was last done.", _by_job(self._succeeded)),
                _gauge("next_due_timestamp_seconds", "When the next night is due.", _by_job(self._due)),
                _gauge("running", "1 while a night runs.", _by_job(self._running)),
                _counter("requests_total", "Requests sent to the platform.", _alone(self._requests)),
                _counter("throttled_total", "Requests that the platform answered 429.", _alone(self._throttled)),
                _counter("records_total", "Records by term of the tally.", _labelled(self._records, "stream", "term")),
                _gauge("allowance_tokens", "Requests that could leave at once.", _alone(self._tokens)),
                _gauge("allowance_burst_tokens", "Requests that a full bucket lets leave.", _alone(self._burst)),
                _gauge("allowance_rate_per_second", "Requests that the bucket regains.", _alone(self._rate_per_s)),
                _gauge("heartbeat_timestamp_seconds", "When the loop last came round.", _alone(self._beat_at)),
            ]


def _in_one(text: str) -> str:
    return " ".join(printable(line.strip()) for line in text.split("\n"))


def _counter(name: str, about: str, samples: Iterable[Sample]) -> Family:
    return Family(f"crossdock_{name}", "counter", about, tuple(samples))


def _gauge(name: str, about: str, samples: Iterable[Sample]) -> Family:
    return Family(f"crossdock_{name}", "gauge", about, tuple(samples))


def _alone(value: float | None) -> Iterator[Sample]:
    if value is not None:
        yield Sample(value, {})


def _by_job(values: Mapping[str, float]) -> Iterator[Sample]:
    return (Sample(value, {"job": job}) for job, value in values.items())


def _labelled(values: Mapping[tuple[str, L], float], *names: str) -> Iterator[Sample]:
    return (Sample(value, dict(zip(names, labels, strict=True))) for labels, value in values.items())
