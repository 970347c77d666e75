"""Settings of a warehouse that exports files, wherever they are."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from crossdock import ConfigModel, CrossdockError, Filter, Repair, Settings, StreamConfig
from crossdock.sources import (
    ArchiveFolder,
    DelimitedFormat,
    Expect,
    FileFormat,
    Join,
    Lookup,
    Manifest,
    MarkerTemplate,
    Name,
    NameOrder,
    Order,
    Wait,
    check_intake,
    split_pattern,
)
from crossdock.values.config_base_types import lazily_imported_type

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


def _check_files_pattern(pattern: str) -> str:
    try:
        split_pattern(pattern, folders=True)
    except CrossdockError as error:
        raise ValueError(error.message) from None
    return pattern


FilesPattern = Annotated[str, AfterValidator(_check_files_pattern)]


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
        _check_intake(self.files, self)
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
            _check_intake(self.files, self)
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


def _check_intake(files: str, part: SourceConfig | WarehouseStreamConfig) -> None:
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
        if self.source_of(stream).format.has_json_object_rows:
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
