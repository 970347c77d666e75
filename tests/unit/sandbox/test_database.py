from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from crossdock.sandbox import database


class Writes:
    """A writer to a table of one column, and a second connection that reads it."""

    def __init__(self, path: Path) -> None:
        self.connection = database.open_database(path)
        self.connection.execute("CREATE TABLE t (n INTEGER PRIMARY KEY)")
        self.writer = database.GroupCommitWriter(self.connection)
        self.outside = database.open_database(path)

    def seen(self) -> list[int]:
        return [row[0] for row in self.outside.execute("SELECT n FROM t ORDER BY n")]

    async def add(self, number: int, *, fail: bool = False) -> int:
        def work(connection: sqlite3.Connection) -> int:
            connection.execute("INSERT INTO t VALUES (?)", (number,))
            if fail:
                raise LookupError(number)
            return number

        await self.writer.run_in_transaction(work)
        assert number in self.seen()
        return number


@pytest.fixture
def writes(tmp_path: Path) -> Writes:
    return Writes(tmp_path / "t.sqlite3")


def test_a_group_shares_a_commit_and_its_members_are_isolated(writes: Writes) -> None:
    """A failing write is undone, the others are kept, and results come only after the commit."""
    statements: list[str] = []
    writes.connection.set_trace_callback(statements.append)

    async def all_at_once() -> list[int | BaseException]:
        return await asyncio.gather(*(writes.add(n, fail=n == 2) for n in range(5)), return_exceptions=True)

    results = asyncio.run(all_at_once())
    writes.connection.set_trace_callback(None)
    assert [type(each) for each in results] == [int, int, LookupError, int, int]
    assert writes.seen() == [0, 1, 3, 4]
    assert statements.count("COMMIT") == 1
    writes.connection.close()
    writes.outside.close()


def test_a_commit_that_fails_fails_every_write_of_its_group(writes: Writes) -> None:
    """While the storage refuses, writers get an error and nothing is stored; later writes succeed."""
    writes.connection.execute("PRAGMA busy_timeout=0")

    async def two() -> list[int | BaseException]:
        return list(await asyncio.gather(writes.add(1), writes.add(2), return_exceptions=True))

    writes.outside.execute("BEGIN IMMEDIATE")
    assert [type(each) for each in asyncio.run(two())] == [sqlite3.OperationalError] * 2
    writes.outside.execute("ROLLBACK")
    assert asyncio.run(writes.add(3)) == 3
    assert writes.seen() == [3]
    writes.connection.close()
    writes.outside.close()


def test_its_files_are_its_owners_only(tmp_path: Path) -> None:
    """The database and its log have mode 0600, also one that was created by an earlier version."""
    path = tmp_path / "old.sqlite3"
    sqlite3.connect(path).close()
    path.chmod(0o644)
    for each in (path, tmp_path / "new.sqlite3"):
        connection = database.open_database(each)
        connection.execute("CREATE TABLE t (n INTEGER PRIMARY KEY)")
        files = list(tmp_path.glob(f"{each.name}*"))
        assert len(files) == 3
        assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
        connection.close()
