"""Comparison of the latest record of each key with the state, in columns.

Unchanged rows are recognized by their position first: most files list their records in the same order every time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

import polars as pl
from msgspec import Struct

from crossdock.delta import fingerprint, row_preparation
from crossdock.delta.row_preparation import (
    DELETED,
    FP,
    KEY_HASH,
    POSITION,
    SAME,
    filter_rows_in_slices,
    rows_with_given_keys,
    split_into_parts_by_key,
)
from crossdock.state import DeadLetterFacts, Intent, RecordIdentity, Wait
from crossdock.state.sidecar_files.key_index_files import KNOWN_FP, KNOWN_POSITION
from crossdock.values.run_states_and_tally import Tally

_FEW = 10  # the known keys are filtered first if they outnumber the keys to look up by this factor
_PAIR = "_pair"
# Kinds of open items: each is a column that is true where a key has such an item. The columns with the suffixes _FP and
# _AT have its fingerprint and position.
_REJECTED, _DROPPED, _UNSETTLED, _WAITING = "_rejected", "_dropped", "_unsettled", "_waiting"
_FP, _AT = "_fp", "_at"
_KNOWN = "_known"
_KEYS = ("cured", "replaced", "unmoved", "repeated")  # the lists of a `Delta`
_AHEAD = 100  # rows in which the next common key is searched
_PATIENCE, _EARNED = 100, 1_000  # initial steps, and rows found per additional step: beyond them a join is faster
_IN_ORDER = 10_000  # if fewer than one row in this many is out of order, the key index keeps its order
_SEARCH = 10  # steps that a search of all known keys costs


class Delta(Struct):
    """The records of a scan, by decision. Lists and series have key hashes, and numbers count records.

    Attributes:
        changed: New and changed records; columns as in `LatestRecords.latest`.
        incomparable: New and changed records whose position is written in another way than the stored one.
        deleted: Known records that the scan shows as deleted.
        cured: Dead letters whose record is unchanged again or was deleted, except those of a newer version.
        replaced: Waiting records that a newer version replaces.
        unmoved: Those of *replaced* whose newer version needs no delivery.
        repeated: Idle records that were read again in the same version.
        unchanged: Records with the accepted fingerprint, or that of an unsettled operation.
        refused: Records with the fingerprint of their dead letter.
        ignored: Records older than what the state knows, or deleted and not known.
        postponed: Records with an unsettled operation of another version, which must be settled first.
    """

    changed: pl.DataFrame
    incomparable: pl.DataFrame
    gone: pl.Series
    deleted: pl.Series
    cured: list[int]
    replaced: list[int]
    unmoved: list[int]
    repeated: list[int]
    unchanged: int = 0
    refused: int = 0
    dropped: int = 0
    ignored: int = 0
    postponed: int = 0
    known: int = 0

    def count_needing_no_decision(self, tally: Tally) -> None:
        """Count the records that need no decision, and the waiting ones that are replaced."""
        tally.count("unchanged", self.unchanged)
        tally.count("rejected", self.refused)
        tally.count("dropped", self.dropped)
        tally.count("ignored", self.ignored)
        tally.count("replaced", len(self.replaced) + len(self.repeated))
        tally.count("carried_on", self.postponed)


def compare_latest_records_with_state(
    latest: pl.DataFrame,
    known: pl.DataFrame,
    *,
    dead_letters: Sequence[DeadLetterFacts] = (),
    waiting: Sequence[Wait],
    idle: Collection[Wait] = (),
    unsettled: Sequence[Intent],
    snapshot: bool,
) -> Delta:
    """Compare *latest* with the *known* bindings and open items. *idle* records are decided only in a newer version."""
    open_items = [each for each in _open_items(dead_letters, waiting, idle, unsettled) if each.height]
    sought = _latest_records_to_compare(latest, open_items)
    candidates = rows_with_given_keys(known, sought[KEY_HASH]) if sought.height < known.height / _FEW else known
    found = _merge_parts(
        [
            _compare_part_of_keys(ours, theirs, open_items)
            for ours, theirs in split_into_parts_by_key(sought, candidates)
        ]
    )
    same = latest.height - sought.height
    found.unchanged += same
    found.known += same
    if snapshot and found.known < known.height:  # keys are unique in both
        found.gone = known_keys_missing_in_list(known, latest)
    if len(found.deleted):  # the dead letter of its own removal stays
        removals = {each.key_hash for each in dead_letters if each.step == "remove"} & set(found.deleted.to_list())
        found.cured = [key for key in found.cured if key not in removals]
    return found


def known_keys_missing_in_list(known: pl.DataFrame, listed: pl.DataFrame) -> pl.Series:
    parts = split_into_parts_by_key(listed.select(KEY_HASH), known.select(KEY_HASH))
    return pl.concat([theirs.join(ours, on=KEY_HASH, how="anti") for ours, theirs in parts])[KEY_HASH]


def _open_items(
    dead_letters: Sequence[DeadLetterFacts],
    waiting: Sequence[Wait],
    idle: Collection[Wait],
    unsettled: Sequence[Intent],
) -> Iterator[pl.DataFrame]:
    rejected = [each for each in dead_letters if each.status == "rejected"]
    yield _open_item_frame(_REJECTED, ((each.key_hash, each.fingerprint, each.position) for each in rejected))
    dropped = [each for each in dead_letters if each.status == "dropped"]
    yield _open_item_frame(_DROPPED, ((each.key_hash, each.fingerprint, None) for each in dropped))
    sent = ((each.identity, each.identity.fingerprint if each.step == "whole" else None) for each in unsettled)
    yield _open_item_frame(_UNSETTLED, ((identity.key_hash, fingerprint, None) for identity, fingerprint in sent))
    versions: list[tuple[RecordIdentity, int | None]] = [(each.identity, None) for each in waiting]
    versions += [(each.identity, each.identity.fingerprint) for each in idle]
    yield _open_item_frame(_WAITING, ((each.key_hash, version, each.position or "") for each, version in versions))


def _open_item_frame(kind: str, rows: Iterable[tuple[int, int | None, str | None]]) -> pl.DataFrame:
    schema = {KEY_HASH: fingerprint.HASH, kind + _FP: fingerprint.HASH, kind + _AT: pl.String}
    return pl.DataFrame(list(rows), schema=schema, orient="row").with_columns(pl.lit(value=True).alias(kind))


def _latest_records_to_compare(latest: pl.DataFrame, open_items: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Return the records that are not `SAME` or have an open item; all records if those are many, to save a copy."""
    if int(latest[SAME].sum()) * 2 < latest.height:
        return latest
    others = (rows_with_given_keys(latest, other[KEY_HASH]) for other in open_items)
    return pl.concat([filter_rows_in_slices(latest, ~pl.col(SAME)), *others]).unique(KEY_HASH, keep="any")


