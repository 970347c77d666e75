"""Preparation of raw rows in columns: repairs, filters, keys, fingerprints and positions, which say what is newer.

Rows without a key are dead letters. Times and numbers whose order as text is not their own are refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, NoReturn
from urllib.parse import quote

import polars as pl

from crossdock.connector import Stream
from crossdock.delta import fingerprint
from crossdock.errors import RecordError, RefusedError
from crossdock.mapping.external_ids import NOT_OURS, Ours
from crossdock.mapping.row_order_and_cursors import (
    KIND_LENGTH,
    OrderBy,
    as_order_by_objects,
    position_prefix_from_order_hash,
)
from crossdock.mapping.stream_declaration import Repair, name_of_first_matching_filter
from crossdock.state import DeadLetter, RecordIdentity
from crossdock.values.exact_json import INVALID_VALUE, REPLACED_VALUE
from crossdock.values.raw_rows_and_records import (
    ELEMENT,
    JSON,
    LINE,
    REFUSED,
    Record,
    cells_of_column,
    column_expression_by_exact_name,
    column_expressions_by_exact_names,
    internal_column_name,
    is_internal_column,
    letters_of_column_name,
    with_path_columns,
)
from crossdock.values.record_keys import MAX_KEY_BYTES

_SEPARATOR = "\x1f"  # sorts before every printable character
_ZONE = "(?:Z|[+-][0-9]{2}:?[0-9]{2})"
_CLOCK = "[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)?"
_TIME = f"^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}([T ]){_CLOCK}({_ZONE})$"
_USUAL = (
    "^(?<day>(?:19|20)[0-9]{2}-[0-9]{2}-[0-9]{2})[T ](?<clock>[0-9]{2}:[0-9]{2}:[0-5][0-9])"
    "(?:[.,](?<fraction>[0-9]{1,9}))?(?:Z|(?<sign>[+-])(?<hours>[01][0-9]):?(?<minutes>[0-5][0-9]))$"
)
_PREFIX_AND_NUMBER = r"([^0-9\x00-\x1f]{0,8})(0*[1-9][0-9]*)(?:[.,][0-9]+)?"  # zero comes first as text, too
"""A number, also behind letters or with decimals: R10, 10.5. Its groups are what is before it, and its whole digits."""
_MONTH = (
    "(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:t(?:ember)?)?|oct(?:ober)?"
    "|nov(?:ember)?|dec(?:ember)?)"
)
_UNSORTABLE = "|".join(
    (
        "^[0-9]{1,2}[./-][0-9]{1,2}[./-][0-9]{4}(?:[^0-9]|$)",  # 30.11.2026, 11/30/2026
        f"(?i)^(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,? +)?(?:[0-9]{{1,2}}[-./ ]*)?{_MONTH}[-./, ]+[0-9]",
        r"(?i)[0-9]:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)? ?[ap]\.?m\.?$",  # 4:00 PM
        "^[0-9]{4}[./-](?:[0-9][./-]|[0-9]{2}[./-][0-9](?:[^0-9]|$))",  # 2026-9-1
        "^[0-9]{4}[./-][0-9]{2}[./-][0-9]{2}[T ]+[0-9]:",  # 2026-11-30 9:05
    )
)
"""Times that do not sort as text, whatever the others are."""
_HINT = (
    "declare what the column holds: order_by: [{column: COLUMN, as: instant}], with format and timezone if it is not in"
    " ISO 8601, or as: integer or decimal; columns: {COLUMN: {strip_prefix: R}} removes what precedes a number"
)


def sortable_text_of_rows(columns: Sequence[OrderBy], frame: pl.DataFrame) -> pl.Expr:
    """Compute the text that orders rows; null if a cell does not convert. NUL is replaced for PostgreSQL."""
    parts = [sortable_text_of_column(item, frame) for item in columns]
    joined = pl.concat_str(
        [pl.lit(position_prefix_from_order_hash(columns)) + parts[0], *parts[1:]], separator=_SEPARATOR
    )
    return joined.str.replace_all("\0", "\x01", literal=True)


def sortable_text_of_column(item: OrderBy, frame: pl.DataFrame) -> pl.Expr:
    """Compute the text that orders rows by one column, which is comparable only with others of that column."""
    column = cells_of_column(frame, item.column)
    if item.as_ == "text":
        return column_expression_by_exact_name(item.column).fill_null("")
    usual = (
        _instants_in_usual_notation(column) if item.as_ == "instant" and item.format is None else [None] * len(column)
    )
    cells = zip(usual, column.to_list(), strict=True)
    return pl.lit(pl.Series([found or _position_or_none(item, cell) for found, cell in cells], dtype=pl.String))


def _instants_in_usual_notation(column: pl.Series) -> list[str | None]:
    """Convert usual notations of instants as `OrderBy.position` does, in fast columns; None for other text."""
    parts = column.str.extract_groups(_USUAL).struct.unnest()
    local = (parts["day"] + " " + parts["clock"]).str.to_datetime("%Y-%m-%d %H:%M:%S", strict=False)
    minutes = parts["hours"].cast(pl.Int64) * 60 + parts["minutes"].cast(pl.Int64)
    signed = pl.select(pl.when(parts["sign"] == "-").then(-minutes).otherwise(minutes)).to_series().fill_null(0)
    utc = local - (signed * 60_000_000).cast(pl.Duration("us"))
    fraction = parts["fraction"].fill_null("").str.pad_end(9, "0")
    found: list[str | None] = (utc.dt.strftime("%Y-%m-%dT%H:%M:%S") + "." + fraction + "Z").to_list()
    return found


def _position_or_none(item: OrderBy, cell: str | None) -> str | None:
    try:
        return item.position({item.column: cell})
    except RecordError:
        return None


def comparable_positions_expression(one: str, other: str) -> pl.Expr:
    """Return whether two positions were made by the same ``order_by``. Those of text always are."""
    kinds = (pl.col(name).str.extract(f"^(\x1e[0-9a-f]{{{KIND_LENGTH}}})").fill_null("") for name in (one, other))
    return next(kinds) == next(kinds)


def differing_notations_expression(one: str, other: str) -> pl.Expr:
    """Return whether two positions have times with different UTC offsets, or begin with numbers of different length."""

    def zones(name: str) -> pl.Expr:
        times = pl.col(name).str.extract_all(_CLOCK + _ZONE)
        return times.list.eval(pl.element().str.extract(f"({_ZONE})$")).list.join(" ")

    def number(name: str, group: int) -> pl.Expr:
        kind = f"(?:\x1e[0-9a-f]{{{KIND_LENGTH}}}{_SEPARATOR})?"
        return pl.col(name).str.extract(f"^{kind}{_PREFIX_AND_NUMBER}(?:{_SEPARATOR}|$)", group)

    differing_zones = (zones(one) != zones(other)) & (zones(one) != "") & (zones(other) != "")
    differing_lengths = number(one, 2).str.len_bytes() != number(other, 2).str.len_bytes()
    is_alike = number(one, 1) == number(other, 1)
    return differing_zones | (is_alike & differing_lengths).fill_null(value=False)


def notation_differs_from_stored_error(where: str) -> RefusedError:
    message = "order_by compares text, which has another UTC offset or number of digits than the one of the state"
    return RefusedError(message, where=where, hint=_HINT, code="order_incomparable")


class NotationConsistencyCheck:
    """Checks that the times, and the numbers, in each column that is compared as text have one notation in all input of
    a run.
    """

    def __init__(self, columns: Sequence[OrderBy]) -> None:
        self._columns = [item.column for item in columns if item.as_ == "text"]
        self._first: dict[tuple[str, str, str], tuple[str, str]] = {}  # by column, kind and text before it

    def check(self, source: str, frame: pl.DataFrame) -> None:
        for column in self._columns:
            text = column_expression_by_exact_name(column)
            for line in frame.filter(text.str.contains(_UNSORTABLE))[LINE].head(1):
                message = f"column {column!r} has a time that does not sort as text"
                self._raise_error(message, f"{source}:{line}")
            self._raise_if_notations_differ(
                "times", column, source, frame.filter(text.str.contains(_TIME)), _time_notation(text)
            )
            numbers = frame.filter(text.str.contains(f"^{_PREFIX_AND_NUMBER}$"))
            written = pl.concat_str(
                text.str.extract(f"^{_PREFIX_AND_NUMBER}$", 1),
                text.str.extract(f"^{_PREFIX_AND_NUMBER}$", 2).str.replace_all("[0-9]", "0"),
            )
            self._raise_if_notations_differ("numbers", column, source, numbers, written)

    def _raise_if_notations_differ(
        self, kind: str, column: str, source: str, found: pl.DataFrame, notation: pl.Expr
    ) -> None:
        notations = found.select(notation.alias(column), LINE)
        for written, line in notations.unique(
            column_expressions_by_exact_names([column]), keep="first", maintain_order=True
        ).iter_rows():
            before = written.rstrip("0") if kind == "numbers" else ""  # only alike numbers are compared as such
            first, place = self._first.setdefault((column, kind, before), (written, f"{source}:{line}"))
            if first != written:
                message = f"column {column!r} has {kind} written as {written} and, at {place}, as {first}"
                self._raise_error(message, f"{source}:{line}")

    @staticmethod
    def _raise_error(message: str, where: str) -> NoReturn:
        message = f"{message}, and order_by compares text"
        raise RefusedError(message, where=where, hint=_HINT, code="order_incomparable")


def _time_notation(text: pl.Expr) -> pl.Expr:
    """Return the notation of a time. With an offset, the number of its digits does not matter; before ``Z`` it does."""
    with_offset = text.str.replace(_TIME, "0000-00-00${1}00:00:00${2}")
    return pl.when(text.str.ends_with("Z")).then(text.str.replace_all("[0-9]", "0")).otherwise(with_offset)


KEY, KEY_HASH, SKIP = internal_column_name("key"), internal_column_name("key_hash"), internal_column_name("skip")
FP, POSITION, SAME, DELETED = (
    internal_column_name("fp"),
    internal_column_name("position"),
    internal_column_name("same"),
    internal_column_name("deleted"),
)
UNIT, ROWS, _OURS = internal_column_name("unit"), internal_column_name("rows"), internal_column_name("ours")
BEFORE = internal_column_name("before:")
"""The prefix of columns with the cells before repairs."""
_TRIM = Repair(strip="both")
_AT_ONCE = 500_000  # keys per comparison, which needs several times their memory
_UNRESERVED = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.~-"  # RFC 3986, 2.3
_LISTED = 50  # columns in a message, and characters of each column
_COLUMN_NAME = re.compile(r"[^\W\d][\w .#%/()-]{0,63}")
_NUMBER = r"^\s*[-+]?[0-9][0-9.,:/ T-]*$"  # or a date
_FEWEST_ROWS = 3
MAX_HELD_BYTES = 32 << 20  # of these rows, until they are stored; about 16,000 rows of 12 columns
_DEAD_LETTER_BYTES, _CELL_BYTES = 1_000, 64  # of each dead letter and each of its cells, besides the text


def add_key_filter_and_fingerprint_columns(
    stream: Stream[Any], source: str, frame: pl.DataFrame, report_trimmed_count: Callable[[int], object] = int
) -> pl.DataFrame:
    """Repair and filter rows of *source*, and compute their keys.

    The result has `SKIP` (the name of the first matching filter, or null), `KEY` (text, null if a part of the key is
    empty or too long), `KEY_HASH`, `FP`, with ``order_by`` `POSITION` (null if a cell does not convert, or the row is
    incomplete), and with ``deleted`` `DELETED`.
    """
    _raise_unless_text_columns_and_line_numbers(source, frame)
    frame = _add_path_columns_or_raise_if_missing(stream, source, frame)
    text = _columns_of_source(frame)
    frame = _with_keys_from_external_ids(stream.ours, frame)
    (frame, plain), order_by = (
        _repair_and_find_unreserved_key_columns(stream, frame, report_trimmed_count),
        as_order_by_objects(stream.order_by),
    )
    everything = [JSON] if JSON in text else sorted(text)
    used = everything if stream.uses is None else sorted({*stream.uses, *stream.key})
    incomplete = pl.lit(value=False) if stream.incomplete is None else stream.incomplete.expression()
    unfiltered = incomplete | _has_replaced_value(stream, frame)
    prepared = frame.with_columns(  # in one call, which polars computes in parallel
        *_key_and_hash_columns(stream, frame, plain),
        _matching_filter_name(stream, unfiltered).alias(SKIP),
        fingerprint.row_fingerprints(used, stream.version, stream.fingerprint).alias(FP),
        *((_position_unless_incomplete(order_by, frame, incomplete),) if order_by else ()),
        *(((stream.deleted.expression() & ~unfiltered).alias(DELETED),) if stream.deleted is not None else ()),
    )
    return _clear_keys_of_refused_rows(prepared) if REFUSED in prepared.columns else prepared


def _clear_keys_of_refused_rows(prepared: pl.DataFrame) -> pl.DataFrame:
    """Let rows that stand for a refused part have no key, whatever filters and repairs make of their empty cells."""
    is_refused = pl.col(REFUSED).fill_null("") != ""
    emptied = [pl.when(~is_refused).then(pl.col(name)).alias(name) for name in (KEY, KEY_HASH, SKIP)]
    kept = [(pl.col(DELETED) & ~is_refused).alias(DELETED)] if DELETED in prepared.columns else []
    return prepared.with_columns(*emptied, *kept)


def names_of_skip_filters(stream: Stream[Any]) -> Sequence[str]:
    """Return the names under which rows of *stream* are left out."""
    return [*stream.skip, *([NOT_OURS] if stream.ours else [])]


def _has_replaced_value(stream: Stream[Any], frame: pl.DataFrame) -> pl.Expr:
    """Return which rows have a value that is no exact JSON: a filter would test what takes its place."""
    if JSON not in frame.columns or not (stream.skip or stream.deleted):
        return pl.lit(value=False)
    return pl.col(JSON).str.contains(REPLACED_VALUE, literal=True).fill_null(value=False)


def _matching_filter_name(stream: Stream[Any], unfiltered: pl.Expr) -> pl.Expr:
    left_out = pl.when(~unfiltered).then(name_of_first_matching_filter(stream.skip))
    return pl.when(pl.col(_OURS).is_null()).then(pl.lit(NOT_OURS)).otherwise(left_out) if stream.ours else left_out


def _with_keys_from_external_ids(ours: Ours | None, frame: pl.DataFrame) -> pl.DataFrame:
    """Add the keys in the external ids, which nothing has repaired yet."""
    return frame if ours is None else frame.with_columns(ours.keys_in(cells_of_column(frame, ours.member)).alias(_OURS))


def _position_unless_incomplete(order_by: Sequence[OrderBy], frame: pl.DataFrame, incomplete: pl.Expr) -> pl.Expr:
    return pl.when(~incomplete).then(sortable_text_of_rows(order_by, frame)).alias(POSITION)


def repair_and_add_key_columns(stream: Stream[Any], frame: pl.DataFrame) -> pl.DataFrame:
    frame, plain = _repair_and_find_unreserved_key_columns(
        stream, _with_keys_from_external_ids(stream.own_keys, with_path_columns(frame, stream.used_columns))
    )
    return frame.with_columns(_key_and_hash_columns(stream, frame, plain))


def compute_keys(stream: Stream[Any], source: str, frame: pl.DataFrame) -> pl.DataFrame:
    """Compute `KEY` and `KEY_HASH` of rows without other columns; null for records of others."""
    frame = with_path_columns(frame, stream.key)
    if missing := sorted(set(stream.key) - set(frame.columns)):
        raise RefusedError(
            f"missing column {', '.join(map(repr, missing))}, a part of the key", where=source, code="column_missing"
        )
    repaired, plain = _repair_and_find_unreserved_key_columns(
        stream, _with_keys_from_external_ids(stream.own_keys, frame)
    )
    return repaired.select(_key_and_hash_columns(stream, repaired, plain))


def is_column_added_by_engine(column: str) -> bool:
    """Return whether a column of prepared rows does not come from their source."""
    return column == LINE or is_internal_column(column)


def _columns_of_source(frame: pl.DataFrame) -> list[str]:
    return [name for name in frame.columns if name != ELEMENT and not is_column_added_by_engine(name)]


def split_into_parts_by_key(*frames: pl.DataFrame) -> Iterator[tuple[pl.DataFrame, ...]]:
    """Split *frames* by `KEY_HASH` into parts of at most some hundred thousand rows. Each key is in one part."""
    parts = 1 << (max(frame.height for frame in frames) // _AT_ONCE).bit_length()
    last_bits = pl.col(KEY_HASH).cast(pl.UInt16, wrap_numerical=True) & (parts - 1)  # without 128-bit intermediates
    for number in range(parts):
        yield frames if parts == 1 else tuple(filter_rows_in_slices(frame, last_bits == number) for frame in frames)


def filter_rows_in_slices(frame: pl.DataFrame, condition: pl.Expr) -> pl.DataFrame:
    """Filter by slices, because polars would first copy a frame of many chunks."""
    return pl.concat([frame.clear(), *(part.filter(condition) for part in frame.iter_slices(_AT_ONCE))])


def rows_with_given_keys(frame: pl.DataFrame, keys: pl.Series) -> pl.DataFrame:
    return filter_rows_in_slices(frame, pl.col(KEY_HASH).is_in(keys.implode()))


def _repair_and_find_unreserved_key_columns(
    stream: Stream[Any], frame: pl.DataFrame, trimmed_rows: Callable[[int], object] = int
) -> tuple[pl.DataFrame, Collection[str]]:
    """Repair the texts of *frame*. Also return the columns of the key with only unreserved characters."""
    repairs = {name: repair for name, repair in stream.columns.items() if name in frame.columns}
    if repairs:
        before = (column_expression_by_exact_name(name).alias(f"{BEFORE}{name}") for name in repairs)
        frame = frame.with_columns(*before, *(repair.expression(name) for name, repair in repairs.items()))
    plain = [name for name in stream.key if _has_only_unreserved_characters(cells_of_column(frame, name))]
    odd = [name for name in stream.key if name not in plain] if stream.trim_keys and not stream.own_keys else []
    if odd:
        untrimmed = frame[odd]
        frame = frame.with_columns(_TRIM.expression(name) for name in odd)
        differing = [untrimmed[name] != frame[name] for name in odd]
        trimmed_rows(int(pl.select(pl.any_horizontal(differing).sum()).item()))
    return frame, plain


def _key_and_hash_columns(stream: Stream[Any], frame: pl.DataFrame, plain: Collection[str]) -> list[pl.Expr]:
    key = pl.col(_OURS) if stream.own_keys else _key_text_expression(frame, stream.key, plain)
    if stream.earlier_keys:
        key = key.replace(stream.earlier_keys)
    return [key.alias(KEY), fingerprint.text_hashes(key, "xxh3_128").alias(KEY_HASH)]


def _raise_unless_text_columns_and_line_numbers(source: str, frame: pl.DataFrame) -> None:
    schema = frame.schema
    text = [name for name in schema if name != LINE]
    wrong = [f"column {name!r} ({schema[name]}) must be text" for name in text if schema[name] != pl.String]
    if schema.get(LINE) != pl.UInt64:
        wrong.append(f"missing column {LINE!r} (UInt64)")
    if wrong:
        hint = f"a connector returns text columns, and the line number of each row in {LINE!r}"
        raise RefusedError(", ".join(wrong), where=source, hint=hint, code="column_wrong")


def _add_path_columns_or_raise_if_missing(stream: Stream[Any], source: str, frame: pl.DataFrame) -> pl.DataFrame:
    needed = stream.used_columns
    try:
        frame = with_path_columns(frame, needed)
    except ValueError:
        message = f"column {JSON!r} contains text that is not JSON"
        raise RefusedError(
            message, where=source, hint="make the rows with RawBatch.json", code="column_wrong"
        ) from None
    if missing := sorted(needed - (set(frame.columns) - {LINE})):
        message = f"missing column {', '.join(map(repr, missing))}, which stream {stream.name!r} uses"
        raise RefusedError(
            message, where=f"{source}:1", hint=missing_columns_hint(needed, frame), code="column_missing"
        )
    return frame


def _key_text_expression(frame: pl.DataFrame, names: Sequence[str], plain: Collection[str]) -> pl.Expr:
    """Compute `key_text` of `crossdock.values.record_keys` in columns; null if a part is empty, too long or invalid."""
    parts = [
        column_expression_by_exact_name(name)
        if name in plain
        else pl.lit(_percent_encoded(cells_of_column(frame, name)))
        for name in names
    ]
    valid = [column_expression_by_exact_name(name).str.len_bytes().is_between(1, MAX_KEY_BYTES) for name in names]
    valid = [
        is_valid if name in plain else is_valid & ~pl.lit(cells_of_column(frame, name)).str.starts_with(INVALID_VALUE)
        for name, is_valid in zip(names, valid, strict=True)
    ]
    filled = [pl.when(is_valid).then(part) for is_valid, part in zip(valid, parts, strict=True)]
    return pl.concat_str(filled, separator="|")


def _has_only_unreserved_characters(column: pl.Series) -> bool:
    text: str = column.str.join("").item()  # one pattern for each value takes five times as long
    return not text.encode().translate(None, _UNRESERVED)


def _percent_encoded(column: pl.Series) -> pl.Series:
    short = column.filter(column.str.len_bytes() <= MAX_KEY_BYTES)
    reserved = short.filter(~short.str.contains(f"^[{_UNRESERVED.decode()}]*$")).unique().drop_nulls().to_list()
    return column.replace(reserved, [quote(value, safe="") for value in reserved])


def missing_columns_hint(needed: Collection[str], frame: pl.DataFrame) -> str:
    """Return the hint of an error about missing columns. It lists no cells of a first line that may be a record."""
    present = _columns_of_source(frame)
    if set(needed) & set(present) or _has_plausible_column_names(present, needed, frame):
        return f"its columns: {_shortened_list(present)}"
    count = f"{len(present):,} columns" if len(present) != 1 else "1 column"
    return f"check that the first line is a header, and the delimiter; it has {count}, not shown: they may be data"


def _has_plausible_column_names(present: Sequence[str], needed: Collection[str], frame: pl.DataFrame) -> bool:
    if {*map(letters_of_column_name, needed)} & {*map(letters_of_column_name, present)} - {""}:
        return True
    if not all(_COLUMN_NAME.fullmatch(name) for name in present) or frame.height < _FEWEST_ROWS:
        return False
    return any(frame[name].str.contains(_NUMBER).all() for name in present)  # below a name that is not a number


def _shortened_list(names: Sequence[str]) -> str:
    more = len(names) - _LISTED
    return ", ".join(name[:_LISTED] for name in names[:_LISTED]) + (f" and {more:,} more" if more > 0 else "")


class DeadLettersOfRowsWithoutKey:
    def __init__(self, stream: Stream[Any], name: str) -> None:
        self._stream, self._name = stream, name
        self._bytes = 0
        self.dead_letters: list[DeadLetter] = []

    def add(self, source: str, rows: pl.DataFrame) -> None:
        """Add *rows* of *source*. Raises RefusedError if the rows exceed `MAX_HELD_BYTES`."""
        text = rows.select(pl.col(pl.String).str.len_bytes().sum()).sum_horizontal().sum()
        self._bytes += int(text) + rows.height * (_DEAD_LETTER_BYTES + _CELL_BYTES * rows.width)
        if self._bytes > MAX_HELD_BYTES:
            raise RefusedError(
                f"{len(self.dead_letters) + rows.height:,} rows have no key, too many to keep as dead letters",
                where=f"{source}:{rows[LINE][-1]}",
                hint="check that `key` names the right columns",
                code="rows_without_key",
            )
        self.dead_letters += [self._dead_letter(source, row) for row in rows.iter_rows(named=True)]

    def _dead_letter(self, source: str, row: dict[str, Any]) -> DeadLetter:
        empty = next((name for name in self._stream.key if not row[name]), None)
        long = (name for name in self._stream.key if len((row[name] or "").encode()) > MAX_KEY_BYTES)
        cells = {name: row[name] for name in row if not is_column_added_by_engine(name)}
        if refused := row.get(REFUSED):
            (place_hash,) = fingerprint.key_hashes([f"{source} {refused}"]).values()  # such rows have no cells
            identity = RecordIdentity(self._name, "", place_hash, row[FP], None, source, row[LINE])
            return DeadLetter(identity, "key", "unreadable", None, refused, {}, None)
        pointer = empty or next(long, None)
        message = "the key is empty" if empty else f"the key exceeds {MAX_KEY_BYTES:,} bytes"
        identity = RecordIdentity(self._name, "", row[FP], row[FP], None, source, row[LINE])
        raw = Record("", (cells,), source, (row[LINE],)).raw()
        return DeadLetter(identity, "key", "key_missing", pointer, message, raw, None)
