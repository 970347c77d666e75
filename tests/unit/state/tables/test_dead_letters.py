"""Dead letters count their attempts and are chosen by a filter."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tests.unit.state.samples import AT, start

from crossdock.state import (
    DeadLetter,
    DeadLetterFacts,
    RecordFilter,
    RecordIdentity,
    State,
)


def test_dead_letters_remember_their_first_run(state: State) -> None:
    """A record rejected again counts its attempts and keeps the run that rejected it first."""
    first, second = start(state), start(state)
    dead_letter = DeadLetter(
        RecordIdentity("s", "K", 1, 5, None, "f", 3), "mapping", "bad_value", "QTY", "is wrong", {"columns": []}, None
    )
    for run in (first, second):
        with state.begin() as tx:
            tx.dead_letters.put([dead_letter], run_id=run, at=AT)
    with state.begin() as tx:
        (found,) = tx.dead_letters.listed(limit=10)
        assert (found["first_run_id"], found["run_id"], found["attempts"]) == (first, second, 2)
        assert tx.dead_letters.facts_of_all_letters_of_stream("s") == [DeadLetterFacts(1, 5, None, "rejected", "whole")]
        tx.dead_letters.remove_records("s", [1])
        assert tx.dead_letters.listed(limit=10) == []


def dead_letter(number: int, stream: str = "s", code: str = "bad_value") -> DeadLetter:
    identity = RecordIdentity(stream, f"K{number}" if number else "", number, 5, None, "f", number)
    return DeadLetter(identity, "mapping", code, None, "is bad", {}, None)


def test_a_filter_chooses_what_it_names(state: State) -> None:
    """Each member restricts the choice; what is dropped is never chosen."""
    run, later = start(state), AT + timedelta(days=1)
    with state.begin() as tx:
        tx.dead_letters.put([dead_letter(number) for number in range(4)], run_id=run, at=AT)
        tx.dead_letters.put([dead_letter(5, code="conflict"), dead_letter(6, "t")], run_id=run, at=later)
        tx.dead_letters.mark_dropped("s", [3])
        chosen = {
            choice: [each.identity.key for each in tx.dead_letters.rejected_matching(choice)]
            for choice in (
                RecordFilter(),
                RecordFilter(stream="s"),
                RecordFilter(key="K2"),
                RecordFilter(code="conflict"),
                RecordFilter(since=later),
            )
        }
        assert list(chosen.values()) == [
            ["", "K1", "K2", "K5", "K6"],
            ["", "K1", "K2", "K5"],
            ["K2"],
            ["K5"],
            ["K5", "K6"],
        ]
        assert [row["key"] for row in tx.dead_letters.listed(limit=9, status="dropped")] == ["K3"]
        assert [(each.key, code) for each, code in tx.dead_letters.rejected_identities_with_reason_codes("t")] == [
            ("K6", "bad_value")
        ]


def keyless(source: str, **changes: Any) -> DeadLetter:
    """The dead letter of a row without key; rows of one content have one hash."""
    identity = RecordIdentity("s", "", ord(source[0]), None, None, source, 1)
    return DeadLetter(identity, "key", "key_missing", None, "the key is empty", {}, None, **changes)


def test_rows_without_key_go_when_their_file_is_read_again(state: State) -> None:
    """Those of the named files that the run did not write itself."""
    first, second = start(state), start(state)
    with state.begin() as tx:
        for source in "ac":
            tx.dead_letters.put([keyless(source)], run_id=first, at=AT)
        tx.dead_letters.replace_dead_letters_without_key("s", [keyless("b")], ["a", "b"], run_id=second, at=AT)
        assert {row["source"] for row in tx.dead_letters.listed(limit=9)} == {"b", "c"}


def test_a_snapshot_replaces_the_rows_without_key_of_all_earlier_files(state: State) -> None:
    """The next night's file has another name, and the rows of the last one do not stay open for ever."""
    first, second = start(state), start(state)
    with state.begin() as tx:
        tx.dead_letters.put([keyless("a"), keyless("c")], run_id=first, at=AT)
        tx.dead_letters.replace_dead_letters_without_key("s", [keyless("b")], None, run_id=second, at=AT)
        assert {row["source"] for row in tx.dead_letters.listed(limit=9)} == {"b"}


def test_a_dropped_row_without_key_stays_dropped(state: State) -> None:
    """It can be chosen and dropped as other dead letters, and does not come back with the next file that has it."""
    first, second = start(state), start(state)
    with state.begin() as tx:
        tx.dead_letters.put([keyless("a")], run_id=first, at=AT)
        (found,) = tx.dead_letters.rejected_matching(RecordFilter("s"))
        tx.dead_letters.mark_dropped("s", [found.identity.key_hash])
        tx.dead_letters.replace_dead_letters_without_key("s", [keyless("a")], None, run_id=second, at=AT)
        assert tx.dead_letters.listed(limit=9) == []
        assert len(tx.dead_letters.listed(limit=9, status="dropped")) == 1
