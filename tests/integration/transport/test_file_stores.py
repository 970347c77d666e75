"""What a file store does, on a real OpenSSH server, on the loopback server and in a folder."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from crossdock.errors import ConfigError, RefusedError, RemoteError
from crossdock.reading.transport import file_store
from crossdock.reading.transport.file_store import RemoteFile, list_below
from crossdock.reading.transport.folder_store import FolderStore
from crossdock.reading.transport.sftp_store import SftpSession


@dataclass
class Place:
    """A store, and the folder behind it."""

    store: SftpSession | FolderStore
    folder: Path
    name: str

    def put(self, name: str, content: bytes = b"x") -> Path:
        path = self.folder / name
        path.write_bytes(content)
        return path


@pytest.fixture
def place(opened: tuple[SftpSession | FolderStore, Path], tmp_path: Path) -> Place:
    store, root = opened
    name = f"out-{tmp_path.name}"
    (root / name).mkdir()
    return Place(store, root / name, name)


def test_lists_matching_regular_files_by_name(place: Place) -> None:
    """Only regular files that match are listed, sorted, with size and whole seconds."""
    os.utime(place.put("INV_2.txt", b"abc"), (1_700_000_000, 1_700_000_000))
    place.put("INV_1.txt")
    place.put(".INV_0.txt")
    place.put("LOT_1.txt")
    (place.folder / "INV_folder.txt").mkdir()
    (place.folder / "INV_link.txt").symlink_to(place.folder / "INV_1.txt")
    (place.folder / "INV_folder_link.txt").symlink_to("INV_folder.txt")
    os.mkfifo(place.folder / "INV_pipe.txt")

    found = place.store.list(place.name, "INV_*.txt")

    assert [file.name for file in found] == ["INV_1.txt", "INV_2.txt"]
    assert (found[1].size, found[1].mtime, found[1].path) == (3, 1_700_000_000, f"{place.name}/INV_2.txt")


@pytest.mark.parametrize("target", ["nowhere", "LOT_1.txt", "../secret.txt", "INV_2.txt"])
def test_a_link_to_a_file_that_is_not_listed_is_refused(place: Place, target: str) -> None:
    """A link may be the newest export: unless its target is read itself, it is named, whether or not it leads out."""
    place.put("INV_1.txt")
    place.put("LOT_1.txt")
    (place.folder.parent / "secret.txt").write_bytes(b"secret")
    (place.folder / "INV_2.txt").symlink_to(target)
    with pytest.raises(RefusedError, match=r"'INV_2.txt', which matches 'INV_\*.txt', is a link") as caught:
        place.store.list(place.name, "INV_*.txt")
    assert caught.value.hint == "replace it by its target, or narrow the pattern"
    (place.folder.parent / "secret.txt").unlink()


def test_lists_more_files_than_one_answer_holds(place: Place) -> None:
    """A folder with many files is listed whole."""
    names = [f"LOT_{number:04}.txt" for number in range(500)]
    for name in names:
        place.put(name)
    assert [file.name for file in place.store.list(place.name, "*")] == names


def test_folders_that_match_are_looked_into(place: Place) -> None:
    """The names of files begin with their folders; links, dot folders and what is not a folder are left out."""
    for name in ("2026", "2026/11", "2026/12", "2025", "2025/01", ".2026", "other"):
        (place.folder / name).mkdir()
    for name in ("2026/12/a.txt", "2026/11/a.txt", "2025/01/b.txt", ".2026/a.txt", "2026/a.txt", "20"):
        place.put(name, name.encode())
    (place.folder / "2027").symlink_to("2026")
    assert place.store.folders(place.name, "20*") == ["2025", "2026"]
    found = list_below(place.store, place.name, "20*/*/a.txt")
    assert [file.name for file in found] == ["2026/11/a.txt", "2026/12/a.txt"]
    sink = io.BytesIO()
    place.store.fetch(found[0], sink)
    assert sink.getvalue() == b"2026/11/a.txt"
    (place.folder / "b\\d").mkdir()
    with pytest.raises(RefusedError, match="unsafe name"):
        list_below(place.store, place.name, "*/*/a.txt")
    with pytest.raises(ConfigError, match="does not exist"):
        list_below(place.store, "no/such", "*/*/a.txt")


def test_a_folder_that_goes_while_folders_are_listed_is_left_out(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Senders remove old folders at any time; too many of them are refused."""
    for name in ("1", "2"):
        (place.folder / name).mkdir()
        place.put(f"{name}/a.txt")
    listed = place.store.folders(place.name, "*")
    (place.folder / "1" / "a.txt").unlink()
    (place.folder / "1").rmdir()
    with monkeypatch.context() as patch:
        patch.setattr(place.store, "folders", lambda *_: listed)
        assert [file.name for file in list_below(place.store, place.name, "*/a.txt")] == ["2/a.txt"]
    monkeypatch.setattr(file_store, "MAX_FOLDERS", 0)
    with pytest.raises(RefusedError, match="more than 0 folders that match"):
        list_below(place.store, place.name, "*/a.txt")


def test_stat_describes_what_list_describes(place: Place) -> None:
    """A file is the same whether it is listed or asked for."""
    place.put("a b ü.txt", b"12345")
    assert [place.store.stat(f"{place.name}/a b ü.txt")] == place.store.list(place.name, "*")


@pytest.mark.parametrize("size", [0, 1, 32 * 1024, 32 * 1024 + 1])
def test_fetches_small_files_exactly(place: Place, size: int) -> None:
    """Sizes around the block size, and empty files, arrive whole."""
    content = os.urandom(size)
    place.put("a.txt", content)
    sink = io.BytesIO()
    place.store.fetch(place.store.stat(f"{place.name}/a.txt"), sink)
    assert sink.getvalue() == content


