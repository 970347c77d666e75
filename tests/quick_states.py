"""States that many runs in one process open: they share their compiled statements, and do not wait for the disk.

A new one is a copy of an empty one, with its own facts: making its tables takes twenty times as long.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import Engine

from crossdock.config.project import project
from crossdock.state import (
    PinnedTenant,
    State,
    StateUrl,
    Transaction,
    create_or_upgrade_state,
    open_state,
    parse_database_url,
)
from crossdock.state.db import database_opening_and_errors
from crossdock.state.db.database_opening_and_errors import open_engine_of_state


class _Compiled(dict[Any, Any]):
    """Compiled statements by database; SQLAlchemy's keys begin with the dialect, of which each engine has its own."""

    def get(self, key: Any, default: Any = None) -> Any:
        return super().get((key[0].name, *key[1:]), default)

    def __setitem__(self, key: Any, compiled: Any) -> None:
        super().__setitem__((key[0].name, *key[1:]), compiled)


@contextmanager
def quick_states() -> Iterator[None]:
    """Open all states of this process in this way, and make those of projects as copies: no power is cut here."""
    compiled = _Compiled()

    def opened(url: StateUrl, pin: Any, **options: Any) -> Engine:
        return open_engine_of_state(url, pin, **options).execution_options(compiled_cache=compiled)

    def without_waiting(url: StateUrl, **options: Any) -> Engine:
        return sqlite_engine(url, **{**options, "synchronous": "OFF"})

    sqlite_engine = database_opening_and_errors._make_sqlite_engine
    with TemporaryDirectory(prefix="crossdock-state-") as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(open_state, "open_engine_of_state", opened)
        patch.setattr(database_opening_and_errors, "_make_sqlite_engine", without_waiting)
        patch.setattr(project, "create_or_upgrade_state", _copying(Path(folder)))
        yield


def _copying(folder: Path) -> Callable[[StateUrl, PinnedTenant, Callable[[Transaction, int], None]], bool]:
    """Creates states as `create` does; *folder* keeps the empty one."""

    def made(url: StateUrl, pin: PinnedTenant, changed: Callable[[Transaction, int], None]) -> bool:
        path = Path(url.database or "")
        if url.drivername != "sqlite" or os.path.lexists(path):
            return create_or_upgrade_state(url, pin, changed)
        empty = folder / "empty.db"
        if not empty.exists():
            create_or_upgrade_state(parse_database_url(f"sqlite:///{empty}", folder), PinnedTenant("", ""))
        database_opening_and_errors._create_private_file(url, restrict=True)
        try:
            shutil.copyfile(empty, path)
            with closing(sqlite3.connect(path)) as connection, connection:
                connection.execute("PRAGMA synchronous=OFF")
                facts = {"base_url": pin.base_url, "tenant": pin.tenant, "id": uuid4().hex}
                connection.executemany(
                    "UPDATE crossdock_meta SET value = ? WHERE name = ?", [(v, n) for n, v in facts.items()]
                )
        except (OSError, sqlite3.Error):
            path.write_bytes(b"")
            return create_or_upgrade_state(url, pin, changed)  # which tells why
        with closing(State(url, pin)) as state, state.begin() as tx:
            changed(tx, 0)
        return True

    return made
