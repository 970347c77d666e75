"""The temporary folder of a run."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from crossdock.reading.sources.run_context import create_run_folder
from crossdock.values.safe_local_files import is_process_alive


def ended_process() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


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
    """Those of running processes, and what has another name, stay."""
    killed, own, other = f"run-{ended_process()}-a", f"run-{os.getpid()}-b", "run-x-c"
    tmp_path.chmod(0o700)
    for name in (killed, own, other):
        (tmp_path / name).mkdir()
    with ExitStack() as stack:
        create_run_folder(stack, tmp_path)
        assert {each.name for each in tmp_path.iterdir()} >= {own, other}
        assert not (tmp_path / killed).exists()


def test_a_plan_uses_the_temporary_folder() -> None:
    """Without a spool the folder is where the system keeps temporary files."""
    with ExitStack() as stack:
        folder = create_run_folder(stack, None)
        assert folder.is_dir()
    assert not folder.exists()


def test_a_process_is_alive_until_it_ends() -> None:
    """This process is alive, an ended one is not."""
    assert is_process_alive(os.getpid())
    assert not is_process_alive(ended_process())
