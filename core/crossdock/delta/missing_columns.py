"""Errors for columns that a stream uses and a file or page does not have, without showing a cell."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

import polars as pl

from crossdock.records import LINE

_LISTED = 50  # columns in a message, and characters of each column
_COLUMN_NAME = re.compile(r"[^\W\d][\w .#%/()-]{0,63}")
_NUMBER = r"^\s*[-+]?[0-9][0-9.,:/ T-]*$"  # or a date
_FEWEST_ROWS = 3


def hint_for(needed: Collection[str], frame: pl.DataFrame) -> str:
    """Return the hint of an error about missing columns.

    If none of the *needed* columns is there, the first line may be a record, whose cells must not be shown. So its
    cells are only listed if one of them is a needed name in another spelling, or if they differ in form from the rows.
    """
    present = [name for name in frame.columns if name != LINE]
    if set(needed) & set(present) or _is_header(present, needed, frame):
        return f"its columns: {_listed(present)}"
    count = f"{len(present):,} columns" if len(present) != 1 else "1 column"
    return f"check that the first line is a header, and the delimiter; it has {count}, not shown: they may be data"


def _is_header(present: Sequence[str], needed: Collection[str], frame: pl.DataFrame) -> bool:
    if {_plain(name) for name in needed} & {_plain(name) for name in present} - {""}:
        return True
    if not all(_COLUMN_NAME.fullmatch(name) for name in present) or frame.height < _FEWEST_ROWS:
        return False
    return any(frame[name].str.contains(_NUMBER).all() for name in present)  # below a name that is not a number


def _plain(name: str) -> str:
    return re.sub(r"[\W_]", "", name).casefold()


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _LISTED
    return ", ".join(name[:_LISTED] for name in names[:_LISTED]) + (f" and {more:,} more" if more > 0 else "")
