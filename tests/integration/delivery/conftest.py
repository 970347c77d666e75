from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from tests.integration.delivery.harness import Bench, Platform

from crossdock.state import State


@pytest.fixture
def platform() -> Iterator[Platform]:
    with Platform() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def bench(state: State, platform: Platform, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(state, platform.server_port, monkeypatch)
