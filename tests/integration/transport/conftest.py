from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.servers import require
from tests.waiting import eventually

from crossdock.reading.transport.folder_store import FolderStore
from crossdock.reading.transport.sftp_store import SftpLogin, SftpSession, connect
from crossdock.testing.openssh_server import OpenSshServer
from crossdock.testing.sftp_server import SftpServer


@pytest.fixture
def served(tmp_path: Path) -> Path:
    folder = tmp_path / "served"
    (folder / "out").mkdir(parents=True)
    return folder


@pytest.fixture
def server(served: Path) -> Iterator[SftpServer]:
    with SftpServer(served) as server:
        yield server


@pytest.fixture
def login(server: SftpServer) -> SftpLogin:
    return SftpLogin(
        host=server.host,
        port=server.port,
        user=server.user,
        password=server.password,
        host_key=server.fingerprint,
        timeout_s=10,
    )


@pytest.fixture(scope="session")
def openssh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenSshServer]:
    require(OpenSshServer.available(), "an OpenSSH server")
    with OpenSshServer(tmp_path_factory.mktemp("openssh")) as server:
        yield server


@pytest.fixture
def openssh_login(openssh: OpenSshServer) -> SftpLogin:
    return SftpLogin(
        host=openssh.host,
        port=openssh.port,
        user=openssh.user,
        private_key=openssh.client_key,
        host_key=openssh.fingerprint,
    )


@pytest.fixture(params=[pytest.param("openssh", marks=pytest.mark.openssh), "loopback", "folder"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[SftpSession | FolderStore, Path]]:
    """A store of each kind, and the folder that it shows."""
    store: SftpSession | FolderStore
    if request.param == "openssh":
        root = request.getfixturevalue("openssh").folder
        store = connect(request.getfixturevalue("openssh_login"))
    elif request.param == "folder":
        root = tmp_path
        store = FolderStore(root)
    else:
        root = request.getfixturevalue("served")
        store = connect(request.getfixturevalue("login"))
    with store:
        yield store, root


@pytest.fixture
def nothing_left() -> Iterator[None]:
    """Fail if the test leaves a thread or an open file behind."""
    before = _held()
    yield
    eventually(lambda: _held() <= before)


def _held() -> set[str]:
    files = {f"{name} {target}" for name in Path("/proc/self/fd").iterdir() if (target := _target(name))}
    return files | {f"thread {thread.name} {thread.ident}" for thread in threading.enumerate()}


def _target(descriptor: Path) -> str:
    try:
        return str(descriptor.readlink())
    except OSError:
        return ""  # the one that lists the folder is closed by now
