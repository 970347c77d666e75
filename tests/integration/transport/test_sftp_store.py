"""Reading from a server that misbehaves, and leaving nothing behind."""

from __future__ import annotations

import hashlib
import io
import os
import socket
import struct
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import paramiko
import pytest
from tests.servers import require

from crossdock.errors import RefusedError, UnauthorizedError, UnavailableError
from crossdock.reading.transport.sftp_store import SftpLogin, connect
from crossdock.testing.manual_clock import ManualClock
from crossdock.testing.openssh_server import OpenSshServer
from crossdock.testing.sftp_server import SftpServer

pytestmark = pytest.mark.usefixtures("nothing_left")


@pytest.mark.parametrize("end", [0, 1, 100_000, 299_999])
def test_an_early_end_is_refused(server: SftpServer, login: SftpLogin, served: Path, end: int) -> None:
    """A server that ends a file before its size is never believed."""
    (served / "out/a.txt").write_bytes(b"x" * 300_000)
    server.faults.end_early["out/a.txt"] = end
    with (
        connect(login) as session,
        pytest.raises(RefusedError, match=rf"'out/a.txt' ended after {end} of 300000 bytes"),
    ):
        session.fetch(session.stat("out/a.txt"), io.BytesIO())


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        pytest.param(lambda path: os.truncate(path, 412_000), "grew from 300000 to 412000 bytes", id="grew"),
        pytest.param(lambda path: os.truncate(path, 1), "shrank from 300000 to 1 bytes", id="shrank"),
        pytest.param(lambda path: path.rename(path.with_name("b")), "was removed or renamed", id="renamed"),
    ],
)
def test_a_change_right_after_the_first_block_is_refused(
    server: SftpServer, login: SftpLogin, served: Path, change: Callable[[Path], object], reason: str
) -> None:
    """A writer at work on the server is noticed though everything was asked for ahead."""
    (served / "out/a.txt").write_bytes(b"x" * 300_000)
    server.faults.while_read["out/a.txt"] = change
    with connect(login) as session, pytest.raises(RefusedError, match=reason):
        session.fetch(session.stat("out/a.txt"), io.BytesIO())


@pytest.mark.parametrize("at", [0, 200_000])
def test_a_stall_ends_at_the_deadline(server: SftpServer, login: SftpLogin, served: Path, at: int) -> None:
    """A server that stops in the middle of a file is unavailable once the deadline is over."""
    (served / "out/a.txt").write_bytes(b"x" * 300_000)
    server.faults.stall_after["out/a.txt"] = at
    with connect(replace(login, timeout_s=0.3)) as session:
        with pytest.raises(UnavailableError, match=r"no answer for 0.3 s while reading 'out/a.txt'"):
            session.fetch(session.stat("out/a.txt"), io.BytesIO())
        with pytest.raises(UnavailableError):
            session.list("out", "*")


@pytest.mark.parametrize("answer", [1, 700])
def test_a_drip_ends_at_the_total_deadline(server: SftpServer, login: SftpLogin, served: Path, answer: int) -> None:
    """A server that always answers in time, but a little at a time, is unavailable once the whole took too long."""
    (served / "out/a.txt").write_bytes(b"x" * 300_000)
    clock, answers = ManualClock(), list[int]()

    def drip() -> None:
        answers.append(1)
        clock.advance(1)

    server.faults.short_answers, server.faults.on_read = answer, drip
    with connect(replace(login, timeout_s=60), clock=clock) as session:
        with pytest.raises(UnavailableError, match=r"not done in 69 s while reading 'out/a.txt'") as caught:
            session.fetch(session.stat("out/a.txt"), io.BytesIO())
        assert "min_bytes_per_s" in str(caught.value)
    assert len(answers) < 100  # of 300,000 and 429


def test_a_slow_line_may_be_declared(server: SftpServer, login: SftpLogin, served: Path) -> None:
    """As long as a file comes as fast as was declared, it may take its time."""
    (served / "out/a.txt").write_bytes(b"x" * 300_000)
    clock = ManualClock()
    server.faults.short_answers, server.faults.on_read = 1_000, lambda: clock.advance(1)
    with connect(replace(login, timeout_s=60, min_bytes_per_s=900), clock=clock) as session:
        session.fetch(session.stat("out/a.txt"), io.BytesIO())


