"""The hungriest inputs that are known, each tried once; the process then says how much memory it took at most.

Run as ``python -m tests.fuzz.hungry NAME...`` from the root of the project; no name means all of them.
"""

from __future__ import annotations

import socketserver
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from itertools import repeat
from pathlib import Path

from tests.memory import peak_kib
from tests.servers import served

from crossdock.errors import UnavailableError
from crossdock.reading.sources.pagination import link_target
from crossdock.reading.transport import http_answers_and_errors
from crossdock.reading.transport.httpcore_client import HttpClient
from crossdock.values import exact_json

ROOT = Path(__file__).parents[2]
BYTES = 8 * 1024 * 1024  # what is read of an answer at most
PIECE = 64 * 1024
MUCH = 10_000  # pieces; 640 MB, and a thousand times as much unpacked


def _array(item: str, values: int = 1) -> bytes:
    """As many of *item*, which is so many *values*, as a text may be long and hold."""
    count = min(BYTES // (len(item) + 1), exact_json.MAX_VALUES // values) - 1
    return f"[{','.join([item] * count)}]".encode()


BODIES: Mapping[str, Callable[[], bytes]] = {
    "exponents": lambda: _array("1e400000000"),
    "one exponent": lambda: b"[1e400000000,-1e-400000000]",
    "digits": lambda: b"9" * BYTES,
    "depth": lambda: b"[" * BYTES,
    "arrays": lambda: _array("[0]", 2),
    "objects": lambda: _array('{"":' * 60 + "0" + "}" * 60, 61),
    "too many": lambda: b"[" + b"[]," * (BYTES // 3) + b"0]",
    "decimals": lambda: _array("1.1"),
    "halves": lambda: b'["\\ud83d\\ude00",' + _array("1.1")[1:],
    "one member": lambda: b"{" + b",".join([b'"a":0'] * (exact_json.MAX_VALUES - 2)) + b"}",
    "errors": lambda: b'{"errors":%s}' % _array('{"pointer":"/a","detail":"b"}', 3),
    "a pointer": lambda: b'{"errors":[{"pointer":"%s","detail":"%s"}]}' % (b"/" * (BYTES // 2), b"x" * (BYTES // 2)),
}


def _bomb() -> Iterator[bytes]:
    packer = zlib.compressobj(wbits=31)
    for _ in range(MUCH):
        yield packer.compress(b"\0" * PIECE * 1000)


def _packed() -> bytes:
    packer = zlib.compressobj(wbits=31)
    return packer.compress(b"{}") + packer.flush()


def _packed_head() -> bytes:
    return b"\x1f\x8b\x08\x08\x00\x00\x00\x00\x00\x03"  # a file's name follows, up to a NUL


def _answer(pieces: Iterator[bytes], head: bytes = b"content-encoding: gzip\r\n") -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\n" + head
    yield b"\r\n"
    yield from pieces


def _then(first: bytes, piece: bytes) -> Iterator[bytes]:
    yield first
    yield from repeat(piece, MUCH)


ANSWERS: Mapping[str, Callable[[], Iterator[bytes]]] = {
    "a bomb": lambda: _answer(_bomb()),
    "bytes after the packed answer": lambda: _answer(_then(_packed(), b"x" * PIECE)),
    "packed answers in a row": lambda: _answer(_then(_packed(), _packed() * 2000)),
    "a name without end": lambda: _answer(_then(_packed_head(), b"n" * PIECE)),
    "packed nothing": lambda: _answer(_then(_packed_head() + b"n\0", b"\x00\x00\x00\xff\xff" * 13_000)),
    "a plain body": lambda: _answer(repeat(b"x" * PIECE, MUCH), b""),
    "small chunks": lambda: _answer(repeat(b"1\r\nx\r\n" * 5000, MUCH), b"transfer-encoding: chunked\r\n"),
    "a chunk extension": lambda: _answer(_then(b"1;", b"x" * PIECE), b"transfer-encoding: chunked\r\n"),
    "a trailer": lambda: _answer(_then(b"0\r\nx: ", b"x" * PIECE), b"transfer-encoding: chunked\r\n"),
    "a header": lambda: _then(b"HTTP/1.1 200 OK\r\nx: ", b"x" * PIECE),
    "headers": lambda: _then(b"HTTP/1.1 200 OK\r\n", b"x: y\r\n" * 10_000),
    "folds": lambda: _then(b"HTTP/1.1 200 OK\r\nx: y\r\n", b" y\r\n" * 15_000),
    "interim answers": lambda: _then(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 2000),
}


class _Feeder(socketserver.ThreadingTCPServer):
    daemon_threads = True

    def __init__(self, pieces: Callable[[], Iterator[bytes]]) -> None:
        super().__init__(("127.0.0.1", 0), _Feeding)
        self.pieces = pieces


class _Feeding(socketserver.StreamRequestHandler):
    server: _Feeder

    def handle(self) -> None:
        with suppress(OSError):
            while self.rfile.readline().strip():
                pass
            for piece in self.server.pieces():
                self.wfile.write(piece)


def _read(body: bytes) -> None:
    with suppress(ValueError):
        exact_json.dumps(exact_json.loads(body))
    http_answers_and_errors.parse_error_answer(400, body)
    with suppress(ValueError):
        link_target(body[:100_000].decode())


def _ask(pieces: Callable[[], Iterator[bytes]]) -> None:
    with served(_Feeder(pieces)) as server:
        address = f"http://127.0.0.1:{server.server_address[1]}"
        client = HttpClient(address, headers={}, total_timeout_s=5, max_response_bytes=BYTES)
        with closing(client), suppress(UnavailableError):
            client.send("GET", "/")


def most_mib(names: list[str]) -> int:
    """Try *names* (all without any) in a process of its own: the most memory that it took, in MiB."""
    command = [sys.executable, "-m", "tests.fuzz.hungry", *names]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def main(names: list[str]) -> None:
    for name in names or [*BODIES, *ANSWERS]:
        if name in BODIES:
            _read(BODIES[name]())
        else:
            _ask(ANSWERS[name])
    print(peak_kib() // 1024)


if __name__ == "__main__":
    main(sys.argv[1:])
