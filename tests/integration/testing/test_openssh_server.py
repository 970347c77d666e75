from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.integration.testing.sftp_client import fetch
from tests.servers import require

from crossdock.testing.openssh_server import OpenSshServer


@pytest.mark.openssh
def test_the_openssh_server_serves_ordinary_clients_and_stops(tmp_path: Path) -> None:
    """OpenSSH's client reads from it, even from a folder with blanks in its name."""
    require(OpenSshServer.available(), "an OpenSSH server")
    folder = tmp_path / "a folder"
    folder.mkdir()
    (folder / "a.txt").write_bytes(b"content")
    key = tmp_path / "key"
    with OpenSshServer(folder) as server:
        key.touch(mode=0o600)
        key.write_text(server.client_key)
        fetch(server.host, server.port, server.user, key, tmp_path / "got")
        assert (tmp_path / "got").read_bytes() == b"content"
    with pytest.raises(subprocess.CalledProcessError):
        fetch(server.host, server.port, server.user, key, tmp_path / "got")
