"""The base of the trips with live shop software: people act while syncs are killed."""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any, Protocol

from tests.chaos import processes
from tests.chaos.killed_syncs import KilledSyncs
from tests.e2e.project_folder import SandboxProcess
from tests.long.peers.depot import Depot

RESOURCES = ("product", "customer", "inventory_lot", "order")


class People(Protocol):
    """The merchant and the buyers of a shop; *happened* is what was done."""

    happened: Counter[str]

    def product(self) -> None: ...

    def customer(self) -> None: ...

    def order(self) -> None: ...

    def act(self) -> None:
        """Somebody does something."""


@dataclass(kw_only=True)
class LiveTrip(KilledSyncs):
    """A shop, a platform, and the project between them.

    Attributes:
        seconds: How long each sync took that was not killed.
        refused: Why syncs delivered only a part, because the shop changed while they read it.
    """

    sandbox: SandboxProcess
    people: People
    depot: Depot = field(init=False)
    exits: frozenset[int] = frozenset({0, 1, 4})  # a list that changes while it is read may be read in part
    seconds: list[int] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.depot = Depot(self.sandbox, Random(self.random.random()))

    def open_shop(self, *, products: int, customers: int, orders: int) -> None:
        people = self.people
        for act, times in ((people.product, products), (people.customer, customers), (people.order, orders)):
            for _ in range(times):
                act()
        self.run("init")

    def night(self, *, acts: int, kills: int) -> None:
        """People act while so many syncs are killed and one is not; then all is quiet."""
        with self._acting(acts):
            for _ in range(kills):
                self.killed()
            self.hurried()
        self.settled()
        self.depot.take_over(self.depot_stock())

    def depot_stock(self) -> dict[str, tuple[str, int]]:
        """The SKU and the quantity of each stock record of the depot, by its id in the shop."""
        raise NotImplementedError

    def killed(self) -> None:
        """A sync that is killed while it reads, while it delivers, or after some requests to the platform."""
        how, within = self.random.choice(("reading", "delivery", "requests")), 10 ** self.random.randint(1, 3)
        if how == "reading":
            point = self.random.choice(("batch_read", "scan_done", "stream_finished"))
            self.struck(point, self.random.randint(1, 4), "after")
        elif how == "delivery":
            self.struck_somewhere(within)
        else:
            self._killed_after(self.random.randint(1, within))

    def _killed_after(self, requests: int) -> None:
        wanted = self.sandbox.requests() + requests
        command = [*processes.CROSSDOCK, "-C", str(self.folder / "c.yaml"), "sync"]
        process = processes.start(command, {**os.environ, **self.environment})
        while process.exitcode is None and self.sandbox.requests() < wanted:
            time.sleep(0.01)
        process.kill()
        process.join()
        killed = process.exitcode == -signal.SIGKILL
        assert killed or process.exitcode in self.exits, process.exitcode
        self.happened["kills" if killed else "ended before the kill"] += 1

    def settled(self) -> None:
        """A sync while nobody acts: it reads and delivers everything but what a side refuses for good."""
        self._synced({0, 1})

    def hurried(self) -> None:
        """A sync while people act."""
        self._synced(self.exits)

    def _synced(self, exits: Collection[int]) -> None:
        began = time.monotonic()
        done = self.command("sync", "--json")
        self.seconds.append(round(time.monotonic() - began))
        assert done.exit_code in exits, f"{done.exit_code} {done.stderr}{done.stdout}"
        self.happened[f"exit {done.exit_code}"] += 1
        if done.exit_code == 4:
            self.refused |= {line for line in done.stderr.splitlines() if line.startswith("crossdock")}

    @contextmanager
    def _acting(self, times: int) -> Iterator[None]:
        """So many acts are done by another thread beside the block, and have been when it ends."""

        def acts() -> None:
            for _ in range(times):
                self.people.act()
                if self.random.random() < 1 / 3:
                    self.depot.act()

        with ThreadPoolExecutor(1) as pool:
            done = pool.submit(acts)
            yield
            done.result()

    def letters(self) -> dict[tuple[str, str], str]:
        """Why each record is not delivered, by stream and key."""
        listed = json.loads(self.run("records", "list", "--json").stdout)
        return {(each["stream"], each["key"]): each["why"] for each in listed}

    def platform(self) -> dict[str, list[dict[str, Any]]]:
        """What the platform has, by resource."""
        return {name: list(self.sandbox.stored(name)) for name in RESOURCES}

    def checked(self, faults: Sequence[str]) -> None:
        assert not faults, "\n".join([f"{len(faults)} faults", *faults[:20], self.told()])

    def told(self) -> str:
        """The figures."""
        return json.dumps({**self.happened, **self.people.happened, **self.depot.happened, **self.figures()}, indent=1)

    def figures(self) -> Mapping[str, object]:
        return {
            **{f"{name}s on the platform": len(records) for name, records in self.platform().items()},
            "effects": len(self.sandbox.effects()),
            "seconds of the syncs": self.seconds,
            "read in part": sorted(self.refused),
            "not delivered": [f"{stream} {key}: {why}" for (stream, key), why in self.letters().items()],
        }
