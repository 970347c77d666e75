"""HTTP answers as raw bytes from a server on loopback: damaged in every part, cut anywhere, packed or in chunks."""

from __future__ import annotations

import random
import socketserver
import threading
import traceback
import zlib
from contextlib import closing, suppress

from tests.fuzz.readers import meanings
from tests.servers import served

from crossdock.errors import UnavailableError
from crossdock.pacing import answer_headers
from crossdock.reading.transport.http_answers_and_errors import Answer
from crossdock.reading.transport.httpcore_client import HttpClient

CANARY = b"canary-4711"
MAX_BYTES = 64 * 1024
GZIP_HEAD = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03"
EMPTY_BLOCK = b"\x00\x00\x00\xff\xff"  # of deflate (RFC 1951 section 3.2.4): stored, not the last, no bytes

_STATUS_LINES = [
    b"HTTP/1.1 200 OK", b"HTTP/1.0 200 OK", b"HTTP/1.1 204 No Content", b"HTTP/1.1 304 x", b"HTTP/1.1 429 x",
    b"HTTP/1.1 500", b"HTTP/1.1 999 x", b"HTTP/1.1 000 x", b"HTTP/1.1 101 Switching Protocols",
    b"HTTP/1.1 100 Continue", b"HTTP/9.9 200 OK", b"HTTP/1.1 20 OK", b"HTTP/1.1  200 OK", b"http/1.1 200 ok", CANARY,
    b"", b"\x16\x03\x01\x00",
    b"HTTP/1.1 200 " + CANARY + b"\x00", b"HTTP/1.1 200 " + b"x" * 200_000,
]  # fmt: skip
_HEADERS = [
    b"content-length: 0", b"content-length: 2", b"content-length: 9999999999", b"content-length: " + b"9" * 5000,
    b"content-length: -1", b"content-length: 2, 2", b"content-length: 2, 3", b"content-length: " + CANARY,
    b"transfer-encoding: chunked", b"transfer-encoding: gzip, chunked", b"transfer-encoding: " + CANARY,
    b"content-encoding: gzip", b"Content-Encoding: GZIP", b"content-encoding: identity", b"content-encoding: br",
    b"content-encoding: " + CANARY, b"connection: close", b"connection: keep-alive", b"x: a\r\n folded", b" " + CANARY,
    b"no colon " + CANARY, b": no name", b"x y: z", b"x:" + b"\xff\x01", b"x: \x00" + CANARY, b"x: " + b"y" * 120_000,
    b"etag: " + b"e" * 9000, b"retry-after: " + b"9" * 5000, b"retry-after: 1e400000000", b"link: " + b"<" * 9000,
    b"ratelimit: " + b'"a";' * 2000, b"date: Sun, 99 Nov 1994", b"\r\nx: after the end", b"location: /" + b"i" * 9000,
]  # fmt: skip


class RawServer(socketserver.ThreadingTCPServer):
    """Says *said* to whoever has asked, and closes."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.said = b""
        self.asked = 0
        self.lock = threading.Lock()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(socketserver.StreamRequestHandler):
    server: RawServer

    def handle(self) -> None:
        with suppress(OSError):
            while self.rfile.readline().strip():
                pass
            with self.server.lock:
                self.server.asked += 1
            self.wfile.write(self.server.said)


def raw_answers(count: int, seed: int) -> None:
    """Each answer is read whole or is a failure of ours; nothing of a broken one is quoted, and none is waited for."""
    rng = random.Random(seed)
    whole = 0
    with served(RawServer()) as server:
        for number in range(count):
            server.said = _answer(rng)
            whole += _asked(server, f"seed {seed}, answer {number}: {server.said[:200]!r}")
        assert server.asked == count
    assert 0 < whole < count


def _asked(server: RawServer, which: str) -> bool:
    client = HttpClient(server.base_url, headers={}, total_timeout_s=30, max_response_bytes=MAX_BYTES)
    with closing(client):
        try:
            answer = client.send("GET", "/")
        except UnavailableError as error:
            shown = "".join(traceback.format_exception(error))
            assert CANARY.decode() not in shown, which
            assert "in time" not in shown, which
            return False
    _is_read(answer)
    return True


def _is_read(answer: Answer) -> None:
    assert len(answer.body) <= MAX_BYTES
    answer_headers.read_rate_limit_headers(answer.headers)
    list(meanings(answer))


def _answer(rng: random.Random) -> bytes:
    given = rng.sample(_HEADERS, rng.choice((0, 0, 1, 2, 3)))
    line = rng.choice(_STATUS_LINES[:2]) if rng.random() < 0.6 else rng.choice(_STATUS_LINES)
    body = _body(rng)
    if any(each.lower() == b"content-encoding: gzip" for each in given):
        body = _packed(rng, body)
    if b"transfer-encoding: chunked" in given:
        body = _chunked(rng, body)
    elif rng.random() < 0.6:
        given.append(b"content-length: %d" % len(body))
    said = b"\r\n".join([line, *given, b"", body])
    if rng.random() < 0.3:
        said = said[: rng.randrange(len(said) + 1)]
    if rng.random() < 0.2:
        at = rng.randrange(len(said) + 1)
        said = said[:at] + rng.randbytes(3) + said[at:]
    return b"HTTP/1.1 100 Continue\r\n\r\n" * rng.choice((0, 0, 0, 1, 50)) + said


def _body(rng: random.Random) -> bytes:
    return rng.choice((
        b"", b"{}", b'{"id":"x"}', CANARY, b"[1e400000000]", b"[" * 5000,
        b'{"errors":[{"pointer":"' + b"/a" * 9000 + b'"}]}',
        b"x" * MAX_BYTES, b"x" * (MAX_BYTES + 1), b"x" * 300_000,
    ))  # fmt: skip


def _packed(rng: random.Random, body: bytes) -> bytes:
    packer = zlib.compressobj(wbits=31)
    packed = packer.compress(body) + packer.flush()
    bomb = zlib.compressobj(wbits=31)
    return rng.choice((
        packed, packed, packed + CANARY, packed * 2, packed[:-4], packed[: len(packed) // 2], body,
        GZIP_HEAD + EMPTY_BLOCK * 40_000, GZIP_HEAD[:3] + b"\x08" + GZIP_HEAD[4:] + b"n" * 200_000,
        bomb.compress(b"\0" * 20_000_000) + bomb.flush(),
    ))  # fmt: skip


def _chunked(rng: random.Random, body: bytes) -> bytes:
    size = rng.choice((1, 7, 5000, 100_000)) if len(body) < 20_000 else 5000
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    chunks = b"".join(b"%x%s\r\n%s\r\n" % (len(each), rng.choice((b"", b";x=y", b"  ")), each) for each in pieces)
    return chunks + rng.choice((
        b"0\r\n\r\n", b"0\r\n\r\n", b"0\r\nx: trailer\r\n\r\n", b"0\r\n" + CANARY + b"\r\n\r\n", b"", b"0\r\n",
        CANARY + b"\r\n",
        b"-1\r\n\r\n", b"f" * 30 + b"\r\n", b"5\r\nab" + CANARY, b"ffffffffffffffff\r\nx", b"0;" + b"x" * 120_000,
    ))  # fmt: skip
