"""Raw rows -> keyed and filtered rows, in columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote

import polars as pl

from crossdock.connector import Stream
from crossdock.delta import fingerprint
from crossdock.errors import RefusedError
from crossdock.mapping.repairs_and_filters import first_match
from crossdock.records import JSON, LINE

KEY, KEY_HASH, SKIP = "_key", "_key_hash", "_skip"
FP, POSITION, TIE, SAME = "_fp", "_position", "_tie", "_same"
OURS = {KEY, KEY_HASH, SKIP, FP, POSITION, TIE, LINE}
"""Columns that do not come from the source."""
MAX_KEY_BYTES = 1_000
"""Of each part of a key, in UTF-8; twice as many as the platform takes in an externalId."""
_AT_ONCE = 500_000  # keys compared at once: that holds several times what is compared
_PLAIN = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.~-"
"""What percent-encoding leaves alone (RFC 3986, unreserved)."""
_LISTED = 50  # names of columns in a message, and characters of each
_BETWEEN = "\x1f"  # sorts below every printable character


def prepare(stream: Stream[Any], source: str, frame: pl.DataFrame) -> pl.DataFrame:
    """Repair and filter some rows of *source*, and name their records.

    Returns:
        The rows with their text columns repaired, and: `SKIP` (name of the first filter that matches, or null), `KEY`
        (text, null where a part of the key is empty), `KEY_HASH`, `FP`, and with ``order_by`` `POSITION` and `TIE`.

    Raises:
        RefusedError: If a column that the stream needs is not there.
    """
    _require(stream, source, frame.schema)
    text = [name for name in frame.columns if name != LINE]
    frame = _repaired(stream, frame)
    uses = stream.uses if stream.uses is not None else text
    used = [JSON] if JSON in text else sorted({*uses, *stream.key})
    return frame.with_columns(
        *_names(stream, frame),
        first_match(stream.skip).alias(SKIP),
        fingerprint.of_rows(used, stream.version, stream.fingerprint).alias(FP),
        *((_position(stream.order_by).alias(POSITION), _tie(used).alias(TIE)) if stream.order_by else ()),
    )


def named(stream: Stream[Any], frame: pl.DataFrame) -> pl.DataFrame:
    """Rows that were prepared before, with their text columns repaired and their records named: `KEY`, `KEY_HASH`."""
    frame = _repaired(stream, frame)
    return frame.with_columns(_names(stream, frame))


def in_parts(*frames: pl.DataFrame) -> Iterator[tuple[pl.DataFrame, ...]]:
    """*frames* by their `KEY_HASH`, some hundred thousand rows at a time; each key is in one part."""
    parts = 1 << (max(frame.height for frame in frames) // _AT_ONCE).bit_length()
    last_bits = pl.col(KEY_HASH).cast(pl.UInt16, wrap_numerical=True) & (parts - 1)  # no 128 bits on the way
    for number in range(parts):
        yield frames if parts == 1 else tuple(where(frame, last_bits == number) for frame in frames)


def where(frame: pl.DataFrame, condition: pl.Expr) -> pl.DataFrame:
    """The rows of *frame* that meet *condition*, part after part: of many chunks polars would copy the whole first."""
    return pl.concat([frame.clear(), *(part.filter(condition) for part in frame.iter_slices(_AT_ONCE))])


def among(frame: pl.DataFrame, keys: pl.Series) -> pl.DataFrame:
    """The rows of *frame* whose `KEY_HASH` is one of *keys*; few of many."""
    return where(frame, pl.col(KEY_HASH).is_in(keys.implode()))


def _repaired(stream: Stream[Any], frame: pl.DataFrame) -> pl.DataFrame:
    if not stream.columns:
        return frame
    return frame.with_columns(repair.expression(name) for name, repair in stream.columns.items())


def _names(stream: Stream[Any], frame: pl.DataFrame) -> Sequence[pl.Expr]:
    key = _key(frame, stream.key)
    return key.alias(KEY), fingerprint.digest(key, "xxh3_128").alias(KEY_HASH)


def _require(stream: Stream[Any], source: str, schema: pl.Schema) -> None:
    present = [name for name in schema if name != LINE]
    wrong = [f"{name!r} ({schema[name]})" for name in present if schema[name] != pl.String]
    if wrong or schema.get(LINE) != pl.UInt64:
        what = f"holds no text in column {', '.join(wrong)}" if wrong else f"has no column {LINE!r} of UInt64"
        hint = f"a connector gives text columns, and the number of each row as {LINE!r}"
        raise RefusedError(what, where=source, hint=hint)
    needed = {*stream.columns, *stream.key, *(stream.order_by or ()), *(rule.field for rule in stream.skip.values())}
    needed |= set(stream.uses or ())
    missing = sorted(needed - set(present))
    if missing:
        raise RefusedError(
            f"has no column {', '.join(map(repr, missing))}, which stream {stream.name!r} uses",
            where=f"{source}:1",
            # where none is there, the first line is no header, and the cells of a record must not be shown
            hint=f"it has {_listed(present)}" if needed & set(present) else "is its first line the header?",
        )


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _LISTED
    return ", ".join(name[:_LISTED] for name in names[:_LISTED]) + (f" and {more:,} more" if more > 0 else "")


def _key(frame: pl.DataFrame, names: Sequence[str]) -> pl.Expr:
    """The columnar form of `crossdock.records.key_text`; null where a part is null, empty or too long."""
    parts = [pl.col(name) if _is_plain(frame[name]) else pl.lit(_encoded(frame[name])) for name in names]
    filled = [pl.when(_names_something(name)).then(part) for name, part in zip(names, parts, strict=True)]
    return pl.concat_str(filled, separator="|")


def _names_something(name: str) -> pl.Expr:
    return pl.col(name).str.len_bytes().is_between(1, MAX_KEY_BYTES)


def _is_plain(column: pl.Series) -> bool:
    text: str = column.str.join("").item()  # a pattern that looks at each takes five times as long
    return not text.encode().translate(None, _PLAIN)


def _encoded(column: pl.Series) -> pl.Series:
    short = column.filter(column.str.len_bytes() <= MAX_KEY_BYTES)
    odd = short.filter(~short.str.contains(f"^[{_PLAIN.decode()}]*$")).unique().drop_nulls().to_list()
    return column.replace(odd, [quote(value, safe="") for value in odd])


def _tie(columns: Sequence[str]) -> pl.Expr:
    """What decides between rows of one position: their content, so that no order of files or lines matters."""
    return fingerprint.of_rows(columns, "", "xxh3_64")


def _position(order_by: Sequence[str]) -> pl.Expr:
    """What orders the rows of a record. PostgreSQL takes no NUL, so it is told by the character that sorts next."""
    joined = pl.concat_str([pl.col(name).fill_null("") for name in order_by], separator=_BETWEEN)
    return joined.str.replace_all("\0", "\x01", literal=True)
