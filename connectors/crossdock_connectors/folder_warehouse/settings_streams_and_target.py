"""The settings, streams and target of a warehouse that exchanges files in a folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

from pydantic import AfterValidator, Field

from crossdock import Context, Finding, Settings
from crossdock.sources import ConfigPath, FileStore, FolderStore, Name
from crossdock_connectors.warehouse import settings_and_streams as warehouse
from crossdock_connectors.warehouse.settings_and_streams import SourceConfig, WarehouseSettings, WarehouseStreamConfig

if TYPE_CHECKING:
    from crossdock.targets import FileTarget

P = TypeVar("P", SourceConfig, WarehouseStreamConfig)


def _checked_paths_inside_folder(part: P) -> P:
    paths = {
        "files": part.files,
        "ready": part.ready,
        "manifest.files": part.manifest.files if part.manifest else None,
        "archive": part.archive,
    }
    for name, path in paths.items():
        if path is not None and (path.startswith("/") or ".." in path.split("/")):
            raise ValueError(f"{name} must be below path, and written relative to it")
    return part


class FolderSettings(Settings):
    """A folder."""

    path: ConfigPath
    """The folder, on a disk or a mounted share, relative to this file; nothing outside of it is read."""


class FolderWarehouseSettings(WarehouseSettings, FolderSettings):  # the folder comes first
    """A warehouse that exports files to a folder."""

    kind: Literal["folder_warehouse"]
    settle_s: Annotated[float, Field(ge=0, le=86_400)] = 4.0
    """Seconds for which files must keep their size and time before they are read; NFS may report changes 3 s late. 0: a
    run does not wait."""
    sources: Mapping[str, Annotated[SourceConfig, AfterValidator(_checked_paths_inside_folder)]] = {}
    """Files that several streams share, by name."""
    streams: Annotated[
        Mapping[Name, Annotated[WarehouseStreamConfig, AfterValidator(_checked_paths_inside_folder)]],
        Field(min_length=1),
    ]
    """The streams by name."""


def streams(settings: FolderWarehouseSettings) -> Sequence[warehouse.WarehouseStream[FolderWarehouseSettings]]:
    return warehouse.streams(settings, _open)


def check(ctx: Context[FolderWarehouseSettings]) -> Iterator[Finding]:
    return warehouse.check(ctx.settings, _open, f"the folder {ctx.settings.path} is there")


def target(settings: FolderWarehouseSettings) -> FileTarget | None:
    return warehouse.target(settings, lambda: FolderStore(settings.path), str(settings.path))


def _open(settings: FolderWarehouseSettings) -> FileStore:
    return FolderStore(settings.path)
