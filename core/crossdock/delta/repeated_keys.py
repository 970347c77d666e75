"""Keys that a source lists several times: how many, the first with their places, and whether their rows contradict."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import polars as pl

from crossdock.delta import fingerprint
from crossdock.delta.row_preparation import DELETED, FP, KEY_HASH, UNIT
from crossdock.delta.second_pass_for_changed_records import KeyedRecord
from crossdock.errors import RefusedError
from crossdock.values.raw_rows_and_records import LINE

KEEP_TOGETHER = (
    "if these are parts of it, let the sender keep its rows together,"
    " or add to 'key' what tells them apart, such as the number of a shipment"
)
EXAMPLES = 5
_PLACES = 3  # of each example


class RepeatedKey(NamedTuple):
    """A key and the places where it is listed: the first places, and the last one that counts."""

    key: str
    places: tuple[str, ...]


class RepeatedKeys(NamedTuple):
    number: int = 0
    examples: tuple[RepeatedKey, ...] = ()


class RepeatedRows:
    """Rows of a scan with the same key. *last* has the row that counts for each key."""

    def __init__(self, last: pl.DataFrame | None = None, listed: pl.DataFrame | None = None) -> None:
        self._number = 0 if last is None else last.height
        self._last = self._listed = pl.DataFrame()
        if last is not None and listed is not None:
            is_row = pl.col(LINE) > 0 if DELETED not in last.columns else ~pl.col(DELETED) & (pl.col(LINE) > 0)
            self._last = last.filter(is_row).head(EXAMPLES)
            self._listed = listed.filter(pl.col(LINE) > 0).join(self._last, on=KEY_HASH, how="semi")

    def repeated_keys(
        self,
        read_records: Callable[[pl.DataFrame], Iterator[KeyedRecord]],
        place_of_row: Callable[[int, int], str],
        *,
        with_examples: bool,
    ) -> RepeatedKeys:
        """Return the number of repeated keys; *with_examples*, also the first keys with their places."""
        if not with_examples or not self._last.height:
            return RepeatedKeys(self._number)
        examples = []
        for each in read_records(self._last):
            rows = self._listed.filter(pl.col(KEY_HASH) == pl.lit(each.identity.key_hash, pl.UInt128))
            places = [place_of_row(*row) for row in rows.sort(UNIT, LINE)[[UNIT, LINE]].rows()]
            kept = places if len(places) <= _PLACES else [*places[: _PLACES - 1], places[-1]]
            examples.append(RepeatedKey(each.identity.key, tuple(kept)))
        return RepeatedKeys(self._number, tuple(examples))


class ReplacedRecords(NamedTuple):
    """How many records were in several answers with different content, and the place where the first came again."""

    number: int
    place: str


def replaced_records(listed: pl.DataFrame, place_of_row: Callable[[int, int], str]) -> ReplacedRecords | None:
    """Return what a list of several answers shows to have changed while it was read: the later answer counts."""
    differing = _differing_rows(listed)
    if not differing.height:
        return None
    _, again = _places_of_first_record(differing, place_of_row)
    return ReplacedRecords(differing[KEY_HASH].n_unique(), again)


def refuse_contradicting_duplicates(
    listed: pl.DataFrame,
    place_of_row: Callable[[int, int], str],
    answer: pl.Expr | None = None,
    *,
    is_declared_in_config: bool,
) -> None:
    """Refuse a list of everything in which two rows of a key differ. Identical rows are accepted.

    If the rows are from several answers, *answer* is the number of a row's own: rows of others may differ.
    """
    differing = _differing_rows(listed, *([] if answer is None else [answer]))
    if differing.height:
        first, second = _places_of_first_record(differing, place_of_row)
        hint = "Ask the sender which one is right, or to keep the rows of a record together"
        if is_declared_in_config:
            hint += "; order_by or duplicates can say which one counts, if one always does"
        raise RefusedError(
            f"duplicate of the record at {first}, with different content",
            where=second,
            hint=f"{hint}.",
            code="records_repeated",
        )


def _differing_rows(listed: pl.DataFrame, *within: pl.Expr) -> pl.DataFrame:
    return listed.filter(pl.col(FP).n_unique().over(KEY_HASH, *within) > 1).sort(UNIT, LINE)


def _places_of_first_record(differing: pl.DataFrame, place_of_row: Callable[[int, int], str]) -> list[str]:
    """Return the first two places of the first record of *differing*."""
    # with its type: polars infers at most 127 bits for a literal
    is_first = pl.col(KEY_HASH) == pl.lit(differing[KEY_HASH][0], fingerprint.HASH)
    return [place_of_row(*row) for row in differing.filter(is_first)[[UNIT, LINE]].rows()[:2]]
