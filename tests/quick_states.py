"""States that many runs in one process open: they share their compiled statements, and do not wait for the disk."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Engine, event

from crossdock.state import StateUrl, store
from crossdock.state.db.engine import open_engine


class _Compiled(dict[Any, Any]):
    """Compiled statements by database; SQLAlchemy's keys begin with the dialect, of which each engine has its own."""

    def get(self, key: Any, default: Any = None) -> Any:
        return super().get((key[0].name, *key[1:]), default)

    def __setitem__(self, key: Any, compiled: Any) -> None:
        super().__setitem__((key[0].name, *key[1:]), compiled)


@contextmanager
def quick_states() -> Iterator[None]:
    """Open all states of this process so: no power is cut here."""
    compiled = _Compiled()

    def opened(url: StateUrl, pin: Any, *, read_only: bool) -> Engine:
        made = open_engine(url, pin, read_only=read_only).execution_options(compiled_cache=compiled)
        if url.drivername == "sqlite":
            event.listen(made, "connect", lambda raw, _: raw.execute("PRAGMA synchronous=OFF"))
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "open_engine", opened)
        yield
