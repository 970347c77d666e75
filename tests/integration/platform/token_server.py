"""A scripted platform with a token endpoint on loopback, which records its requests."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from crossdock.platform.platform_config import Profile
from crossdock.reading.transport.http_answers_and_errors import Answer
from crossdock.targets import Request
from crossdock.writing.targets.platform_target import PlatformTarget

PATH = "/api/v1/catalog/products"
BODY = b'{"name":"x"}'
Reply = tuple[int, dict[str, str], bytes] | None  # None: the connection is closed without an answer


@dataclass(frozen=True)
class Seen:
    """A request as the server saw it; *number* counts those to the same endpoint, from 1."""

    number: int
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def bearer(self) -> str:
        return self.headers.get("authorization", "").removeprefix("Bearer ")


def answer(status: int, document: object) -> Reply:
    return status, {}, json.dumps(document).encode()


def token(seen: Seen, **more: object) -> Reply:
    """Tokens T1, T2 and so on, each for 100 seconds."""
    return answer(200, {"access_token": f"T{seen.number}", "token_type": "Bearer", "expires_in": 100, **more})


def created(_seen: Seen) -> Reply:
    return answer(201, {"id": "prd_1"})


def send(target: PlatformTarget, key: str = "k") -> Answer:
    with closing(target.client()) as client:
        return target.send(client, "product", Request("POST", PATH, BODY), key)


def tokens_sent(server: TokenServer) -> list[str]:
    return [seen.bearer for seen in server.sent]


class TokenServer(ThreadingHTTPServer):
    """Both endpoints on one port; *tokens* and *platform* make the answers, *asked* and *sent* record the requests."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.tokens: Callable[[Seen], Reply] = token
        self.platform: Callable[[Seen], Reply] = created
        self.asked: list[Seen] = []
        self.sent: list[Seen] = []
        self.lock = threading.Lock()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def profile(self, auth: dict[str, Any] | None = None, **settings: Any) -> Profile:
        """The profile of a client whose secret is in the variable CLIENT_SECRET; *auth* overrides its settings."""
        client = {"kind": "oauth2_client_credentials", "client_id": "me", "client_secret": "env:CLIENT_SECRET"}
        facts = {"base_url": self.base_url, "tenant": "acme", "auth": client | (auth or {})}
        return Profile.model_validate(facts | settings, context={"folder": Path()})

    def handle_error(self, *_: Any) -> None:
        """A closed connection is part of the script."""


class _Handler(BaseHTTPRequestHandler):
    server: TokenServer
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        server, is_token = self.server, self.path == "/oauth/token"
        requests = server.asked if is_token else server.sent
        headers = {name.lower(): value for name, value in self.headers.items()}
        with server.lock:
            seen = Seen(len(requests) + 1, self.command, self.path, headers, body)
            requests.append(seen)
        reply = server.tokens(seen) if is_token else server.platform(seen)
        if reply is None:
            self.close_connection = True
            return
        status, given, content = reply
        self.send_response(status)
        for name, value in {**given, "content-length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST  # noqa: N815  the base class calls it so

    def log_message(self, *_: object) -> None:
        """Be quiet."""
