"""Joined sources: each row of the main source with its look-ups and joined rows.

With a join, or where the main source is a snapshot, all current files are read again as soon as one of any source is
new, so that a row that arrives later changes its record. Rows that did not change are recognised as usual.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from crossdock.errors import RefusedError
from crossdock.reading.sources.expected_files import NO_FILE_EXPECTED, Expectation
from crossdock.reading.sources.file_source import FileSource, TakenFile
from crossdock.reading.sources.joined_rows import Joiner, Rule, StoredRows
from crossdock.reading.sources.known_files import StreamId
from crossdock.reading.sources.looks import Look
from crossdock.reading.sources.source_context import SourceContext
from crossdock.records import LINE, Proof, RawBatch

Prepare = Callable[[pl.DataFrame], pl.DataFrame]


@dataclass(frozen=True, slots=True)
class Part:
    """A source as one stream reads it.

    Attributes:
        files: The pattern, for messages.
        stream_id: The key under which the intake log records what the stream has read of the source.
        prepare: Repairs and filters its rows.
        expectation: Whether a run must find a new file.
    """

    files: str
    source: FileSource
    stream_id: StreamId
    prepare: Prepare = lambda rows: rows
    expectation: Expectation = NO_FILE_EXPECTED


@dataclass(frozen=True, slots=True)
class Joined:
    """Another source whose rows are looked up or joined.

    Attributes:
        columns: The needed columns; None for all.
    """

    part: Part
    rule: Rule
    columns: Sequence[str] | None


class JoinedFiles:
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
        """The rows of the main source with their columns; then joined rows without a row of the main source.

        Raises:
            RefusedError: If a file fails a check, or a source has no file; then nothing is taken in.
            LateError: If the run must wait for a file; it may then read again.
        """
        found = self._found()
        self._report_inputs()
        (current, unread), *others = found
        by_name = dict(zip(self._others, others, strict=True))
        main, is_new = self._main, self._reads_all and any(new for _, new in found)
        read = current if is_new else unread
        if read:
            yield from self._joined(read, {name: files for name, (files, _) in by_name.items()})
        elif any(by_name[name][1] for name in self._joins) or (is_new and main.source.finished_before(main.stream_id)):
            raise self._no_file(main)
        if read or not unread:
            self._run.intakes.add(self._main.stream_id.stream, self._accept)

    def finished(self) -> None:
        for part in self._parts:
            part.source.finished(part.stream_id)

    def _found(self) -> list[tuple[list[TakenFile], list[TakenFile]]]:
        return [part.source.current(part.stream_id, part.expectation) for part in self._parts]

    def _accept(self) -> None:
        for part in self._parts:
            part.source.accept(part.stream_id)

    def _no_file(self, part: Part) -> RefusedError:
        hint = "nothing was imported; run again when it has arrived"
        return RefusedError(f"no file matches {part.files}", where=self._main.stream_id.stream, hint=hint)

    def _report_inputs(self) -> None:
        stream, run = self._main.stream_id.stream, self._run
        for part in self._parts[1:]:
            found = run.inputs.pop(part.stream_id.stream)
            run.inputs[stream].files.extend(found.files)
            if found.state == "new" and self._reads_all:
                run.inputs[stream].state = "new"
            if error := run.failures.pop(part.stream_id.stream, None):
                run.failures.setdefault(stream, error)

    def _joined(self, read: Sequence[TakenFile], others: Mapping[str, Sequence[TakenFile]]) -> Iterator[RawBatch]:
        stored = {name: self._stored(name, other, others[name]) for name, other in self._others.items()}
        rules = (
            {name: other.rule for name, other in self._lookups.items()},
            {name: other.rule for name, other in self._joins.items()},
        )
        joiner = Joiner(*rules, stored, self._run.work)
        proof = self._proof(read, others)
        columns: list[str] = []
        for file in read:
            for rows in self._main.source.rows(file):
                for chunk in joiner.add_columns(self._main.prepare(rows)):
                    columns = [name for name in chunk.columns if name != LINE]
                    yield RawBatch(file.facts.name, chunk, proof=proof)
        for source, rows in joiner.orphans(columns):
            yield RawBatch(source, rows[[*columns, LINE]], proof=proof)

    def _stored(self, name: str, other: Joined, files: Sequence[TakenFile]) -> StoredRows:
        if not files:
            raise self._no_file(other.part)
        stored = StoredRows(other.columns, self._run.work)
        # rows of a finished file without a row of the main source were reported when it was new
        reported = () if self._snapshot else other.part.source.finished_before(other.part.stream_id)
        for number, file in enumerate(other.part.source.in_order(files)):
            for rows in other.part.source.rows(file):
                is_new = file.facts.content_hash not in reported
                prepared = other.part.prepare(rows)
                if self._run.observe is not None:
                    self._run.observe(self._main.stream_id.stream, name, RawBatch(file.facts.name, prepared))
                stored.add(file.facts.name, number, prepared, is_new=is_new)
        return stored

    def _proof(self, read: Sequence[TakenFile], others: Mapping[str, Sequence[TakenFile]]) -> Proof:
        """Return the proof of completeness: all files of a snapshot must be complete, and only those of the main source
        count.
        """
        own = [self._main.source.proof(file) for file in read]
        proofs = own + [self._others[name].part.source.proof(file) for name, files in others.items() for file in files]

        def content() -> str:
            return hashlib.sha256("\n".join(proof.content() for proof in own).encode()).hexdigest()

        counted, cut = all(proof.counted for proof in own), any(proof.cut for proof in proofs)
        return Proof(content, counted=counted, cut=cut, export="\n".join(proof.export for proof in own))
