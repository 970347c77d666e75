"""Settings of a warehouse that exports files, wherever they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from crossdock import ConfigModel, CrossdockError, Filter, Repair, Settings, StreamConfig
from crossdock.sources import DelimitedFormat, Join, Lookup, Name, Wait, split_pattern


def _files(pattern: str) -> str:
    try:
        split_pattern(pattern)
    except CrossdockError as error:
        raise ValueError(f"{error.message}; only the file name may have wildcards") from None
    return pattern


FilesPattern = Annotated[str, AfterValidator(_files)]


class SourceConfig(ConfigModel):
    """Files of one layout that several streams read, once in a run."""

    files: FilesPattern
    """Folder and name pattern, such as ``out/LOT_*.txt``; the folder is relative to the login folder or ``path``."""
    format: DelimitedFormat = DelimitedFormat()
    columns: Mapping[str, Repair] = {}
    """Repairs by column, for all its streams."""
    skip: Mapping[str, Filter] = {}
    """Rows to leave out, for all its streams, before their own filters."""
    wait: Wait | None = None
    """How long scheduled runs, and ``sync --wait``, wait for a file that is new to all its streams."""


class WarehouseStreamConfig(StreamConfig):
    """A stream and its files: either its own, or those of a shared source."""

    source: str | None = None
    """A source of this connection."""
    files: FilesPattern | None = None
    format: DelimitedFormat | None = None
    wait: Wait | None = None
    """How long scheduled runs, and ``sync --wait``, wait for a file that is new to the stream."""
    lookup: Mapping[Name, Lookup] = {}
    """Rows of other sources whose columns are used as ``NAME.COLUMN``; a later one may use those of an earlier one."""
    join: Mapping[Name, Join] = {}
    """Rows of other sources that belong to a record, such as the lines of an order; used by ``each`` with ``of``."""

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.source is None) == (self.files is None):
            raise ValueError("give either source or files")
        if self.source is not None and self.format is not None:
            raise ValueError("the format belongs to the source")
        if self.source is not None and self.wait is not None:
            raise ValueError("the wait belongs to the source")
        return self

    @model_validator(mode="after")
    def _joins_fit(self) -> Self:
        for name, join in self.join.items():
            if list(join.columns) != list(self.key):
                raise ValueError(f"join.{name}.on: name the columns of key, {', '.join(self.key)}, in this order")
        if self.join and self.group_by is not None:
            raise ValueError("join: cannot be used with group_by; each row of the stream is one record")
        if taken := [name for name in self.join if name in self.lookup]:
            raise ValueError(f"lookup.{taken[0]}: a join has the same name")
        for member, form in self.map.items() if isinstance(self.map, Mapping) else ():
            if (of := getattr(form, "of", None)) is not None and of not in self.join:
                raise ValueError(f"map.{member}.of: there is no join {of!r}")
        return self


class WarehouseSettings(Settings):
    """A warehouse that exports files; subclasses add where the files are."""

    settle_s: Annotated[float, Field(ge=0, le=86_400)] = 2.0
    """How long a young file must keep its size and time before it is read."""
    sources: Mapping[str, SourceConfig] = {}
    streams: Annotated[Mapping[Name, WarehouseStreamConfig], Field(min_length=1)]

    @model_validator(mode="after")
    def _sources_fit(self) -> Self:
        for name, stream in self.streams.items():
            used = {"source": stream.source}
            used |= {f"lookup.{each}.source": rule.source for each, rule in stream.lookup.items()}
            used |= {f"join.{each}.source": join.source for each, join in stream.join.items()}
            for place, source in used.items():
                if source is not None and source not in self.sources:
                    raise ValueError(f"streams.{name}.{place}: there is no source {source!r}")
        self._waits_agree()
        return self

    def source_of(self, stream: WarehouseStreamConfig) -> SourceConfig:
        """The source of *stream*: the one it names, or its own."""
        if stream.source is not None:
            return self.sources[stream.source]
        assert stream.files is not None
        return SourceConfig(files=stream.files, format=stream.format or DelimitedFormat(), wait=stream.wait)

    def _waits_agree(self) -> None:
        waits: dict[str, tuple[str, Wait | None]] = {}
        for name, stream in self.streams.items():
            source = self.source_of(stream)
            other, wait = waits.setdefault(source.files, (name, source.wait))
            if wait != source.wait:
                raise ValueError(
                    f"streams.{name}.wait: {other} reads the same files and waits for them differently; "
                    "give both the same wait, or make the files a source of both"
                )
