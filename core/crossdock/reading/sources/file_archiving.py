"""Archiving: moves files to another folder of their store once all of their records are settled or kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import AfterValidator

from crossdock.errors import CrossdockError
from crossdock.reading.sources.known_files import KnownFiles
from crossdock.reading.sources.listing_of_complete_files import FileListing
from crossdock.reading.transport.file_store import ArchivingStore, FileStore, RemoteFile, split_pattern
from crossdock.state import FileFacts


def _checked_folder_text(value: str) -> str:
    folder = value.rstrip("/")
    try:
        split_pattern(f"{folder}/x")
    except CrossdockError as error:
        raise ValueError(error.message) from None
    if not folder:
        raise ValueError("must be a folder, such as done/")
    return folder


ArchiveFolder = Annotated[str, AfterValidator(_checked_folder_text)]
"""A folder, relative to the same place as the files."""


def archive_finished_files(
    store: FileStore,
    folder: str,
    listing: FileListing,
    known: KnownFiles,
    fetched: Mapping[RemoteFile, str],
    taken: Sequence[FileFacts],
) -> None:
    """Move the files that every stream has finished to *folder*, the oldest first. The first failure ends it.

    Each marker is moved first: without its file, it would make a later file of that name look complete.
    """
    finished = known.files_finished_by_all_streams(listing.all_data_files(store), fetched, taken)
    if not finished:
        return
    if not isinstance(store, ArchivingStore):
        raise CrossdockError(
            "this store cannot move files",
            where=folder,
            hint="remove 'archive' from the config",
            code="files_not_movable",
        )
    markers = listing.markers(store)
    for file in finished:
        if marker := markers.get(listing.marker_name(file)):
            store.move(marker, folder)
        store.move(file, folder)
