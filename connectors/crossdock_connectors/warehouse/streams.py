"""Streams over the files of a warehouse, also of several sources with look-ups and joins. The config declares their
mapping.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import polars as pl

from crossdock import Context, CrossdockError, DeclaredStream, Finding, RawBatch, Repair
from crossdock.sources import (
    Expectation,
    FileSource,
    FileStore,
    Join,
    Joined,
    JoinedFiles,
    Lookup,
    Part,
    Rule,
    SourceContext,
    StreamId,
    UnavailableError,
    any_case,
    list_below,
    split_pattern,
    warnings_about_newest,
)
from crossdock_connectors.warehouse.settings import SourceConfig, WarehouseSettings, WarehouseStreamConfig

if TYPE_CHECKING:
    from crossdock.sources import WritableStore
    from crossdock.targets import FileTarget

W = TypeVar("W", bound=WarehouseSettings)
OpenStore = Callable[[W], FileStore]
"""Opens the store of a warehouse's files."""


class WarehouseStream(DeclaredStream[W]):
    """A stream over the files of a warehouse. The repairs and filters of its *source* come before its own."""

    reads_files = True

    def __init__(
        self,
        name: str,
        config: WarehouseStreamConfig,
        source: SourceConfig,
        others: Mapping[str, SourceConfig],
        open_store: OpenStore[W],
    ) -> None:
        repairs = {**source.columns, **config.columns}
        self.is_joined = bool(config.lookup or config.join)
        engine_repairs = {} if self.is_joined else repairs  # look-ups need repaired text
        merged = config.model_copy(update={"columns": engine_repairs, "skip": {**source.skip, **config.skip}})
        layout = source.layout | _join_settings_deciding_records(config, source, others)
        super().__init__(name, merged, layout, config.lookup, config.join)
        self.config, self.files, self.format, self.wait = config, source.files, source.format, source.wait
        self.archive, self.wrapped = source.archive, source.wrapped or ()
        is_usual = self.mode == "snapshot" and (self.wait is None or self.wait.then == "fail")
        self.expectation = Expectation(source.required, source.expect, is_usual)
        self._source_config, self._repairs, self._others = source, repairs, others
        self.peers: Sequence[WarehouseStream[W]] = (self,)
        self._open_store = open_store

    def pull(self, ctx: Context[W], since: str | None) -> Iterator[RawBatch]:
        del since  # the intake log knows files by content
        if self.is_joined:
            return self._joined_files(ctx).read()
        return self._shared_file_source(ctx).read(self.stream_id(ctx), self.expectation)

    def finished(self, ctx: Context[W]) -> None:
        if self.is_joined:
            self._joined_files(ctx).finished()
        else:
            self._shared_file_source(ctx).finished(self.stream_id(ctx))

    def announce_file_growth_checks(self, ctx: Context[W]) -> None:
        source = self._joined_files if self.is_joined else self._shared_file_source
        open_store = partial(_open_session, ctx, self._open_store, again=False, ahead=True)
        ctx.run.growth_checks.announce_connection(ctx.connection, open_store, lambda: source(ctx).looks)

    def stream_id(self, ctx: Context[Any]) -> StreamId:
        return StreamId(f"{ctx.connection}.{self.name}", self.version)

    def file_source(
        self,
        ctx: Context[W],
        config: SourceConfig,
        stream_ids: Sequence[StreamId],
        run: SourceContext,
        *,
        snapshot: bool,
        kept: timedelta | None = None,
        parts: bool = False,
        takes_late: bool = False,
    ) -> FileSource:
        return FileSource(
            config.files,
            config.format,
            lambda: _open_session(ctx, self._open_store, again=config.wait is not None and run.patience is not None),
            run,
            settle_s=ctx.settings.settle_s,
            snapshot=snapshot,
            stream_ids=stream_ids,
            kept=kept,
            parts=parts,
            wait=config.wait,
            ready=config.ready,
            manifest=config.manifest,
            archive_to=config.archive,
            order=config.order,
            ignore_case=bool(config.ignore_case),
            ordered_by_rows=[peer.stream_id(ctx) for peer in self.peers if peer.order_by],
            takes_late=takes_late,
            wrapped=config.wrapped or (),
            empty=self.empty if config is self._source_config else "refuse",
            groups={tuple(peer.group_by) for peer in self.peers if peer.group_by and config is self._source_config},
            keeps_empty_groups=all(peer.group_by for peer in self.peers),
        )

    def _shared_file_source(self, ctx: Context[W]) -> FileSource:
        def make() -> FileSource:
            stream_ids = [peer.stream_id(ctx) for peer in self.peers]
            snapshot = self.mode == "snapshot"
            return self.file_source(ctx, self._source_config, stream_ids, ctx.run, snapshot=snapshot)

        return ctx.shared(self.peers, make)

    def _joined_files(self, ctx: Context[W]) -> JoinedFiles:
        def make() -> JoinedFiles:
            return JoinedStream(self, ctx, self._source_config, self._repairs, self._others).joined_files()

        return ctx.shared((self, "joined files"), make)


