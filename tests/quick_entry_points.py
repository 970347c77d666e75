"""Entry points that many commands in one process look for: the files of each package are read once."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib.metadata import EntryPoints, entry_points
from pathlib import Path

import pytest

from crossdock.config.project import connections_and_bound_streams


@contextmanager
def quick_entry_points() -> Iterator[None]:
    """Find them so: again as soon as a package is added to a folder of Python's path, or removed from it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            connections_and_bound_streams, "entry_points", lambda group: _found(group, tuple(map(_as_it_is, sys.path)))
        )
        yield


@lru_cache(maxsize=4)
def _found(group: str, folders: tuple[tuple[str, int], ...]) -> EntryPoints:
    return entry_points(group=group)


def _as_it_is(folder: str) -> tuple[str, int]:
    path = Path(folder)
    return str(path.absolute()), path.stat().st_mtime_ns if path.exists() else 0
