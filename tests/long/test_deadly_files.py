"""A scheduler over a file that kills what reads it: ``pytest tests/long/test_deadly_files.py``, three minutes."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

from tests.e2e.conftest import platform
from tests.e2e.folder_project import FolderProject
from tests.nightly.test_deadly_files import command, environment, schedule, site
from tests.waiting import eventually

__all__ = ["platform", "site"]  # fixtures


def test_a_scheduler_goes_on_after_it_was_killed_once(site: FolderProject, tmp_path: Path) -> None:
    """Started again, it sets the file aside, delivers the other stream, and does so in the runs that follow."""
    schedule(site, "* * * * *")
    before = len(site.effects())
    killed = subprocess.run(command(site, "schedule"), env=environment(site), capture_output=True, check=False)
    assert killed.returncode == -signal.SIGKILL
    log = tmp_path / "scheduler.log"
    with (
        log.open("wb") as stderr,
        subprocess.Popen(
            command(site, "schedule", "--log-format", "json"), env=environment(site), stderr=stderr
        ) as scheduler,
    ):
        try:
            eventually(lambda: len(site.effects()) == before + 1)
            site.write("b_2.csv", "SKU\n18\n")
            eventually(lambda: len(site.effects()) == before + 2)
            assert scheduler.poll() is None
        finally:
            scheduler.terminate()
            assert scheduler.wait() == 0
    ended = [
        json.loads(line)["message"] for line in log.read_text(encoding="utf-8").splitlines() if "incomplete" in line
    ]
    assert all("a_1.csv: is set aside" in each for each in ended)
