"""The SQLite dialect for all engines of a process, which share their compiled statements.

An engine has a cache of its own, so that each run of a scheduler, and of each tenant of a fleet, would compile its
statements anew: a quarter of the time of a short run.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy.dialects import registry
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.util import LRUCache

DRIVER = "sqlite+crossdock"
COMPILED: LRUCache[Any, Any] = LRUCache(1_000)  # safe for several threads
"""The value of the engine option ``compiled_cache``, keyed by dialect and statement."""


class SharedDialect(SQLiteDialect_pysqlite):
    """All instances are equal, since a process has one SQLite, and no engine sets options of its dialect."""

    supports_statement_cache = True  # SQLAlchemy asks each dialect for it

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SharedDialect)

    def __hash__(self) -> int:
        return hash(SharedDialect)


registry.register(DRIVER.replace("+", "."), __name__, SharedDialect.__name__)
