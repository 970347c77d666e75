"""Waiting records of a plan: each is passed on once, if it still waits when its stream ends."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from tests.unit.runs.planning.accounts import account, bound_accounts

from crossdock.runs.plan_result import PlanListener, WaitingReporter
from crossdock.runs.planning.planner import PlannedChunk
from crossdock.state import Step, WaitingRecord
from crossdock.writing.delivery.operations_and_intents import Operation

BOUND = bound_accounts()


def chunk(*, waits: dict[str, str] | None = None, operations: dict[str, Step] | None = None) -> PlannedChunk:
    """Records that wait, each with the resource that it waits for, and operations with their step."""
    decided = PlannedChunk(BOUND, 0, datetime(2026, 1, 1, tzinfo=UTC))
    for key, resource in (waits or {}).items():
        waits_for = [{"resource": resource, "namespace": "w", "key": "P"}]
        decided.waits.append(WaitingRecord(account(BOUND, key).identity, waits_for, {}))
    for key, step in (operations or {}).items():
        read = account(BOUND, key)
        decided.operations.append(Operation("create", read.identity, BOUND.scope, read.record, {}, {}, None, step))
    return decided


def told(held: str, *chunks: PlannedChunk) -> tuple[list[str], list[str]]:
    """The keys passed on before the stream ended, and then, of which these are *held*."""
    keys: list[str] = []
    ignored: list[Any] = [lambda _: None] * 3
    waiting = WaitingReporter(
        {account(BOUND, key).identity.key_hash for key in held},
        PlanListener(ignored[0], ignored[1], lambda record: keys.append(record.identity.key), *ignored),
    )
    for each in chunks:
        waiting.report_or_hold_waiting(each)
    before = list(keys)
    waiting.report_waiting_at_end()
    return before, keys[len(before) :]


def test_a_record_that_is_delivered_later_does_not_wait() -> None:
    """One that is held is passed on at the end, unless a later round delivers it whole."""
    both = chunk(waits={"A": "ledger_account", "B": "ledger_account"})
    assert told("AB", both, chunk(operations={"A": "whole"})) == ([], ["B"])
    assert told("A", chunk(waits={"A": "ledger_account"}), chunk(operations={"A": "open"})) == ([], ["A"])


def test_a_record_that_waits_for_another_kind_is_passed_on_at_once() -> None:
    """Its stream cannot deliver what it waits for, so it need not be kept."""
    assert told("", chunk(waits={"A": "customer"})) == (["A"], [])