def test_fetches_a_large_file_exactly_and_tells_progress(place: Place, tmp_path: Path) -> None:
    """Twenty megabytes arrive with the same checksum, and the reported progress adds up to them."""
    content = os.urandom(1024 * 1024) * 20
    place.put("big.txt", content)
    steps: list[int] = []
    with (tmp_path / "sink").open("w+b") as sink:
        place.store.fetch(place.store.stat(f"{place.name}/big.txt"), sink, steps.append)
        sink.seek(0)
        assert hashlib.file_digest(sink, "sha256").digest() == hashlib.sha256(content).digest()
    assert sum(steps) == len(content)


def test_an_error_of_the_sink_stays_what_it_is(place: Place) -> None:
    """A full disk is no failure of the store, and the store can be used afterwards."""

    class Full(io.BytesIO):
        def write(self, _: object) -> int:
            raise OSError(28, "No space left on device")

    place.put("a.txt", b"x" * 100_000)
    with pytest.raises(OSError, match="No space left"):
        place.store.fetch(place.store.stat(f"{place.name}/a.txt"), Full())
    again = io.BytesIO()
    place.store.fetch(place.store.stat(f"{place.name}/a.txt"), again)
    assert again.getvalue() == b"x" * 100_000


def test_missing_folder_is_named(place: Place) -> None:
    """A folder that does not exist is an error of the configuration, with its name."""
    with pytest.raises(ConfigError, match=r"folder '.*no/such' does not exist"):
        place.store.list("no/such", "*")
    with pytest.raises(ConfigError, match=r"folder '.*no/such' does not exist"):
        place.store.described(f"{place.name}/no/such/file.txt")


def test_missing_file_is_named(place: Place) -> None:
    """A file that does not exist is named, whether asked for or fetched."""
    with pytest.raises(RemoteError, match=f"file '{place.name}/gone.txt' does not exist"):
        place.store.stat(f"{place.name}/gone.txt")
    with pytest.raises(RemoteError, match=f"file '{place.name}/gone.txt' does not exist"):
        place.store.fetch(RemoteFile("gone.txt", 1, 1, place.name), io.BytesIO())


@pytest.mark.parametrize("kind", ["link", "folder", "pipe"])
def test_takes_only_regular_files(place: Place, kind: str) -> None:
    """Links are not followed, and nothing but a regular file is opened."""
    path = place.folder / "odd"
    if kind == "link":
        path.symlink_to(place.put("target"))
    elif kind == "folder":
        path.mkdir()
    else:
        os.mkfifo(path)
    with pytest.raises(RefusedError, match="not a regular file"):
        place.store.stat(f"{place.name}/odd")
    with pytest.raises(RefusedError, match="not a regular file"):
        place.store.fetch(RemoteFile("odd", 1, 1, place.name), io.BytesIO())


@pytest.mark.parametrize(
    "name", [b"a\n.txt", b"a\x1b[2J.txt", b"a\x7f.txt", b"a\\b.txt", b"\xfc.txt", "a\u2028.txt".encode()]
)
def test_a_matching_unsafe_name_refuses_the_listing(place: Place, name: bytes) -> None:
    """Names with control characters, backslashes or broken UTF-8 are reported, never taken or passed over."""
    place.put(os.fsdecode(name))
    with pytest.raises(RefusedError, match="unsafe name") as caught:
        place.store.list(place.name, "*.txt")
    assert str(caught.value).isascii()
    assert place.store.list(place.name, "*.csv") == []


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        pytest.param(lambda path: path.write_bytes(b"x" * 412_000), "grew from 300000 to 412000 bytes", id="grew"),
        pytest.param(lambda path: path.write_bytes(b"x" * 10), "shrank from 300000 to 10 bytes", id="shrank"),
        pytest.param(lambda path: os.utime(path, (1, 1)), "was written or replaced", id="written"),
        pytest.param(lambda path: path.unlink(), "was removed or renamed", id="removed"),
    ],
)
def test_a_file_that_changes_while_it_is_read_is_refused(place: Place, change: object, reason: str) -> None:
    """Whatever happens to a file between its first and its last byte, it is not taken for whole."""
    path = place.put("a.txt", b"x" * 300_000)
    changes = [change]

    def meddle(_: int) -> None:
        while changes:
            changes.pop()(path)  # type: ignore[operator]

    with pytest.raises(RefusedError, match=reason) as caught:
        place.store.fetch(place.store.stat(f"{place.name}/a.txt"), io.BytesIO(), meddle)
    assert "a.txt" in str(caught.value)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        pytest.param(lambda path: path.write_bytes(b"x" * 4), "shrank from 8 to 4 bytes", id="another size"),
        pytest.param(lambda path: path.write_bytes(b"y" * 8), "was written or replaced", id="the same size"),
        pytest.param(lambda path: os.utime(path, (1, 1)), "was written or replaced", id="an older time"),
    ],
)
def test_a_file_that_changes_after_it_was_listed_is_refused(
    place: Place, change: Callable[[Path], object], reason: str
) -> None:
    """What kept still when it was looked at, and was written since, may be half a file: not a byte of it is taken."""
    path, sink = place.put("a.txt", b"x" * 8), io.BytesIO()
    os.utime(path, (1_700_000_000, 1_700_000_000))
    (listed,) = place.store.list(place.name, "a.txt")
    change(path)
    with pytest.raises(RefusedError, match=f"a.txt' {reason} after it was listed") as caught:
        place.store.fetch(listed, sink)
    assert sink.getvalue() == b""
    assert caught.value.hint == "nothing of it was taken in; run again when the sender has finished writing it"
    (listed,) = place.store.list(place.name, "a.txt")
    place.store.fetch(listed, sink)
    assert sink.getvalue() == path.read_bytes()
