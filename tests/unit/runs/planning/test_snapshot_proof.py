"""What keeps a snapshot from removing records."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.unit.delta.things import Things, batch
from tests.unit.runs.planning.accounts import bound_accounts

from crossdock.config.project.connections_and_bound_streams import BoundStream
from crossdock.delta.latest_records import LatestRecords
from crossdock.mapping.stream_declaration import GoneLimits
from crossdock.runs.planning.removals import (
    FEWER_ROWS,
    SnapshotCompleteness,
    SnapshotFacts,
    SnapshotProofBlocker,
    fewer_rows_warning,
    find_reason_snapshot_is_no_proof,
    other_keys_warning,
)
from crossdock.state import PastSnapshot, State
from crossdock.values.raw_rows_and_records import Proof, RawBatch
from crossdock.values.run_states_and_tally import Tally

AT = datetime(2026, 1, 1, tzinfo=UTC)
BOUND = bound_accounts()
COUNTED = Proof(lambda: "new", counted=True)


def collected(*proofs: Proof | None) -> SnapshotCompleteness:
    completeness = SnapshotCompleteness()
    batches = [RawBatch("a", pl.DataFrame(), proof=proof) for proof in proofs]
    assert list(completeness.collect_proofs(batches)) == batches
    return completeness


def seen(*proofs: Proof | None) -> tuple[bool, bool, str | None]:
    completeness = collected(*proofs)
    return completeness.has_proved_counts, completeness.may_be_truncated, completeness.content_name()


def test_a_snapshot_is_as_complete_as_its_worst_part() -> None:
    """It is counted if all parts are, cut if any part is, and has a content name if all parts have the same."""
    good, cut = Proof(lambda: "a", counted=True), Proof(lambda: "b", cut=True)
    assert seen() == (False, False, None)
    assert seen(good, good) == (True, False, "a")
    assert seen(good, Proof(lambda: "c", counted=True)) == (True, False, None)
    assert seen(good, Proof(lambda: "a", counted=True)) == (True, False, "a")
    assert seen(good, None) == (False, False, None)
    assert seen(None) == (False, False, None)
    assert seen(cut) == (False, True, "b")
    assert seen(cut, good) == (False, True, None)


def found(
    folder: Path, proof: Proof | None, rows: int = 10, *, keyless: int = 0, bound: BoundStream = BOUND
) -> SnapshotFacts:
    listed = [{"K": f"{number}"} for number in range(rows)] + [{"K": ""}] * keyless
    scan, tally = LatestRecords(Things(), bound.name, folder), Tally()
    batches = [batch(listed)] if listed else []
    scan.find_latest_of_each_key(batches, tally, lambda _rows: None)
    return SnapshotFacts("a.csv", tally.rows_read, tally.rows_rejected, scan.latest.height, collected(proof), [], [])


def reason(
    state: State, facts: SnapshotFacts, past: Sequence[int | None] = (10, 10, 10), *, filtered: int = 0
) -> SnapshotProofBlocker | None:
    """The blocker after *past* snapshots of so many rows, latest first; None for one that counted no records."""
    with state.begin() as tx:
        for age, rows in enumerate(past):
            snapshot = PastSnapshot(rows or 10, rows)
            tx.snapshots.record_snapshot(BOUND.name, f"old-{age}", snapshot, at=AT - timedelta(days=age))
        return find_reason_snapshot_is_no_proof(tx, BOUND, facts, filtered)


def test_a_counted_snapshot_blocks_nothing(state: State, tmp_path: Path) -> None:
    """One earlier snapshot is enough if the source counts its rows."""
    assert reason(state, found(tmp_path, COUNTED, rows=1), [10]) is None


@pytest.mark.parametrize(
    ("rows", "keyless", "filtered", "proof", "past", "message", "is_lasting"),
    [
        pytest.param(0, 0, 0, COUNTED, [10], "the snapshot lists no records", True, id="empty"),
        pytest.param(3, 1, 0, COUNTED, [10], "1 row has no key", True, id="no key"),
        pytest.param(3, 1, 1, COUNTED, [10], "2 rows have no key", True, id="no key, filtered"),
        pytest.param(
            3, 0, 0, Proof(lambda: "old-0"), [10], "identical to one that an earlier run processed", True, id="repeated"
        ),
        pytest.param(3, 0, 0, COUNTED, [], "the first snapshot", False, id="first"),
        pytest.param(3, 0, 0, COUNTED, [None], "the first snapshot", False, id="first with on_gone"),
        pytest.param(
            10,
            0,
            0,
            Proof(lambda: "x", counted=True, unread="a.zip/B.CSV"),
            [10] * 3,
            "the snapshot may have more than was read: a.zip/B.CSV",
            True,
            id="unread",
        ),
        pytest.param(10, 0, 0, Proof(lambda: "x", cut=True), [10] * 3, "no line break", True, id="cut"),
        pytest.param(10, 0, 0, None, [10, 10], "3 earlier ones are needed", False, id="two without a count"),
        pytest.param(10, 0, 0, Proof(lambda: "x"), [10], "(known: 1; identical ones", False, id="one without a count"),
        pytest.param(7, 0, 0, None, [10, 10, 10], "7 rows; the previous ones had 10, 10, 10", True, id="short"),
        pytest.param(10, 0, 0, None, [10, 10, 20], "had 10, 10, 20", True, id="differs from one"),
    ],
)
def test_blockers(
    state: State,
    tmp_path: Path,
    rows: int,
    keyless: int,
    filtered: int,
    proof: Proof | None,
    past: Sequence[int | None],
    message: str,
    is_lasting: bool,
) -> None:
    """Each has a message; some are settled by later snapshots."""
    facts = found(tmp_path, proof, rows, keyless=keyless)
    blocked = reason(state, facts, past, filtered=filtered)
    assert blocked is not None
    assert message in blocked.message
    assert blocked.ends_by_itself is not is_lasting


def test_without_a_count_the_usual_size_is_required(state: State, tmp_path: Path) -> None:
    """A deviation within gone.rows_within_percent is accepted."""
    limits = GoneLimits(rows_within_percent=20)
    assert BOUND.stream.gone.rows_within_percent == limits.rows_within_percent
    assert reason(state, found(tmp_path, None, rows=8)) is None


@example(rows=80, past=[100])
@given(rows=st.integers(0, 3000), past=st.lists(st.integers(0, 3000), max_size=3))
def test_a_short_snapshot_is_named(rows: int, past: list[int]) -> None:
    """It has more than 20 percent and at least 10 rows fewer than each of the previous ones."""
    text = fewer_rows_warning(BOUND, rows, [PastSnapshot(earlier, None) for earlier in past])
    is_short = bool(past) and rows * 5 < min(past) * 4 and min(past) - rows >= FEWER_ROWS
    assert (text is not None) is is_short
    assert text is None or text.startswith(f"the snapshot has {rows:,} rows; the previous ones had {past[0]:,}")


@given(known=st.integers(0, 300), gone=st.integers(0, 300), new=st.integers(0, 300))
def test_a_snapshot_with_other_keys_is_named(known: int, gone: int, new: int) -> None:
    """Both the records that are gone and at least 10 new ones are more than half of the known ones."""
    text = other_keys_warning(known, min(gone, known), new)
    assert (text is not None) is (new >= FEWER_ROWS and new * 2 > known and min(gone, known) * 2 > known)
