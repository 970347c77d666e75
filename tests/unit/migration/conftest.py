"""A migration that can be signed off."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.report_page import sqlite_state
from tests.unit.migration.loaded_migration import LoadedMigration, loaded_project


@pytest.fixture
def ready(tmp_path: Path) -> Iterator[LoadedMigration]:
    with sqlite_state(tmp_path) as state:
        made = LoadedMigration(loaded_project(tmp_path), state)
        made.fill()
        yield made
