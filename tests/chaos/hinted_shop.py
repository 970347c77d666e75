"""A shop whose hints are lost, doubled and reordered while runs list it: nothing is lost, and nothing goes back.

The model is sequential: the shop itself. At the end the platform has what the shop has, and the effects of each record
have rising versions.
"""

from __future__ import annotations

import random
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Literal
from unittest import mock

from tests.chaos.mappings import Bench, BenchSettings, open_bench
from tests.hints import work_on_hints

from crossdock import Context, OrderBy, RawBatch, Record, Stream
from crossdock.delta.fingerprint import key_hashes
from crossdock.runs.active_run import ActiveRun
from crossdock.runs.session_shared_by_runs import Session, open_session
from crossdock.services.inbox import webhook_record_delivery
from crossdock.services.inbox.webhook_record_delivery import InboxWorker
from crossdock.sources import Checkpoint
from crossdock.state import ReceivedWebhook, StateUrl, StreamAndKey
from crossdock.values.run_progress_and_messages import SilentProgress
from crossdock.webhooks import Webhooks

Listing = Literal["all", "changes", "snapshot"]
"""What a run reads: all records, those that changed since the last run, or all, where a missing one is gone."""
CREATED = 30  # records that the shop begins with, so that a few removals stay within the limits


@dataclass(slots=True)
class Shop:
    """Customers with a version each; thread-safe.

    Attributes:
        changed: The number of each record's last change, by key.
        moved: The keys of changes of which nobody has been told yet.
    """

    versions: dict[str, int] = field(default_factory=dict)
    changed: dict[str, int] = field(default_factory=dict)
    moved: list[str] = field(default_factory=list)
    lock: threading.RLock = field(default_factory=threading.RLock)
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def change(self, key: str) -> None:
        with self.lock:
            self.versions[key] = self.versions.get(key, 0) + 1
            self.changed[key] = next(self._numbers)
            self.moved.append(key)

    def listed(self, since: int) -> tuple[list[dict[str, Any]], int]:
        """The records that changed after *since*, and the number of the last change."""
        with self.lock:
            found = sorted((number, key) for key, number in self.changed.items() if number > since)
            return [self.item(key) for _, key in found], max(self.changed.values(), default=0)

    def item(self, key: str) -> dict[str, Any]:
        return {"id": key, "version": self.versions[key]}


class Customers(Stream[BenchSettings]):
    """The customers of a shop, read slowly: between reading and yielding, others may do anything."""

    name, resource, key, fetch_size = "customers", "customer", ("id",), 7

    def __init__(self, shop: Shop, listing: Listing, *, versioned: bool, meanwhile: Any) -> None:
        self._shop, self._listing, self._meanwhile = shop, listing, meanwhile
        self.mode = "snapshot" if listing == "snapshot" else "incremental"
        if versioned:
            self.order_by = (OrderBy(column="version", as_="integer"),)

    def pull(self, ctx: Context[BenchSettings], since: str | None) -> Iterator[RawBatch | Checkpoint]:
        items, last = self._shop.listed(int(since or 0) if self._listing == "changes" else 0)
        self._meanwhile("list")
        half = len(items) // 2
        yield RawBatch.json(items[:half], source="page 1")
        self._meanwhile("list")
        yield RawBatch.json(items[half:], source="page 2")
        if self._listing == "changes":
            yield Checkpoint(str(last))

    def fetch(self, ctx: Context[BenchSettings], keys: Sequence[tuple[str, ...]]) -> Iterator[RawBatch]:
        with self._shop.lock:
            items = [self._shop.item(key) for (key,) in keys if key in self._shop.versions]
        self._meanwhile("fetch")
        yield RawBatch.json(items, source="records")

    def to_resource(self, record: Record) -> dict[str, Any]:
        self._meanwhile("map")
        return {"name": f"version {record.at('/version', int)}"}


@dataclass(slots=True)
class Faults:
    """What happens to hints, of a hundred; the rest arrive once, in any order."""

    lost: int = 20
    doubled: int = 20


