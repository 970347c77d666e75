"""Files of tests in this process, which need not reach the disk: no power is cut here."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from crossdock.sandbox import database


@contextmanager
def quick_disk() -> Iterator[None]:
    """Wait for the disk after no commit of a sandbox and no other write; `quick_states` does the same for states."""
    connect = database.open_database

    def connected(path: Path) -> sqlite3.Connection:
        made = connect(path)
        made.execute("PRAGMA synchronous=OFF")
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "open_database", connected)
        patch.setattr(os, "fsync", lambda _: None)
        yield
