"""Files are downloaded from real servers within their limits."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.servers import served

from crossdock.errors import RefusedError, UnavailableError
from crossdock.reading.sources.run_context import SourceContext
from crossdock.reading.transport.http_answers_and_errors import MAX_RESPONSE_BYTES
from crossdock.runs.imported_file_log import EmptyIntakeLog
from crossdock.sources import Api, ApiClient
from crossdock.testing.manual_clock import ManualClock
from crossdock.values.run_progress_and_messages import SilentProgress

LINE = b'{"id": 1}\n'


class Files(ThreadingHTTPServer):
    """Serves *body*, cut after *sent* bytes."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.body, self.encoding, self.sent, self.status = b"", "", 10**9, 200


class _Handler(BaseHTTPRequestHandler):
    server: Files

    def do_GET(self) -> None:
        self.send_response(self.server.status)
        self.send_header("content-length", str(len(self.server.body)))
        if self.server.encoding:
            self.send_header("content-encoding", self.server.encoding)
        self.end_headers()
        self.wfile.write(self.server.body[: self.server.sent])

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def files() -> Iterator[Files]:
    with served(Files()) as server:
        yield server


def client(files: Files, max_file_bytes: int = 10**9) -> ApiClient:
    run = SourceContext(ManualClock(), SilentProgress(), EmptyIntakeLog(), Path(), Path(), Path())
    return ApiClient(Api(f"http://127.0.0.1:{files.server_port}", max_file_bytes=max_file_bytes), run)


@pytest.mark.parametrize("encoding", ["", "gzip"])
def test_a_file_may_be_larger_than_an_answer(files: Files, encoding: str, tmp_path: Path) -> None:
    """It is never in memory as a whole; a compressed one is unpacked."""
    content = LINE * (MAX_RESPONSE_BYTES // len(LINE) + 1)
    files.body, files.encoding = gzip.compress(content, 1) if encoding else content, encoding
    assert client(files).download("/export", tmp_path / "export") == len(content)
    assert (tmp_path / "export").read_bytes() == content


@pytest.mark.parametrize("encoding", ["", "gzip"])
def test_a_file_beyond_its_limit_is_refused(files: Files, encoding: str, tmp_path: Path) -> None:
    """Before or after it is unpacked; nothing is left behind."""
    files.body, files.encoding = gzip.compress(LINE * 1000) if encoding else LINE * 1000, encoding
    with pytest.raises(RefusedError, match="more than 5,000 bytes"):
        client(files, 5000).download("/export", tmp_path / "export")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("status", [201, 204, 206])
def test_a_success_without_a_whole_file_is_refused(files: Files, status: int, tmp_path: Path) -> None:
    """The file of an earlier run stays, and is not taken for the new one."""
    files.status = status
    (tmp_path / "export").write_bytes(b"earlier")
    with pytest.raises(RefusedError, match=f"HTTP {status}"):
        client(files).download("/export", tmp_path / "export")
    assert (tmp_path / "export").read_bytes() == b"earlier"


def test_a_file_that_is_cut_replaces_nothing(files: Files, tmp_path: Path) -> None:
    """The file of an earlier run stays."""
    files.body, files.sent = LINE * 1000, 500
    (tmp_path / "export").write_bytes(b"earlier")
    with pytest.raises(UnavailableError, match="the connection closed in the middle"):
        client(files).download("/export", tmp_path / "export")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"earlier"]
