"""Streams over the files in a folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from crossdock import Context, Finding
from crossdock.sources import FileStore, FolderStore
from crossdock_connectors.folder_warehouse.settings import FolderWarehouseSettings
from crossdock_connectors.warehouse import streams as warehouse

if TYPE_CHECKING:
    from crossdock.targets import FileTarget


def streams(settings: FolderWarehouseSettings) -> Sequence[warehouse.WarehouseStream[FolderWarehouseSettings]]:
    return warehouse.streams(settings, _open)


def check(ctx: Context[FolderWarehouseSettings]) -> Iterator[Finding]:
    return warehouse.check(ctx.settings, _open, f"the folder {ctx.settings.path} is there")


def target(settings: FolderWarehouseSettings) -> FileTarget | None:
    return warehouse.target(settings, lambda: FolderStore(settings.path), str(settings.path))


def _open(settings: FolderWarehouseSettings) -> FileStore:
    return FolderStore(settings.path)
