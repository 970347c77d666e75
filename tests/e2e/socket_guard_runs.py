"""A plan that is watched: what it must not touch is looked at before and after."""

from __future__ import annotations

import hashlib
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.e2e.project_folder import ROOT, Stage, finish
from tests.ended_commands import Done


def guarded(stage: Stage, notes: Path, temporary: Path, *arguments: str) -> Done:
    """Run a command that can reach the SFTP server and nothing else, its temporary files in a folder of its own."""
    guard = [sys.executable, "-P", str(ROOT / "tests" / "e2e" / "guard.py"), str(stage.ssh.port), str(notes)]
    return finish([*guard, "-C", str(stage.config), *arguments], stage.environment(TMPDIR=str(temporary)))


def plan_silently(stage: Stage) -> dict[str, Any]:
    """The JSON of a plan with something to do, after it was made sure that it left everything as it was."""
    temporary = stage.folder / "temporary"
    temporary.mkdir()
    notes = stage.folder / "connections"
    before = _surroundings(stage)
    done = guarded(stage, notes, temporary, "plan", "--detailed-exitcode", "--json")
    assert done.exit_code == 10, done.stderr  # there is something to do
    assert set(notes.read_text().split("\n")) == {str((stage.ssh.host, stage.ssh.port)), ""}
    after = _surroundings(stage)
    assert [name for name in before if before[name] != after[name]] == []
    assert not list(temporary.iterdir())
    temporary.rmdir()
    return done.document


def _surroundings(stage: Stage) -> dict[str, Any]:
    return {
        "requests": stage.sandbox.requests(),
        "state": contents(stage.state),
        "spool": tree(stage.spool),
        "drop": tree(stage.drop),
    }


def contents(database: Path) -> dict[str, list[Any]]:
    """Every row of every table, and the tables themselves."""
    with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as state:
        schema = state.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall()
        tables = [name for name, sql in schema if sql and sql.startswith("CREATE TABLE")]
        assert tables
        rows = {name: sorted(map(repr, state.execute(f'SELECT * FROM "{name}"'))) for name in tables}
    return {"schema": schema, **rows}


def tree(folder: Path) -> dict[str, str] | None:
    """Every file below a folder with its hash; None where there is not a folder."""
    if not folder.is_dir():
        return None
    files = sorted(folder.rglob("*"))
    return {
        str(f.relative_to(folder)): hashlib.sha256(f.read_bytes()).hexdigest() if f.is_file() else "" for f in files
    }
