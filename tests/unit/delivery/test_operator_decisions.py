"""What a person decides about records is written as they meant it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from crossdock.errors import ConfigError
from crossdock.state import DeadLetterFacts, Intent, RecordFilter, RecordIdentity, Scope, State, Step, WaitingRecord
from crossdock.writing.delivery import operator_decisions

AT = datetime(2026, 3, 29, 1, 30, tzinfo=UTC)
STREAM = "wms.accounts"


def intent(number: int, *, step: Step = "whole", operation: str = "create") -> Intent:
    return Intent(
        identity=RecordIdentity(STREAM, f"K{number}", number, 5, None, "f.csv", 2),
        scope=Scope("platform", "ledger_account", "wms"),
        operation=operation,
        step=step,
        counter=1,
        idempotency_key=f"key-{number}",
        method="POST",
        path="/p",
        body=b'{"name":"x"}',
        before=None,
        after=None,
        raw={"rows": [["x"]]},
        status="in_doubt",
        first_sent_at=AT,
    )


def waiting(number: int, fingerprint: int) -> WaitingRecord:
    return WaitingRecord(
        RecordIdentity(STREAM, f"K{number}", number, fingerprint, None, "f.csv", 2), [], {"rows": [["x"]]}
    )


def unsettled(state: State, *intents: Intent) -> list[Intent]:
    """Operations in doubt, as an earlier run left them."""
    with state.begin() as tx:
        run_id = tx.runs.start(business_date="2026-03-29", at=AT)
        tx.intents.add(intents, run_id=run_id, fence=1, at=AT)
        return operator_decisions.intents_for_person_to_decide(tx, RecordFilter(STREAM))


def test_a_half_made_record_is_given_up_whole(state: State) -> None:
    """Of a record that waits while its first step is pending, what is remembered is how the whole one reads."""
    found = unsettled(state, intent(1, step="open"))
    with state.begin() as tx:
        tx.waiting_records.put([waiting(1, 77)], run_id=1, at=AT)
        with pytest.raises(ConfigError, match="is in doubt"):
            operator_decisions.drop_records(tx, [], tx.waiting_records.matching(RecordFilter(STREAM)), found, at=AT)
        operator_decisions.settle_intents_as_not_delivered(tx, found, at=AT)
        operator_decisions.drop_records(tx, [], tx.waiting_records.matching(RecordFilter(STREAM)), [], at=AT)
    with state.begin() as tx:
        assert tx.dead_letters.facts_of_all_letters_of_stream(STREAM) == [
            DeadLetterFacts(1, 77, None, "dropped", "whole")
        ]
        assert (tx.waiting_records.matching(RecordFilter(STREAM)), tx.intents.unsettled()) == ([], [])


def test_what_did_not_happen_is_as_if_never_sent(state: State) -> None:
    """An operation that a person says did not happen keeps its key and is pending, without a first sending."""
    found = unsettled(state, intent(1))
    with state.begin() as tx:
        operator_decisions.settle_intents_as_not_delivered(tx, found, at=AT)
    with state.begin() as tx:
        (left,) = tx.intents.unsettled()
    assert (left.status, left.first_sent_at, left.idempotency_key) == ("pending", None, "key-1")


def test_a_creation_that_happened_needs_its_id(state: State) -> None:
    """Without an id, or with one for two records, nothing is bound; with it the record is."""
    found = unsettled(state, intent(1), intent(2))
    with state.begin() as tx:
        for chosen, given in ((found, "acc_1"), (found[:1], None)):
            with pytest.raises(ConfigError, match="give the record's id"):
                operator_decisions.settle_intents_as_delivered(tx, chosen, given, at=AT)
        assert tx.bindings.counts_by_resource() == {}
        operator_decisions.settle_intents_as_delivered(tx, found[:1], "acc_1", at=AT)
    with state.begin() as tx:
        assert tx.bindings.target_id_by_key_hash(found[0].scope, [1, 2]) == {1: "acc_1"}
        assert [each.identity.key for each in tx.intents.unsettled()] == ["K2"]


def test_a_pending_operation_can_be_given_up(state: State) -> None:
    """It is remembered under a reason of its own."""
    with state.begin() as tx:
        run_id = tx.runs.start(business_date="2026-03-29", at=AT)
        one = intent(1)
        one.status, one.first_sent_at = "pending", None
        tx.intents.add([one, intent(2)], run_id=run_id, fence=1, at=AT)
    with state.begin() as tx:
        found = operator_decisions.filtered_pending_intents(tx, RecordFilter(STREAM))
        assert [each.identity.key for each in found] == ["K1"]
        operator_decisions.drop_records(tx, [], [], found, at=AT)
    with state.begin() as tx:
        assert [each.identity.key for each in tx.intents.unsettled()] == ["K2"]
        (dropped,) = tx.dead_letters.listed(limit=9, status="dropped")
    assert (dropped["code"], dropped["message"]) == ("conflict", "dropped by an operator while it was pending")


def test_a_person_decides_what_a_partner_does_not_acknowledge(state: State) -> None:
    """All that is overdue, and by its key what is not due yet: it needs no id, is not dropped, and can go out again."""
    kept = [intent(1), intent(2)]
    for each, status in zip(kept, ("overdue", "handed_over"), strict=True):
        each.status, each.target_id = status, each.identity.key  # type: ignore[assignment]  # two of its literals
    assert [each.identity.key for each in unsettled(state, *kept)] == ["K1"]
    with state.begin() as tx:
        found = operator_decisions.intents_for_person_to_decide(tx, RecordFilter(STREAM, "K2"))
        with pytest.raises(ConfigError, match="K2 is not acknowledged yet"):
            operator_decisions.drop_records(tx, [], [], found, at=AT)
        operator_decisions.raise_if_target_id_impossible(found, None)
        operator_decisions.settle_intents_as_not_delivered(tx, found, at=AT)
    with state.begin() as tx:
        assert [
            each.identity.key for each in operator_decisions.filtered_pending_intents(tx, RecordFilter(STREAM))
        ] == ["K2"]
