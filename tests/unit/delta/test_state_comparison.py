"""The comparison of a scan with the state, against plain Python."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.hashes import HASHES
from tests.unit.delta.things import Rows, Things, batch, known_of, scanned

from crossdock.delta import row_preparation, state_comparison
from crossdock.delta.fingerprint import HASH, key_hashes
from crossdock.delta.latest_records import LatestRecords
from crossdock.delta.row_preparation import FP, KEY_HASH, SAME, UNIT
from crossdock.delta.state_comparison import KnownKeysInExportOrder
from crossdock.state import Binding, DeadLetter, DeadLetterFacts, RecordIdentity, Scope, State, WaitingRecord
from crossdock.state.sidecar_files.key_index_files import KNOWN_FP
from crossdock.values.raw_rows_and_records import LINE, RawBatch
from crossdock.values.run_states_and_tally import Tally

AT = datetime(2026, 1, 1, tzinfo=UTC)
SCOPE = Scope("platform", "product", "w")
FACTS = st.dictionaries(HASHES, HASHES, max_size=30)


def latest(read: dict[int, int], known: pl.DataFrame | None = None) -> pl.DataFrame:
    frame = pl.DataFrame(list(read.items()), schema={KEY_HASH: HASH, FP: HASH}, orient="row")
    same = (
        pl.Series([False] * frame.height, dtype=pl.Boolean)
        if known is None
        else KnownKeysInExportOrder(known).unchanged_row_mask(frame)
    )
    place = pl.int_range(frame.height, dtype=pl.UInt32, eager=True)
    return frame.with_columns(same.alias(SAME), place.alias(LINE), pl.lit(0, pl.UInt32).alias(UNIT))


def known_as(facts: dict[int, int]) -> pl.DataFrame:
    return pl.DataFrame(list(facts.items()), schema={KEY_HASH: HASH, KNOWN_FP: HASH}, orient="row")


@settings(max_examples=examples(60))
@given(
    same=FACTS,
    changed=FACTS,
    gone=FACTS,
    new=FACTS,
    refused=FACTS,
    aligned=st.booleans(),
    parts=st.sampled_from([2, 500_000]),
)
def test_every_key_is_in_the_right_group(
    same: dict[int, int],
    changed: dict[int, int],
    gone: dict[int, int],
    new: dict[int, int],
    refused: dict[int, int],
    aligned: bool,
    parts: int,
) -> None:
    """Unchanged, changed, new, gone, refused and waiting: in one part or many, recognised by position or by key."""
    known = same | {key: fp ^ 1 for key, fp in changed.items()} | gone
    read = {**same, **changed, **new, **refused}
    dead_letters = [DeadLetterFacts(key, fp, None, "rejected", "whole") for key, fp in refused.items()]
    waits = [WaitingRecord(RecordIdentity("s", "", key, 2, None, "f", 1), [], {}) for key in new]
    known = {key: fp for key, fp in known.items() if key not in refused}
    pairs = known.items() | read.items()
    assume(len({key ^ fp for key, fp in pairs}) == len(pairs))  # a collision, which real hashes have with 2**-128
    frame = known_as(known)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_preparation, "_AT_ONCE", parts)
        found = state_comparison.compare_latest_records_with_state(
            latest(read, frame if aligned else None),
            frame,
            dead_letters=dead_letters,
            waiting=waits,
            unsettled=[],
            snapshot=True,
        )
    alike = {key for key, fp in read.items() if known.get(key) == fp}
    again = set(refused) - alike
    assert set(found.changed[KEY_HASH]) == set(read) - alike - again
    assert set(found.gone) == set(known) - set(read)
    assert (found.unchanged, found.refused) == (len(alike), len(again))
    assert set(found.replaced) == set(new) & set(read)


@pytest.mark.parametrize("grouped", [True, False])
def test_gone_and_waiting_records_are_found_among_recognised_rows(tmp_path: Path, grouped: bool) -> None:
    """Recognition by position changes nothing for a record that waits, or that is gone."""
    stream = Things(group_by=("K",) if grouped else ())
    first, _ = scanned(stream, [batch([{"K": str(n), "V": "a"} for n in range(9)])], tmp_path)
    rows: Rows = [{"K": str(n), "V": "a"} for n in range(9) if n != 4]
    scan, tally = LatestRecords(stream, "w.things", tmp_path), Tally()
    scan.find_latest_of_each_key([batch(rows)], tally, lambda _rows: None, lambda: known_of(first))
    assert scan.latest[SAME].sum() == (0 if grouped else 8)
    hashes = key_hashes(["2", "4"])
    waits = WaitingRecord(RecordIdentity("w.things", "2", hashes["2"], 1, None, "f", 1), [], {})
    found = state_comparison.compare_latest_records_with_state(
        scan.latest, known_of(first), waiting=[waits], unsettled=[], snapshot=True
    )
    assert (found.unchanged, found.changed.height) == (8, 0)
    assert (found.gone.to_list(), found.replaced, found.unmoved) == ([hashes["4"]], [hashes["2"]], [hashes["2"]])


def test_the_dead_letter_of_a_refused_removal_stays(tmp_path: Path) -> None:
    """One of an earlier version needs no correction once the record is deleted; that of the removal itself does."""
    deleted = RawBatch("page", batch([{"K": "", "V": ""}]).load().clear(), deleted=(("a",), ("b",)))
    scan, _ = scanned(Things(yields_deleted=True), [deleted], tmp_path)
    a, b = key_hashes(["a", "b"]).values()
    letters = [DeadLetterFacts(a, None, None, "rejected", "remove"), DeadLetterFacts(b, 2, None, "rejected", "whole")]
    known = known_as({a: 1, b: 1})
    found = state_comparison.compare_latest_records_with_state(
        scan.latest, known, dead_letters=letters, waiting=[], unsettled=[], snapshot=False
    )
    assert (set(found.deleted), found.cured) == ({a, b}, [b])


def test_the_delta_of_a_scan_and_a_state(state: State, tmp_path: Path) -> None:
    """New, changed, unchanged, stale, refused, replaced and gone records are separated, each key once."""
    keys = ["new", "changed", "same", "stale", "refused", "waits"]
    rows: Rows = [{"K": key, "T": "5", "V": "v"} for key in keys]
    scan, _ = scanned(Things(order_by=("T",), uses=("V",)), [batch(rows)], tmp_path)
    hashes = key_hashes([*keys, "gone"])
    fps = dict(scan.latest.select(KEY_HASH, FP).iter_rows())

    def bound(key: str, fp: int, position: str) -> Binding:
        return Binding(hashes[key], key, f"p{key}", fp, position, "whole", {}, None, 1)

    with state.begin() as tx:
        run = tx.runs.start(business_date="2026-01-01", at=AT)
        same = bound("same", fps[hashes["same"]], "9")
        tx.bindings.put(
            SCOPE, [same, bound("changed", 1, "4"), bound("stale", 1, "6"), bound("gone", 1, "1")], run_id=run, at=AT
        )
        waits = WaitingRecord(RecordIdentity("w.things", "waits", hashes["waits"], 1, "4", "f", 1), [], {})
        old = WaitingRecord(RecordIdentity("w.things", "new", hashes["new"], 1, "7", "f", 1), [], {})
        key_hash = hashes["refused"]
        dead_letter = DeadLetter(
            RecordIdentity("w.things", "", key_hash, fps[key_hash], None, "f", 1),
            "plan",
            "rejected",
            None,
            "",
            {},
            None,
        )
        tx.dead_letters.put([dead_letter], run_id=run, at=AT)
        dead_letters = tx.dead_letters.facts_of_all_letters_of_stream("w.things")
    known = state.key_index_frame_of_scope(SCOPE)
    found = state_comparison.compare_latest_records_with_state(
        scan.latest, known, dead_letters=dead_letters, waiting=[waits, old], unsettled=[], snapshot=True
    )
    names = {key_hash: key for key, key_hash in hashes.items()}
    assert Counter(names[key_hash] for key_hash in found.changed[KEY_HASH]) == {"changed": 1, "waits": 1}
    assert [names[key_hash] for key_hash in found.gone] == ["gone"]
    assert [names[key_hash] for key_hash in found.replaced] == ["waits"]
    assert (found.unchanged, found.refused, found.ignored, found.postponed) == (
        1,
        1,
        2,
        0,
    )  # "new" waits in a newer version, "stale" is older