def test_a_listing_that_drips_ends_at_the_total_deadline(
    login: SftpLogin, served: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that lists a folder a few names at a time, each answer in time, is unavailable in the end."""
    for number in range(1_000):
        (served / f"out/{number}.txt").touch()
    handles: Any = paramiko.SFTPHandle
    clock, answers, names = ManualClock(), list[int](), handles._get_next_files

    def slow(handle: Any) -> Any:
        answers.append(1)
        clock.advance(20)
        return names(handle)

    monkeypatch.setattr(handles, "_get_next_files", slow)
    with (
        connect(replace(login, timeout_s=30), clock=clock) as session,
        pytest.raises(UnavailableError, match=r"not done in 300 s while listing folder 'out'"),
    ):
        session.list("out", "*")
    assert len(answers) < 30  # of 63


def test_a_slow_sink_is_not_the_servers_fault(login: SftpLogin, served: Path) -> None:
    """The server's time does not run while a block is written away."""

    class Slow(io.BytesIO):
        def write(self, data: object) -> int:
            deadline = time.monotonic() + 1.3
            while not self.getvalue() and time.monotonic() < deadline:
                pass
            return super().write(data)  # type: ignore[arg-type]

    (served / "out/a.txt").write_bytes(b"x" * 300_000)
    with connect(replace(login, timeout_s=1)) as session:
        session.fetch(session.stat("out/a.txt"), Slow())


def test_short_answers_are_asked_again(server: SftpServer, login: SftpLogin, served: Path) -> None:
    """A server that gives less than it was asked for costs time, not bytes."""
    content = os.urandom(500_000)
    (served / "out/a.txt").write_bytes(content)
    server.faults.short_answers = 10_000
    sink = io.BytesIO()
    with connect(replace(login, window_bytes=100_000)) as session:
        session.fetch(session.stat("out/a.txt"), sink)
    assert hashlib.sha256(sink.getvalue()).digest() == hashlib.sha256(content).digest()


@pytest.mark.openssh
def test_new_keys_in_the_middle_of_a_file_do_no_harm(tmp_path: Path) -> None:
    """A server that changes the encryption keys while answers are on their way is read whole."""
    require(OpenSshServer.available(), "an OpenSSH server")
    content = os.urandom(1024 * 1024) * 4
    (tmp_path / "a.txt").write_bytes(content)
    sink = io.BytesIO()
    with OpenSshServer(tmp_path, extra="RekeyLimit 1M") as server:
        login = SftpLogin(
            host=server.host,
            port=server.port,
            user=server.user,
            private_key=server.client_key,
            host_key=server.fingerprint,
        )
        with connect(login) as session:
            session.fetch(session.stat("a.txt"), sink)
    assert hashlib.sha256(sink.getvalue()).digest() == hashlib.sha256(content).digest()


def test_a_file_nobody_may_read_is_unauthorized(server: SftpServer, login: SftpLogin, served: Path) -> None:
    """Permission denied names the file, and the session lives on."""
    (served / "out/a.txt").write_bytes(b"x")
    server.faults.deny.add("out/a.txt")
    with connect(login) as session:
        with pytest.raises(UnauthorizedError, match=r"permission denied while reading 'out/a\.txt'"):
            session.fetch(session.stat("out/a.txt"), io.BytesIO())
        assert [file.name for file in session.list("out", "*")] == ["a.txt"]


HOSTILE = [
    b"../x",
    b"..",
    b"/etc/passwd",
    b"a/b",
    b"a\0b",
    b"a\rb",
    b"a\tb",
    b"",
    b"\xc0\xaf",
    b"\xed\xa0\x80",
    b"x" * 256,
    "a\u0085".encode(),
]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_never_taken(server: SftpServer, login: SftpLogin, served: Path, name: bytes) -> None:
    """Names that no honest folder holds are ignored when they are dot names, and refused otherwise."""
    server.faults.extra_names.append(name)
    (served / "out/good.txt").write_bytes(b"x")
    with connect(login) as session:
        if name.startswith(b"."):
            assert [file.name for file in session.list("out", "*")] == ["good.txt"]
        else:
            with pytest.raises(RefusedError, match="unsafe name"):
                session.list("out", "*")
        assert [file.name for file in session.list("out", "good*")] == ["good.txt"]


def test_a_server_that_goes_away_is_unavailable(server: SftpServer, login: SftpLogin, served: Path) -> None:
    """A connection that breaks is translated at whichever call comes next."""
    with connect(login) as session:
        server.close()
        with pytest.raises(UnavailableError, match="the connection broke while listing folder 'out'"):
            session.list("out", "*")


def test_a_session_can_be_closed_twice_and_not_used_after(login: SftpLogin) -> None:
    """Closing again is no error; asking a closed session is one of ours."""
    session = connect(login)
    session.close()
    session.close()
    with pytest.raises(UnavailableError):
        session.stat("out")


def test_many_sessions_one_after_the_other_leave_nothing(login: SftpLogin, served: Path) -> None:
    """Threads and files are back to where they were, whether a session ended well or not."""
    (served / "out/a.txt").write_bytes(b"x" * 100_000)
    for number in range(10):
        with connect(login) as session:
            session.fetch(session.stat("out/a.txt"), io.BytesIO())
        with pytest.raises(UnauthorizedError):
            connect(replace(login, password=f"wrong {number}"))


def test_sessions_side_by_side_do_not_mix(login: SftpLogin, served: Path) -> None:
    """Concurrent sessions of one server read their own files."""
    contents = {f"out/{number}.txt": os.urandom(200_000) for number in range(4)}
    for path, content in contents.items():
        (served / path).write_bytes(content)

    def read(path: str) -> bytes:
        sink = io.BytesIO()
        with connect(login) as session:
            session.fetch(session.stat(path), sink)
        return sink.getvalue()

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(read, contents)) == list(contents.values())


def test_the_loopback_server_is_read_only_and_confined(server: SftpServer, login: SftpLogin, served: Path) -> None:
    """Links that lead out of the served folder are not followed, and nothing says so on stderr."""
    (served.parent / "secret.txt").write_bytes(b"secret")
    (served / "out").joinpath("way").symlink_to(served.parent)
    with connect(login) as session, pytest.raises(UnauthorizedError, match="permission denied"):
        session.list("out/way", "*")


def test_a_client_that_vanishes_makes_no_noise(server: SftpServer, capfd: pytest.CaptureFixture[str]) -> None:
    """Resets and garbage from clients leave the loopback server quiet and serving."""
    for said in (b"", b"GET / HTTP/1.0\r\n\r\n", b"SSH-2.0-x\r\n" + b"\xff" * 100):
        with socket.create_connection((server.host, server.port)) as sock:
            sock.sendall(said)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    server.close()
    assert capfd.readouterr() == ("", "")
