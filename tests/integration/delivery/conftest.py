from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.integration.delivery.harness import Bench, Platform, Shelf
from tests.servers import served

from crossdock.state import State


@pytest.fixture
def platform() -> Iterator[Platform]:
    with served(Platform()) as server:
        yield server


@pytest.fixture
def bench(state: State, platform: Platform, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(state, platform.server_port, monkeypatch)


@pytest.fixture
def shelf(platform: Platform) -> Shelf:
    platform.script = shelf = Shelf()
    return shelf
