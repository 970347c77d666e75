"""Files are opened only if they are regular, created for their owner only, and replaced as a whole."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from crossdock.values.safe_local_files import (
    create_private_file,
    open_or_create_private_file,
    open_regular_file,
    read_regular_file_within_limit,
    replace_file_atomically,
)


@pytest.fixture(params=[0o000, 0o077, 0o777], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_only_regular_files_are_opened(tmp_path: Path) -> None:
    """A pipe without a writer, a folder and a device are refused at once; a link to a file is followed."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to("file")
    for path in (tmp_path / "pipe", tmp_path, Path("/dev/zero")):
        with pytest.raises(OSError, match="not a regular file"):
            open_regular_file(path)
    assert read_regular_file_within_limit(tmp_path / "link", 1) == b"x"
    with pytest.raises(OSError, match="larger than 0 bytes"):
        read_regular_file_within_limit(tmp_path / "file", 0)


def test_what_is_created_is_private(tmp_path: Path, umask: None) -> None:
    """Whatever the umask is, new and replaced files have mode 0600."""
    create_private_file(tmp_path / "new").close()
    open_or_create_private_file(tmp_path / "lock").close()
    replace_file_atomically(tmp_path / "plan", b"1")
    replace_file_atomically(tmp_path / "plan", b"2")
    assert {mode(path) for path in tmp_path.iterdir()} == {0o600}
    assert (tmp_path / "plan").read_bytes() == b"2"


def test_links_are_not_followed(tmp_path: Path) -> None:
    """Where somebody put a link, nothing is created, opened or replaced, neither it nor what it leads to."""
    (tmp_path / "theirs").write_text("theirs")
    for name, target in (("link", "theirs"), ("dangling", "nowhere")):
        (tmp_path / name).symlink_to(target)
        for write in (
            create_private_file,
            open_or_create_private_file,
            lambda path: replace_file_atomically(path, b"ours"),
        ):
            with pytest.raises(OSError):
                write(tmp_path / name)
    assert (tmp_path / "theirs").read_text() == "theirs"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dangling", "link", "theirs"]


def test_what_is_open_keeps_its_content(tmp_path: Path) -> None:
    """A lock file that is there is opened as it is."""
    (tmp_path / "lock").write_text("kept")
    open_or_create_private_file(tmp_path / "lock").close()
    assert (tmp_path / "lock").read_text() == "kept"
