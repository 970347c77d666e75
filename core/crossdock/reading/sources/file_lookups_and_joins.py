"""Look-ups and joins of files: adds columns and rows of other sources, in chunks of bounded size.

With a join, or where the main source is a snapshot, all current files are read again as soon as one of any source is
new, so that a row that arrives later changes its record. Rows that did not change are recognised as usual.

A look-up NAME adds its columns as ``NAME.COLUMN``, and ``NAME``: ``found``, ``missing``, or null if the row names none.
A join NAME adds ``NAME`` (its rows as JSON text, null without any), ``NAME.content`` (a digest of them in any order),
``NAME.at`` (``FILE:LINE`` of each, one per line) and ``NAME.problem`` (see `PROBLEMS`, else null).
"""

from __future__ import annotations

import hashlib
import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

import polars as pl

from crossdock.errors import RefusedError
from crossdock.printable import printable
from crossdock.reading.sources.expected_and_late_files import NO_FILE_EXPECTED, Expectation
from crossdock.reading.sources.file_source import FileSource, TakenFile
from crossdock.reading.sources.listed_and_known_files import StreamId
from crossdock.reading.sources.run_context import Look, SourceContext, os_errors_as_state_errors
from crossdock.values.raw_rows_and_records import (
    LINE,
    REFUSED,
    Proof,
    RawBatch,
    column_expression_by_exact_name,
    column_expressions_by_exact_names,
    internal_column_name,
    is_internal_column,
)
from crossdock.values.safe_local_files import create_private_file

FILE, NUMBER = internal_column_name("file"), internal_column_name("file_number")
_ROW, _OF_FILE = (
    internal_column_name("row"),
    internal_column_name("of_file"),
)  # a row, and those of its record and file, as JSON
_PROBLEM, _HAS_KEY, _CONTRADICTS = (
    internal_column_name("problem"),
    internal_column_name("has_key"),
    internal_column_name("contradicts"),
)
AT_ONCE = 100_000  # rows of the main source per join; each join reads the other source once
MAX_ORPHANS = 100_000
Problem = Literal[
    "no_main_row",  # rows of the join without a row of the main source
    "several_files",  # different rows of one record in several files, without a key that identifies repeated rows
    "contradiction",  # two different rows of one file with the same key
    "empty_key",  # a row whose key is empty, so that repeated rows cannot be recognized
]
PROBLEMS = get_args(Problem)


@dataclass(frozen=True, slots=True)
class Rule:
    """How rows of another source are found.

    Attributes:
        on: Columns of the main source, and the columns of the other source that must have the same text.
        key: For a join, the columns that identify a row within its record. The newest file wins among repeated rows.
    """

    on: Mapping[str, str]
    key: Sequence[str] = ()

    @property
    def theirs(self) -> list[str]:
        return list(self.on.values())


class RowsStoredForJoin:
    def __init__(self, columns: Sequence[str] | None, work: Path) -> None:
        self._columns, self._work = columns, work
        self._parts: list[Path] = []
        self._old: list[int] = []  # numbers of files

    def add(self, file: str, number: int, rows: pl.DataFrame, *, is_new: bool = True) -> None:
        """Add *rows* of *file*, the *number*-th from the oldest. They are refused if a needed column is missing."""
        present = [name for name in rows.columns if name != LINE and not is_internal_column(name)]
        if REFUSED in rows.columns and (refused := [each for each in rows[REFUSED] if each]):
            hint = "a join or look-up needs its whole file: fetch it again, or ask the sender"
            raise RefusedError(refused[0], where=file, hint=hint, code="join_failed")
        if missing := [name for name in self._columns or () if name not in present]:
            names = ", ".join(map(repr, missing))
            raise RefusedError(
                f"missing column {names}", where=file, hint=f"its columns: {', '.join(present)}", code="column_missing"
            )
        kept = rows[[*(self._columns or present), LINE]].with_columns(
            pl.lit(printable(file)).alias(FILE), pl.lit(number, pl.UInt32).alias(NUMBER)
        )
        if not is_new:
            self._old.append(number)
        path = self._work / f"{secrets.token_hex(16)}.arrow"
        with os_errors_as_state_errors(self._work), create_private_file(path) as part:
            kept.write_ipc(part)
        self._parts.append(path)

    def rows_matching(self, keys: pl.DataFrame, rule: Rule, how: Literal["semi", "anti"] = "semi") -> pl.DataFrame:
        """Return the rows whose `rule.theirs` are among *keys*, or the new ones that are not (``anti``), in order."""
        if not self._parts:
            return pl.DataFrame(
                schema={**dict.fromkeys((*rule.theirs, FILE), pl.String), LINE: pl.UInt64, NUMBER: pl.UInt32}
            )
        rows = pl.concat([pl.scan_ipc(part, glob=False) for part in self._parts], how="diagonal")
        found = rows.join(
            keys.lazy(),
            left_on=column_expressions_by_exact_names(rule.theirs),
            right_on=column_expressions_by_exact_names(rule.on),
            how=how,
        )
        if how == "anti":
            found = found.filter(~pl.col(NUMBER).is_in(self._old)).head(MAX_ORPHANS + 1)
        return found.collect(engine="streaming").sort(NUMBER, LINE)


