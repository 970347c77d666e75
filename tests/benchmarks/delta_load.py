"""The first load, into an empty state and without a platform: a process of its own, which tells its figures as JSON.

By default everything is real but the senders, which answer 201 with an id at once. With ``--fill`` the dispatcher is
replaced too, by one that binds what it is given in large transactions and writes no intents: a quick way to a state in
which everything was delivered, for benchmarks of what comes after.
"""

from __future__ import annotations

import argparse
import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from itertools import count
from pathlib import Path
from unittest import mock

from crossdock.clock import SystemClock
from crossdock.delivery import outcomes
from crossdock.delivery.dispatcher import Chunk, Counters
from crossdock.delivery.operations import Operation, mint, payload_fp
from crossdock.delivery.outcomes import Outcome
from crossdock.delivery.senders import Errand, Returned, Senders
from crossdock.delivery.settling import Settled
from crossdock.platform.target import PlatformTarget
from crossdock.progress import Silent
from crossdock.state import Binding, Intent, State
from crossdock.sync import project, runner
from crossdock.transport.answers import Answer

BOUND_AT_ONCE = 10_000


class Answering(Senders):
    """Answers every errand with 201 and an id before it could have left."""

    def put(self, errands: Sequence[Errand], in_flight: int) -> None:
        for errand in errands:
            answer = Answer(201, {}, b'{"id":"prd_%d"}' % errand.intent.id)
            self.results.put(Returned(errand, outcomes.of_answer(answer)))


class Filling:
    """In a dispatcher's place: binds every record that would be created."""

    def __init__(
        self,
        state: State,
        target: PlatformTarget,
        *_: object,
        run_id: int,
        settled: Callable[[Settled], None],
        **__: object,
    ) -> None:
        self._state, self._target, self._run_id, self._settled = state, target, run_id, settled
        self._ids = count(1)
        self.counters = Counters()

    def resume(self, intents: Sequence[Intent]) -> None:
        assert not intents

    def deliver(self, chunks: Iterator[Chunk]) -> None:
        waiting: list[Operation] = []
        for chunk in chunks:
            waiting += chunk.operations
            if len(waiting) >= BOUND_AT_ONCE:
                self._bind(waiting)
                waiting = []
        self._bind(waiting)

    def _bind(self, operations: Sequence[Operation]) -> None:
        with self._state.begin() as tx:
            for scope in {operation.scope for operation in operations}:
                bound = [self._binding(each) for each in operations if each.scope == scope]
                tx.bindings.put(scope, bound, run_id=self._run_id, at=SystemClock().now())
        for operation in operations:
            intent = mint(operation, self._target, 1)
            intent.status = "delivered"
            self._settled(Settled(intent, Outcome("delivered")))

    def _binding(self, operation: Operation) -> Binding:
        assert operation.kind == "create"
        return Binding(
            key_hash=operation.key_hash,
            key=operation.record.key,
            platform_id=f"prd_{next(self._ids)}",
            record_fp=operation.record_fp,
            fp_algorithm=operation.fp_algorithm,
            position=operation.position,
            payload=operation.after,
            payload_fp=payload_fp(operation.after),
            etag=None,
            counter=1,
        )


class Stages(Silent):
    """Remembers when each stage began."""

    def __init__(self) -> None:
        self.began: dict[str, float] = {}

    def begin(self, stage: str, total: int | None) -> None:
        self.began[stage] = time.perf_counter()


def load(config: Path, *, fill: bool = False) -> dict[str, float]:
    """Load what the one stream of *config* lists; seconds of the whole run, and of what follows the reading."""
    loaded, stages = project.load(config), Stages()
    loaded.init()
    ((stream,),) = ([f"{each.name}.{stream.name}" for stream in each.streams] for each in loaded.connections)
    replaced = mock.patch.object(runner, "Dispatcher", Filling) if fill else nullcontext()
    began = time.perf_counter()
    with mock.patch.object(runner, "Senders", Answering), replaced:
        report = runner.sync(loaded, [], clock=SystemClock(), progress=stages, interrupt=threading.Event())
    ended = time.perf_counter()
    assert (report.exit_code, report.errors) == (0, {}), report.as_json()
    records = report.tallies[stream].records
    assert records["read"] == records["created"]
    sending = stages.began[f"sending {stream}"]
    return {"records": records["created"], "run_s": ended - began, "delivering_s": ended - sending}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("config", type=Path)
    parser.add_argument("--fill", action="store_true")
    given = parser.parse_args()
    print(json.dumps(load(given.config, fill=given.fill)))


if __name__ == "__main__":
    main()
