"""Moving a file, on a real OpenSSH server, on the loopback server and in a folder: it never costs a byte."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from crossdock.errors import ConfigError, RefusedError, RemoteError
from crossdock.reading.transport.file_store import ArchivingStore, RemoteFile
from crossdock.reading.transport.folder_store import FolderStore
from crossdock.reading.transport.sftp_store import SftpSession

WRITTEN = 1_700_000_000
DATED = "stock.20231114T221320Z.csv"


@dataclass
class Place:
    """A store, and a folder ``out`` behind it with the archive ``done``."""

    store: ArchivingStore
    folder: Path
    name: str

    def put(self, name: str, content: str, written: int = WRITTEN) -> Path:
        path = self.folder / name
        path.write_text(content)
        os.utime(path, (written, written))
        return path

    def find(self, name: str) -> RemoteFile:
        (file,) = self.store.list(self.name, name)
        return file

    @property
    def done(self) -> str:
        return f"{self.name}/done"

    def archived(self) -> dict[str, str]:
        return {path.name: path.read_text() for path in (self.folder / "done").iterdir()}


@pytest.fixture
def place(opened: tuple[SftpSession | FolderStore, Path], tmp_path: Path) -> Place:
    store, root = opened
    name = f"out-{tmp_path.name}"
    (root / name / "done").mkdir(parents=True)
    return Place(store, root / name, name)


def test_a_moved_file_is_whole(place: Place) -> None:
    """It is in the archive, and no longer where it was."""
    place.put("stock.csv", "one")
    assert place.store.move(place.find("stock.csv"), place.done) == "stock.csv"
    assert place.archived() == {"stock.csv": "one"}
    assert place.store.list(place.name, "*") == []


def test_nothing_is_overwritten(place: Place) -> None:
    """A taken name gets the file's time; if that is taken too, the file stays."""
    for content, expected in (("one", "stock.csv"), ("two", DATED)):
        place.put("stock.csv", content)
        assert place.store.move(place.find("stock.csv"), place.done) == expected
    place.put("stock.csv", "three")
    with pytest.raises(RefusedError, match="are there already"):
        place.store.move(place.find("stock.csv"), place.done)
    assert place.archived() == {"stock.csv": "one", DATED: "two"}
    assert (place.folder / "stock.csv").read_text() == "three"


def test_a_file_that_has_changed_stays(place: Place) -> None:
    """A new upload of that name has not been read, and is not moved."""
    place.put("stock.csv", "one")
    known = place.find("stock.csv")
    place.put("stock.csv", "another one", WRITTEN + 60)
    with pytest.raises(RefusedError, match="grew|written or replaced"):
        place.store.move(known, place.done)
    assert place.archived() == {}
    assert (place.folder / "stock.csv").read_text() == "another one"


def test_a_file_or_folder_that_is_not_there(place: Place) -> None:
    """Both are errors that say so."""
    place.put("stock.csv", "one")
    known = place.find("stock.csv")
    with pytest.raises(ConfigError, match="does not exist"):
        place.store.move(known, f"{place.name}/elsewhere")
    (place.folder / "stock.csv").unlink()
    with pytest.raises((RefusedError, RemoteError), match="does not exist|removed or renamed"):
        place.store.move(known, place.done)
    assert place.archived() == {}


def test_a_folder_archive_is_below_the_root(tmp_path: Path) -> None:
    """A link does not lead out of it."""
    (tmp_path / "root").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "root" / "done").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "root" / "a").write_text("x")
    store = FolderStore(tmp_path / "root")
    (file,) = store.list("", "a")
    with pytest.raises(RefusedError, match="outside"):
        store.move(file, "done")
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_new_file_that_comes_meanwhile_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What replaces the file between the look at it and the move is put back."""
    (tmp_path / "done").mkdir()
    (tmp_path / "a").write_text("old")
    store = FolderStore(tmp_path)
    (file,) = store.list("", "a")
    rename = os.rename

    def late(source: str, target: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        (tmp_path / "new").write_text("new upload")
        (tmp_path / "new").replace(tmp_path / "a")
        rename(source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

    monkeypatch.setattr(os, "rename", late)
    with pytest.raises(RefusedError):
        store.move(file, "done")
    assert (tmp_path / "a").read_text() == "new upload"
    assert list((tmp_path / "done").iterdir()) == []
