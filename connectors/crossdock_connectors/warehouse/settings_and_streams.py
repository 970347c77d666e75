"""The settings of a warehouse that exports files, wherever they are, and its streams, also over several sources with
look-ups and joins. The config declares their mapping.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, Self, TypeVar

import polars as pl
from pydantic import AfterValidator, ConfigDict, Field, model_validator

from crossdock import (
    ConfigModel,
    Context,
    CrossdockError,
    DeclaredStream,
    Filter,
    Finding,
    RawBatch,
    Repair,
    Settings,
    StreamConfig,
)
from crossdock.sources import (
    ArchiveFolder,
    DelimitedFormat,
    Expect,
    Expectation,
    FileFormat,
    FileSource,
    FileStore,
    Join,
    Joined,
    JoinedFiles,
    Lookup,
    Manifest,
    MarkerTemplate,
    Name,
    NameOrder,
    Order,
    Part,
    Rule,
    SourceContext,
    StreamId,
    UnavailableError,
    Wait,
    any_case,
    check_intake,
    list_below,
    split_pattern,
    warnings_about_newest,
)
from crossdock.values.config_base_types import lazily_imported_type

if TYPE_CHECKING:
    from crossdock.sources import WritableStore
    from crossdock.targets import FileTarget

if TYPE_CHECKING:
    from crossdock.sources import Wrapped
    from crossdock_connectors.warehouse.target_settings import FileTargetConfig
else:
    Wrapped = Annotated[Any, lazily_imported_type(lambda: import_module("crossdock.sources").Wrapped)]
    FileTargetConfig = Annotated[
        Any,
        lazily_imported_type(lambda: import_module("crossdock_connectors.warehouse.target_settings").FileTargetConfig),
    ]

_DIFFERENT = {"wait": "and waits for them differently"}


def _checked_files_pattern(pattern: str) -> str:
    try:
        split_pattern(pattern, folders=True)
    except CrossdockError as error:
        raise ValueError(error.message) from None
    return pattern


FilesPattern = Annotated[str, AfterValidator(_checked_files_pattern)]


class IntakeConfig(ConfigModel):
    """When and how files are taken in: the same for all streams that read the same files."""

    wait: Wait | None = None
    """How long scheduled runs, and ``sync --wait``, wait for a file that is new to all streams that read it."""
    ready: MarkerTemplate | None = None
    """The name of the marker that shows that a file is complete, such as ``{name}.done``, ``{stem}.ok`` or
    ``flags/{name}``."""
    order: Order | None = None
    """Which file is newer, where names and times do not say it: ``name: FORM`` of their names, or a list of forms,
    ``modified``, or ``any``."""
    manifest: Manifest | None = None
    """Files in which the sender states the rows, bytes or checksums of its files."""
    wrapped: Wrapped | None = None
    """What files are wrapped in, the outermost first, at most two, such as ``[pgp, gzip]``. Without it, they may be
    gzip."""
    archive: ArchiveFolder | None = None
    """Where files are moved once all their records are settled or kept."""
    ignore_case: bool | None = None
    """Whether the wildcards and letters of ``files``, and the forms of ``order``, match upper and lower case alike."""
    required: bool | None = None
    """Whether each run needs a new file; by default scheduled runs do, for snapshots."""
    expect: Expect | None = None
    """How often a new file must come, instead of ``required``."""


class SourceConfig(IntakeConfig):
    """Files of one layout that several streams read, once in a run."""

    files: FilesPattern
    """Folder and name pattern, such as ``out/LOT_*.txt`` or ``out/*/*/*/LOT.txt``; the folder is relative to the login
    folder or ``path``."""
    format: FileFormat = DelimitedFormat()
    """The layout of the files."""
    columns: Mapping[str, Repair] = {}
    """Repairs by column, for all its streams."""
    skip: Mapping[str, Filter] = {}
    """Rows to leave out, for all its streams, before their own filters."""

    @property
    def layout(self) -> dict[str, Any]:
        """What decides how the bytes of a file become rows."""
        chosen = [
            dict(layer.settings_that_choose_records)
            for layer in self.wrapped or ()
            if layer.settings_that_choose_records
        ]
        return self.format.model_dump(exclude_none=True) | ({"wrapped": chosen} if chosen else {})

    @model_validator(mode="after")
    def _check_intake_settings(self) -> Self:
        _raise_if_intake_is_unusable(self.files, self)
        return self


class WarehouseStreamConfig(StreamConfig, IntakeConfig):
    """A stream and its files: either its own, or those of a shared source."""

    model_config = ConfigDict(defer_build=False)  # otherwise it is built again in each model that has it

    source: str | None = None
    """A source of this connection, in place of ``files``."""
    files: FilesPattern | None = None
    """Folder and name pattern of the files, such as ``out/ITEM_*.csv``, in place of ``source``. Folders may have
    wildcards, too."""
    format: FileFormat | None = None
    """The layout of ``files``. Default: that of the source."""
    lookup: Mapping[Name, Lookup] = {}
    """Rows of other sources whose columns are used as ``NAME.COLUMN``; a later one may use those of an earlier one."""
    join: Mapping[Name, Join] = {}
    """Rows of other sources that belong to a record, such as the lines of an order; used by ``each`` with ``of``."""

    @model_validator(mode="after")
    def _check_one_source(self) -> Self:
        if (self.source is None) == (self.files is None):
            raise ValueError("give either source or files")
        for name in ("format", *IntakeConfig.model_fields):
            if self.source is not None and getattr(self, name) is not None:
                raise ValueError(f"the {name} belongs to the source")
        if self.files is not None:
            _raise_if_intake_is_unusable(self.files, self)
        return self

    @model_validator(mode="after")
    def _check_joins(self) -> Self:
        for name, join in self.join.items():
            if list(join.columns) != list(self.key):
                raise ValueError(f"join.{name}.on: name the columns of key, {', '.join(self.key)}, in this order")
        if self.join and self.group_by is not None:
            raise ValueError("join: cannot be used with group_by; each row of the stream is one record")
        if taken := [name for name in self.join if name in self.lookup]:
            raise ValueError(f"lookup.{taken[0]}: a join has the same name")
        return self

    def joined_source_names_by_place(self) -> dict[str, str]:
        lookups = {f"lookup.{name}.source": rule.source for name, rule in self.lookup.items()}
        return lookups | {f"join.{name}.source": join.source for name, join in self.join.items()}


def _raise_if_intake_is_unusable(files: str, part: SourceConfig | WarehouseStreamConfig) -> None:
    try:
        check_intake(files, ready=part.ready, manifest=part.manifest, archive=part.archive)
    except CrossdockError as error:
        raise ValueError(error.message) from None
    _, pattern = split_pattern(files, folders=True)
    depth, order = pattern.count("/"), part.order
    if isinstance(order, NameOrder):
        for form in [order.name] if isinstance(order.name, str) else order.name:
            if form.count("/") != depth:
                message = f"{form!r} must be the form of {pattern!r}, with a slash for each of its folders"
                raise ValueError(message if depth else f"order: {form!r} must be the form of a name, without a folder")
    if part.required is not None and part.expect is not None:
        raise ValueError("give either required or expect")


class WarehouseSettings(Settings):
    """A warehouse that exports files; subclasses add where the files are."""

    settle_s: Annotated[float, Field(ge=0, le=86_400)] = 2.0
    """Seconds for which files must keep their size and time before they are read; a run waits once for all of them. 0:
    it does not wait."""
    sources: Mapping[str, SourceConfig] = {}
    """Files that several streams share, by name."""
    streams: Annotated[Mapping[Name, WarehouseStreamConfig], Field(min_length=1)]
    """The streams by name."""
    target: FileTargetConfig | None = None
    """The files that the warehouse takes; none if it only exports."""

    @model_validator(mode="after")
    def _check_sources(self) -> Self:
        for name, stream in self.streams.items():
            for place, source in {"source": stream.source, **stream.joined_source_names_by_place()}.items():
                if source is not None and source not in self.sources:
                    raise ValueError(f"streams.{name}.{place}: there is no source {source!r}")
            self._check_map_names_known_joins(name, stream)
        self._check_same_intake()
        self._check_one_reader_if_archived()
        return self

    def _check_map_names_known_joins(self, name: str, stream: WarehouseStreamConfig) -> None:
        if self.source_of(stream).format.has_paths:
            return
        for member, form in stream.map.items() if isinstance(stream.map, Mapping) else ():
            if (of := getattr(form, "of", None)) is not None and of not in stream.join:
                raise ValueError(f"streams.{name}.map.{member}.of: there is no join {of!r}")

    def source_of(self, stream: WarehouseStreamConfig) -> SourceConfig:
        if stream.source is not None:
            return self.sources[stream.source]
        assert stream.files is not None
        intake = {name: getattr(stream, name) for name in IntakeConfig.model_fields}
        return SourceConfig(files=stream.files, format=stream.format or DelimitedFormat(), **intake)

    def _check_same_intake(self) -> None:
        """Check that streams with the same files have the same intake, and are read together if the files are moved."""
        first: dict[str, tuple[str, SourceConfig, bool]] = {}
        for name, stream in self.streams.items():
            source, is_snapshot = self.source_of(stream), stream.mode == "snapshot"
            if source.order == "any" and is_snapshot:
                raise ValueError(f"streams.{name}.order: of snapshots the newest one counts, so 'any' cannot be meant")
            other, others, mode = first.setdefault(source.files, (name, source, is_snapshot))
            for key in IntakeConfig.model_fields:
                if getattr(source, key) != getattr(others, key):
                    message = _DIFFERENT.get(key, f"and has another {key}")
                    advice = f"give both the same {key}, or make the files a source of both"
                    raise ValueError(f"streams.{name}.{key}: {other} reads the same files {message}; {advice}")
            if source.archive is not None and (source.format, is_snapshot) != (others.format, mode):
                message = f"{other} reads the same files with another format or mode"
                raise ValueError(f"streams.{name}.archive: {message}, and may read them after they were moved")

    def _check_one_reader_if_archived(self) -> None:
        """Check that a source with an archive that is looked up or joined is read by only one stream."""
        joined = [
            (name, source)
            for name, stream in self.streams.items()
            for source in stream.joined_source_names_by_place().values()
        ]
        readers = [(name, stream.source) for name, stream in self.streams.items()] + joined
        for name, source in joined:
            others = [other for other, read in readers if read == source and (other, read) != (name, source)]
            if self.sources[source].archive is not None and others:
                message = f"streams.{others[0]} reads the same source, and may read the files after they were moved"
                raise ValueError(f"sources.{source}.archive: {message}; leave archive out")


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
        ctx.run.growth_checks.announce_connection_to_be_read(ctx.connection, open_store, lambda: source(ctx).looks)

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
