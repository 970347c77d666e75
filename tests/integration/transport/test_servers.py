"""The help that `crossdock.testing` gives: time, and servers of one's own."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import psycopg
import pytest
from tests.servers import require

from crossdock.clock import Clock
from crossdock.testing.manual_clock import ManualClock
from crossdock.testing.openssh_server import OpenSshServer
from crossdock.testing.postgres_server import PostgresServer
from crossdock.testing.sftp_server import SftpServer


def test_a_manual_clock_stands_still_until_advanced() -> None:
    """Both readings move together, by advancing and by sleeping, and never backwards."""
    manual = ManualClock(datetime(2026, 3, 29, 2, tzinfo=timezone(timedelta(hours=1))))
    clock: Clock = manual
    assert (clock.now(), clock.monotonic()) == (datetime(2026, 3, 29, 1, tzinfo=UTC), 0.0)
    clock.sleep(1.5)
    clock.sleep(-1)
    manual.advance(0.5)
    assert (clock.now(), clock.monotonic()) == (datetime(2026, 3, 29, 1, 0, 2, tzinfo=UTC), 2.0)
    with pytest.raises(ValueError, match="backwards"):
        manual.advance(-1)
    with pytest.raises(ValueError, match="zone"):
        ManualClock(datetime(2026, 1, 1))  # noqa: DTZ001


def test_a_manual_clock_loses_no_step_of_many_threads() -> None:
    """Concurrent sleepers add up."""
    clock = ManualClock()

    def sleep_often() -> None:
        for _ in range(500):
            clock.sleep(1)

    threads = [threading.Thread(target=sleep_often) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert clock.monotonic() == 2000.0


@pytest.mark.postgres
def test_postgres_gives_each_caller_an_empty_database() -> None:
    """Each database is new and speaks UTF-8; the server and its data are gone afterwards."""
    require(PostgresServer.available(), "PostgreSQL")
    with PostgresServer() as server:
        urls = [server.create_database() for _ in range(2)]
        for url in urls:
            assert url.startswith("postgresql+psycopg://")
            with psycopg.connect(url.replace("+psycopg", "")) as connection:
                connection.execute("CREATE TABLE only_here (name text)")
                connection.execute("INSERT INTO only_here VALUES ('ü')")
                assert connection.execute("SELECT name FROM only_here").fetchall() == [("ü",)]
        port = server.port
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(host="127.0.0.1", port=port, user="crossdock", dbname="postgres", connect_timeout=2)


@pytest.mark.openssh
def test_the_openssh_server_serves_ordinary_clients_and_stops(tmp_path: Path) -> None:
    """OpenSSH's own client reads from it, also where the folder's name has blanks."""
    require(OpenSshServer.available(), "an OpenSSH server")
    folder = tmp_path / "a folder"
    folder.mkdir()
    (folder / "a.txt").write_bytes(b"content")
    key = tmp_path / "key"
    with OpenSshServer(folder) as server:
        key.touch(mode=0o600)
        key.write_text(server.client_key)
        _sftp(server.host, server.port, server.user, key, tmp_path / "got")
        assert (tmp_path / "got").read_bytes() == b"content"
    with pytest.raises(subprocess.CalledProcessError):
        _sftp(server.host, server.port, server.user, key, tmp_path / "got")


@pytest.mark.openssh
def test_the_loopback_server_serves_ordinary_clients(tmp_path: Path) -> None:
    """OpenSSH's own client, which is nobody's fake, reads from the server in this process too."""
    require(OpenSshServer.available(), "OpenSSH's client")
    (tmp_path / "a.txt").write_bytes(b"content" * 100_000)
    key = tmp_path / "key"
    with SftpServer(tmp_path) as server:
        key.touch(mode=0o600)
        key.write_text(server.client_key)
        _sftp(server.host, server.port, server.user, key, tmp_path / "got")
    assert (tmp_path / "got").read_bytes() == b"content" * 100_000


def _sftp(host: str, port: int, user: str, key: Path, to: Path) -> None:
    options = ["StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "IdentitiesOnly=yes", "BatchMode=yes"]
    arguments = [word for option in options for word in ("-o", option)]
    subprocess.run(
        ["sftp", "-q", "-F", "none", "-P", str(port), "-i", str(key), *arguments, "-b", "-", f"{user}@{host}"],
        input=f"get a.txt {to}\n",
        text=True,
        check=True,
        capture_output=True,
        timeout=300,
    )


def test_public_help_needs_no_test_framework() -> None:
    """The servers can be used where pytest is not installed."""
    code = (
        "import sys; sys.modules['pytest'] = None;"
        "from crossdock.testing import manual_clock, openssh_server, postgres_server, sftp_server"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONWARNINGS": "error"})


def test_a_missing_server_is_a_failure_in_continuous_integration(monkeypatch: pytest.MonkeyPatch) -> None:
    """Elsewhere it is a reason to skip; what is there needs neither."""
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="a thing is missing"):
        require(False, "a thing")
    monkeypatch.delenv("CI")
    with pytest.raises(pytest.skip.Exception, match="a thing is not installed"):
        require(False, "a thing")
    require(True, "a thing")
