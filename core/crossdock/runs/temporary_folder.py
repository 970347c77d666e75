"""The temporary folder of a run."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path

from crossdock.reading.sources.run_context import write_errors
from crossdock.values.local_files import create_private_folder, is_alive


def run_folder(stack: ExitStack, spool: Path | None) -> Path:
    """Create a private folder in *spool*, or in the system's temporary folder. It is removed when *stack* unwinds."""
    with write_errors(spool or Path(tempfile.gettempdir())):
        if spool is not None:
            create_private_folder(spool)
            _remove_abandoned(spool)
        folder = Path(tempfile.mkdtemp(prefix=f"run-{os.getpid()}-", dir=spool))
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _remove_abandoned(spool: Path) -> None:
    for folder in spool.glob("run-*"):
        owner = folder.name.split("-")[1]
        if owner.isdecimal() and not is_alive(int(owner)):
            shutil.rmtree(folder, ignore_errors=True)