def streams(settings: W, open_store: OpenStore[W]) -> Sequence[WarehouseStream[W]]:
    """Return the configured streams. Those with equal files, layout and mode share one source, which is read once."""
    made = [
        WarehouseStream(name, config, settings.source_of(config), settings.sources, open_store)
        for name, config in settings.streams.items()
    ]
    for stream in made:
        if stream.is_joined:
            continue
        stream.peers = tuple(other for other in made if not other.is_joined and _reads_same_files(stream, other))
    return made


def _reads_same_files(one: WarehouseStream[Any], other: WarehouseStream[Any]) -> bool:
    facts = [(each.files, each.format, each.mode == "snapshot", each.empty) for each in (one, other)]
    return facts[0] == facts[1]


def _open_session(ctx: Context[W], open_store: OpenStore[W], *, again: bool, ahead: bool = False) -> FileStore:
    """Return a session. A failed log-in is not repeated in this run, so that no account is locked.

    *again* retries a server that was unavailable. *ahead* is before a stream is read, which may find it available.
    """
    failures: list[CrossdockError] = ctx.shared("failed logins", list)
    if failures and not (again and isinstance(failures[0], UnavailableError)):
        raise failures[0]
    try:
        session = open_store(ctx.settings)
    except CrossdockError as failure:
        failures[:] = [] if ahead and isinstance(failure, UnavailableError) else [failure]
        raise
    failures.clear()
    warned: set[str] = ctx.shared("warnings of sessions", set)
    for warning in _session_warnings(session):
        if warning not in warned:
            warned.add(warning)
            ctx.run.note("", warning)
    return session


def _session_warnings(session: FileStore) -> Sequence[str]:
    found: Sequence[str] = getattr(session, "warnings", ())
    return found


def target(settings: WarehouseSettings, open_store: Callable[[], WritableStore], address: str) -> FileTarget | None:
    """Return the target of the section ``target``; None without one."""
    if settings.target is None:
        return None
    from crossdock_connectors.warehouse import target_settings as of_files  # noqa: PLC0415  most have none

    return of_files.target(settings.target, open_store, address)


def check(settings: W, open_store: OpenStore[W], opened_text: str) -> Iterator[Finding]:
    with open_store(settings) as store:
        yield Finding(ok=True, text=opened_text)
        for warning in _session_warnings(store):
            yield Finding(ok=True, text=f"warning: {warning}", code="connection_weak")
        made = streams(settings, open_store)
        sources = [*(settings.source_of(each) for each in settings.streams.values()), *settings.sources.values()]
        for files, source in {source.files: source for source in sources}.items():
            folder, pattern = split_pattern(files, folders=True)
            try:
                found = list_below(store, folder, any_case(pattern) if source.ignore_case else pattern)
            except CrossdockError as error:
                yield Finding(ok=False, text=f"{files}: {error.message}", code=error.code, category=error.category)
            else:
                is_missing = not found and source.required is not False
                text = f"{files}: {len(found)} file{'s' * (len(found) != 1)}, {sum(f.size for f in found):,} bytes"
                yield Finding(ok=not is_missing, text=text, code="file_missing" if is_missing else None)
                newest = () if source.wrapped else warnings_about_newest(store, found, source.format)
                for warning in newest:
                    yield Finding(ok=True, text=f"warning: {warning}", code="cells_doubtful")
        for folder in dict.fromkeys(stream.archive for stream in made if stream.archive is not None):
            try:
                store.list(folder, "")  # no file
            except CrossdockError as error:
                text = f"archive {folder}: {error.message}"
                yield Finding(ok=False, text=text, code=error.code, category=error.category)
            else:
                yield Finding(ok=True, text=f"archive {folder}: is there")


_TRIM = Repair(strip="both")


def _join_settings_deciding_records(
    config: WarehouseStreamConfig, source: SourceConfig, others: Mapping[str, SourceConfig]
) -> dict[str, Any]:
    """Return the parts of look-ups and joins that decide how bytes become records; empty without any."""
    rules: dict[str, Lookup] = {**config.lookup, **config.join}
    if not rules:
        return {}
    used = {rule.source: others[rule.source] for rule in rules.values()}
    repairs = {**source.columns, **config.columns}
    return {
        "columns": {name: repair.model_dump(exclude_none=True) for name, repair in repairs.items()},
        "rules": {name: rule.model_dump(exclude_none=True, exclude={"within"}) for name, rule in rules.items()},
        "sources": {
            name: each.model_dump(include={"columns", "skip"}, exclude_none=True) | {"format": each.layout}
            for name, each in sorted(used.items())
        },
    }


