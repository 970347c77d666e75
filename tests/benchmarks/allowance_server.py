"""The sandbox in a separate process, with an endpoint that lists when each request arrived and was answered.

The sandbox's own log has the moment of the token, but not of the answer.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import uvicorn
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from crossdock.sandbox import SandboxSettings
from crossdock.sandbox.app import Sandbox
from crossdock.sandbox.fault_injection import Fault, FaultSet
from crossdock.sandbox.rate_limiter import RateLimitHeaderDialect
from crossdock.sandbox.server import make_server_config

SEEN_PATH = "/_seen"
ENDS_WITHIN_S = 30.0


class Size(NamedTuple):
    """A token bucket; by default that of all cases."""

    per_minute: int = 10_000
    burst: int = 2_000

    def gain_s(self, tokens: int) -> float:
        """Seconds in which *tokens* are added."""
        return tokens * 60 / self.per_minute


UNLIMITED = Size(60_000_000, 1_000_000)


class Request(NamedTuple):
    """One request, in seconds on the machine's monotonic clock."""

    came: float
    answered: float
    status: int


class Seen:
    """What the server saw of one load.

    Attributes:
        accepted: Accepted requests.
        refused: Requests answered 429.
        seconds: From the first request to the last answer.
    """

    def __init__(self, requests: Sequence[Request], size: Size) -> None:
        self._size = size
        self.requests = sorted(requests)
        self.refused = sum(each.status == 429 for each in requests)
        self.accepted = len(requests) - self.refused
        self.seconds = max(each.answered for each in requests) - self.requests[0].came

    @property
    def ratio(self) -> float:
        """Its time over the shortest possible, starting with a full bucket."""
        return self.seconds / self._size.gain_s(self.accepted - self._size.burst)

    @property
    def refused_share(self) -> float:
        return self.refused / len(self.requests)

    @property
    def most_at_once(self) -> float:
        """The burst that was needed: the most requests in any window beyond its rate."""
        rate, needed, most, last = self._size.per_minute / 60, 0.0, 0.0, 0.0
        for each in self.requests:
            needed = max(0.0, needed - rate * (each.came - last)) + 1
            most, last = max(most, needed), each.came
        return most


class Server:
    """A new sandbox for the duration of the context; each answer is delayed by *latency_ms*.

    The latency is the sandbox's fault ``slow``: it follows after the token was taken and the write committed.
    """

    def __init__(self, size: Size, latency_ms: int, *, dialect: RateLimitHeaderDialect = "none") -> None:
        self._size = size
        self._command = [
            sys.executable,
            "-m",
            "tests.benchmarks.allowance_server",
            *map(str, (*size, latency_ms)),
            dialect,
        ]

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory()
        self._process = subprocess.Popen([*self._command, self._folder.name], stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        facts = json.loads(self._process.stdout.readline())
        self.base_url, self.tenant, self.api_key = facts["base_url"], facts["tenant"], facts["api_key"]
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.communicate(timeout=ENDS_WITHIN_S)
        self._folder.cleanup()

    def count(self) -> int:
        """How many requests have been answered."""
        return int(self._ask(f"{SEEN_PATH}/count"))

    def seen(self, after: int = 0) -> Seen:
        """What was answered after the first *after* requests."""
        return Seen([Request(*row) for row in self._ask(SEEN_PATH)[after:]], self._size)

    def created(self) -> int:
        """The number of products, none created twice; at most 10,000."""
        effects = self._ask("/_sandbox/effects?operation=create&limit=10000")["data"]
        names = {each["body"]["externalId"] for each in effects}
        assert len(names) == len(effects), "a product was created twice"
        return len(names)

    def _ask(self, path: str) -> Any:
        with urllib.request.urlopen(self.base_url + path, timeout=ENDS_WITHIN_S) as answer:
            return json.load(answer)


class _Watched:
    """A sandbox's ASGI application that records when each request arrived and was answered."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._seen: list[Request] = []

    async def app(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"].startswith(SEEN_PATH):
            document = self._seen if scope["path"] == SEEN_PATH else len(self._seen)
            await Response(json.dumps(document), media_type="application/json")(scope, receive, send)
            return
        came, status = time.monotonic(), 0

        async def noted(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        await self._sandbox.app(scope, receive, noted)
        self._seen.append(Request(came, time.monotonic(), status))


def _serve(size: Size, latency_ms: int, dialect: RateLimitHeaderDialect, folder: Path) -> None:
    slow = (Fault(name="slow", probability=1.0, ms=latency_ms),) if latency_ms else ()
    settings = SandboxSettings(
        rate_per_min=size.per_minute, burst=size.burst, rate_headers=dialect, faults=FaultSet(faults=slow)
    )
    # named as TCP, since asyncio sends small answers at once only on sockets that say so
    with Sandbox(folder, settings) as sandbox, socket.socket(proto=socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(2048)
        host, port = listener.getsockname()
        facts = {"base_url": f"http://{host}:{port}", "tenant": sandbox.tenant, "api_key": sandbox.new_key()}
        print(json.dumps(facts), flush=True)
        uvicorn.Server(make_server_config(_Watched(sandbox).app)).run(sockets=[listener])


if __name__ == "__main__":
    given = sys.argv[1:]
    dialect: Any = given[3]
    _serve(Size(int(given[0]), int(given[1])), int(given[2]), dialect, Path(given[4]))
