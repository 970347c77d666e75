"""SIGKILL of real processes that read a real vendor: how much is read again, and that nothing is lost or doubled."""

from __future__ import annotations

import json
import os
import signal
import threading
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from multiprocessing.context import ForkServerProcess
from operator import itemgetter
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import yaml
from tests.chaos import processes
from tests.chaos.processes import CROSSDOCK
from tests.e2e.project_folder import UNPACED, SandboxProcess, balance
from tests.installed_connector import installed
from tests.servers import served
from tests.waiting import WITHIN_S, eventually

BEGAN = datetime(2025, 1, 1, tzinfo=UTC)


class VendorServer(ThreadingHTTPServer):
    """Lists records from a time on, in pages that follow a record.

    Attributes:
        sorts: Whether it lists records by the time of their change, or else by id.
        records: Time of change and name, by id.
        pages: How many pages were requested.
        on_page: Called with the number of each page before it is answered.
    """

    daemon_threads = True

    def __init__(self, *, sorts: bool) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.sorts = sorts
        self.records: dict[str, tuple[datetime, str]] = {}
        self.pages = 0
        self.on_page: Callable[[int], None] = lambda _: None
        self._listed: dict[str, tuple[datetime, str]] = {}
        self._places: list[tuple[str, str, datetime]] = []
        self._lock = threading.Lock()

    def _list(self) -> None:
        """Sort the records once for all pages between two changes."""
        self._listed = dict(self.records)
        self._places = sorted(
            (f"{at.isoformat()} {key}" if self.sorts else key, key, at) for key, (at, _) in self.records.items()
        )

    def page(self, query: dict[str, str]) -> dict[str, Any]:
        with self._lock:
            self.pages += 1
            self.on_page(self.pages)
            if self._listed != self.records:
                self._list()
            least, limit = datetime.fromisoformat(query.get("since", BEGAN.isoformat())), int(query["limit"])
            after = query.get("after", "")
            remaining = islice(self._places, bisect_right(self._places, after, key=itemgetter(0)), None)
            found = list(islice((each for each in remaining if each[2] >= least), limit + 1))
            items = [
                {"id": key, "name": self.records[key][1], "updated_at": at.isoformat()} for _, key, at in found[:limit]
            ]
            following = "products?" + urlencode(query | {"after": found[limit - 1][0]}) if len(found) > limit else None
            return {"items": items, "next": following}


