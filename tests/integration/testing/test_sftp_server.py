from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.integration.testing.sftp_client import fetch
from tests.servers import require

from crossdock.testing.openssh_server import OpenSshServer
from crossdock.testing.sftp_server import SftpServer


@pytest.mark.openssh
def test_the_server_serves_an_independent_client(tmp_path: Path) -> None:
    """OpenSSH's client reads from the server in this process."""
    require(OpenSshServer.available(), "OpenSSH's client")
    (tmp_path / "a.txt").write_bytes(b"content" * 100_000)
    key = tmp_path / "key"
    with SftpServer(tmp_path) as server:
        key.touch(mode=0o600)
        key.write_text(server.client_key)
        fetch(server.host, server.port, server.user, key, tmp_path / "got")
    assert (tmp_path / "got").read_bytes() == b"content" * 100_000


def test_test_support_does_not_need_pytest() -> None:
    """The modules can be imported where pytest is not installed."""
    code = (
        "import sys; sys.modules['pytest'] = None;"
        "from crossdock.testing import manual_clock, openssh_server, postgres_server, sftp_server"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONWARNINGS": "error"})
