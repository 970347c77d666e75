"""Records that wait for records of their own kind, from round to round."""

from __future__ import annotations

from datetime import UTC, datetime

from tests.unit.runs.planning.accounts import account, bound_accounts

from crossdock.delta.fingerprint import key_hashes
from crossdock.runs.planning.mapping_to_drafts import map_record_to_draft_members
from crossdock.runs.planning.references import References, ScopedKey
from crossdock.runs.planning.waiting_records import IdleWaits, RecordsAwaitingParents
from crossdock.state import Binding, DeadLetter, Scope, State, WaitingRecord

AT = datetime(2026, 1, 1, tzinfo=UTC)
BOUND = bound_accounts()


def held(state: State, *pairs: tuple[str, str]) -> RecordsAwaitingParents:
    """Held records for pairs of key and parent."""
    references = References("platform")
    records = RecordsAwaitingParents(BOUND, state, references, {BOUND.scope})
    for key, parent in pairs:
        read = account(BOUND, key, parent)
        members, found = map_record_to_draft_members(BOUND, read.record)
        assert records.hold_if_parents_may_come(
            read, members, references.scoped_keys(found, BOUND.namespace_and_key_of_reference), is_bound=False
        )
    return records


def bind(state: State, key: str) -> None:
    with state.begin() as tx:
        run_id = tx.runs.start(business_date="2026-01-01", at=AT)
        binding = Binding(key_hashes([key])[key], key, f"id-{key}", 1, None, "whole", {}, None, 1)
        tx.bindings.put(BOUND.scope, [binding], run_id=run_id, at=AT)


def test_a_record_that_waits_for_another_kind_is_not_held(state: State) -> None:
    """Only records of the same scope can be delivered by the same stream."""
    records = RecordsAwaitingParents(BOUND, state, References("platform"), {BOUND.scope})
    elsewhere: ScopedKey = (Scope("platform", "ledger_account", "other"), "P")
    assert not records.hold_if_parents_may_come(account(BOUND, "A", "P"), {}, [elsewhere], is_bound=False)
    assert records.discard_all_and_count() == 0


def test_a_record_is_ready_once_its_parent_is_bound(state: State) -> None:
    """Until then it stays held, without a cycle to break."""
    records = held(state, ("A", "P"), ("B", "A"))
    assert (records.find_ready_key_hashes(), records.choose_cycle_breakers()) == ([], [])
    bind(state, "P")
    (ready,) = records.find_ready_key_hashes()
    assert records.pop_held_record(ready).record.key == "A"
    assert records.discard_all_and_count() == 1


def test_an_opened_record_is_ready_once_it_is_bound(state: State) -> None:
    """Of a cycle one record is opened without its parent, only once, and completed after its first step."""
    records = held(state, ("A", "B"), ("B", "A"))
    hashes = key_hashes(["A", "B"])
    assert records.find_ready_key_hashes() == []
    assert records.choose_cycle_breakers() == [hashes["A"]]
    read, members = records.open_without_missing_references(hashes["A"])
    assert (read.record.key, "parentId" in members) == ("A", False)
    assert records.choose_cycle_breakers() == [hashes["B"]]
    bind(state, "A")
    assert records.find_ready_key_hashes() == [hashes["B"]]
    records.pop_held_record(hashes["B"])
    bind(state, "B")
    assert records.find_ready_key_hashes() == [hashes["A"]]


def test_an_opened_record_that_was_rejected_is_released(state: State) -> None:
    """Its dead letter replaces it; only the others still wait."""
    records = held(state, ("A", "B"), ("B", "A"))
    read, _ = records.open_without_missing_references(key_hashes(["A"])["A"])
    with state.begin() as tx:
        run_id = tx.runs.start(business_date="2026-01-01", at=AT)
        tx.dead_letters.put(
            [DeadLetter(read.identity, "delivery", "rejected", None, "", {}, None)], run_id=run_id, at=AT
        )
    assert records.discard_all_and_count() == 1


def test_a_bound_record_is_not_opened(state: State) -> None:
    """The target has it already, so creating it would be wrong."""
    references = References("platform")
    records = RecordsAwaitingParents(BOUND, state, references, {BOUND.scope})
    read = account(BOUND, "A", "A")
    members, found = map_record_to_draft_members(BOUND, read.record)
    records.hold_if_parents_may_come(
        read, members, references.scoped_keys(found, BOUND.namespace_and_key_of_reference), is_bound=True
    )
    assert records.choose_cycle_breakers() == []


def test_a_record_that_is_read_again_is_forgotten(state: State) -> None:
    """Its stream decides about the new version; keys that are not held do not count."""
    records = held(state, ("A", "P"), ("B", "P"))
    hashes = key_hashes(["A", "C"])
    assert records.remove(hashes.values()) == 1
    assert len(records) == 1
    assert records.discard_all_and_count() == 1


def test_a_record_is_held_for_a_scope_that_is_still_to_come(state: State) -> None:
    """A later stream of the run may bring what it waits for."""
    other = Scope("platform", "ledger_account", "other")
    records = RecordsAwaitingParents(BOUND, state, References("platform"), {other})
    assert records.hold_if_parents_may_come(account(BOUND, "A", "P"), {}, [(other, "P")], is_bound=False)
    assert not records.hold_if_parents_may_come(account(BOUND, "B", "P"), {}, [(BOUND.scope, "P")], is_bound=False)


def test_what_is_held_at_the_end_is_idle_except_second_steps(state: State) -> None:
    """Without `settle`, as after a kill, the next run decides about all of it."""
    records = held(state, ("A", "B"), ("B", "A"), ("C", "P"))
    records.add_idle(IdleWaits(version="1"))
    rows = [account(BOUND, key, "P") for key in "ABC"]
    with state.begin() as tx:
        run_id = tx.runs.start(business_date="2026-01-01", at=AT)
        waits = [WaitingRecord(read.identity, [{"key": "P"}], read.record.raw()) for read in rows]
        tx.waiting_records.put(waits, run_id=run_id, at=AT)
    records.open_without_missing_references(key_hashes(["A"])["A"])

    def marks() -> dict[str, bool]:
        with state.begin_read_only() as tx:
            return {
                each.identity.key: each.idle_under is not None
                for each in tx.waiting_records.waits_of_stream(BOUND.name)
            }

    assert marks() == {"A": False, "B": False, "C": False}
    records.make_held_records_idle()
    assert marks() == {"A": False, "B": True, "C": True}