class _Handler(BaseHTTPRequestHandler):
    server: VendorServer

    def do_GET(self) -> None:
        body = json.dumps(self.server.page(dict(parse_qsl(urlsplit(self.path).query)))).encode()
        with suppress(ConnectionError):  # the reader may be dead
            self.send_response_only(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@dataclass
class Load:
    """A config over a vendor and a sandbox, and the processes that read it."""

    folder: Path
    vendor: VendorServer
    sandbox: SandboxProcess
    environment: dict[str, str] = field(default_factory=dict)

    def begin(self, page_size: int) -> None:
        """Write the config and create the state."""
        self.environment = {
            **os.environ,
            **installed(self.folder / "installed", "vendor_shop", "tests.chaos.vendor_shop"),
            "CROSSDOCK_API_KEY": self.sandbox.api_key,
        }
        platform = {
            "base_url": self.sandbox.base_url,
            "tenant": self.sandbox.tenant,
            "auth": {"kind": "api_key", "token": "env:CROSSDOCK_API_KEY"},
            "rate": {"per_minute": UNPACED.per_minute, "burst": UNPACED.burst},
        }
        shop = {
            "kind": "vendor_shop",
            "base_url": f"http://127.0.0.1:{self.vendor.server_port}",
            "sorted": self.vendor.sorts,
            "page_size": page_size,
        }
        document = {"platform": platform, "state": "sqlite:///state.db", "connections": {"shop": shop}}
        (self.folder / "c.yaml").write_text(yaml.safe_dump(document))
        created = processes.finish(self.command("init"), self.environment)
        assert created.exit_code == 0, created.stderr

    def command(self, *arguments: str) -> list[str]:
        return [*CROSSDOCK, "-C", str(self.folder / "c.yaml"), *arguments]

    def sync(self, within_s: float) -> None:
        """A sync that must deliver everything, and balance."""
        self._readmit()
        done = processes.finish(self.command("sync", "--json"), self.environment, within_s)
        assert done.exit_code == 0, done.stderr
        balance(done.document)

    def killed_at_page(self, number: int) -> None:
        """Kill a sync when it requests this page; the test fails if it ends before."""
        started = threading.Event()
        on_page = self.vendor.on_page

        def kill(page: int) -> None:
            on_page(page)
            if page == number:
                started.wait(WITHIN_S)
                process.kill()

        self.vendor.on_page = kill
        try:
            with self._syncing() as process:
                started.set()
        finally:
            self.vendor.on_page = on_page

    def killed_at_effect(self, number: int) -> bool:
        """Kill a sync once the platform has seen so many effects; False if it ended before."""
        with self._syncing(fails=False) as process:
            eventually(lambda: self.sandbox.has_effects(number) or not process.is_alive())
            process.kill()
        return process.exitcode == -signal.SIGKILL

    @contextmanager
    def _syncing(self, *, fails: bool = True) -> Iterator[ForkServerProcess]:
        log = self.folder / "killed.log"
        self._readmit()
        with processes.running(self.command("sync"), self.environment, log, log) as process:
            yield process
        assert not fails or process.exitcode == -signal.SIGKILL, log.read_text()

    def _readmit(self) -> None:
        """Have the stream read again that was killed twice while it was read: no page was the reason."""
        processes.finish(self.command("sync", "no.stream"), self.environment)  # notices the last kill
        done = processes.finish(self.command("state", "readmit", "shop.products"), self.environment)
        assert done.exit_code == 0, done.stderr

    def created(self) -> Counter[str]:
        return Counter(
            effect["body"]["externalId"] for effect in self.sandbox.effects() if effect["operation"] == "create"
        )


@contextmanager
def opened(folder: Path, *, sorts: bool, page_size: int) -> Iterator[Load]:
    with SandboxProcess(folder / "sandbox", UNPACED) as sandbox, served(VendorServer(sorts=sorts)) as vendor:
        load = Load(folder, vendor, sandbox)
        load.begin(page_size)
        yield load


def first_load(
    folder: Path, *, records: int, page_size: int, kills: int, within_s: float = WITHIN_S
) -> tuple[int, int]:
    """A first load that is killed at so many pages, spread evenly; each record is created once.

    Returns:
        The pages that were read, and those that a load without kills reads.
    """
    with opened(folder, sorts=True, page_size=page_size) as load:
        for number in range(records):
            load.vendor.records[f"K{number:06}"] = BEGAN + timedelta(minutes=number), f"Part {number}"
        least = -(-records // page_size)
        for _ in range(kills):
            load.killed_at_page(load.vendor.pages + least // (kills + 1))
        load.sync(within_s)
        assert load.created() == Counter(f"shop:{key}" for key in load.vendor.records)
        return load.vendor.pages, least


def killed_anywhere(folder: Path, *, seed: int, records: int, kills: int) -> Counter[str]:
    """Records change while they are read and delivered, and syncs are killed: nothing is lost, stale or doubled.

    Returns:
        How often a sync was killed while it read, while it delivered, and how often it ended before.
    """
    random, happened = Random(seed), Counter[str]()
    with opened(folder, sorts=seed % 2 == 0, page_size=100) as load:
        vendor = load.vendor

        def change(_: int) -> None:
            for _ in range(random.choice((0, 0, 1, 20))):
                at = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=skew)
                key = f"K{random.randrange(records + 100):06}"
                if random.random() < 0.1:
                    vendor.records.pop(key, None)
                else:
                    vendor.records[key] = at, f"Part {random.randrange(10**6)}"

        skew = random.randrange(-300, 300)
        for number in range(records):
            vendor.records[f"K{number:06}"] = BEGAN + timedelta(minutes=number // 7), f"Part {number}"
        vendor.on_page = change
        for _ in range(kills):
            if random.random() < 0.5:
                load.killed_at_page(vendor.pages + random.randrange(1, 3))
                happened["reading"] += 1
            else:
                seen = len(load.sandbox.effects())
                killed = load.killed_at_effect(seen + random.randrange(1, records // 3))
                happened["delivering" if killed else "ended"] += 1
        load.sandbox.settle()
        vendor.on_page = lambda _: None
        load.sync(WITHIN_S)
        stored = {body["externalId"]: body["name"] for body in load.sandbox.stored("product")}
        expected = {f"shop:{key}": name for key, (_, name) in vendor.records.items()}
        assert {key: stored.get(key) for key in expected} == expected, f"seed {seed}"
        assert set(load.created().values()) == {1}, f"seed {seed}"
        before = len(load.sandbox.effects())
        load.sync(WITHIN_S)
        assert len(load.sandbox.effects()) == before, f"seed {seed}"
    assert happened["reading"] + happened["delivering"] > 0, f"seed {seed}"
    return happened
