"""Batches that a stream's connector yields, checked: a defect ends its own stream, and the error names the place.

With ``open_until``, each run also fetches the records that are not final, whatever the cursor is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeGuard, TypeVar

import polars as pl
from msgspec import structs

from crossdock.config.project.connections_and_bound_streams import BoundStream
from crossdock.connector import Stream
from crossdock.delta.changed_record_reading import PART_OF_PAGE
from crossdock.delta.fingerprint import key_hashes
from crossdock.delta.row_preparation import KEY, KEY_HASH, compute_keys
from crossdock.errors import ConnectorError, CrossdockError, StateError, StoppedError
from crossdock.mapping.external_ids import key_texts_without_foreign_records, keys_or_their_external_ids
from crossdock.mapping.row_order_and_cursors import Checkpoint
from crossdock.mapping.stream_declaration import OpenUntil
from crossdock.printable import is_storable
from crossdock.reading.sources.list_completeness_evidence import DoubtfulListError, incomplete_joined_rows_error
from crossdock.state import FollowedRecord, State, Transaction
from crossdock.values.author_code_errors import convert_author_errors, masked_error_text, text_with_line_of_code
from crossdock.values.raw_rows_and_records import (
    ELEMENT,
    JSON,
    LINE,
    Again,
    Proof,
    RawBatch,
    cells_of_column,
    internal_column_name,
    with_path_columns,
)
from crossdock.values.record_keys import key_parts_of

_Item = TypeVar("_Item")
_NUMBER = internal_column_name("object")
_LINES_END = 1 << 32  # of a file or page


def pull_checked_batches(bound: BoundStream, since: str | None) -> Generator[RawBatch | Checkpoint, None, None]:
    """Yield the batches and checkpoints of the stream. Closing this generator closes the source.

    Raises:
        StoppedError: If the run is to stop, at a checkpoint.
        ConnectorError: If `pull` raised an unexpected exception, or yielded something that is not a batch.
    """
    latest: str | None = None
    guard, observe, whole_list = _CallableGuard(bound), bound.context.run.observe, _ListLineNumbering(bound)
    with converting_errors_of_stream_method(bound, "pull", lambda: latest):
        batches = bound.stream.pull(bound.context, since)
        try:
            for read in _attribute_api_lists_to_stream(bound, batches):
                batch = _valid_batch_or_checkpoint_or_raise(bound, read, latest)
                if isinstance(batch, Checkpoint):
                    if bound.context.run.interrupt.is_set():  # no rows, of which each batch shows that the run goes on
                        raise StoppedError("stopped while reading", hint="run again to continue")
                    whole_list = _ListLineNumbering(bound)
                    yield batch
                    continue
                latest = batch.source
                bound.context.run.reading.count_batch_of_marked_stream()
                if observe is not None:
                    observe(bound.name, "", batch)
                yield from map(guard.wrap, whole_list.number_lines_across_pages(batch))
        except DoubtfulListError as error:
            if whole_list.has_rows_joined_across_pages:
                raise incomplete_joined_rows_error(error) from error
            raise
        finally:
            if isinstance(batches, Generator):
                batches.close()


def _attribute_api_lists_to_stream(bound: BoundStream, batches: Iterable[_Item]) -> Iterator[_Item]:
    """Attribute the lists that are read for *batches* to the stream."""
    following = iter(batches)
    while True:
        with bound.context.run.open_lists.attributing_lists_to_stream(bound.name):
            try:
                batch = next(following)
            except StopIteration:  # a default of `next` could be what an author yields by mistake
                return
        yield batch


def checked_batches_of_existing_records(bound: BoundStream) -> Iterator[RawBatch]:
    """Yield the batches of the stream's `existing`, with the errors of `pull_checked_batches`."""
    latest: str | None = None
    with converting_errors_of_stream_method(bound, "existing", lambda: latest):
        for read in _attribute_api_lists_to_stream(bound, bound.stream.existing(bound.context)):
            batch = _valid_batch_or_raise(bound, read, latest, "existing")
            latest = batch.source
            yield batch


