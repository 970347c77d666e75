"""Settings of a warehouse that exports files, wherever they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from crossdock import ConfigModel, CrossdockError, Filter, Repair, Settings, StreamConfig
from crossdock.sources import DelimitedFormat, Expect, Name, Wait, split_pattern


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
    required: bool | None = None
    """Whether each run needs a new file; by default scheduled runs do, for snapshots."""
    expect: Expect | None = None
    """How often a new file must come, instead of ``required``."""

    @model_validator(mode="after")
    def _one_expectation(self) -> Self:
        if self.required is not None and self.expect is not None:
            raise ValueError("give either required or expect")
        return self


class WarehouseStreamConfig(StreamConfig):
    """A stream and its files: either its own, or those of a shared source."""

    source: str | None = None
    """A source of this connection."""
    files: FilesPattern | None = None
    format: DelimitedFormat | None = None
    wait: Wait | None = None
    """How long scheduled runs, and ``sync --wait``, wait for a file that is new to the stream."""
    required: bool | None = None
    """Whether each run needs a new file; by default scheduled runs do, for snapshots."""
    expect: Expect | None = None
    """How often a new file must come, instead of ``required``."""

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.source is None) == (self.files is None):
            raise ValueError("give either source or files")
        if self.source is not None and self.format is not None:
            raise ValueError("the format belongs to the source")
        if self.source is not None and self.wait is not None:
            raise ValueError("the wait belongs to the source")
        if self.source is not None and (self.required is not None or self.expect is not None):
            raise ValueError("required and expect belong to the source")
        if self.required is not None and self.expect is not None:
            raise ValueError("give either required or expect")
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
            if stream.source is not None and stream.source not in self.sources:
                raise ValueError(f"streams.{name}.source: there is no source {stream.source!r}")
        self._waits_agree()
        return self

    def source_of(self, stream: WarehouseStreamConfig) -> SourceConfig:
        """The source of *stream*: the one it names, or its own."""
        if stream.source is not None:
            return self.sources[stream.source]
        assert stream.files is not None
        return SourceConfig(
            files=stream.files,
            format=stream.format or DelimitedFormat(),
            wait=stream.wait,
            required=stream.required,
            expect=stream.expect,
        )

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
