"""Files that are small and grow are read or refused in bounded memory."""

from __future__ import annotations

import json
from pathlib import Path

from tests.memory import LIMIT_MB, measured
from tests.unit.formats.hostile import SIZE, USUAL, write


def bounded(folder: Path, names: list[str]) -> None:
    """Each of the hostile files *names* ends with its rows or with a refusal, within the memory of a run."""
    paths = [str(path) for path in write(folder, names, SIZE)]
    arguments = json.dumps(list(zip(paths, names, strict=True)))
    ended = measured("tests.unit.formats.hostile", [arguments], cwd=str(Path.cwd()))
    assert ended.code == 0, ended.err
    assert [line.rsplit(": ", 1)[0] for line in ended.out.splitlines()] == names
    assert ended.peak_mb <= LIMIT_MB, ended.out


def test_hostile_files_take_little_memory(tmp_path: Path) -> None:
    """A few kilobytes of gzip never take more than 300 MB, however they try to grow."""
    bounded(tmp_path, USUAL)