def fetch_checked_batches(bound: BoundStream, keys: Sequence[tuple[str, ...]]) -> Iterator[RawBatch]:
    """Yield the batches of the stream's `fetch`, called for at most `Stream.fetch_size` of *keys* at a time."""
    latest: str | None = None
    guard, lists = _CallableGuard(bound, "fetch"), bound.context.run.open_lists
    whole_list, list_id = _ListLineNumbering(bound, "fetch"), None
    size, keys = bound.stream.fetch_size, keys_or_their_external_ids(bound.stream.own_keys, keys)
    with converting_errors_of_stream_method(bound, "fetch", lambda: latest):
        for start in range(0, len(keys), size):
            for read in bound.stream.fetch(bound.context, keys[start : start + size]):
                batch = _valid_batch_or_raise(bound, read, latest, "fetch")
                latest = batch.source
                if list_id is None or list_id != lists.open_list_id:
                    whole_list, list_id = _ListLineNumbering(bound, "fetch"), lists.open_list_id
                yield from map(guard.wrap, whole_list.number_lines_across_pages(batch))


def converting_errors_of_stream_method(
    bound: BoundStream, method: str, after: Callable[[], str | None] = lambda: None
) -> AbstractContextManager[None]:
    return convert_author_errors(method, bound.name, code=bound.stream, settings=bound.context.settings, after=after)


class _ListLineNumbering:
    """Gives the pages of one list the same source and consecutive lines, where a group may have rows on several pages.

    The elements of exploded objects are groups of one object. An object that is listed again is another version of its
    group, whether on another page or on the same one, whose rows are then divided.
    """

    def __init__(self, bound: BoundStream, method: str = "pull") -> None:
        stream, self._bound, self._method = bound.stream, bound, method
        is_whole = method == "fetch" or stream.mode == "snapshot" or stream.whole_groups
        self._joins = bool(stream.group_by) and is_whole and not stream.reads_files
        self._source, self._lines, self._is_divided = "", 0, False

    @property
    def has_rows_joined_across_pages(self) -> bool:
        return self._lines > 0

    def number_lines_across_pages(self, batch: RawBatch) -> Sequence[RawBatch]:
        columns, stream = batch.load().columns, self._bound.stream
        if stream.group_by and ELEMENT in columns:
            return [batch] if stream.reads_files else _split_repeated_objects(stream, batch)
        return [self._batch_with_continued_line_numbers(batch)] if self._joins and JSON in columns else [batch]

    def _batch_with_continued_line_numbers(self, batch: RawBatch) -> RawBatch:
        rows = batch.load()
        self._is_divided = self._is_divided or bool(batch.deleted and self._lines)
        if self._is_divided and rows.height:
            wrong = "named deleted records between rows that group_by may join: yield these before or after all rows"
            raise _defect_error(self._bound, self._method, wrong, batch.source)
        self._bound.context.run.open_lists.joined.add(self._bound.name)
        self._source, first = self._source or batch.source, self._lines
        self._lines += rows.height
        return replace(batch, source=self._source, rows=rows.with_columns(pl.col(LINE) + first))


def _split_repeated_objects(stream: Stream[Any], batch: RawBatch) -> Sequence[RawBatch]:
    """Divide *batch* so that no part has the elements of two objects with the same key."""
    rows, place = batch.load(), pl.col(ELEMENT).str.extract("([0-9]+)$").cast(pl.UInt32)
    begins = (place.is_null() | (place <= place.shift())).fill_null(value=True)
    objects = compute_keys(stream, batch.source, rows).with_columns(rows.select(begins.cum_sum().alias(_NUMBER)))
    again = pl.when(pl.col(KEY_HASH).is_not_null()).then(pl.col(_NUMBER).rank("dense").over(KEY_HASH)).otherwise(1)
    numbers = objects.select(again.alias(_NUMBER))[_NUMBER]
    most = numbers.n_unique()
    if most < 2:
        return [batch]
    others = [
        RawBatch(f"{batch.source}{PART_OF_PAGE}{each}", rows.filter(numbers == each), batch.cursor)
        for each in range(2, most + 1)
    ]
    return [replace(batch, rows=rows.filter(numbers == 1)), *others]


