from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e import project_folder
from tests.e2e.project_folder import DATA_BESIDE, DATA_VARIABLE, UNPACED, SandboxProcess, Stage
from tests.e2e.warehouse import Front, Site, open_site
from tests.servers import require

from crossdock.sandbox import SandboxServer
from crossdock.testing.openssh_server import OpenSshServer
from crossdock.writing.delivery import send_queue_and_threads


@pytest.fixture(scope="session")
def exports() -> list[Path]:
    """All daily exports, by date."""
    files = project_folder.exports()
    if not files and os.environ.get(DATA_VARIABLE):
        pytest.fail(f"{DATA_VARIABLE} names a folder without *.csv.gz")
    if not files:
        pytest.skip(f"no retail exports: {DATA_VARIABLE} is not set, and {DATA_BESIDE} has none")
    return files


@pytest.fixture(scope="session")
def openssh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenSshServer]:
    require(OpenSshServer.available(), "an OpenSSH server")
    with OpenSshServer(tmp_path_factory.mktemp("served")) as server:
        yield server


@pytest.fixture
def fresh(tmp_path: Path, openssh: OpenSshServer) -> Iterator[Stage]:
    """An empty platform, an empty state, and no files yet."""
    with SandboxProcess(tmp_path / "sandbox", UNPACED) as sandbox:
        made = Stage(tmp_path.name, openssh, sandbox, tmp_path, UNPACED)
        made.init()
        yield made


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxServer]:
    with SandboxServer(tmp_path_factory.mktemp("platform")) as platform:
        yield platform


@pytest.fixture
def site(tmp_path: Path, platform: SandboxServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    with open_site(tmp_path, platform, monkeypatch) as site:
        yield site


@pytest.fixture
def soon_probing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A circuit breaker of this process asks a failing target again after 20 to 100 ms, where users' waits seconds."""
    monkeypatch.setattr(send_queue_and_threads, "FIRST_PAUSE_S", 0.02)
    monkeypatch.setattr(send_queue_and_threads, "LONGEST_PAUSE_S", 0.1)


@pytest.fixture
def front(site: Site) -> Iterator[Front]:
    """A front before the platform; the site's config names it."""
    with Front(site.platform.base_url) as front:
        site.base_url = front.base_url
        site.configure()
        yield front
