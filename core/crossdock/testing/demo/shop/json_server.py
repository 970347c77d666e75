"""JSON APIs on a port of the loopback interface."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from msgspec import Struct, field

from crossdock.values import exact_json


class ApiRequest(Struct, frozen=True):
    """One request. *headers* has names in lower case; *body* is None without a body."""

    method: str
    path: str
    params: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any


class ApiResponse(Struct, frozen=True):
    """An answer. *body* is a JSON value, or bytes that are sent unchanged."""

    status: int
    body: Any
    headers: Mapping[str, str] = field(default_factory=dict)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # one packet for the whole answer
    server: _Server

    def _serve(self) -> None:
        parts = urlsplit(self.path)
        content = self.rfile.read(int(self.headers.get("content-length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            body = exact_json.loads(content) if content else None
        except ValueError:
            answer = ApiResponse(400, {"message": "the body is not JSON"})
        else:
            with self.server.lock:
                call = ApiRequest(self.command, parts.path, dict(parse_qsl(parts.query)), headers, body)
                answer = self.server.respond(call)
        sent = answer.body if isinstance(answer.body, bytes) else exact_json.dumps(answer.body)
        self.send_response_only(answer.status)
        for name, value in {"content-type": "application/json", **answer.headers}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    do_GET = do_POST = do_PUT = do_DELETE = _serve  # noqa: N815  the names that http.server calls

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the name that http.server declares
        """Log nothing: the demo shows what happened."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, port: int, respond: Callable[[ApiRequest], ApiResponse]) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.respond, self.lock = respond, threading.Lock()


@contextmanager
def serve_api(respond: Callable[[ApiRequest], ApiResponse], port: int = 0) -> Iterator[str]:
    """Serve an API whose requests *respond* answers, one at a time, and yield its address.

    Args:
        port: 0 for a free one.

    Raises:
        OSError: If the port is taken.
    """
    server = _Server(port, respond)
    thread = threading.Thread(target=server.serve_forever, name="sample-api", daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
