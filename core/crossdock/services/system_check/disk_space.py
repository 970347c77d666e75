"""The check of free space on this machine's disks."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from crossdock.config.project.project import Project
from crossdock.connector import Finding
from crossdock.values.display_texts import size_text

ALWAYS = 64 * 2**20
"""Bytes that a run needs on each disk for logs of the database and temporary files."""
COPIES, PLANNED, STORED = 2, 1, 3
"""How many copies of a file may exist at once: in the spool, and sorted beside it; as a plan keeps it; in the state, as
the raw form, the payload and the request of each record.
"""


def findings(loaded: Project) -> Iterator[Finding]:
    """Yield for each disk that a run writes to whether the free space is enough for the largest files so far."""
    with loaded.read_state() as tx:
        read = sum(size for stream, size in tx.intake.largest_sizes().items() if stream in loaded.scopes)
    needs = [("spool", loaded.spool, COPIES), ("temporary files", Path(tempfile.gettempdir()), PLANNED)]
    if loaded.state_url.drivername == "sqlite":
        needs.append(("state", Path(loaded.state_url.database or "").parent, STORED))
    disks: dict[int, list[tuple[str, Path, int]]] = {}
    for name, folder, times in needs:
        there = next(each for each in (folder.absolute(), *folder.absolute().parents) if each.exists())
        disks.setdefault(there.stat().st_dev, []).append((name, there, times))
    for uses in disks.values():
        free = shutil.disk_usage(uses[0][1]).free
        need = ALWAYS + read * sum(times for *_, times in uses)
        places = ", ".join(f"{name} in {folder}" for name, folder, _ in uses)
        seen = f"; the largest files of its streams have {size_text(read)}" if read else ""
        text = f"{size_text(free)} free for {places}; a run may need {size_text(need)}{seen}"
        if free >= need:
            yield Finding(ok=True, text=text)
        else:
            yield Finding(ok=False, text=f"{text}; free some space, or move 'spool'", code="disk_space_low")
