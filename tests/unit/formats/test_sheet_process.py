"""Small sheet files that declare or repeat far more than they hold are refused in bounded memory."""

from __future__ import annotations

import json
from pathlib import Path

from tests.memory import measured
from tests.unit.formats.hostile_sheets import HARMLESS, USUAL, write

LIMIT_MB = 300


def refused(folder: Path, names: list[str]) -> None:
    """Each of the sheets *names* is refused, or read if it is harmless, in little memory; prints a table."""
    paths = [str(path) for path in write(folder, names)]
    arguments = json.dumps(list(zip(paths, names, strict=True)))
    ended = measured("tests.unit.formats.hostile_sheets", [arguments], cwd=str(Path.cwd()))
    assert ended.code == 0, ended.err
    *lines, readers = ended.out.splitlines()
    print(ended.out, f"this process: {ended.peak_mb} MB", sep="")
    assert len(lines) == len(names)
    for name, line in zip(names, lines, strict=True):
        assert line.startswith(f"{name}: "), line
        assert (" refused f:" in line) != (name in HARMLESS), line
    assert ended.peak_mb <= LIMIT_MB
    assert int(readers.split(": ")[1]) <= LIMIT_MB


def test_hostile_sheets_are_refused_in_little_memory(tmp_path: Path) -> None:
    """A few kilobytes with a cell at the far corner, in each of the four formats."""
    refused(tmp_path, USUAL)