class _CallableGuard:
    """Wraps callables of a batch so that they raise errors as `pull_checked_batches` does. Equal ones stay equal."""

    def __init__(self, bound: BoundStream, method: str = "pull") -> None:
        self._bound, self._method = bound, method
        self._made: dict[Again | Callable[[], str], Any] = {}

    def wrap(self, batch: RawBatch) -> RawBatch:
        again, proof = batch.again, batch.proof
        if again is not None and again not in self._made:
            self._made[again] = self._guarded_reread_function(again, batch.source, batch.load().columns)
        if proof is not None and proof.content not in self._made:
            self._made[proof.content] = self._guarded_proof_content_function(proof.content, batch.source)
        if proof is not None:
            content = self._made[proof.content]
            proof = replace(proof, content=content, counted=bool(proof.counted), cut=bool(proof.cut))
        return replace(batch, again=None if again is None else self._made[again], proof=proof)

    def _guarded_reread_function(self, again: Again, source: str, columns: Collection[str]) -> Again:
        def read(lines: Sequence[int] | None) -> Iterator[pl.DataFrame]:
            with converting_errors_of_stream_method(self._bound, self._method, lambda: source):
                frames: Iterable[object] = again(lines)
                for rows in frames:
                    if not isinstance(rows, pl.DataFrame) or not {*columns} <= {*rows.columns}:
                        wrong = "yielded a batch that has other columns, or no rows, when it is read again"
                        raise _defect_error(self._bound, self._method, wrong, source)
                    yield rows

        return read

    def _guarded_proof_content_function(self, content: Callable[[], str], source: str) -> Callable[[], str]:
        def name() -> str:
            with converting_errors_of_stream_method(self._bound, self._method, lambda: source):
                made: object = content()
            if not _is_storable_text(made):
                raise _defect_error(
                    self._bound, self._method, "yielded a proof whose content is not storable text", source
                )
            return made

        return name


def _valid_batch_or_checkpoint_or_raise(bound: BoundStream, read: object, latest: str | None) -> RawBatch | Checkpoint:
    if not isinstance(read, Checkpoint):
        return _valid_batch_or_raise(bound, read, latest, "pull")
    if not _is_storable_text(read.cursor):
        raise _defect_error(bound, "pull", "yielded a checkpoint whose cursor is not storable text", latest)
    return read


def _valid_batch_or_raise(bound: BoundStream, read: object, latest: str | None, method: str) -> RawBatch:
    if not isinstance(read, RawBatch):
        raise _defect_error(bound, method, f"yielded a {type(read).__name__} instead of a RawBatch", latest)
    if (wrong := next(_defects_of_batch(bound, read, method), None)) is None:
        try:
            rows = read.load()
        except (OSError, pl.exceptions.PolarsError) as error:
            wrong = f"whose rows cannot be read: {masked_error_text(error)}"
        else:
            wrong = (
                None if method == "existing" else _defect_of_line_numbers(rows, are_grouped=bool(bound.stream.group_by))
            )
    if wrong is not None:
        raise _defect_error(bound, method, f"yielded a batch {wrong}", latest)
    return read


def _defects_of_batch(bound: BoundStream, batch: RawBatch, method: str) -> Iterator[str]:
    rows: object = batch.rows
    proof: object = batch.proof
    deleted: object = batch.deleted
    if not _is_storable_text(batch.source):
        yield "whose source is not storable text"
    if batch.cursor is not None and not _is_storable_text(batch.cursor):
        yield "whose cursor is not storable text"
    if not isinstance(rows, pl.DataFrame | Path):
        yield f"whose rows are a {type(rows).__name__} instead of a polars.DataFrame"
    if batch.again is not None and not callable(batch.again):
        yield "whose again cannot be called"
    if proof is not None and not _is_valid_proof(proof):
        yield "whose proof is not a Proof with a function and texts"
    if not isinstance(deleted, tuple | list) or not all(_is_key_tuple(key) for key in deleted):
        yield "whose deleted keys are not tuples of texts"
    if deleted and (method == "existing" or not bound.stream.yields_deleted):
        yield "that names deleted records, which the stream does not declare (yields_deleted = True)"


