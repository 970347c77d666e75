"""A small warehouse on SFTP, a platform, and the command line between them; canaries watch over everything shown."""

from __future__ import annotations

import csv
import http.client
import io
import json
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote, urlsplit

import pytest
from tests.chaos import processes
from tests.chaos.processes import CROSSDOCK
from tests.waiting import eventually

from crossdock.cli.main import main
from crossdock.sandbox import SandboxServer
from crossdock.testing.sftp_server import SftpServer

PERSON = "Kanari"  # stands in every customer's name, so that a name that is shown is found
PASSWORD = "pw-canary-5b1f"

CUSTOMERS = f"CUSTNO;NAME\nC1;{PERSON} Vogelsang\nC2;{PERSON} Amsel\n"
PRODUCTS = "SKU;NAME;PRICE\nP1;Bolt;1.50\nP2;Nut;0.25\n"
INVOICES = (
    "INVNO;CUSTNO;SKU;QTY;PRICE;CURRENCY\n"
    "1;C1;P1;2;1.50;EUR\n"
    "1;C1;P2;4;0.25;EUR\n"
    "2;C2;P1;1;1.50;EUR\n"
    "3;C1;P2;100;0.2475;EUR\n"
)

CONFIG = """\
platform:
  base_url: {base_url}
  tenant: {tenant}
  auth: {{kind: api_key, token: env:CROSSDOCK_API_KEY}}
  retry: {{attempts: 2, base_s: 0.01, give_up_after_s: 0.1}}
  lookup: {{settle_s: 0.05}}
  in_flight: 4
state: sqlite:///state.db
connections:
  wms:
    kind: sftp_warehouse
    host: 127.0.0.1
    port: {port}
    user: export
    password: env:WMS_PASSWORD
    host_key: "{fingerprint}"
    settle_s: 0
    streams:
      customers:
        mode: append
        files: "out/CUST_*"
        format: {{kind: delimited, delimiter: ";"}}
        key: [CUSTNO]
        resource: customer
        map:
          name: NAME
      products:
        mode: append
        files: "out/PROD_*"
        format: {{kind: delimited, delimiter: ";"}}
        key: [SKU]
        resource: product
        map:
          sku: SKU
          name: NAME
          unitPrice: {{from: PRICE, as: decimal}}
      invoices:
        mode: append
        files: "out/INV_*"
        format: {{kind: delimited, delimiter: ";"}}
        key: [INVNO]
        group_by: [INVNO]
        resource: invoice
        map:
          customerId: {{ref: customer, key: CUSTNO}}
          currency: CURRENCY
          items:
            each:
              productId: {{ref: product, key: SKU}}
              quantity: {{from: QTY, as: decimal}}
              unitPrice: {{from: PRICE, as: decimal}}
"""

_TENANTS = count(1)

Invoice = tuple[str, str, tuple[tuple[str, Decimal, Decimal], ...]]


@dataclass(frozen=True, slots=True)
class Result:
    """What a command gave back."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    def records(self, stream: str) -> dict[str, int]:
        """The terms of the records' account of a stream of a sync; terms of zero are left out."""
        assert self.json["balanced"]
        terms: dict[str, int] = self.json["streams"][f"wms.{stream}"]["records"]
        return {term: number for term, number in terms.items() if number and term != "delivered"}

    def rows(self, stream: str) -> dict[str, Any]:
        account: dict[str, Any] = self.json["streams"][f"wms.{stream}"]["rows"]
        return account


