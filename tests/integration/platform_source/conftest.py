"""Fixtures of the tests that read a sandbox."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.platform_source.reading import Reading, reading


@pytest.fixture
def erp(tmp_path: Path) -> Iterator[Reading]:
    with reading(tmp_path) as made:
        yield made
