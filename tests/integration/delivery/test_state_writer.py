"""The turns of a delivery: what one commit takes along, and what nobody waits for."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

import pytest
from sqlalchemy import Connection, event
from tests.allowances import allowance
from tests.integration.delivery.harness import Batch, operation

from crossdock.platform.platform_config import Profile
from crossdock.state import State
from crossdock.values.clock import SystemClock
from crossdock.writing.delivery.delivery_context import DeliveringRun
from crossdock.writing.delivery.dispatcher import Dispatcher
from crossdock.writing.delivery.send_queue_and_threads import SendBatch, SenderThreads, SendResult
from crossdock.writing.delivery.state_writer import Settlement
from crossdock.writing.targets.answer_outcomes import Outcome
from crossdock.writing.targets.platform_target import PlatformTarget

IN_FLIGHT, RECORDS = 10, 60


class Prompt(SenderThreads):
    """Delivers every errand before it could have left, and remembers how it stood in the state."""

    def __init__(self, target: PlatformTarget, state: State) -> None:
        super().__init__(target, IN_FLIGHT)
        self._state = state
        self.stood: list[tuple[str, int]] = []

    def give_batches_to_threads(self, batches: Sequence[SendBatch], in_flight: int) -> None:
        with self._state.begin_read_only() as tx:
            known = {each.id: each for each in tx.intents.unsettled()}
        for batch in batches:
            (task,) = batch.tasks
            self.stood.append((known[task.intent.id].status, known[task.intent.id].attempts))
            assert known[task.intent.id] == task.intent
            outcome = Outcome("delivered", status=201, target_id=f"prd_{task.intent.id}")
            self.results.put(SendResult(batch, [outcome]))


def deliver(state: State, senders: Prompt, target: PlatformTarget) -> list[Settlement]:
    settled: list[Settlement] = []
    clock = SystemClock()
    with state.begin() as tx:
        run_id = tx.runs.start(business_date="2026-03-29", at=clock.now())
    given = [Batch([operation(n) for n in range(start, start + 20)]) for start in range(0, RECORDS, 20)]
    room = allowance(clock, ceiling=IN_FLIGHT)
    run = DeliveringRun(state, run_id, clock, threading.Event())
    Dispatcher(run, target, room, senders, settled.append).deliver(iter(given))
    return settled


@pytest.fixture
def target() -> PlatformTarget:
    auth = {"kind": "api_key", "token": "env:BENCH_KEY"}
    facts = {"base_url": "http://127.0.0.1:9", "tenant": "acme", "auth": auth, "in_flight": IN_FLIGHT}
    return PlatformTarget(Profile.model_validate(facts))


def test_what_leaves_stands_in_the_state_as_sending(state: State, target: PlatformTarget) -> None:
    """Whether it was written in this turn or before, each intent is committed as sending before it leaves."""
    senders = Prompt(target, state)
    settled = deliver(state, senders, target)
    assert senders.stood == [("sending", 1)] * RECORDS
    assert [item.intent.status for item in settled] == ["delivered"] * RECORDS
    with state.begin_read_only() as tx:
        assert tx.bindings.counts_by_resource() == {"product": RECORDS}
        assert tx.intents.unsettled() == []


def test_nobody_waits_when_all_have_come(state: State, target: PlatformTarget, monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn gathers more outcomes only while some are still on their way."""
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    assert len(deliver(state, Prompt(target, state), target)) == RECORDS
    assert pauses == []


def test_a_turn_is_one_commit_that_writes(state: State, target: PlatformTarget) -> None:
    """Counting what was minted before commits nothing: only turns do, one for each group that leaves."""
    writing: list[bool] = []
    event.listen(state._engine, "commit", lambda connection: writing.append(writes(connection)))
    deliver(state, Prompt(target, state), target)
    assert sum(writing) == 1 + RECORDS // IN_FLIGHT + 1  # the run's begin, each group, and the last outcomes
    assert len(writing) > sum(writing)


def writes(connection: Connection) -> bool:
    return not connection.get_execution_options().get("postgresql_readonly")