class HintedShop:
    """A shop, its hints, and a session in which runs and a worker read it at the same time.

    Attributes:
        happened: How often each fault and step happened.
    """

    def __init__(self, bench: Bench, rng: random.Random, listing: Listing, *, versioned: bool) -> None:
        self._bench, self._rng, self.happened = bench, rng, Counter[str]()
        self.shop, self._names = Shop(), count()
        self._waiting: list[tuple[str, str]] = []  # delivery and key of hints that were sent and have not arrived
        bench.begin(
            [Customers(self.shop, listing, versioned=versioned, meanwhile=self._meanwhile)],
            webhooks=Webhooks([], [], lambda _: ()),
        )
        self._worker = InboxWorker(bench.clock, SilentProgress, threading.Event(), lambda *_: None)
        self._session: Session | None = None
        self._is_busy = threading.local()

    def run(self, steps: int, faults: Faults) -> None:
        """Change, hint, list and fetch at random, and at the end all that is left."""
        project = self._bench._project
        assert project is not None
        with (
            mock.patch.object(webhook_record_delivery, "IDLE_S", 0.0),
            open_session(project, self._bench.clock, width=2) as session,
        ):
            self._session = session
            for number in range(CREATED):
                self.shop.change(f"C{number}")
            for _ in range(steps):
                self._step(session, faults)
            self.shop.moved.clear()  # the last hints are lost
            self._session = None  # nothing happens meanwhile
            self._nightly(session)
            self._bench.clock.advance(10)
            self._work(session)

    def race(self, changes: int, nights: int, faults: Faults) -> None:
        """The shop changes, runs list it and the worker fetches, each in a thread; at the end there is one more run."""
        project = self._bench._project
        assert project is not None
        opened, is_over = open_session(project, self._bench.clock, width=2), threading.Event()
        with (
            mock.patch.object(webhook_record_delivery, "IDLE_S", 0.0),
            opened as session,
            ThreadPoolExecutor(3) as pool,
        ):
            for number in range(CREATED):
                self.shop.change(f"C{number}")

            def work() -> None:
                while not is_over.is_set():
                    self._bench.clock.advance(0.3)
                    self._work(session)

            def change() -> None:
                for _ in range(changes):
                    self._change()
                    self._send(session, faults)

            worker = pool.submit(work)
            try:
                shop = pool.submit(change)
                for _ in range(nights):
                    self._nightly(session)
                    self.happened["nightly"] += 1
                shop.result()
            finally:
                is_over.set()
            worker.result()
            self._nightly(session)
            self._bench.clock.advance(10)
            self._work(session)

    def _step(self, session: Session, faults: Faults) -> None:
        step = self._rng.choices(["change", "hint", "work", "nightly"], [10, 6, 3, 1])[0]
        self.happened[step] += 1
        self._bench.clock.advance(0.3)
        if step == "change":
            self._change()
        elif step == "hint":
            self._send(session, faults)
        elif step == "work":
            self._work(session)
        else:
            self._nightly(session)

    def _change(self) -> None:
        self.shop.change(f"C{self._rng.randrange(CREATED + 5)}")

    def _send(self, session: Session, faults: Faults) -> None:
        """Send the hints of the last changes, and let some of those that were sent arrive, in any order."""
        with self.shop.lock:
            moved, self.shop.moved = self.shop.moved, []
        for key in moved:
            chance = self._rng.randrange(100)
            self.happened["lost"] += chance < faults.lost
            copies = 0 if chance < faults.lost else 2 if chance < faults.lost + faults.doubled else 1
            self.happened["doubled"] += copies == 2
            self._waiting += [(f"m{next(self._names)}", key)] * copies
        self._rng.shuffle(self._waiting)
        arriving = self._rng.randrange(len(self._waiting) + 1)
        arrived, self._waiting = self._waiting[:arriving], self._waiting[arriving:]
        received = [
            ReceivedWebhook("b", name, "changed", records=(StreamAndKey("b.customers", key),)) for name, key in arrived
        ]
        with session.state.begin() as tx:
            tx.inbox.receive(received, key_hashes([key for _, key in arrived]), at=self._bench.clock.now())

    def _nightly(self, session: Session) -> None:
        project = self._bench._project
        assert project is not None
        report = ActiveRun(session, SilentProgress(), threading.Event()).execute(project.selected_streams([]))
        assert (report.errors, report.balanced) == ({}, True), report.errors

    def _work(self, session: Session) -> None:
        work_on_hints(self._worker, session)

    def _meanwhile(self, place: str) -> None:
        """In the middle of a list, a fetch or a mapping, the shop changes, or a hint is delivered by another thread."""
        if getattr(self._is_busy, "now", False) or self._session is None:
            return
        chance = self._rng.randrange(100)
        if chance < 20:
            self.happened[f"changed in {place}"] += 1
            self._change()
        elif place == "list" and chance < 80:
            self.happened["worked while a run listed"] += 1
            self._in_thread(self._session)

    def _in_thread(self, session: Session) -> None:
        def work() -> None:
            self._is_busy.now = True
            self._send(session, Faults())
            self._work(session)

        with ThreadPoolExecutor(1) as pool:
            pool.submit(work).result(60)

    def judge(self) -> None:
        """The platform has what the shop has, and no record went back to an older version."""
        seen: defaultdict[str, list[int]] = defaultdict(list)
        for operation, _, body in self._bench.platform.effects:
            assert operation in {"create", "update"}, operation
            seen[body["externalId"].removeprefix("b:")].append(int(body["name"].removeprefix("version ")))
        for key, versions in seen.items():
            assert versions == sorted(set(versions)), f"{key} went back or was written twice: {versions}"
        last = {key: versions[-1] for key, versions in seen.items()}
        stale = {key: (last.get(key), wanted) for key, wanted in self.shop.versions.items() if last.get(key) != wanted}
        assert not stale, f"version at the platform and in the shop: {stale}"


def hinted_shop(
    folder: Path,
    url: StateUrl,
    *,
    listing: Listing,
    versioned: bool,
    steps: int,
    seed: int,
    rounds: int,
    races: bool = False,
) -> Counter[str]:
    """Run some shops; how often each fault and step happened.

    Args:
        races: In several threads, which differ each time; else one thing happens after the other, as *seed* says.
    """
    happened: Counter[str] = Counter()
    with open_bench(folder, url) as bench:
        for number in range(rounds):
            rng = random.Random(f"{seed} {listing} {versioned} {number}")
            shop = HintedShop(bench, rng, listing, versioned=versioned)
            if races:
                shop.race(steps, 5, Faults())
            else:
                shop.run(steps, Faults())
            shop.judge()
            happened += shop.happened
    print(f"\nhinted shop, {listing}, versioned {versioned}, {url.drivername}: seed {seed}, {dict(happened)}")
    return happened
