"""Fixtures for pytest: ``pytest_plugins = ["crossdock.testing.plugin"]`` in ``conftest.py``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from crossdock.connector import Context
from crossdock.sandbox import SandboxServer
from crossdock.testing import connector_context
from crossdock.testing.manual_clock import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    """A clock that stands still until it is advanced."""
    return ManualClock()


@pytest.fixture
def context(tmp_path: Path, clock: ManualClock) -> Callable[..., Context[Any]]:
    """`crossdock.testing.context` in the test's temporary folder, on its `clock`."""
    return partial(connector_context.context, folder=tmp_path, clock=clock)


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[SandboxServer]:
    """A running sandbox of the platform: ``base_url``, ``tenant``, ``api_key`` and its effects log."""
    with SandboxServer(tmp_path / "sandbox") as server:
        yield server
