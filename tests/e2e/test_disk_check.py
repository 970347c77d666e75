"""Free space, against what a run needs."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.e2e.warehouse import Site

from crossdock.config.project import project
from crossdock.services.system_check.tests_of_state_platform_and_connections import (
    COPIES_IN_SPOOL,
    COPIES_IN_STATE,
    COPIES_IN_TEMPORARY_FILES,
    LEAST_FREE_BYTES,
    disk_findings,
)


class Usage(NamedTuple):
    total: int
    used: int
    free: int


@pytest.mark.parametrize(("spare", "is_enough"), [(0, True), (-1, False)])
def test_a_run_needs_space_for_its_largest_files(
    site: Site, monkeypatch: pytest.MonkeyPatch, spare: int, is_enough: bool
) -> None:
    """Several times their size, where spool, state and temporary files are on one disk; one byte less is a failure."""
    site.init()
    site.fill()
    assert site.sync().code == 0
    read = sum(path.stat().st_size for path in site.out.iterdir())
    need = LEAST_FREE_BYTES + read * (COPIES_IN_SPOOL + COPIES_IN_TEMPORARY_FILES + COPIES_IN_STATE)
    asked: list[Path] = []

    def usage(folder: Path) -> Usage:
        asked.append(folder)
        return Usage(0, 0, need + spare)

    monkeypatch.setattr(shutil, "disk_usage", usage)
    (found,) = disk_findings(project.load(site.config))
    assert (found.ok, len(asked)) == (is_enough, 1)
    assert f"the largest files of its streams have {read} B" in found.text
    assert ("free some space" in found.text) is not is_enough
