"""What crossdock keeps of other people's data is for its own user alone."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from crossdock.errors import StateError
from crossdock.values.safe_local_files import create_private_file, create_private_folder

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
STRANGER = 4711


@pytest.fixture(autouse=True)
def generous() -> Iterator[None]:
    """A process whose new files everybody may write."""
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_a_file_is_for_its_owner(tmp_path: Path) -> None:
    """Whatever the umask, nobody else may read or write it."""
    with create_private_file(tmp_path / "copy") as file:
        file.write(b"x")
    assert (mode(tmp_path / "copy"), (tmp_path / "copy").read_bytes()) == (0o600, b"x")


@pytest.mark.parametrize("what", ["file", "link", "dangling link"])
def test_nothing_is_written_over_or_through(tmp_path: Path, what: str) -> None:
    """A file or a link that stands there already is left as it is, and nothing is made where it leads."""
    path, other = tmp_path / "copy", tmp_path / "other"
    if what != "dangling link":
        (path if what == "file" else other).write_text("theirs")
    if what != "file":
        path.symlink_to(other)
    with pytest.raises(FileExistsError):
        create_private_file(path)
    assert other.exists() == (what == "link")
    assert what == "dangling link" or path.read_text() == "theirs"


def test_a_folder_that_is_made_is_private(tmp_path: Path) -> None:
    """It is made with its parents, and made again does no harm; a link of our own may lead to it."""
    create_private_folder(tmp_path / "a" / "spool")
    create_private_folder(tmp_path / "a" / "spool")
    assert mode(tmp_path / "a" / "spool") == 0o700
    (tmp_path / "link").symlink_to(tmp_path / "a" / "spool")
    create_private_folder(tmp_path / "link")


@pytest.mark.parametrize("open_to", [0o755, 0o710, 0o701, 0o1777, 0o740])
def test_a_folder_that_others_can_reach_is_refused(tmp_path: Path, open_to: int) -> None:
    """The message says what is wrong with which folder, and how to close it; nothing is closed unasked."""
    (tmp_path / "spool").mkdir()
    (tmp_path / "spool").chmod(open_to)
    with pytest.raises(StateError, match=rf"open to other users \(mode {open_to:o}\)") as refused:
        create_private_folder(tmp_path / "spool")
    assert f"chmod 700 {tmp_path / 'spool'}" in str(refused.value)
    assert mode(tmp_path / "spool") == open_to


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    """What is not a folder is named as that."""
    (tmp_path / "spool").touch()
    with pytest.raises(StateError, match="is not a folder"):
        create_private_folder(tmp_path / "spool")


@AS_ROOT
@pytest.mark.parametrize("what", ["folder", "link"])
def test_what_a_stranger_put_there_is_refused(tmp_path: Path, what: str) -> None:
    """Neither a folder of another user is taken, nor a link of theirs, though it leads to a folder of ours."""
    spool = tmp_path / "spool"
    if what == "folder":
        spool.mkdir(mode=0o700)
    else:
        (tmp_path / "ours").mkdir(mode=0o700)
        spool.symlink_to(tmp_path / "ours")
    os.chown(spool, STRANGER, STRANGER, follow_symlinks=False)
    with pytest.raises(StateError, match=f"(belongs to|is a link of) user {STRANGER}"):
        create_private_folder(spool)
