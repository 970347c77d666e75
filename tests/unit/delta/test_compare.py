"""The comparison of what was read with what is known, for hashes of every size, against plain Python."""

from __future__ import annotations

from collections import Counter

import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.hashes import HASHES

from crossdock.delta import compare, keyed_rows
from crossdock.delta.fingerprint import HASH
from crossdock.delta.key_order import KeyOrder
from crossdock.delta.keyed_rows import FP, KEY_HASH, SAME
from crossdock.delta.scan import UNIT
from crossdock.planning.removals import _keys, _without
from crossdock.records import LINE
from crossdock.state import DeadLetterFacts, RecordIdentity, WaitingRecord
from crossdock.state.sidecar_files.key_index import KNOWN_FP
from crossdock.tally import Term

FACTS = st.dictionaries(HASHES, HASHES, max_size=30)


def latest(read: dict[int, int], known: pl.DataFrame | None = None) -> pl.DataFrame:
    frame = pl.DataFrame(list(read.items()), schema={KEY_HASH: HASH, FP: HASH}, orient="row")
    same = pl.Series([False] * frame.height, dtype=pl.Boolean) if known is None else KeyOrder(known).same(frame)
    place = pl.int_range(frame.height, dtype=pl.UInt32, eager=True)
    return frame.with_columns(same.alias(SAME), place.alias(LINE), pl.lit(0, pl.UInt32).alias(UNIT))


def known_as(facts: dict[int, int]) -> pl.DataFrame:
    return pl.DataFrame(list(facts.items()), schema={KEY_HASH: HASH, KNOWN_FP: HASH}, orient="row")


@settings(max_examples=60)
@given(
    same=FACTS,
    changed=FACTS,
    gone=FACTS,
    new=FACTS,
    refused=FACTS,
    aligned=st.booleans(),
    parts=st.sampled_from([2, 500_000]),
)
def test_every_key_has_its_fate(
    same: dict[int, int],
    changed: dict[int, int],
    gone: dict[int, int],
    new: dict[int, int],
    refused: dict[int, int],
    aligned: bool,
    parts: int,
) -> None:
    """Unchanged, changed, new, gone, refused and waited for: in one part or many, found by place or by key."""
    known = same | {key: fp ^ 1 for key, fp in changed.items()} | gone
    read = {**same, **changed, **new, **refused}
    dead_letters = [DeadLetterFacts(key, fp, None, "rejected", "whole") for key, fp in refused.items()]
    waits = [WaitingRecord(RecordIdentity("s", "", key, 2, None, "f", 1), [], {}) for key in new]
    known = {key: fp for key, fp in known.items() if key not in refused}
    pairs = known.items() | read.items()
    assume(len({key ^ fp for key, fp in pairs}) == len(pairs))  # which real hashes miss once in 2**128
    frame = known_as(known)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keyed_rows, "_AT_ONCE", parts)
        found = compare.compare(
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


@given(keys=st.sets(HASHES, min_size=1), others=st.sets(HASHES))
def test_records_that_are_gone_are_told_apart(keys: set[int], others: set[int]) -> None:
    """What is left out is counted, and the rest is what plain sets say."""
    terms: Counter[Term] = Counter()
    rest = _without(_keys(keys), _keys(others), terms, "ignored")
    assert set(rest) == keys - others
    assert terms["ignored"] == len(keys & others)