class Joiner:
    """Adds the columns of look-ups and joins to rows. A look-up may use the columns of an earlier one."""

    def __init__(
        self,
        lookups: Mapping[str, Rule],
        joins: Mapping[str, Rule],
        stored: Mapping[str, RowsStoredForJoin],
        work: Path,
    ) -> None:
        self._lookups, self._joins, self._stored, self._work = lookups, joins, stored, work
        self._seen: dict[str, list[pl.DataFrame]] = {name: [] for name in joins}  # keys of the main source
        self._matched = dict.fromkeys([*joins, *lookups], False)
        self._looked_up = dict.fromkeys(lookups, 0)  # how many keys, each once in a chunk

    def add_columns(self, rows: pl.DataFrame) -> Iterator[pl.DataFrame]:
        """Yield *rows* with all columns, in chunks. A look-up file with different rows of one key is refused."""
        for chunk in rows.iter_slices(AT_ONCE):
            for name, rule in self._lookups.items():
                chunk = self._add_lookup_columns(chunk, name, rule)  # noqa: PLW2901  each adds columns
            for name, rule in self._joins.items():
                chunk = self._add_joined_rows_column(chunk, name, rule)  # noqa: PLW2901
            yield chunk

    def joined_rows_without_main_row(self, columns: Sequence[str]) -> Iterator[tuple[str, pl.DataFrame]]:
        """Yield the new joined rows without a main row, by file, one for each record. Too many, or all, are refused."""
        for name, rule in self._joins.items():
            seen = pl.concat(
                [_distinct_keys(pl.DataFrame(schema=dict.fromkeys(rule.on, pl.String)), rule), *self._seen[name]]
            )
            rows = self._stored[name].rows_matching(seen, rule, "anti")
            if rows.height and (rows.height > MAX_ORPHANS or (seen.height and not self._matched[name])):
                number = f"more than {MAX_ORPHANS:,}" if rows.height > MAX_ORPHANS else f"all {rows.height:,}"
                raise RefusedError(
                    f"{number} rows of join {name!r} have no row of the main source",
                    where=f"{rows[FILE][0]}:{rows[LINE][0]}",
                    hint="check that 'on' names the right columns, and that the files belong together",
                    code="join_failed",
                )
            yield from self._records_of_rows_without_main_row(rows, name, rule, columns)

    def look_ups_without_any_row(self) -> Iterator[tuple[str, int]]:
        """Yield the look-ups that have found none of several keys, and how many.

        Nothing is wrong with a single one: the row of a look-up may be optional.
        """
        for name, number in self._looked_up.items():
            if number > 1 and not self._matched[name]:
                yield name, number

    def _records_of_rows_without_main_row(
        self, rows: pl.DataFrame, name: str, rule: Rule, columns: Sequence[str]
    ) -> Iterator[tuple[str, pl.DataFrame]]:
        if not rows.height:
            return
        grouped = _grouped_by_record(rows, name, rule, pl.col(FILE).first(), pl.col(LINE).first())
        grouped = grouped.rename({theirs: ours for ours, theirs in rule.on.items()})
        others = [column for column in columns if column not in grouped.columns]
        grouped = grouped.with_columns(
            pl.lit("no_main_row").alias(f"{name}.problem"), *(pl.lit(None, pl.String).alias(other) for other in others)
        )
        for (file,), part in grouped.group_by(FILE, maintain_order=True):
            yield str(file), part.drop(FILE)

    def _add_lookup_columns(self, rows: pl.DataFrame, name: str, rule: Rule) -> pl.DataFrame:
        keys_of_rows = _distinct_keys(rows, rule)
        found = self._stored[name].rows_matching(keys_of_rows, rule)
        self._looked_up[name] += keys_of_rows.height
        self._matched[name] = self._matched[name] or found.height > 0
        newest = found.unique(column_expressions_by_exact_names(rule.theirs), keep="last", maintain_order=True)
        _raise_if_lookup_rows_contradict(found, name, rule)
        text = [column for column in newest.columns if column not in {FILE, NUMBER, LINE}]
        # the columns of the key stay, under the name of the look-up as well
        keys = {internal_column_name(str(number)): theirs for number, theirs in enumerate(rule.theirs)}
        renamed = newest.select(
            *(column_expression_by_exact_name(theirs).alias(alias) for alias, theirs in keys.items()),
            *(column_expression_by_exact_name(column).alias(f"{name}.{column}") for column in text),
            pl.lit("found").alias(name),
        )
        ours = column_expressions_by_exact_names(rule.on)
        joined = rows.join(renamed, left_on=ours, right_on=list(keys), how="left", maintain_order="left")
        is_named = pl.all_horizontal(column.fill_null("") != "" for column in ours)
        return joined.with_columns(pl.when(is_named).then(pl.col(name).fill_null("missing")).alias(name))

    def _add_joined_rows_column(self, rows: pl.DataFrame, name: str, rule: Rule) -> pl.DataFrame:
        keys = _distinct_keys(rows, rule)
        self._seen[name].append(keys)
        found = self._stored[name].rows_matching(keys, rule)
        self._matched[name] = self._matched[name] or found.height > 0
        grouped = _grouped_by_record(found, name, rule)
        ours, theirs = column_expressions_by_exact_names(rule.on), column_expressions_by_exact_names(rule.theirs)
        return rows.join(grouped, left_on=ours, right_on=theirs, how="left", maintain_order="left")


