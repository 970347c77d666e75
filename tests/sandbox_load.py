"""Load on a sandbox in its own process: raw HTTP over many connections."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

from tests.chaos import processes
from tests.waiting import eventually

INVOICES = "/api/v1/finance/invoices"
PROGRAM = """
import os, sys
from pathlib import Path
from crossdock.sandbox import SandboxSettings, serve
if sys.argv[2:]:
    os.sched_setaffinity(0, {int(sys.argv[2])})
serve(Path(sys.argv[1]), SandboxSettings(rate_per_min=10**9, burst=10**9))
"""


@dataclass(frozen=True)
class Platform:
    """The address of a sandbox, and a credential."""

    base_url: str
    tenant: str
    api_key: str

    @property
    def headers(self) -> dict[str, str]:
        return {
            "Authorization": f"Bearer {self.api_key}",
            "x-tenant-slug": self.tenant,
            "Content-Type": "application/json",
        }

    def call(self, method: str, path: str, body: str | None = None) -> Any:
        content = None if body is None else body.encode()
        request = urllib.request.Request(self.base_url + path, content, self.headers, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def invoice(self, lines: int = 1) -> str:
        """The JSON text of an invoice with a product on each line; customer and products are created for it."""
        customer = self.call("POST", "/api/v1/sales/customers", '{"externalId":"c","name":"n"}')["id"]
        body = '{{"externalId":"p{0}","sku":"s{0}","name":"n"}}'
        products = [self.call("POST", "/api/v1/catalog/products", body.format(number))["id"] for number in range(lines)]
        items = ",".join(
            f'{{"productId":"{each}","quantity":{n + 1},"unitPrice":{n}.95}}' for n, each in enumerate(products)
        )
        return f'{{"customerId":"{customer}","currency":"EUR","items":[{items}]}}'

    def effects(self) -> Iterator[dict[str, Any]]:
        """Every effect on an invoice in the effects log."""
        after = 0
        while page := self.call("GET", f"/_sandbox/effects?resource=invoice&limit=1000&after={after}")["data"]:
            yield from page
            after = page[-1]["seq"]

    async def create(
        self,
        body: str,
        keys: Iterable[str],
        *,
        connections: int,
        answered: Callable[[int], object] = lambda _: None,
    ) -> dict[str, bytes | None]:
        """Create an invoice under each of the *keys*, until there are no more or the server stops listening.

        Returns the raw response to each request that was sent, or None. *answered* is called with the number of
        responses after each.
        """
        answers: dict[str, bytes | None] = {}
        left, count = iter(keys), 0

        async def connection() -> None:
            nonlocal count
            wire: _Wire | None = None
            for key in left:
                try:
                    wire = wire or await _Wire.open(self, body)
                except ConnectionError:
                    return
                answers[key] = None
                try:
                    answers[key] = await wire.exchange(key)
                except (ConnectionError, asyncio.IncompleteReadError):
                    wire.close()
                    wire = None
                    continue
                count += 1
                answered(count)
            if wire is not None:
                wire.close()

        await asyncio.gather(*(connection() for _ in range(connections)))
        return answers


@dataclass
class _Wire:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    head: str
    body: str

    @classmethod
    async def open(cls, platform: Platform, body: str) -> _Wire:
        address = urlsplit(platform.base_url)
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        headers = {**platform.headers, "Host": address.netloc, "Content-Length": len(body.encode())}
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        return cls(reader, writer, f"POST {INVOICES} HTTP/1.1\r\n{lines}", body)

    async def exchange(self, key: str) -> bytes:
        self.writer.write(f"{self.head}Idempotency-Key: {key}\r\n\r\n{self.body}".encode())
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        return head + await self.reader.readexactly(length)

    def close(self) -> None:
        self.writer.close()


@contextmanager
def process(data_dir: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """A sandbox without a rate limit, pinned to the given core, if any, and its ready line."""
    command = [sys.executable, "-c", PROGRAM, str(data_dir), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout is not None
            yield running, json.loads(running.stdout.readline())
        finally:
            running.kill()


@contextmanager
def forked(data_dir: Path) -> Iterator[tuple[ForkServerProcess, dict[str, Any]]]:
    """The same as a fork of a process that has imported crossdock; its limit is higher than tests can send."""
    with TemporaryDirectory() as place:
        told = Path(place, "told")
        limits = ("--rate", "600000", "--burst", "100000")
        running = processes.start((*processes.CROSSDOCK, "sandbox", "--data", str(data_dir), *limits), os.environ, told)
        try:
            eventually(lambda: (told.exists() and "\n" in told.read_text()) or running.exitcode is not None)
            yield running, json.loads(told.read_text())
        finally:
            running.kill()
            running.join()