class Site:
    """A warehouse with its config file, for one tenant of a platform.

    Attributes:
        sftp: The warehouse's server; its files are put into ``out``.
        base_url: What the config names; the platform itself unless something is put before it.
        secrets: What must never be shown.
    """

    def __init__(
        self, folder: Path, platform: SandboxServer, sftp: SftpServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.folder, self.platform, self.sftp, self._monkeypatch = folder, platform, sftp, monkeypatch
        self.out = folder / "served" / "out"
        self.tenant = f"tenant{next(_TENANTS)}"
        self.base_url = platform.base_url
        self.api_key = platform.sandbox.new_key(self.tenant)
        self.secrets = [PASSWORD, self.api_key]
        self.config = folder / "crossdock.yaml"
        self._began, self._seconds = int(time.time()) - 600, count()
        monkeypatch.setenv("CROSSDOCK_API_KEY", self.api_key)
        monkeypatch.setenv("WMS_PASSWORD", PASSWORD)
        monkeypatch.delenv("CROSSDOCK_CONFIG", raising=False)
        monkeypatch.setenv("COLUMNS", "200")
        self.configure()

    def configure(self) -> None:
        """Write the config anew."""
        facts = {"base_url": self.base_url, "tenant": self.tenant}
        self.config.write_text(CONFIG.format(**facts, port=self.sftp.port, fingerprint=self.sftp.fingerprint))

    def edit(self, old: str, new: str, *, within: str = "") -> None:
        """Replace *old*, the first of it after *within*, in the config."""
        text = self.config.read_text()
        start = text.index(within)
        place = text.index(old, start)
        self.config.write_text(text[:place] + new + text[place + len(old) :])

    def place(self, needle: str, *, within: str = "") -> str:
        """``file:line:column`` of *needle* in the config."""
        text = self.config.read_text()
        before = text[: text.index(needle, text.index(within))]
        *lines, last = before.split("\n")
        return f"{self.config}:{len(lines) + 1}:{len(last) + 1}"

    def export(self, name: str, content: str | bytes) -> Path:
        """Put a file into the warehouse, each one second younger than the one before, and all a few minutes old."""
        path = self.out / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        written = self._began + next(self._seconds)
        os.utime(path, (written, written))
        return path

    def fill(self) -> None:
        """Put two customers, two products and three invoices into the warehouse."""
        self.export("CUST_1.csv", CUSTOMERS)
        self.export("PROD_1.csv", PRODUCTS)
        self.export("INV_1.csv", INVOICES)

    def setenv(self, name: str, value: str | None) -> None:
        if value is None:
            self._monkeypatch.delenv(name)
        else:
            self._monkeypatch.setenv(name, value)

    def run(self, *arguments: str, raw: bool = False) -> Result:
        """Run a command in this process; it may show no traceback, no secret and (unless *raw*) no name."""
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
            main(["-C", str(self.config), *arguments])
        return self._watched(ended.value.code, out.getvalue(), err.getvalue(), raw=raw)

    def process(self, *arguments: str, within_s: float = 300.0) -> Result:
        """The same in a process of its own; one that does not end is killed, and the test fails."""
        ended = processes.finish((*CROSSDOCK, "-C", str(self.config), *arguments), os.environ, within_s)
        return self._watched(ended.exit_code, ended.stdout, ended.stderr, raw=False)

    def _watched(self, code: object, out: str, err: str, *, raw: bool) -> Result:
        shown = out + err
        assert "Traceback" not in shown, shown
        for secret in self.secrets:
            assert secret not in shown, "a secret is shown"
        assert raw or PERSON not in shown, f"personal data is shown:\n{shown}"
        assert isinstance(code, int)
        return Result(code, out, err)

    def init(self) -> None:
        assert self.run("init").code == 0

    def sync(self, *streams: str) -> Result:
        return self.run("sync", "--json", *streams)

    def listed(self, *arguments: str) -> list[dict[str, Any]]:
        """What ``records list`` shows."""
        result = self.run("records", "list", "--json", *arguments)
        assert result.code == 0
        found: list[dict[str, Any]] = result.json
        return found

    def effects(self, resource: str | None = None) -> list[dict[str, Any]]:
        """Everything that happened to this tenant's resources, as the platform's witness tells it."""
        found: list[dict[str, Any]] = []
        after, of = 0, f"&resource={resource}" if resource else ""
        while True:
            path = f"/_sandbox/effects?limit=10000&after={after}{of}"
            answer = ask(urlsplit(self.platform.base_url).netloc, "GET", path)
            page = json.loads(answer.body, parse_float=Decimal)["data"]
            if not page:
                return found
            found += [effect for effect in page if effect["tenant"] == self.tenant]
            after = int(page[-1]["seq"])

    def names(self, resource: str) -> list[str]:
        """The external ids of all that was created, each as often as it was."""
        return sorted(e["body"]["externalId"] for e in self.effects(resource) if e["operation"] == "create")

    def invoices(self, resource: str = "invoice") -> Counter[Invoice]:
        """The invoices, or orders, that were created, with external ids in place of the platform's."""
        known = {effect["id"]: effect["body"].get("externalId", "") for effect in self.effects()}
        return Counter(_invoice(effect["body"], known) for effect in self.effects(resource))

    def assert_everything_once(self, invoices: str = INVOICES) -> None:
        """Assert that `CUSTOMERS`, `PRODUCTS` and *invoices* are at the platform, each once, and nothing else is."""
        assert self.names("customer") == ["wms:C1", "wms:C2"]
        assert self.names("product") == ["wms:P1", "wms:P2"]
        assert self.invoices() == expected(invoices)
        assert {effect["operation"] for effect in self.effects()} == {"create"}

    def spooled(self) -> list[str]:
        return [path.name for path in (self.folder / "state.db.spool").glob("*")]


def _invoice(body: dict[str, Any], known: dict[str, str]) -> Invoice:
    lines = [(known[i["productId"]], Decimal(i["quantity"]), Decimal(i["unitPrice"])) for i in body["items"]]
    return known[body["customerId"]], body["currency"], tuple(lines)


def expected(text: str, *, namespace: str = "wms") -> Counter[Invoice]:
    """The invoices in an export, read by the standard library alone."""
    heads: dict[str, tuple[str, str]] = {}
    lines: dict[str, list[tuple[str, Decimal, Decimal]]] = {}
    for row in csv.DictReader(io.StringIO(text), delimiter=";"):
        heads[row["INVNO"]] = f"{namespace}:{quote(row['CUSTNO'], safe='')}", row["CURRENCY"]
        line = f"{namespace}:{quote(row['SKU'], safe='')}", Decimal(row["QTY"]), Decimal(row["PRICE"])
        lines.setdefault(row["INVNO"], []).append(line)
    return Counter((*heads[number], tuple(lines[number])) for number in heads)


@contextmanager
def open_site(folder: Path, platform: SandboxServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A site whose warehouse is open and empty; its state is not made yet."""
    (folder / "served" / "out").mkdir(parents=True)
    with SftpServer(folder / "served") as sftp:
        sftp.password = PASSWORD
        yield Site(folder, platform, sftp, monkeypatch)


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer that the platform itself did not give."""

    status: int
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)


FORWARD = "forward"
LOSE = "the platform does it, its answer is lost"
LEAVE = "the connection breaks while the platform does it"
BREAK = "the connection breaks before the platform hears of it"

Fate = str | Reply


@dataclass(frozen=True, slots=True)
class Seen:
    """A request that came to a front; *number* counts from 1."""

    number: int
    method: str
    path: str
    key: str
    body: bytes


def ask(netloc: str, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None) -> Reply:
    """Send one request, written with the standard library alone; a body is JSON unless *headers* say otherwise."""
    connection = http.client.HTTPConnection(netloc, timeout=300)
    sent = {**({"content-type": "application/json"} if body else {}), **(headers or {})}
    try:
        connection.request(method, path, body or None, sent)
        answer = connection.getresponse()
        return Reply(answer.status, answer.read(), dict(answer.getheaders()))
    finally:
        connection.close()


def pass_time(base_url: str, seconds: int) -> None:
    """Let so many seconds pass on the clock of a sandbox."""
    body = json.dumps({"advance_s": seconds}).encode()
    assert ask(urlsplit(base_url).netloc, "POST", "/_sandbox/clock", body).status == 200


class Front:
    """Stands before a platform on a port of its own, and decides what becomes of each request; a context manager.

    Attributes:
        fate: Asked about each request before the platform hears of it; may be changed at any time.
        landed: Asked whether the platform has begun with a request of the fate `LEAVE`.
        seen: Every request that came.
    """

    def __init__(self, upstream: str, fate: Callable[[Seen], Fate] = lambda _: FORWARD) -> None:
        self.fate = fate
        self.landed: Callable[[Seen], bool] = lambda _: True
        self.seen: list[Seen] = []
        self._upstream = urlsplit(upstream).netloc
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), name="front")

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _take(self, method: str, path: str, key: str, body: bytes) -> Seen:
        with self._lock:
            seen = Seen(len(self.seen) + 1, method, path, key, body)
            self.seen.append(seen)
            return seen

    def _obey(self, fate: Fate, seen: Seen, headers: dict[str, str]) -> Reply | None:
        """The answer that *seen* gets; None if the connection breaks instead."""
        if isinstance(fate, Reply):
            return fate
        if fate == LEAVE:
            threading.Thread(target=self._forward, args=(seen, headers), name="front, late").start()
            eventually(lambda: self.landed(seen))
        answer = self._forward(seen, headers) if fate in {FORWARD, LOSE} else None
        return answer if fate == FORWARD else None

    def _forward(self, seen: Seen, headers: dict[str, str]) -> Reply | None:
        try:
            return ask(self._upstream, seen.method, seen.path, seen.body, headers)
        except (OSError, http.client.HTTPException):
            return None  # the platform is away

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        front = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def handle(self) -> None:
                with suppress(ConnectionError):  # a client may hang up
                    super().handle()

            def _serve(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                seen = front._take(self.command, self.path, self.headers.get("idempotency-key", "").strip('"'), body)
                reply = front._obey(front.fate(seen), seen, dict(self.headers.items()))
                if reply is None:
                    self.close_connection = True
                    return
                self.send_response_only(reply.status)
                for name, value in reply.headers.items():
                    if name.lower() not in {"content-length", "connection", "transfer-encoding"}:
                        self.send_header(name, value)
                self.send_header("content-length", str(len(reply.body)))
                self.end_headers()
                self.wfile.write(reply.body)

            do_GET = do_POST = do_PATCH = do_DELETE = _serve  # noqa: N815  the names that http.server asks for

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        return Handler


def once(chosen: Callable[[Seen], bool], fate: Fate) -> Callable[[Seen], Fate]:
    """*fate* for the first attempt of each idempotency key or body that is *chosen*; all else goes through."""
    met: set[object] = set()

    def judge(seen: Seen) -> Fate:
        name = seen.key or seen.body
        if not chosen(seen) or name in met:
            return FORWARD
        met.add(name)
        return fate

    return judge
