"""The folder of one run."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path

from crossdock.local_files import private_folder
from crossdock.sources.source_context import writing


def run_folder(stack: ExitStack, spool: Path | None) -> Path:
    """A new private folder, inside *spool* or else where temporary files go; removed when *stack* unwinds."""
    with writing(spool or Path(tempfile.gettempdir())):
        if spool is not None:
            private_folder(spool)
            _sweep(spool)
        folder = Path(tempfile.mkdtemp(prefix=f"run-{os.getpid()}-", dir=spool))
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _sweep(spool: Path) -> None:
    """Remove what runs left behind that were killed."""
    for folder in spool.glob("run-*"):
        owner = folder.name.split("-")[1]
        if owner.isdecimal() and not alive(int(owner)):
            shutil.rmtree(folder, ignore_errors=True)


def alive(process: int) -> bool:
    """True if there is a process of this id on this machine."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