class JoinedStream:
    """One stream with look-ups or joins, in one run. *repairs* are those of *main*, its own source."""

    def __init__(
        self,
        stream: WarehouseStream[Any],
        ctx: Context[Any],
        main: SourceConfig,
        repairs: Mapping[str, Repair],
        others: Mapping[str, SourceConfig],
    ) -> None:
        self._stream, self._ctx, self._config = stream, ctx, stream.config
        self._main, self._repairs, self._others = main, repairs, others
        self._snapshot = stream.mode == "snapshot"

    def joined_files(self) -> JoinedFiles:
        stream_id = self._stream.stream_id(self._ctx)
        source = self._file_source(self._main, stream_id, kept=self._main_file_retention, snapshot=self._snapshot)
        rules = (*self._config.lookup.values(), *self._config.join.values())
        names = [*self._stream.key, *(name for rule in rules for name in rule.columns)]
        main = Part(
            self._main.files,
            source,
            stream_id,
            lambda rows: self._with_trimmed_key_columns(_with_repaired_cells(rows, self._repairs), names),
            self._stream.expectation,
        )
        lookups = {name: self._joined_for_lookup(name, rule) for name, rule in self._config.lookup.items()}
        joins = {name: self._joined_for_join(name, rule) for name, rule in self._config.join.items()}
        return JoinedFiles(main, lookups, joins, self._ctx.run, snapshot=self._snapshot)

    def _joined_for_lookup(self, name: str, rule: Lookup) -> Joined:
        used = self._used_lookup_columns(name)
        columns = None if used is None else [*rule.columns.values(), *used]
        return self._source_with_matching_rule(name, rule, Rule(rule.columns), columns, kept=timedelta(), snapshot=True)

    def _joined_for_join(self, name: str, rule: Join) -> Joined:
        used = self._stream.joined_columns
        columns = None if used is None else [*rule.columns.values(), *rule.key, *used.get(name, ())]
        # a record that is kept has all its rows: also those that arrived `within` before it
        kept = rule.kept_for + (self._main_file_retention or timedelta())
        return self._source_with_matching_rule(
            name, rule, Rule(rule.columns, rule.key), columns, kept=kept, snapshot=self._snapshot
        )

    @property
    def _main_file_retention(self) -> timedelta | None:
        """How long files of the main source are kept. A snapshot is read again with each new look-up file."""
        alone = timedelta() if self._snapshot else None
        return max((join.kept_for for join in self._config.join.values()), default=alone)

    def _source_with_matching_rule(
        self,
        name: str,
        rule: Lookup,
        found_by: Rule,
        columns: Sequence[str] | None,
        *,
        kept: timedelta,
        snapshot: bool,
    ) -> Joined:
        config, own = self._others[rule.source], self._stream.stream_id(self._ctx)
        stream_id = StreamId(f"{own.stream}:{name}", own.version)
        is_join = isinstance(rule, Join)
        source = self._file_source(config, stream_id, kept=kept, snapshot=snapshot, is_join=is_join)
        expectation = Expectation(config.required, config.expect)
        names = [*rule.columns.values(), *found_by.key]
        part = Part(
            config.files,
            source,
            stream_id,
            lambda rows: _without_skipped_rows(
                self._with_trimmed_key_columns(_with_repaired_cells(rows, config.columns), names), config
            ),
            expectation,
        )
        return Joined(part, found_by, None if columns is None else list(dict.fromkeys(columns)))

    def _file_source(
        self,
        config: SourceConfig,
        stream_id: StreamId,
        *,
        kept: timedelta | None,
        snapshot: bool,
        is_join: bool = False,
    ) -> FileSource:
        """Return the files of a source. Those of a join are put in order, and several may be parts of a snapshot."""
        run = self._ctx.run.apart(stream_id.stream.replace(":", "."))
        return self._stream.file_source(
            self._ctx, config, [stream_id], run, kept=kept, snapshot=snapshot, parts=is_join, takes_late=is_join
        )

    def _with_trimmed_key_columns(self, rows: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
        present = [name for name in dict.fromkeys(names) if name in rows.columns]
        return rows.with_columns(_TRIM.expression(name) for name in present) if self._stream.trim_keys else rows

    def _used_lookup_columns(self, lookup: str) -> list[str] | None:
        stream, config = self._stream, self._config
        if stream.uses is None:
            return None
        others = [column for rule in config.lookup.values() for column in rule.columns]
        filters = [column for rule in stream.skip.values() for column in rule.columns()]
        order = [each if isinstance(each, str) else each.column for each in stream.order_by or ()]
        names = [*stream.uses, *filters, *order, *stream.key, *others]
        prefix = f"{lookup}."
        return [name.removeprefix(prefix) for name in names if name.startswith(prefix)]


def _with_repaired_cells(rows: pl.DataFrame, repairs: Mapping[str, Repair]) -> pl.DataFrame:
    """Repair the texts of *rows*. Repairs of missing columns are left out, and reported where they are used."""
    return rows.with_columns(repair.expression(name) for name, repair in repairs.items() if name in rows.columns)


def _without_skipped_rows(rows: pl.DataFrame, config: SourceConfig) -> pl.DataFrame:
    return rows.filter(~pl.any_horizontal(rule.expression() for rule in config.skip.values())) if config.skip else rows