def _distinct_keys(rows: pl.DataFrame, rule: Rule) -> pl.DataFrame:
    is_named = pl.all_horizontal(column.fill_null("") != "" for column in column_expressions_by_exact_names(rule.on))
    return rows[list(rule.on)].filter(is_named).unique()


def _grouped_by_record(rows: pl.DataFrame, name: str, rule: Rule, *more: pl.Expr) -> pl.DataFrame:
    text = [column for column in rows.columns if column not in {FILE, NUMBER, LINE}]
    rows = rows.with_columns(pl.struct(column_expressions_by_exact_names(text)).struct.json_encode().alias(_ROW))
    rows = _newest_row_per_key(rows, rule) if rule.key else _newest_file_rows_per_record(rows, rule)
    grouped = rows.group_by(column_expressions_by_exact_names(rule.theirs), maintain_order=True).agg(
        pl.concat_str(pl.lit("["), pl.col(_ROW).str.join(","), pl.lit("]")).alias(name),
        pl.col(_ROW).sort().str.join(",").alias(f"{name}.content"),
        pl.concat_str(FILE, LINE, separator=":").str.join("\n").alias(f"{name}.at"),
        pl.col(_PROBLEM).first().alias(f"{name}.problem"),
        *more,
    )
    digests = [hashlib.blake2b(text.encode(), digest_size=16).hexdigest() for text in grouped[f"{name}.content"]]
    return grouped.with_columns(pl.Series(f"{name}.content", digests, pl.String))


def _newest_row_per_key(rows: pl.DataFrame, rule: Rule) -> pl.DataFrame:
    """Keep the row of the newest file for each key, and add the problem of each record."""
    has_key = pl.all_horizontal(column.fill_null("") != "" for column in column_expressions_by_exact_names(rule.key))
    differs = pl.col(_ROW).n_unique().over(column_expressions_by_exact_names([*rule.theirs, *rule.key, NUMBER])) > 1
    rows = rows.with_columns(has_key.alias(_HAS_KEY), (differs & has_key).alias(_CONTRADICTS))
    newest = rows.filter(_HAS_KEY).unique(
        column_expressions_by_exact_names([*rule.theirs, *rule.key]), keep="last", maintain_order=True
    )
    of_record = column_expressions_by_exact_names(rule.theirs)
    problem = (
        pl.when(pl.col(_CONTRADICTS).any().over(of_record))
        .then(pl.lit("contradiction"))
        .when((~pl.col(_HAS_KEY)).any().over(of_record))
        .then(pl.lit("empty_key"))
    )
    kept = pl.concat([newest, rows.filter(~pl.col(_HAS_KEY))]).sort(NUMBER, LINE)
    return kept.with_columns(problem.alias(_PROBLEM))


