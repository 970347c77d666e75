"""A scheduler over sixty files that try to take the memory: ``pytest tests/long/test_hostile_nights.py -rP``."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.e2e.conftest import platform
from tests.e2e.folder_project import FolderProject
from tests.e2e.test_legacy_files import project, stream
from tests.memory import LIMIT_MB
from tests.nightly.test_deadly_files import schedule
from tests.unit.formats import hostile, hostile_sheets
from tests.waiting import eventually

from crossdock.sandbox import SandboxServer

__all__ = ["platform"]  # a fixture

TEXTS = [
    "delimiters in a row",
    "delimiters in long rows",
    "delimiters in the only row",
    "delimiters in the header",
    "cells in a row",
    "quoted cells in a row",
    "quoted cells in the header",
    "long delimiters in a row",
    "fields in a trailer",
    "short rows under a wide header",
    "short quoted rows under a wide header",
    "lines in a cell under a wide header",
    "lines in a quote inside a cell",
    "a quote that is never closed",
    "rows of tiny quoted cells",
    "quotes behind a plain beginning",
    "lines",
    "rows without a key",
    "a fault behind tiny rows",
    "a wide character in a long cell",
]
SHEETS = [name for name in hostile_sheets.HOSTILE if name not in hostile_sheets.HARMLESS]
SHEET = {"kind": "sheet", "header": False, "names": ["SKU"], "error_cells": "empty"}


def hostile_files() -> dict[str, tuple[bytes, dict[str, Any], str]]:
    """By the name of a stream: the content of its file, its format and the column of its key."""
    found = dict[str, tuple[bytes, dict[str, Any], str]]()
    for number, name in enumerate(TEXTS):
        data = hostile.HOSTILE[name].data(hostile.SIZE)
        layout = {"kind": "delimited", **hostile.HOSTILE[name].layout}
        packed = gzip.compress(data, 6, mtime=0)
        found[f"text{number}"] = packed, json.loads(json.dumps(layout)), "C0" if data.startswith(b"C0,") else "A"
    for number, name in enumerate(SHEETS):
        found[f"sheet{number}"] = hostile_sheets.HOSTILE[name](), SHEET, "SKU"
    return found


def opened(folder: Path, server: SandboxServer) -> tuple[FolderProject, list[str]]:
    """A project with a good stream and one for each hostile file, and the names of these files."""
    found = hostile_files()
    streams = {name: stream(name, layout, [key]) for name, (_, layout, key) in found.items()}
    good = stream("good", {"kind": "delimited", "delimiter": ";"}, ["SKU"])
    site = project(folder, server, {**streams, "good": good})
    names = [f"{name}_1.gz" if name.startswith("text") else f"{name}_1" for name in found]
    for name, (data, _, _) in zip(names, found.values(), strict=True):
        (folder / "out" / name).write_bytes(data)
    return site, names


def test_a_scheduler_refuses_each_file_by_its_name_and_delivers_the_rest(
    tmp_path: Path, platform: SandboxServer
) -> None:
    """It takes 300 MB at most, goes on, and delivers what comes later."""
    site, names = opened(tmp_path, platform)
    site.write("good_1.csv", "SKU\n17\n")
    schedule(site, "* * * * *")
    print(f"{len(names)} hostile files")
    before, log = len(site.effects()), tmp_path / "scheduler.log"
    command = [sys.executable, "-m", "crossdock", "-C", str(site.config), "schedule", "--log-format", "json"]
    environment = {**os.environ, "CROSSDOCK_API_KEY": site.platform.api_key}
    with log.open("wb") as stderr, subprocess.Popen(command, env=environment, stderr=stderr) as scheduler:
        try:
            eventually(lambda: len(site.effects()) == before + 1)
            site.write("good_2.csv", "SKU\n18\n")
            eventually(lambda: len(site.effects()) == before + 2)
            assert scheduler.poll() is None
            status = Path(f"/proc/{scheduler.pid}/status").read_text()
            peak_mb = int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) >> 10
        finally:
            scheduler.send_signal(signal.SIGTERM)
            assert scheduler.wait() == 0
    shown = site.run("show", "1", "--json").stdout
    print(f"scheduler: {peak_mb} MB")
    assert [name for name in names if name not in shown] == []
    assert peak_mb <= LIMIT_MB
