"""What changed: the winners of a census against what the state knows, in columns."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from crossdock.state import Intent, Scope, Transaction, WaitingRecord
from crossdock.sync import fingerprint
from crossdock.sync.rows import FP, KEY_HASH, POSITION

_KNOWN, _KNOWN_POSITION, _REFUSED, _DOUBT, _WAIT = "_known", "_known_position", "_refused", "_doubt", "_wait"
_DROPPED, _LETTER = "_dropped", "_letter_position"


@dataclass(frozen=True, slots=True)
class Delta:
    """A census sorted by what is to be done.

    Attributes:
        changed: New and changed records, and those that waited; columns as in `Census.winners`.
        cured: Those of *unchanged* of which no newer reading is a dead letter.
        unchanged: Key hashes whose fingerprint is the accepted one, or the one of an operation in doubt.
        refused: Key hashes that came again as they were refused.
        dropped: How many came again as a person gave them up.
        ignored: How many are older than what the state knows.
        gone: Of a snapshot: how many the state knows and the census has not.
        replaced: Key hashes of waiting records that a newer reading displaces.
        blocked: How many differ from an operation of theirs that is in doubt, and must wait for its settlement.
    """

    changed: pl.DataFrame
    cured: list[int]
    unchanged: list[int]
    refused: list[int]
    dropped: int
    ignored: int
    gone: int
    replaced: list[int]
    blocked: int


def compare(
    winners: pl.DataFrame,
    tx: Transaction,
    scope: Scope,
    stream: str,
    *,
    waiting: list[WaitingRecord],
    doubtful: list[Intent],
    snapshot: bool,
) -> Delta:
    """Compare *winners* with the bindings of *scope*, and the dead letters, waits and doubts of *stream*."""
    known = _frame(list(tx.bindings.fingerprints(scope)), _KNOWN, _KNOWN_POSITION)
    letters = tx.refused.fingerprints(stream)
    frame = winners
    for other in (
        known,
        _frame([(key, fp, place) for key, fp, status, place in letters if status == "refused"], _REFUSED, _LETTER),
        _frame([(key, fp, None) for key, fp, status, _ in letters if status == "dropped"], _DROPPED, "____"),
        _frame([(item.key_hash, item.record_fp, None) for item in doubtful], _DOUBT, "__"),
        _frame([(item.key_hash, item.record_fp, item.position or "") for item in waiting], "___", _WAIT),
    ):
        frame = frame.join(other, on=KEY_HASH, how="left", maintain_order="left")
    gone = known.join(winners, on=KEY_HASH, how="anti").height if snapshot else 0
    return _sorted_out(frame, winners.columns, gone=gone)


def _sorted_out(frame: pl.DataFrame, columns: list[str], *, gone: int) -> Delta:
    def flag(condition: pl.Expr) -> pl.Expr:
        return condition.fill_null(value=False)

    fp, position = pl.col(FP), pl.col(POSITION)
    behind_wait = flag(position < pl.col(_WAIT))
    unchanged = flag(fp == pl.col(_KNOWN)) | flag(fp == pl.col(_DOUBT))
    older = flag(position < pl.col(_KNOWN_POSITION)) | flag(position < pl.col(_LETTER))
    stale = (behind_wait | older) & ~unchanged
    refused = flag(fp == pl.col(_REFUSED)) & ~unchanged & ~stale
    dropped = flag(fp == pl.col(_DROPPED)) & ~unchanged & ~stale
    blocked = pl.col(_DOUBT).is_not_null() & ~unchanged & ~stale & ~refused & ~dropped
    return Delta(
        changed=frame.filter(~unchanged & ~stale & ~refused & ~dropped & ~blocked).select(columns),
        cured=frame.filter(unchanged & ~flag(position < pl.col(_LETTER)))[KEY_HASH].to_list(),
        unchanged=frame.filter(unchanged)[KEY_HASH].to_list(),
        refused=frame.filter(refused)[KEY_HASH].to_list(),
        dropped=frame.filter(dropped).height,
        ignored=frame.filter(stale).height,
        gone=gone,
        replaced=frame.filter(pl.col(_WAIT).is_not_null() & ~behind_wait)[KEY_HASH].to_list(),
        blocked=frame.filter(blocked).height,
    )


def _frame(rows: list[tuple[int, int, str | None]], fingerprints: str, positions: str) -> pl.DataFrame:
    schema = {KEY_HASH: fingerprint.HASH, fingerprints: fingerprint.HASH, positions: pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row")