def _newest_file_rows_per_record(rows: pl.DataFrame, rule: Rule) -> pl.DataFrame:
    """Keep the newest of the files that repeat all rows of a record, and add the problem of each record."""
    of_record = column_expressions_by_exact_names(rule.theirs)
    of_file = pl.col(_ROW).sort().str.join(",").over([*of_record, NUMBER])
    rows = rows.with_columns(of_file.alias(_OF_FILE))
    differs = pl.col(_OF_FILE).n_unique().over(of_record) > 1
    rows = rows.with_columns(pl.when(differs).then(pl.lit("several_files")).alias(_PROBLEM))
    is_newest = pl.col(NUMBER) == pl.col(NUMBER).max().over(of_record)
    return rows.filter(is_newest | pl.col(_PROBLEM).is_not_null())


def _raise_if_lookup_rows_contradict(found: pl.DataFrame, name: str, rule: Rule) -> None:
    text = [column for column in found.columns if column not in {FILE, NUMBER, LINE}]
    differing = found.filter(
        pl.struct(column_expressions_by_exact_names(text))
        .n_unique()
        .over(column_expressions_by_exact_names([*rule.theirs, NUMBER]))
        > 1
    )
    if not differing.height:
        return
    first = differing.row(0, named=True)
    alike = (column_expression_by_exact_name(column) == first[column] for column in (*rule.theirs, NUMBER))
    same = differing.filter(pl.all_horizontal(alike))
    places = [f"{file}:{line}" for file, line in same[[FILE, LINE]].rows()]
    raise RefusedError(
        f"look-up {name!r} finds the key of {places[0]} again, with different content",
        where=places[1],
        hint="name all columns of the key in 'on'",
        code="join_failed",
    )


Prepare = Callable[[pl.DataFrame], pl.DataFrame]


@dataclass(frozen=True, slots=True)
class Part:
    """A source as one stream reads it.

    Attributes:
        files: The pattern, for messages.
        stream_id: The key under which the intake log records what the stream has read of the source.
        prepare: Repairs and filters its rows.
    """

    files: str
    source: FileSource
    stream_id: StreamId
    prepare: Prepare = lambda rows: rows
    expectation: Expectation = NO_FILE_EXPECTED


@dataclass(frozen=True, slots=True)
class Joined:
    """Another source whose rows are looked up or joined. `columns` are the needed ones; None for all."""

    part: Part
    rule: Rule
    columns: Sequence[str] | None


def _files_with_number_among_same_names(files: Sequence[TakenFile]) -> Iterator[tuple[TakenFile, str]]:
    """Yield each file, and what tells it from earlier ones of its name, which were replaced: `` (2)`` for the second.

    Rows of joined files are recognized by the name of their file.
    """
    times = Counter[str]()
    for file in files:
        times[file.facts.name] += 1
        yield file, f" ({times[file.facts.name]})" if times[file.facts.name] > 1 else ""


