"""Secrets and personal values that must be found nowhere, outputs to look through, and a server that repeats all."""

from __future__ import annotations

import base64
import io
import itertools
import json
import logging
import socketserver
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import pytest
from sqlalchemy import create_engine, text

from crossdock.cli.main import main
from crossdock.state import StateUrl

SECRETS = {  # the api key is the twelfth; the sandbox makes it
    "client secret": "cs-canary-11-aaaa",
    "access token": "at-canary-12-bbbb",
    "ssh password": "pw-canary-13-cccc",
    "private key passphrase": "pp-canary-14-dddd",
    "database password": "db-canary-15-eeee",
    "shared bucket password": "sb-canary-16-ffff",
    "webhook secret": base64.b64encode(b"wh-canary-17-gggg-0123456789").decode(),
    "webhook address": "hook-canary-18-hhhh",
    "smtp password": "sm-canary-19-iiii",
    "source token": "st-canary-20-jjjj",
    "trace header": "th-canary-21-kkkk",
}
PERSON = {
    "name": "Kanari Vogelsang",
    "email": "k.vogelsang@mail.example",
    "phone": "+49-30-5551717",
    "tax id": "DE811907980",
    "address": "Amselweg-17",
}


@dataclass
class Outputs:
    """Everything that was shown, sent or kept, by the name of what did it.

    Attributes:
        secrets: Values that must not be in it; spellings of them neither.
    """

    secrets: dict[str, str]
    kept: list[tuple[str, str]] = field(default_factory=list)

    def keep(self, name: str, shown: str) -> None:
        """One more output; an empty one shows nothing, and does not count."""
        if shown.strip():
            self.kept.append((name, shown))

    def leaks(self) -> list[str]:
        """Which output holds which canary."""
        return [
            f"{name}: the {what}\n{shown[:2000]}"
            for name, shown in self.kept
            for what, spellings in self._spellings()
            if any(spelling in shown.casefold() for spelling in spellings)
        ]

    def _spellings(self) -> Iterator[tuple[str, set[str]]]:
        for what, value in self.secrets.items():
            packed = base64.b64encode(value.encode()).decode().rstrip("=")
            yield what, {value.casefold(), quote(value, safe="").casefold(), packed.casefold()}
        for what, value in PERSON.items():
            parts = {value, quote(value), *(part for part in value.split() if len(part) > 4)}
            yield what, {part.casefold() for part in parts}

    def run(self, config: Path, *arguments: str) -> object:
        """Run a command in this process; keep what it shows and, apart, what every logger says at DEBUG meanwhile."""
        out, name = io.StringIO(), " ".join(arguments)
        with logged() as lines, redirect_stdout(out), redirect_stderr(out), pytest.raises(SystemExit) as ended:
            main(["-C", str(config), *arguments])
        self.keep(name, out.getvalue())
        self.keep(f"log of {name}", "\n".join(lines))
        return ended.value.code

    def keep_words(self, name: str, url: StateUrl) -> None:
        """All that the state keeps besides the columns that hold records and the bytes of requests."""
        engine = create_engine(url)
        with engine.connect() as connection:
            for table, columns in _WORDS.items():
                rows = connection.execute(text(f"SELECT {', '.join(columns)} FROM {table}"))
                self.keep(f"{table} of {name}", "\n".join(str(tuple(row)) for row in rows))
        engine.dispose()


_WORDS = {
    "run_messages": ("message", "place", "advice"),
    "runs": ("tally", "timings"),
    "attempts": ("outcome", "message"),
    "dead_letters": ("stream", "key", "code", "pointer", "message", "source"),
    "waiting_records": ("stream", "key", "waits_for", "source"),
    "intents": ("stream", "key", "path", "status", "source", "if_match", "target_id"),
    "bindings": ("key", "target_id", "etag"),
    "scheduled_runs": ("status", "note"),
    "cursors": ("value",),
    "taken_files": ("name",),
}


@contextmanager
def logged() -> Iterator[list[str]]:
    """What every logger says at DEBUG, but for libraries that only a test loads."""
    lines: list[str] = []
    handler, root = logging.Handler(logging.DEBUG), logging.getLogger()
    handler.emit = lambda record: lines.append(f"{record.name} {record.getMessage()}")  # type: ignore[method-assign]
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        yield lines
    finally:
        root.removeHandler(handler)
        root.setLevel(level)


@dataclass(frozen=True, slots=True)
class Asked:
    """A request, and all of it that a hostile server may repeat; *number* counts writes, from 1."""

    number: int
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def echo(self) -> str:
        """The credential, and every text of the body."""
        bearer = self.headers.get("authorization", "").removeprefix("Bearer ")
        try:
            document = json.loads(self.body or b"null")
        except ValueError:
            document = self.body.decode("latin-1")  # a form
        return " ".join([bearer, *_texts(document)])


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)


def answer(status: int, body: str | bytes = b"{}", reason: str = "", **headers: str) -> bytes:
    """The bytes of an answer."""
    content = body if isinstance(body, bytes) else body.encode()
    lines = {"content-type": "application/problem+json", **headers, "content-length": str(len(content))}
    head = [f"HTTP/1.1 {status} {reason}", *(f"{name.replace('_', '-')}: {value}" for name, value in lines.items())]
    return "\r\n".join([*head, "", ""]).encode("latin-1", "replace") + content


class Parrot(socketserver.ThreadingTCPServer):
    """An HTTP server that answers with whatever bytes *script* makes of a request, and hangs up."""

    daemon_threads = True

    def __init__(self, script: Callable[[Asked], bytes]) -> None:
        super().__init__(("127.0.0.1", 0), _Parroting)
        self.script = script
        self.numbers = itertools.count(1)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Parroting(socketserver.StreamRequestHandler):
    server: Parrot

    def handle(self) -> None:
        method, path, *_ = self.rfile.readline().decode().split() or ["", ""]
        headers = {}
        while line := self.rfile.readline().strip():
            name, _, value = line.decode().partition(":")
            headers[name.lower()] = value.strip()
        body = self.rfile.read(int(headers.get("content-length", 0)))
        number = next(self.server.numbers) if method == "POST" else 0
        answer = self.server.script(Asked(number, method, path, headers, body))
        with suppress(ConnectionError):  # a client may close before the end of an answer that is too long
            self.wfile.write(answer)
