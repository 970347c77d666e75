"""A platform for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.e2e.project_folder import UNPACED

from crossdock.sandbox import SandboxServer, SandboxSettings


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxServer]:
    """One that no limit holds back, in this process."""
    unpaced = SandboxSettings(rate_per_min=UNPACED.per_minute, burst=UNPACED.burst)
    with SandboxServer(tmp_path_factory.mktemp("platform"), unpaced) as platform:
        yield platform