class JoinedFiles:
    """The files of a stream together with those that it looks up or joins."""

    def __init__(
        self,
        main: Part,
        lookups: Mapping[str, Joined],
        joins: Mapping[str, Joined],
        run: SourceContext,
        *,
        snapshot: bool,
    ) -> None:
        self._main, self._lookups, self._joins, self._run = main, lookups, joins, run
        self._others = {**lookups, **joins}
        self._parts = [main, *(other.part for other in self._others.values())]
        self._snapshot, self._reads_all = snapshot, snapshot or bool(joins)

    @property
    def looks(self) -> Sequence[Look]:
        return [look for part in self._parts for look in part.source.looks]

    def read(self) -> Iterator[RawBatch]:
        """Yield the rows of the main source with their columns; then joined rows without a row of the main source.

        Raises:
            RefusedError: If a file fails a check, or a source has no file; then nothing is taken in.
            LateFileError: If the run must wait for a file; it may then read again.
        """
        found = self._current_files_of_parts()
        self._merge_input_reports()
        (current, unread), *others = found
        by_name = dict(zip(self._others, others, strict=True))
        main, is_new = self._main, self._reads_all and any(new for _, new in found)
        read = current if is_new else unread
        if read:
            yield from self._joined_batches(read, {name: files for name, (files, _) in by_name.items()})
        elif any(by_name[name][1] for name in self._joins) or (is_new and main.source.finished_before(main.stream_id)):
            raise self._no_file_error(main)
        if read or not unread:
            self._run.intakes.add(self._main.stream_id.stream, self._accept_all)

    def finished(self) -> None:
        for part in self._parts:
            part.source.finished(part.stream_id)

    def _current_files_of_parts(self) -> list[tuple[list[TakenFile], list[TakenFile]]]:
        return [part.source.current(part.stream_id, part.expectation) for part in self._parts]

    def _accept_all(self) -> None:
        for part in self._parts:
            part.source.accept(part.stream_id)

    def _no_file_error(self, part: Part) -> RefusedError:
        hint = "nothing was imported; run again when it has arrived"
        return RefusedError(
            f"no file matches {part.files}", where=self._main.stream_id.stream, hint=hint, code="file_missing_for_join"
        )

    def _merge_input_reports(self) -> None:
        stream, run = self._main.stream_id.stream, self._run
        for part in self._parts[1:]:
            found = run.inputs.pop(part.stream_id.stream)
            names = {file.name for file in run.inputs[stream].files}  # a part may read the file of the stream
            run.inputs[stream].files.extend(file for file in found.files if file.name not in names)
            if found.state == "new" and self._reads_all:
                run.inputs[stream].state = "new"
            if error := run.failures.pop(part.stream_id.stream, None):
                run.failures.setdefault(stream, error)

    def _joined_batches(
        self, read: Sequence[TakenFile], others: Mapping[str, Sequence[TakenFile]]
    ) -> Iterator[RawBatch]:
        stored = {name: self._store_rows(name, other, others[name]) for name, other in self._others.items()}
        rules = (
            {name: other.rule for name, other in self._lookups.items()},
            {name: other.rule for name, other in self._joins.items()},
        )
        joiner = Joiner(*rules, stored, self._run.work)
        proof = self._combined_proof(read, others)
        columns: list[str] = []
        for file, number in _files_with_number_among_same_names(read):
            unread = self._main.source.proof(file).unread
            for name, rows in self._main.source.rows(file):
                for chunk in joiner.add_columns(self._main.prepare(rows)):
                    columns = [name for name in chunk.columns if name != LINE]
                    if self._main.source.proof(file).unread != unread:  # its last rows may tell more
                        unread = self._main.source.proof(file).unread
                        proof = replace(proof, unread=self._unread_text(read, others))
                    yield RawBatch(f"{name}{number}", chunk, proof=proof)
        for source, rows in joiner.joined_rows_without_main_row(columns):
            yield RawBatch(source, rows[[*columns, LINE]], proof=proof)
        for name, keys in joiner.look_ups_without_any_row():
            text = (
                f"look-up {name!r} found no row for any of {keys:,} keys, so its columns are empty in all that was read"
            )
            hint = "check that 'on' names the right columns, and that the files belong together"
            self._run.warn(self._main.stream_id.stream, f"{text}: {hint}", code="join_failed")

    def _store_rows(self, name: str, other: Joined, files: Sequence[TakenFile]) -> RowsStoredForJoin:
        if not files:
            raise self._no_file_error(other.part)
        stored = RowsStoredForJoin(other.columns, self._run.work)
        # rows of a finished file without a row of the main source were reported when it was new
        reported = () if self._snapshot else other.part.source.finished_before(other.part.stream_id)
        ordered = _files_with_number_among_same_names(other.part.source.in_order(files))
        for number, (file, of_name) in enumerate(ordered):
            for name_of_file, rows in other.part.source.rows(file):
                source = f"{name_of_file}{of_name}"
                is_new = file.facts.content_hash not in reported
                prepared = other.part.prepare(rows)
                if self._run.observe is not None:
                    self._run.observe(self._main.stream_id.stream, name, RawBatch(source, prepared))
                stored.add(source, number, prepared, is_new=is_new)
        return stored

    def _combined_proof(self, read: Sequence[TakenFile], others: Mapping[str, Sequence[TakenFile]]) -> Proof:
        """Return the proof: all files of a snapshot must be complete, and only those of the main source count."""
        own = [self._main.source.proof(file) for file in read]
        proofs = own + [self._others[name].part.source.proof(file) for name, files in others.items() for file in files]

        def content() -> str:
            return hashlib.sha256("\n".join(proof.content() for proof in own).encode()).hexdigest()

        counted, cut = all(proof.counted for proof in own), any(proof.cut for proof in proofs)
        export = "\n".join(proof.export for proof in own)
        return Proof(content, counted=counted, cut=cut, export=export, unread=self._unread_text(read, others))

    def _unread_text(self, read: Sequence[TakenFile], others: Mapping[str, Sequence[TakenFile]]) -> str:
        proofs = [self._main.source.proof(file) for file in read]
        proofs += [self._others[name].part.source.proof(file) for name, files in others.items() for file in files]
        return ", ".join(dict.fromkeys(proof.unread for proof in proofs if proof.unread))
