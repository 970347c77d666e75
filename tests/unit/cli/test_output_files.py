"""An output that cannot be written is refused before any work."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from crossdock.cli.shared_options_messages_and_signals import raise_if_not_writable
from crossdock.errors import ConfigError


def test_what_can_be_written_is_left_as_it_is(tmp_path: Path) -> None:
    """Neither a new file nor one that is there is touched; no output needs no check."""
    (tmp_path / "old").write_text("old")
    raise_if_not_writable(None, tmp_path / "new", tmp_path / "old")
    assert [each.name for each in tmp_path.iterdir()] == ["old"]
    assert (tmp_path / "old").read_text() == "old"


@pytest.mark.parametrize("name", [".", "pipe", "link", "nowhere/x.plan", "file/x.plan", "x" * 300, "/dev/full"])
def test_what_cannot_be_written_is_named(tmp_path: Path, name: str) -> None:
    """With the path and what to do."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("file")
    with pytest.raises(ConfigError, match="cannot be written: ") as refused:
        raise_if_not_writable(tmp_path / name)
    assert refused.value.where == str(tmp_path / name)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_rights_is_refused(tmp_path: Path) -> None:
    """Before the work, not after it."""
    tmp_path.chmod(0o500)
    with pytest.raises(ConfigError, match="cannot be written: Permission denied"):
        raise_if_not_writable(tmp_path / "x.plan")
    tmp_path.chmod(0o700)