def _defect_of_line_numbers(rows: pl.DataFrame, *, are_grouped: bool) -> str | None:
    """Return what is wrong with the lines, by which records are found again. Rows of other types are refused later."""
    if rows.schema.get(LINE) != pl.UInt64:
        return None
    lines = rows[LINE]
    if lines.null_count() or (lines >= _LINES_END).any():
        return f"with a row whose {LINE} is null or above {_LINES_END - 1:,}"
    if not (are_grouped or _are_lines_ascending(lines) or lines.n_unique() == len(lines)):
        return f"with several rows of the same {LINE}"
    return None


def _are_lines_ascending(lines: pl.Series) -> bool:
    """Return whether each line is above the one before, as in a file, which is found faster than repeated ones."""
    return bool((lines.slice(1) > lines.slice(0, max(len(lines) - 1, 0))).all())


def _is_storable_text(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and is_storable(value)


def _is_valid_proof(proof: object) -> bool:
    content: object = getattr(proof, "content", None)
    if not isinstance(proof, Proof) or not callable(content):
        return False
    return _is_storable_text(proof.export) and _is_storable_text(proof.unread)


def _is_key_tuple(key: object) -> bool:
    return isinstance(key, tuple | list) and all(part is None or isinstance(part, str) for part in key)


def _defect_error(bound: BoundStream, method: str, wrong: str, latest: str | None) -> ConnectorError:
    read = f" after {latest}" if latest else ""
    place = text_with_line_of_code(bound.stream, method)
    return ConnectorError(
        f"{method} {wrong}{read}{place}", where=bound.name, hint="fix the connector", code="connector_rows_wrong"
    )


MISSED_AT_MOST = 3  # runs in a row in which the source does not have a record
FAILED_ALONE = 3  # in a row; then the failure is not caused by single records
LISTED = 5  # keys in a note


class FetchOfRecordsNotFinal:
    """The records of one stream that are not final, in one run. `error` is the first failure of a fetch."""

    def __init__(self, bound: BoundStream, state: State) -> None:
        self._bound, self._state = bound, state
        self._rule: OpenUntil | None = bound.stream.open_until
        self._chosen: dict[int, FollowedRecord] = {}
        self._followed: set[int] | None = None
        self.error: CrossdockError | None = None
        self.discard_unstored()

    def discard_unstored(self) -> None:
        """Discard what was read since the last `store`."""
        self._open: dict[int, str] = {}
        self._final, self._read, self._answered, self._failed = set[int](), set[int](), set[int](), set[int]()

    @property
    def has_unstored_changes(self) -> bool:
        return bool(self._open or self._final or self._answered or self._failed)

    def track_not_final(self, batches: Iterable[RawBatch]) -> Iterator[RawBatch]:
        """Yield *batches*, and note which of their records are not final, including those that a filter leaves out."""
        for batch in batches:
            if self._rule is not None:
                self._track_batch(batch, self._rule)
            yield batch

    def _track_batch(self, batch: RawBatch, rule: OpenUntil) -> None:
        stream, rows = self._bound.stream, batch.load()
        self._mark_followed_as_final(
            key_hashes(list(key_texts_without_foreign_records(stream.own_keys, batch.deleted))).values()
        )
        marks = stream.deleted
        try:
            frame = with_path_columns(rows, [rule.field, *(marks.columns() if marks is not None else ())])
            is_final = cells_of_column(frame, rule.field).fill_null("").is_in(list(rule.in_))
        except (ValueError, pl.exceptions.ColumnNotFoundError):
            return  # the stream refuses the batch
        if marks is not None:
            is_final |= frame.select(marks.expression()).to_series()
        keys = compute_keys(stream, batch.source, rows)
        self._read |= self._chosen.keys() & set(keys[KEY_HASH].to_list())
        self._mark_followed_as_final(keys.filter(is_final)[KEY_HASH].to_list())
        for key, key_hash in keys.filter(~is_final).drop_nulls(KEY).select(KEY, KEY_HASH).iter_rows():
            self._open[key_hash] = key
            self._final.discard(key_hash)

    def _mark_followed_as_final(self, final: Collection[int]) -> None:
        if final and self._followed is None:
            with self._state.begin_read_only() as tx:
                self._followed = tx.followed_records.key_hashes(self._bound.name)
        ended = {each for each in final if each in (self._followed or ()) or each in self._open}
        self._final |= ended
        for key_hash in ended:
            self._open.pop(key_hash, None)

    def choose_records_to_fetch(self) -> bool:
        """Choose the records that this run fetches. Return False if there are none."""
        if self._rule is None:
            return False
        with self._state.begin_read_only() as tx:
            chosen = tx.followed_records.least_recently_read(self._bound.name, self._rule.at_most)
            number = tx.followed_records.count(self._bound.name)
        self._chosen = {each.key_hash: each for each in chosen}
        if number > len(chosen):
            text = f"{number:,} records are not final, and {len(chosen):,} of them are fetched (open_until.at_most)"
            self._bound.context.run.note(self._bound.name, text)
        return bool(chosen)

    def fetch_chosen(self, already_read: Collection[int]) -> Iterator[RawBatch]:
        """Yield the chosen records, without those of *already_read*, which the run has read already."""
        wanted = [each for key_hash, each in self._chosen.items() if key_hash not in already_read]
        size, failed_alone = self._bound.stream.fetch_size, 0
        for start in range(0, len(wanted), size):
            for answer in self._fetch_part(wanted[start : start + size]):
                if isinstance(answer, CrossdockError):
                    failed_alone += 1
                    self.error = self.error or answer
                else:
                    failed_alone = 0
                    yield from answer
                if failed_alone == FAILED_ALONE:
                    return

    def _fetch_part(self, wanted: Sequence[FollowedRecord]) -> Iterator[list[RawBatch] | CrossdockError]:
        """Fetch a part. If that fails, fetch each record alone, so that one does not block the others."""
        try:
            found = list(fetch_checked_batches(self._bound, [key_parts_of(each.key) for each in wanted]))
        except (StateError, StoppedError):
            raise
        except CrossdockError as error:
            if len(wanted) == 1:
                self._failed.add(wanted[0].key_hash)
                yield error
                return
            for each in wanted:
                yield from self._fetch_part([each])
            return
        self._answered.update(each.key_hash for each in wanted)
        yield found

    def store(self, tx: Transaction, *, is_done: bool) -> None:
        """Store what was read so far. For a part that must be read again, store only which records are open."""
        if self._rule is None:
            return
        name, at, records = self._bound.name, self._bound.context.run.clock.now(), tx.followed_records
        records.put(FollowedRecord(name, key_hash, key, at) for key_hash, key in self._open.items())
        records.put(
            structs.replace(self._chosen[each], read_at=at) for each in self._failed
        )  # others are requested first
        if is_done:
            absent = [self._chosen[each] for each in sorted(self._answered - self._read - self._final)]
            missing = [structs.replace(each, read_at=at, missed=each.missed + 1) for each in absent]
            left = [each for each in missing if each.missed >= MISSED_AT_MOST]
            records.put(each for each in missing if each.missed < MISSED_AT_MOST)
            records.forget(name, [*self._final, *(each.key_hash for each in left)])
            self._note_given_up_as_missing(left)
            self._followed = None
        self.discard_unstored()

    def _note_given_up_as_missing(self, left: Sequence[FollowedRecord]) -> None:
        if not left:
            return
        listed = ", ".join(each.key for each in left[:LISTED]) + (", ..." if len(left) > LISTED else "")
        records = "1 record" if len(left) == 1 else f"{len(left):,} records"
        text = f"in {MISSED_AT_MOST} runs the source did not have {records}, which will not be fetched again: {listed}"
        self._bound.context.run.note(self._bound.name, text)
