"""A platform that is away for minutes meets no storm, neither while it is away nor when it comes back."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.allowances import allowance as plenty
from tests.chaos.chance import chaos_seed
from tests.chaos.scripted import Asked, Said, Scripted

from crossdock.platform.platform_config import Profile
from crossdock.state import RecordIdentity, Scope, State, Transaction
from crossdock.testing.manual_clock import ManualClock
from crossdock.values.raw_rows_and_records import Record
from crossdock.writing.delivery.delivery_context import DeliveringRun
from crossdock.writing.delivery.dispatcher import Dispatcher
from crossdock.writing.delivery.operations_and_intents import Operation
from crossdock.writing.delivery.send_queue_and_threads import SenderThreads
from crossdock.writing.delivery.state_writer import Settlement
from crossdock.writing.targets.platform_target import PlatformTarget

SCOPE = Scope("platform", "product", "wms")
BEGINS_S, LASTS_S = 2.0, 120.0
WORK_S = 0.004  # that each answer takes of the manual clock
CHUNK = 200
CROWD_S = 0.02  # real time that a platform which is just back gives the next request to come, before it answers


@dataclass(slots=True)
class Figures:
    """What the platform saw. *worst* is how many more were on their way than answers had been given, at most."""

    records: int = 0
    requests: int = 0
    bound: float = 0.0
    during: int = 0
    lost: int = 0
    twice: int = 0
    worst: int = 0
    widest: int = 0
    clock_s: float = 0.0


@dataclass(slots=True)
class Away:
    """A platform that knows idempotency keys, and answers 503 without a word for a time of the manual clock."""

    clock: ManualClock
    seen: Counter[str] = field(default_factory=Counter)
    made: dict[str, bytes] = field(default_factory=dict)
    during: int = 0
    arrived: int = 0
    answered: int = 0
    worst: int = 0
    widest: int = 0
    crowd: threading.Condition = field(default_factory=threading.Condition)

    def answer(self, asked: Asked) -> Said:
        with self.crowd:
            self.clock.advance(WORK_S)
            now = self.clock.monotonic()
            self.seen[asked.key or "whether it works"] += 1
            if BEGINS_S <= now < BEGINS_S + LASTS_S:
                self.during += 1
                return Said(503)
            if now >= BEGINS_S + LASTS_S:
                self._back()
            if asked.method == "GET":
                return Said(200, b'{"data":[]}')
            self.made.setdefault(asked.key, asked.body)
            return Said(201, b'{"id":"prd_%s"}' % asked.key.strip('"')[:12].encode())

    def _back(self) -> None:
        """Count who comes while others are still served; the first ones are served slowly, so that a crowd shows."""
        self.arrived += 1
        on_their_way = self.arrived - self.answered
        self.widest = max(self.widest, on_their_way)
        self.worst = max(self.worst, on_their_way - self.answered)
        self.crowd.notify_all()
        if self.answered < 10:
            self._hold()
        self.answered += 1

    def _hold(self) -> None:
        """Until nobody else comes."""
        arrived = 0
        while arrived < self.arrived:
            arrived = self.arrived
            self.crowd.wait(CROWD_S)


@dataclass(frozen=True, slots=True)
class Chunk:
    operations: list[Operation]
    acknowledged_settlements: Sequence[Settlement] = ()

    def store_all_but_operations(self, tx: Transaction) -> None:
        """Nothing else."""


def _chunks(records: int) -> Iterator[Chunk]:
    for start in range(0, records, CHUNK):
        yield Chunk([_operation(number) for number in range(start, min(start + CHUNK, records))])


def _operation(number: int) -> Operation:
    payload = {"externalId": f"wms:{number}", "sku": f"S{number}", "name": "x", "active": True}
    record = Record(str(number), ({"SKU": f"S{number}"},), "f.csv", (number + 2,))
    identity = RecordIdentity("wms.products", record.key, number, number, None, record.source, number + 2)
    return Operation("create", identity, SCOPE, record, payload, payload, None)


def outage(state: State, monkeypatch: pytest.MonkeyPatch, *, records: int) -> Figures:
    """Deliver *records* to a platform that goes away for two minutes, and judge by what it saw."""
    monkeypatch.setenv("KEY", "k")
    clock = ManualClock()
    away, settled = Away(clock), list[Settlement]()
    with Scripted(away.answer) as platform:
        facts = {"base_url": platform.base_url, "tenant": "acme", "auth": {"kind": "api_key", "token": "env:KEY"}}
        profile = Profile.model_validate(facts, context={"folder": Path()})
        target = PlatformTarget(profile)
        with state.begin() as tx:
            run_id = tx.runs.start(business_date="2026-01-01", at=clock.now())
        with SenderThreads(target, profile.in_flight) as senders:
            allowance = plenty(clock)
            run = DeliveringRun(state, run_id, clock, threading.Event())
            dispatcher = Dispatcher(run, target, allowance, senders, settled.append)
            dispatcher.deliver(_chunks(records))
    with state.begin() as tx:
        bound = sum(tx.bindings.counts_by_resource().values())
        assert tx.intents.unsettled() == []
    assert Counter(item.intent.status for item in settled) == {"delivered": records}
    figures = Figures(
        records=records,
        requests=away.seen.total(),
        bound=1.10 * records + LASTS_S,
        during=away.during,
        lost=records - bound,
        twice=len(away.made) - records,
        worst=away.worst,
        widest=away.widest,
        clock_s=clock.monotonic(),
    )
    assert clock.monotonic() > BEGINS_S + LASTS_S, f"the platform was never back: {figures}"
    assert away.during >= profile.in_flight / 4, f"hardly a request met the outage: {figures}"
    assert away.arrived >= records / 4, f"the outage came too late: {figures}"
    assert (figures.lost, figures.twice, len(away.seen.keys() - {"whether it works"})) == (0, 0, records), figures
    assert figures.requests <= figures.bound, figures
    assert figures.worst <= 1, f"came back faster than one more for each answer: {figures}"
    assert figures.widest > 1, f"never two at once after the outage, so nothing was proved: {figures}"
    return figures


def test_an_outage_costs_time_and_hardly_a_request(state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two minutes of 503 end with everything delivered in the same run, a tenth more requests and one a second."""
    began = time.monotonic()
    figures = outage(state, monkeypatch, records=1_000)
    print(f"\noutage: seed {chaos_seed()} (nothing drawn), {figures}, {time.monotonic() - began:.1f} s")
