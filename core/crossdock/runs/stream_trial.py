"""A trial of one stream: its first records with their drafts. It needs no state, calls no target and writes nothing.

Commands and pages show the result as values, in which personal data is masked.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from itertools import groupby
from typing import TYPE_CHECKING, Any

import polars as pl
from msgspec import Struct, field

from crossdock.config.project.connections_and_bound_streams import BoundStream
from crossdock.config.project.project import Project
from crossdock.config.stream_configuration import DeclaredStream
from crossdock.delta.changed_record_reading import stored_records_repaired_and_filtered_again
from crossdock.delta.row_preparation import (
    DELETED,
    KEY,
    SKIP,
    DeadLettersOfRowsWithoutKey,
    add_key_filter_and_fingerprint_columns,
    is_column_added_by_engine,
)
from crossdock.errors import ConfigError, CrossdockError, RecordError
from crossdock.mapping.declarative import list_elements_at_path
from crossdock.reading.sources.run_context import SourceContext, create_run_folder
from crossdock.resources import Reference
from crossdock.runs.batches_read_from_connector import fetch_checked_batches, pull_checked_batches
from crossdock.runs.imported_file_log import EmptyIntakeLog
from crossdock.runs.planning.mapping_to_drafts import map_record_to_draft_members
from crossdock.runs.planning.references import collect_references_in_value
from crossdock.state import RecordIdentity
from crossdock.values import exact_json
from crossdock.values.clock import Clock
from crossdock.values.json_paths import json_value_as_column_text, value_at_path_or_missing
from crossdock.values.raw_rows_and_records import ELEMENT, JSON, LINE, RawBatch, Record, record_number_column
from crossdock.values.record_keys import key_parts_of
from crossdock.values.run_progress_and_messages import Progress, SilentProgress
from crossdock.values.texts_of_numbers_and_times import count_with_noun
from crossdock.writing.targets.payload_comparison import PERSONAL

if TYPE_CHECKING:
    import httpx

_ALL = 1 << 31  # records, more than a source answers at once


class TriedRecord(Struct, frozen=True):
    """A record that was read, with the members of its draft, or the problem because of which it has none."""

    record: Record
    members: dict[str, Any] | None
    problem: RecordError | None


class Trial(Struct):
    """The result of a trial.

    Attributes:
        filtered: Rows that filters left out, by the filter's name.
        deleted: The number of rows and keys that mark a record as deleted.
        error: Why reading ended early; None if it did not.
    """

    bound: BoundStream
    records: list[TriedRecord] = field(default_factory=list)
    filtered: Counter[str] = field(default_factory=Counter)
    deleted: int = 0
    error: CrossdockError | None = None

    @property
    def rejected_count(self) -> int:
        return sum(tried.members is None for tried in self.records)

    @property
    def empty_columns(self) -> list[str]:
        """For JSON records, the dotted paths of the stream that all of them lack: a misspelled path is not an error.
        Paths in the elements of a list follow that of the list and an asterisk.
        """
        stream = self.bound.stream
        paths = stream.used_columns | ({stream.cursor.column} if stream.cursor else set())
        rows = [row for tried in self.records for row in tried.record.with_paths(paths).rows]
        if not rows or JSON not in rows[0]:
            return []
        empty = {path for path in paths if all(row[path] is None for row in rows)}
        lists = (stream.joined_columns if isinstance(stream, DeclaredStream) else None) or {}
        for of, columns in lists.items():
            elements = [
                each for row in rows for each in list_elements_at_path(exact_json.loads(row[JSON] or "null"), of)
            ]
            empty |= {f"{of}.*.{column}" for column in columns if elements and _all_lack_column(elements, column)}
        return sorted(empty)


def _all_lack_column(elements: list[Any], column: str) -> bool:
    return column != ELEMENT and all(
        json_value_as_column_text(value_at_path_or_missing(element, column)) is None for element in elements
    )


def try_stream(
    project: Project,
    name: str,
    most: int,
    *,
    clock: Clock,
    progress: Progress,
    transport: httpx.BaseTransport | None = None,
    recorded: Callable[[httpx.BaseTransport], httpx.BaseTransport] | None = None,
) -> Trial:
    """Read the first *most* records of a stream from its beginning, and map them.

    Records are in source order. One that the source lists twice appears twice. An error of the source is in the result.

    Args:
        name: ``CONNECTION.STREAM``, or a connection that has one stream.
        transport: Replaces the network of HTTP APIs in tests.
    """
    with _bind_stream(project, name, clock, progress, transport=transport, recorded=recorded) as bound:
        return try_bound_stream(bound, most)


def map_stored_record(
    project: Project, identity: RecordIdentity, raw: dict[str, Any], *, clock: Clock
) -> TriedRecord | None:
    """Map a record whose data the state has with the current mapping, as a replay would. No source is read.

    Return None if a filter leaves it out now. Raises CrossdockError if the config has no such stream.
    """
    with _bind_stream(project, identity.stream, clock, SilentProgress()) as bound:
        kept = next(stored_records_repaired_and_filtered_again(bound.stream, [(identity, raw)]), None)
        return None if kept is None else _try_record(bound, kept.record, None)


def fetch_and_map_one(project: Project, name: str, key: str, *, clock: Clock, interrupt: threading.Event) -> Trial:
    """Read one record of a stream from its source by `Stream.fetch`, and map it. Its errors are in the result.

    Nothing is stored or delivered. *interrupt* ends pauses between requests.
    """
    with _bind_stream(project, name, clock, SilentProgress(), interrupt=interrupt) as bound:
        trial = Trial(bound)
        try:
            for record, problem in _records(trial, fetch_checked_batches(bound, [key_parts_of(key)]), _ALL):
                if record.key == key:
                    trial.records.append(_try_record(bound, record, problem))
        except CrossdockError as error:
            trial.error = error
        return trial


@contextmanager
def _bind_stream(
    project: Project,
    name: str,
    clock: Clock,
    progress: Progress,
    *,
    transport: httpx.BaseTransport | None = None,
    recorded: Callable[[httpx.BaseTransport], httpx.BaseTransport] | None = None,
    interrupt: threading.Event | None = None,
) -> Iterator[BoundStream]:
    wanted = project.selected_streams([name])
    if len(wanted) > 1:
        raise ConfigError(
            f"{name!r} has {len(wanted)} streams",
            hint=f"name one of them: {', '.join(sorted(wanted))}",
            code="choice_unsuitable",
        )
    with ExitStack() as stack:
        work = create_run_folder(stack, None)
        run = SourceContext(
            clock,
            progress,
            EmptyIntakeLog(),
            work / "spool",
            work,
            work / "spool",
            transport=transport,
            recorded=recorded,
            interrupt=interrupt or threading.Event(),
        )
        stack.enter_context(run.at_end)
        (bound,) = project.bind_streams(wanted, targets=project.targets(clock), run=run)
        yield bound


def try_bound_stream(bound: BoundStream, most: int, *, since: str | None = None) -> Trial:
    """Do the same as `try_stream` in an existing run, from the cursor *since*."""
    trial = Trial(bound)
    try:
        with closing(pull_checked_batches(bound, since)) as batches:
            rows = (batch for batch in batches if isinstance(batch, RawBatch))
            for record, problem in _records(trial, rows, most):
                trial.records.append(_try_record(bound, record, problem))
                if len(trial.records) == most:
                    break
    except CrossdockError as error:
        trial.error = error
    return trial


Row = dict[str, Any]


def _try_record(bound: BoundStream, record: Record, problem: RecordError | None) -> TriedRecord:
    try:
        return (
            TriedRecord(record, None, problem)
            if problem
            else TriedRecord(record, map_record_to_draft_members(bound, record)[0], None)
        )
    except RecordError as error:
        return TriedRecord(record, None, error)


def _records(trial: Trial, batches: Iterator[RawBatch], most: int) -> Iterator[tuple[Record, RecordError | None]]:
    bound = trial.bound
    for source, unit in groupby(batches, key=lambda batch: batch.source):
        rows = (row for batch in unit for row in _rows_kept_by_filters(trial, batch, most))
        groups = (
            _grouped_rows(rows, most, record_number_column(bound.stream.key))
            if bound.stream.group_by
            else ([row] for row in rows)
        )
        for group in groups:
            cells = tuple(
                {name: cell for name, cell in row.items() if not is_column_added_by_engine(name)} for row, _ in group
            )
            first, problem = group[0]
            yield Record(first[KEY] or "", cells, source, tuple(row[LINE] for row, _ in group)), problem


def _rows_kept_by_filters(trial: Trial, batch: RawBatch, most: int) -> Iterator[tuple[Row, RecordError | None]]:
    bound, trial.deleted = trial.bound, trial.deleted + len(batch.deleted)
    frame = add_key_filter_and_fingerprint_columns(bound.stream, batch.source, batch.load())
    trial.filtered.update(dict(frame[SKIP].drop_nulls().value_counts().iter_rows()))
    frame = frame.filter(pl.col(SKIP).is_null())
    if bound.stream.deleted is not None:
        trial.deleted += int(frame[DELETED].sum())
        frame = frame.filter(~pl.col(DELETED))
    if not bound.stream.group_by:
        frame = frame.head(most)
    without_key = DeadLettersOfRowsWithoutKey(bound.stream, bound.name)
    without_key.add(batch.source, frame.filter(pl.col(KEY).is_null()))
    problems = {
        dead_letter.identity.line: RecordError(dead_letter.code, dead_letter.message, pointer=dead_letter.pointer)
        for dead_letter in without_key.dead_letters
    }
    for row in frame.iter_rows(named=True):
        yield row, problems.get(row[LINE])


def _grouped_rows(
    rows: Iterator[tuple[Row, RecordError | None]], most: int, record_number: str
) -> Iterator[list[tuple[Row, RecordError | None]]]:
    """Yield the first *most* records of a file or page. It is read to its end, where rows of a record may be."""
    groups: dict[object, list[tuple[Row, RecordError | None]]] = {}
    for row, problem in rows:
        name = (row[KEY], row.get(record_number)) if problem is None else (len(groups),)
        if name in groups or len(groups) < most:
            groups.setdefault(name, []).append((row, problem))
    yield from groups.values()


def tried_record_document(tried: TriedRecord, personal: frozenset[str], *, raw: bool) -> dict[str, Any]:
    """Return a record beside its draft, or its problem. Without *raw*, values that may be personal are masked."""
    record, problem = tried.record, tried.problem
    members = None
    if tried.members is not None:
        members = {
            name: PERSONAL if name in personal else _references_as_text(value) for name, value in tried.members.items()
        }
    visible = {str(value) for _, value in leaf_values(members)}
    visible |= {part for reference in collect_references_in_value(tried.members or {}) for part in reference.key_parts}
    visible |= set(record.key_parts)
    return {
        "key": record.key,
        "source": record.source,
        "lines": list(record.lines),
        "record": {
            name: value if raw else _masked_unless_shown_in_draft(value, visible)
            for name, value in _values_by_column(record.rows)
        },
        "draft": members,
        "problem": None
        if problem is None
        else {"code": problem.code, "message": problem.message, "pointer": problem.pointer, "line": problem.line},
    }


def _values_by_column(rows: tuple[dict[str, str | None], ...]) -> Iterator[tuple[str, Any]]:
    """Yield each value of a record with its column or JSON pointer; for several rows, also with the row's number."""
    for number, row in enumerate(rows, 1):
        prefix = f"{number}." if len(rows) > 1 else ""
        for name, cell in row.items():
            if name == JSON:
                yield from (
                    (f"{prefix}{pointer}", value) for pointer, value in leaf_values(exact_json.loads(cell or "{}"))
                )
            elif JSON not in row and name != ELEMENT:
                yield f"{prefix}{name}", cell


def leaf_values(value: Any, pointer: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values in *value* that contain no others, with their JSON pointers (RFC 6901)."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if not members:
        yield pointer, value
        return
    for name, inner in members:
        yield from leaf_values(inner, f"{pointer}/{str(name).replace('~', '~0').replace('/', '~1')}")


def _masked_unless_shown_in_draft(value: Any, visible: set[str]) -> Any:
    """Return *value* if it is empty or shown anyway, else its length: the personal values of a record are not known."""
    is_shown = value is None or value in ("", {}, []) or isinstance(value, bool) or str(value) in visible
    return value if is_shown else f"({count_with_noun(len(str(value)), 'character')})"


def _references_as_text(value: Any) -> Any:
    if isinstance(value, Reference):
        namespace = f"{value.namespace}:" if value.namespace else ""
        return f"{value.resource} {namespace}{'|'.join(value.key_parts)}"
    if isinstance(value, dict):
        return {name: _references_as_text(inner) for name, inner in value.items()}
    return [_references_as_text(inner) for inner in value] if isinstance(value, list) else value
