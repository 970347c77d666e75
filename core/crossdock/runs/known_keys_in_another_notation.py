"""New records whose keys the state knows in another notation, as after a spreadsheet has saved the export."""

from __future__ import annotations

import re
from collections.abc import Iterator

import polars as pl

from crossdock.config.project.connections import BoundStream
from crossdock.delta import fingerprint
from crossdock.delta.row_preparation import KEY, KEY_HASH, rows_with_given_keys
from crossdock.errors import RefusedError
from crossdock.state import State
from crossdock.values.record_keys import key_parts_of, key_text

_FEWEST, _COMPARED, _MOST_DIGITS = 10, 1_000, 20
_NUMBER = re.compile(r"([0-9]+)(\.0)?")


def refuse_known_keys_in_another_notation(
    bound: BoundStream, state: State, changed: pl.DataFrame, latest: pl.DataFrame
) -> None:
    """Refuse the input if most of its new keys, among some that have *changed*, are known in another notation.

    They would be created a second time. A key that the input has in both notations is that of two records.
    """
    if changed.height < _FEWEST or bound.scope.is_contribution:
        return
    compared = changed.gather_every(changed.height // _COMPARED + 1)
    known = state.key_facts_among(bound.scope, compared[KEY_HASH].to_list())
    new = compared.join(known, on=KEY_HASH, how="anti")
    if new.height < _FEWEST:
        return
    others = {key: set(_keys_in_other_notations(key)) - {key} for key in new[KEY]}
    hashes = fingerprint.key_hashes(sorted(set().union(*others.values())))
    listed = set(rows_with_given_keys(latest, pl.Series(hashes.values(), dtype=fingerprint.HASH))[KEY_HASH])
    known_hashes = set(state.key_facts_among(bound.scope, list(hashes.values()))[KEY_HASH]) - listed
    found = [key for key, variants in others.items() if any(hashes[each] in known_hashes for each in variants)]
    if len(found) < _FEWEST or 2 * len(found) <= new.height:
        return
    raise RefusedError(
        f"{len(found):,} of {new.height:,} new records that were compared have the key of a known one but for zeros at"
        " its beginning, '.0' at its end, or the case of its letters, and would be created again",
        where=bound.name,
        hint="ask the sender for the keys as they were, or bring them back to that form with columns: zfill,"
        " strip_suffix or table",
        code="keys_changed",
    )


def _keys_in_other_notations(key: str) -> Iterator[str]:
    """Yield *key* with one of its parts in each notation that programs change it to."""
    parts = key_parts_of(key)
    for number, part in enumerate(parts):
        for other in _other_notations(part):
            yield key_text([*parts[:number], other, *parts[number + 1 :]])


def _other_notations(text: str) -> Iterator[str]:
    if found := _NUMBER.fullmatch(text):
        digits = found[1].lstrip("0") or "0"
        for length in range(len(digits), _MOST_DIGITS + 1):
            yield digits.zfill(length)
            yield f"{digits.zfill(length)}.0"
    else:
        yield text.upper()
        yield text.lower()
