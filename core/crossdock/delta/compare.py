"""What changed: the winners of a census against what the state knows, in columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from crossdock.delta import fingerprint
from crossdock.delta.keyed_rows import FP, KEY_HASH, POSITION, SAME, among, in_parts, where
from crossdock.state import Intent, WaitingRecord
from crossdock.state.tables.key_index import KNOWN_FP, KNOWN_POSITION

_REFUSED, _DROPPED, _LETTER = "_refused", "_dropped", "_letter_position"
_FEW = 10  # times fewer, from which those few are sought first
_DOUBT, _WAIT, _PAIR = "_doubt", "_wait", "_pair"


@dataclass(slots=True)
class Delta:
    """A census sorted by what is to be done.

    Attributes:
        changed: New and changed records, and those that waited; columns as in `Scan.latest`.
        gone: Of a snapshot: key hashes of what the state knows and the census has not.
        cured: Key hashes of dead letters whose records are unchanged, where no newer reading is a dead letter.
        replaced: Key hashes of waiting records that a newer reading displaces.
        unmoved: Those of *replaced* whose newer reading needs no delivery.
        unchanged: How many have the accepted fingerprint, or the one of an operation in doubt.
        refused: How many came again as they were refused.
        dropped: How many came again as a person gave them up.
        ignored: How many are older than what the state knows.
        blocked: How many differ from an operation of theirs that is in doubt, and must wait for its settlement.
        known: How many have a key that the state knows.
    """

    changed: pl.DataFrame
    gone: pl.Series
    cured: list[int]
    replaced: list[int]
    unmoved: list[int]
    unchanged: int = 0
    refused: int = 0
    dropped: int = 0
    ignored: int = 0
    blocked: int = 0
    known: int = 0


def compare(
    latest: pl.DataFrame,
    known: pl.DataFrame,
    *,
    dead_letters: Sequence[tuple[int, int, str, str | None]] = (),
    waiting: list[WaitingRecord],
    unsettled: list[Intent],
    snapshot: bool,
) -> Delta:
    """Compare *latest* with the *known* bindings of their scope, and with their stream's own unfinished business.

    Args:
        dead_letters: Key hash, record fingerprint, status and position of each dead letter.
        snapshot: What is known and was not read is gone.
    """
    refused = [(key, fp, position) for key, fp, status, position in dead_letters if status == "refused"]
    dropped = [(key, fp, None) for key, fp, status, _ in dead_letters if status == "dropped"]
    beside = [
        _frame(refused, _REFUSED, _LETTER),
        _frame(dropped, _DROPPED, "__"),
        _frame([(item.key_hash, item.record_fp, None) for item in unsettled], _DOUBT, "___"),
        _frame([(item.key_hash, 0, item.position or "") for item in waiting], "____", _WAIT),
    ]
    beside = [other for other in beside if other.height]
    sought = _to_look_up(latest, beside)
    asked = among(known, sought[KEY_HASH]) if sought.height < known.height / _FEW else known
    found = _added([_sorted_out(some, theirs, beside) for some, theirs in in_parts(sought, asked)])
    same = latest.height - sought.height
    found.unchanged += same
    found.known += same
    if snapshot and found.known < known.height:  # both name a key once
        parts = in_parts(latest[KEY_HASH].to_frame(), known[KEY_HASH].to_frame())
        found.gone = pl.concat([theirs.join(ours, on=KEY_HASH, how="anti") for ours, theirs in parts])[KEY_HASH]
    return found


def _to_look_up(latest: pl.DataFrame, beside: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Those that are not `SAME`, or have something *beside*; all of them where that would save little but a copy."""
    if int(latest[SAME].sum()) * 2 < latest.height:
        return latest
    others = (among(latest, other[KEY_HASH]) for other in beside)
    return pl.concat([where(latest, ~pl.col(SAME)), *others]).unique(KEY_HASH, keep="any")


