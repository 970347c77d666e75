from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.sandbox.raw import ManualTime, Raw

from crossdock.sandbox import Sandbox


@pytest.fixture
def clock() -> ManualTime:
    return ManualTime()


@pytest.fixture
def sandbox(tmp_path: Path, clock: ManualTime) -> Iterator[Sandbox]:
    with Sandbox(tmp_path, clock=clock) as running:
        yield running


@pytest.fixture
def raw(sandbox: Sandbox) -> Raw:
    return Raw(sandbox)
