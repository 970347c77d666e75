"""The pages of a migration while its records are counted."""

from __future__ import annotations

import re
import threading
from datetime import datetime
from pathlib import Path

import pytest
from tests.unit.console.visitor import visiting
from tests.unit.migration.loaded_migration import loaded_project

from crossdock.config.project.project import Project
from crossdock.console import migration_pages
from crossdock.migration import migration_status
from crossdock.migration.migration_status import MigrationStatus
from crossdock.state import Transaction


@pytest.mark.parametrize("place", ["migration", "migration/sign-off"])
def test_a_page_comes_again_until_the_records_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """With the result it stays as it is, so that links and buttons do not change under a person's hands."""
    project, may_end = loaded_project(tmp_path), threading.Event()
    project.create_or_upgrade_state()
    count = migration_status.migration_status

    def slowly(tx: Transaction, project: Project, now: datetime) -> MigrationStatus:
        assert may_end.wait(60)
        return count(tx, project, now)

    monkeypatch.setattr(migration_pages, "migration_status", slowly)
    with visiting(project.path) as visitor:
        html = visitor.html(f"/t/acme/{place}")
        assert "are being counted" in html
        assert re.search(r'data-refreshes="\d', html)
        may_end.set()
        while "are being counted" in (html := visitor.html(f"/t/acme/{place}")):
            pass
        assert "data-refreshes" not in html