def _sorted_out(latest: pl.DataFrame, known: pl.DataFrame, beside: Sequence[pl.DataFrame]) -> Delta:
    """The delta of some keys, but for what is gone; what is not *beside* is not looked for."""
    rest = _but_for_same(latest, known, beside)
    same = latest.height - rest.height
    frame = rest.join(known.join(rest, on=KEY_HASH, how="semi"), on=KEY_HASH, how="left", maintain_order="left")
    for other in beside:
        frame = frame.join(other, on=KEY_HASH, how="left", maintain_order="left")

    def holds(*columns: str) -> bool:
        return all(name in frame.columns for name in columns)

    def flag(condition: pl.Expr, *columns: str) -> pl.Expr:
        return condition.fill_null(value=False) if holds(*columns) else pl.lit(value=False)

    fp, position = pl.col(FP), pl.col(POSITION)
    unchanged = flag(fp == pl.col(KNOWN_FP)) | flag(fp == pl.col(_DOUBT), _DOUBT)
    behind_wait = flag(position < pl.col(_WAIT), _WAIT, POSITION)
    behind_letter = flag(position < pl.col(_LETTER), _LETTER, POSITION)
    older = behind_letter | flag(position < pl.col(KNOWN_POSITION), KNOWN_POSITION, POSITION)
    stale = (behind_wait | older) & ~unchanged
    refused = flag(fp == pl.col(_REFUSED), _REFUSED) & ~unchanged & ~stale
    dropped = flag(fp == pl.col(_DROPPED), _DROPPED) & ~unchanged & ~stale
    in_doubt = pl.col(_DOUBT).is_not_null() if holds(_DOUBT) else pl.lit(value=False)
    blocked = in_doubt & ~unchanged & ~stale & ~refused & ~dropped
    replaced = pl.col(_WAIT).is_not_null() & ~behind_wait if holds(_WAIT) else pl.lit(value=False)
    names = {"unchanged": unchanged, "refused": refused, "dropped": dropped, "ignored": stale, "blocked": blocked}
    flags = frame.select(**names, replaced=replaced)
    to_do = ~pl.any_horizontal(list(names))

    def keys(condition: pl.Expr) -> list[int]:
        return frame.select(KEY_HASH).filter(flags.select(condition).to_series())[KEY_HASH].to_list()

    cured = frame.filter(unchanged & ~behind_letter & pl.col(_REFUSED).is_not_null()) if holds(_REFUSED) else None
    counts = {name: int(flags[name].sum()) for name in names}
    return Delta(
        changed=rest.filter(flags.select(to_do).to_series()),
        gone=known[KEY_HASH].clear(),
        cured=[] if cured is None else cured[KEY_HASH].to_list(),
        replaced=keys(pl.col("replaced")) if holds(_WAIT) else [],
        unmoved=keys(pl.col("replaced") & (pl.col("unchanged") | pl.col("refused"))) if holds(_WAIT) else [],
        known=same + frame.height - frame[KNOWN_FP].null_count(),
        **{**counts, "unchanged": same + counts["unchanged"]},
    )


def _but_for_same(latest: pl.DataFrame, known: pl.DataFrame, beside: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """*latest* without those that are as they are known and have nothing *beside*: mostly nearly all.

    One number stands for key hash and fingerprint, which is the same for two different pairs of them once in 2**128:
    looking it up takes half the time of a join that brings the known fingerprints.
    """
    for other in beside:
        known = known.join(other, on=KEY_HASH, how="anti")
    pairs = known.select((pl.col(KEY_HASH) ^ pl.col(KNOWN_FP).cast(fingerprint.HASH)).alias(_PAIR))
    pair = pl.col(KEY_HASH) ^ pl.col(FP).cast(fingerprint.HASH)
    return latest.join(pairs, left_on=pair, right_on=_PAIR, how="anti", maintain_order="left")


def _added(parts: list[Delta]) -> Delta:
    whole, *others = parts
    for part in others:
        whole.changed = whole.changed.vstack(part.changed)
        whole.cured += part.cured
        whole.replaced += part.replaced
        whole.unmoved += part.unmoved
        for name in ("unchanged", "refused", "dropped", "ignored", "blocked", "known"):
            setattr(whole, name, getattr(whole, name) + getattr(part, name))
    return whole


def _frame(rows: Sequence[tuple[int, int, str | None]], fingerprints: str, positions: str) -> pl.DataFrame:
    schema = {KEY_HASH: fingerprint.HASH, fingerprints: fingerprint.HASH, positions: pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row")