def _compare_part_of_keys(latest: pl.DataFrame, known: pl.DataFrame, open_items: Sequence[pl.DataFrame]) -> Delta:
    rest = _without_unchanged(latest, known, open_items)
    same = latest.height - rest.height
    theirs = known.join(rest, on=KEY_HASH, how="semi")
    frame = rest.join(
        theirs.with_columns(pl.lit(value=True).alias(_KNOWN)), on=KEY_HASH, how="left", maintain_order="left"
    )
    for other in open_items:
        frame = frame.join(other, on=KEY_HASH, how="left", maintain_order="left")

    def flag(condition: pl.Expr, *columns: str) -> pl.Expr:
        present = all(name in frame.columns for name in columns)
        return condition.fill_null(value=False) if present else pl.lit(value=False)

    def same_as(kind: str) -> pl.Expr:
        return flag(pl.col(FP) == pl.col(kind + _FP), kind)

    def older_than(position: str) -> pl.Expr:
        older = (pl.col(POSITION) < pl.col(position)) & row_preparation.comparable_positions_expression(
            POSITION, position
        )
        return flag(older, position, POSITION)

    def in_another_notation(position: str) -> pl.Expr:
        differs = row_preparation.differing_notations_expression(
            POSITION, position
        ) & row_preparation.comparable_positions_expression(POSITION, position)
        return flag(differs, position, POSITION)

    unchanged = flag(pl.col(FP) == pl.col(KNOWN_FP)) | same_as(_UNSETTLED)
    older_than_waiting, older_than_rejected = older_than(_WAITING + _AT), older_than(_REJECTED + _AT)
    stale = (older_than_waiting | older_than_rejected | older_than(KNOWN_POSITION)) & ~unchanged
    refused = same_as(_REJECTED) & ~unchanged & ~stale
    dropped = same_as(_DROPPED) & ~unchanged & ~stale
    postponed = flag(pl.col(_UNSETTLED), _UNSETTLED) & ~unchanged & ~stale & ~refused & ~dropped
    gone = flag(pl.col(DELETED), DELETED) & ~stale & ~postponed
    at = pl.col(POSITION).fill_null("") if POSITION in frame.columns else pl.lit("")
    repeated = same_as(_WAITING) & flag(at == pl.col(_WAITING + _AT), _WAITING) & ~unchanged & ~stale & ~gone
    repeated &= ~refused & ~dropped & ~postponed
    ignored = stale | (gone & ~flag(pl.col(_KNOWN), _KNOWN))
    counted = {
        "unchanged": unchanged,
        "refused": refused,
        "dropped": dropped,
        "ignored": ignored,
        "postponed": postponed,
    }
    flags = frame.select(
        **counted,
        replaced=flag(pl.col(_WAITING), _WAITING) & ~older_than_waiting & ~repeated,
        repeated=repeated,
        cured=flag(pl.col(_REJECTED), _REJECTED) & (unchanged | gone) & ~older_than_rejected,
        gone=gone,
        deleted=gone & ~ignored,
    )

    def keys(condition: pl.Expr) -> list[int]:
        return frame[KEY_HASH].filter(flags.select(condition).to_series()).to_list()

    stored = (KNOWN_POSITION, _WAITING + _AT, _REJECTED + _AT)
    mixed = ~unchanged & pl.any_horizontal([in_another_notation(position) for position in stored])
    counts = {name: int(flags[name].sum()) for name in counted}
    return Delta(
        changed=rest.filter(flags.select(~pl.any_horizontal([*counted, "deleted", "repeated"])).to_series()),
        incomparable=rest.filter(frame.select(mixed).to_series()),
        gone=known[KEY_HASH].clear(),
        deleted=frame[KEY_HASH].filter(flags["deleted"]),
        cured=keys(pl.col("cured")),
        replaced=keys(pl.col("replaced")),
        unmoved=keys(pl.col("replaced") & (pl.col("unchanged") | pl.col("refused") | pl.col("gone"))),
        repeated=keys(pl.col("repeated")),
        known=same + theirs.height,
        **{**counts, "unchanged": same + counts["unchanged"]},
    )


