"""Waiting records keep the time since when they wait."""

from __future__ import annotations

from datetime import timedelta

from tests.unit.state.samples import AT, start

from crossdock.state import (
    RecordFilter,
    RecordIdentity,
    State,
    WaitingRecord,
)


def test_a_waiting_record_keeps_its_since(state: State) -> None:
    """A record that keeps waiting keeps the time since when."""
    run = start(state)
    product = {"resource": "product", "namespace": "w", "key": "P"}
    record = WaitingRecord(RecordIdentity("s", "K", 1, 5, None, "f", 3), [product], {})
    for at in (AT, AT + timedelta(days=1)):
        with state.begin() as tx:
            tx.waiting_records.put([record], run_id=run, at=at)
    with state.begin() as tx:
        assert tx.waiting_records.listed(limit=5)[0]["since"] == AT
        assert tx.waiting_records.matching(RecordFilter("s")) == [record]
        assert tx.waiting_records.records_among("s", [0, 1, 2]) == [record]
        assert tx.waiting_records.records_among("s", [2]) == tx.waiting_records.records_among("t", [1]) == []
