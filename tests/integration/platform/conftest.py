"""A platform with a token endpoint, and the secret of a client."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.integration.platform.token_server import TokenServer
from tests.servers import served


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[TokenServer]:
    monkeypatch.setenv("CLIENT_SECRET", "s3cret")
    with served(TokenServer()) as server:
        yield server


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(50) as threads:
        yield threads
