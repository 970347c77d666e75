"""What changed: the winners of a census against what the state knows, in columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from crossdock.state import Intent, WaitingRecord
from crossdock.state.key_index import KNOWN_FP, KNOWN_POSITION
from crossdock.sync import fingerprint
from crossdock.sync.rows import FP, KEY_HASH, POSITION, in_parts

_REFUSED, _DROPPED, _LETTER = "_refused", "_dropped", "_letter_position"
_DOUBT, _WAIT = "_doubt", "_wait"


@dataclass(slots=True)
class Delta:
    """A census sorted by what is to be done.

    Attributes:
        changed: New and changed records, and those that waited; columns as in `Census.winners`.
        gone: Of a snapshot: key hashes of what the state knows and the census has not.
        cured: Key hashes of dead letters whose records are unchanged, where no newer reading is a dead letter.
        replaced: Key hashes of waiting records that a newer reading displaces.
        unmoved: Those of *replaced* whose newer reading needs no delivery.
        unchanged: How many have the accepted fingerprint, or the one of an operation in doubt.
        refused: How many came again as they were refused.
        dropped: How many came again as a person gave them up.
        ignored: How many are older than what the state knows.
        blocked: How many differ from an operation of theirs that is in doubt, and must wait for its settlement.
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


def compare(
    winners: pl.DataFrame,
    known: pl.DataFrame,
    *,
    letters: Sequence[tuple[int, int, str, str | None]] = (),
    waiting: list[WaitingRecord],
    doubtful: list[Intent],
    snapshot: bool,
) -> Delta:
    """Compare *winners* with the *known* bindings of their scope, and with their stream's own unfinished business.

    Args:
        letters: Key hash, record fingerprint, status and position of each dead letter.
        snapshot: What is known and was not read is gone.
    """
    refused = [(key, fp, position) for key, fp, status, position in letters if status == "refused"]
    dropped = [(key, fp, None) for key, fp, status, _ in letters if status == "dropped"]
    beside = [
        _frame(refused, _REFUSED, _LETTER),
        _frame(dropped, _DROPPED, "__"),
        _frame([(item.key_hash, item.record_fp, None) for item in doubtful], _DOUBT, "___"),
        _frame([(item.key_hash, 0, item.position or "") for item in waiting], "____", _WAIT),
    ]
    return _added([_sorted_out(some, same, beside, snapshot=snapshot) for some, same in in_parts(winners, known)])


def _sorted_out(winners: pl.DataFrame, known: pl.DataFrame, beside: Sequence[pl.DataFrame], *, snapshot: bool) -> Delta:
    """The delta of some keys; what is not *beside* is not looked for."""
    frame = winners.join(known, on=KEY_HASH, how="left", maintain_order="left")
    for other in beside:
        frame = frame.join(other, on=KEY_HASH, how="left", maintain_order="left") if other.height else frame

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
    rest = ~pl.any_horizontal(list(names))

    def keys(condition: pl.Expr) -> list[int]:
        return frame.select(KEY_HASH).filter(flags.select(condition).to_series())[KEY_HASH].to_list()

    all_read = frame.height - frame[KNOWN_FP].null_count() == known.height  # both name a key once
    gone = (
        known[[KEY_HASH]].join(winners, on=KEY_HASH, how="anti")
        if snapshot and not all_read
        else known[[KEY_HASH]].clear()
    )
    cured = frame.filter(unchanged & ~behind_letter & pl.col(_REFUSED).is_not_null()) if holds(_REFUSED) else None
    return Delta(
        changed=winners.filter(flags.select(rest).to_series()),
        gone=gone.to_series(),
        cured=[] if cured is None else cured[KEY_HASH].to_list(),
        replaced=keys(pl.col("replaced")) if holds(_WAIT) else [],
        unmoved=keys(pl.col("replaced") & (pl.col("unchanged") | pl.col("refused"))) if holds(_WAIT) else [],
        **{name: int(flags[name].sum()) for name in names},
    )


def _added(parts: list[Delta]) -> Delta:
    whole, *others = parts
    for part in others:
        whole.changed = whole.changed.vstack(part.changed)
        whole.gone = whole.gone.append(part.gone)
        whole.cured += part.cured
        whole.replaced += part.replaced
        whole.unmoved += part.unmoved
        for name in ("unchanged", "refused", "dropped", "ignored", "blocked"):
            setattr(whole, name, getattr(whole, name) + getattr(part, name))
    return whole


def _frame(rows: Sequence[tuple[int, int, str | None]], fingerprints: str, positions: str) -> pl.DataFrame:
    schema = {KEY_HASH: fingerprint.HASH, fingerprints: fingerprint.HASH, positions: pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row")
