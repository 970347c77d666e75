"""Bad configs, files and records, end to end: what a user is told, what enters, and that nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.warehouse import INVOICES, Site, open_site

from crossdock.sandbox import SandboxServer


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxServer]:
    with SandboxServer(tmp_path_factory.mktemp("platform")) as platform:
        yield platform


@pytest.fixture
def site(tmp_path: Path, platform: SandboxServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    with open_site(tmp_path, platform, monkeypatch) as site:
        yield site


def test_smoke(site: Site) -> None:
    site.init()
    site.fill()
    r = site.sync()
    assert r.code == 0, r
    site.assert_everything_once()
    r = site.sync()
    print(r.out)
    site.assert_everything_once()
