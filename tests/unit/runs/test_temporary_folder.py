"""The temporary folder of a run."""

from __future__ import annotations

import errno
import fcntl
import stat
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from crossdock.reading.sources.run_context import create_run_folder


def test_the_folder_is_private_and_removed(tmp_path: Path) -> None:
    """It is in the spool, only for its owner, and gone with everything in it when the stack unwinds."""
    spool = tmp_path / "spool"
    with ExitStack() as stack:
        folder = create_run_folder(stack, spool)
        (folder / "part").write_bytes(b"x")
        assert folder.parent == spool
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert list(spool.iterdir()) == []


def test_folders_of_killed_runs_are_removed(tmp_path: Path) -> None:
    """Those of other runs in progress stay, whatever the numbers of their processes, and what has another name."""
    spool, killed = tmp_path / "spool", tmp_path / "spool" / "run-1-a"
    with ExitStack() as stack:
        mine = create_run_folder(stack, spool)
        program = f"from {create_run_folder.__module__} import *; import sys; from contextlib import ExitStack"
        program += f"; print(create_run_folder(ExitStack(), Path({str(spool)!r})), flush=True); sys.stdin.read()"
        command = [sys.executable, "-c", program]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            other = Path(process.stdout.readline().strip())
            killed.mkdir()
            (spool / "kept").mkdir()
            with ExitStack() as later:
                create_run_folder(later, spool)
                assert {*spool.iterdir()} >= {mine, other, spool / "kept"}
                assert not killed.exists()
            process.kill()
        with ExitStack() as later:
            create_run_folder(later, spool)
        assert {*spool.iterdir()} == {mine, spool / "kept"}


def test_a_spool_whose_folders_cannot_be_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run works there, and no run removes what may be another one's."""

    def unsupported(_descriptor: int, _operation: int) -> None:
        raise OSError(errno.EBADF, "as NFS answers for a folder")

    monkeypatch.setattr(fcntl, "flock", unsupported)
    spool = tmp_path / "spool"
    with ExitStack() as first, ExitStack() as second:
        folders = {create_run_folder(first, spool), create_run_folder(second, spool)}
        assert {*spool.iterdir()} == folders


def test_a_plan_uses_the_temporary_folder() -> None:
    """Without a spool the folder is where the system keeps temporary files."""
    with ExitStack() as stack:
        folder = create_run_folder(stack, None)
        assert folder.is_dir()
    assert not folder.exists()