def _without_unchanged(latest: pl.DataFrame, known: pl.DataFrame, open_items: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Remove unchanged records without an open item, which are usually almost all.

    Key hash XOR fingerprint stands for both; two pairs collide with a probability of 2**-128. Its anti-join takes half
    the time of a join that adds the known fingerprints.
    """
    for other in open_items:
        known = known.join(other, on=KEY_HASH, how="anti")
    pairs = known.select((pl.col(KEY_HASH) ^ pl.col(KNOWN_FP).cast(fingerprint.HASH)).alias(_PAIR))
    pair = pl.col(KEY_HASH) ^ pl.col(FP).cast(fingerprint.HASH)
    return latest.join(pairs, left_on=pair, right_on=_PAIR, how="anti", maintain_order="left")


def _merge_parts(parts: list[Delta]) -> Delta:
    whole, *others = parts
    for part in others:
        whole.changed = whole.changed.vstack(part.changed)
        whole.deleted = pl.concat([whole.deleted, part.deleted])
        whole.incomparable = whole.incomparable.vstack(part.incomparable)
        for name in (*_KEYS, "unchanged", "refused", "dropped", "ignored", "postponed", "known"):
            setattr(whole, name, getattr(whole, name) + getattr(part, name))
    return whole


class KnownKeysInExportOrder:
    """Walks through the known keys while rows are read, preferably in the order of an earlier snapshot.

    `known` is None once too many rows are out of order, to release its memory. `steps` is roughly how many were. `once`
    is false if a known key was matched twice.
    """

    def __init__(self, known: pl.DataFrame) -> None:
        self.known: pl.DataFrame | None = known
        self._position = self._found = 0
        self.steps, self.once = 0, True

    def unchanged_row_mask(self, rows: pl.DataFrame) -> pl.Series:
        """Return true for each row that is known to be unchanged. False is not proof of a change."""
        rows = rows.select(KEY_HASH, FP)
        found, done = [pl.Series(dtype=pl.Boolean)], 0
        while self.known is not None and done < rows.height:
            ours, theirs = rows.slice(done), self.known.slice(self._position)
            length = _number_of_equal_first_keys(ours, theirs)
            found.append(ours[FP].head(length).eq_missing(theirs[KNOWN_FP].head(length)))
            done += length
            self._position += length
            self._found += length
            if done < rows.height:
                found.append(_false_series(self._skip_to_next_known_key(rows.slice(done), self.known[KEY_HASH])))
                done += len(found[-1])
            if self.steps > _PATIENCE + self._found // _EARNED:
                self.known = None
        found.append(_false_series(rows.height - done))
        return pl.concat(found)

    def keys_if_reordered(self, keys: pl.Series, known_count: int) -> pl.Series | None:
        """Return *keys* if too many of *known_count* are out of order; None otherwise, and after a first load."""
        new = len(keys) - known_count
        return None if new > known_count or (self.steps + new) * _IN_ORDER <= len(keys) else keys

    def _skip_to_next_known_key(self, rows: pl.DataFrame, known: pl.Series) -> int:
        """Move to the first of *rows* that is a known key. Return how many rows precede it."""
        keys = rows[KEY_HASH].head(_AHEAD).to_list()
        near = known.slice(self._position, _AHEAD).to_list()
        offsets = {key: offset for offset, key in enumerate(near)}
        self.steps += 1
        for number, key in enumerate(keys):
            if key in offsets:
                self._position += offsets[key]
                return number
        self.steps += _SEARCH
        matches = known == rows[KEY_HASH].head(1)
        if not matches.any():
            return len(keys)
        position = matches.arg_max() or 0
        self.once = self.once and position >= self._position
        self._position = position
        return 0


def _number_of_equal_first_keys(ours: pl.DataFrame, theirs: pl.DataFrame) -> int:
    length = min(ours.height, theirs.height)
    equal = ours[KEY_HASH].head(length) == theirs[KEY_HASH].head(length)
    return length if equal.all() else (~equal).arg_max() or 0


def _false_series(length: int) -> pl.Series:
    return pl.Series([False]).new_from_index(0, length)
