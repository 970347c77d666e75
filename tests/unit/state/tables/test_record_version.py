"""Rows of one stream and record: identities are read back, and deletes hit only the named rows."""

from __future__ import annotations

from tests.unit.state.samples import AT, start

from crossdock.state import DeadLetter, RecordFilter, RecordIdentity, State, WaitingRecord


def test_clearing_takes_what_is_named(state: State) -> None:
    """Deletes the named dead letters and waiting records of one stream, and none of another stream."""
    run = start(state)
    dead_letters = [
        DeadLetter(
            RecordIdentity(stream, f"K{key}", key, 5, None, "f", 3), "mapping", "bad_value", None, "is bad", {}, None
        )
        for stream in "ab"
        for key in (1, 2, 3)
    ]
    waits = [
        WaitingRecord(
            RecordIdentity(each.identity.stream, each.identity.key, each.identity.key_hash, 5, None, "f", 3), [], {}
        )
        for each in dead_letters
    ]
    with state.begin() as tx:
        tx.dead_letters.put(dead_letters, run_id=run, at=AT)
        tx.waiting_records.put(waits, run_id=run, at=AT)
        for backlog in (tx.dead_letters, tx.waiting_records):
            backlog.remove_records("a", [1, 3, 9])
            backlog.remove_records("b", [])
            backlog.remove_records("c", [1])
        assert {(row["stream"], row["key_hash"]) for row in tx.dead_letters.listed(limit=9)} == {
            ("a", 2), ("b", 1), ("b", 2), ("b", 3),
        }  # fmt: skip
        assert [each.identity.key_hash for each in tx.waiting_records.waits_of_stream("a")] == [2]
        assert [each.identity.key_hash for each in tx.waiting_records.waits_of_stream("b")] == [1, 2, 3]


def test_an_identity_is_read_as_written(state: State) -> None:
    """Every member, also a fingerprint and a position that are absent."""
    whole = RecordIdentity("s", "K1", 1, (1 << 128) - 1, "2026", "f.csv", 7)
    removal = RecordIdentity("s", "K2", 2, None, None, "", 0)
    run = start(state)
    with state.begin() as tx:
        dead_letters = [DeadLetter(each, "plan", "rejected", None, "", {}, None) for each in (whole, removal)]
        tx.dead_letters.put(dead_letters, run_id=run, at=AT)
        assert {each.identity for each in tx.dead_letters.rejected_matching(RecordFilter("s"))} == {whole, removal}
