"""The base of the trips with live shop software: people act while syncs are killed."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.chaos import processes
from tests.chaos.killed_syncs import KilledSyncs
from tests.e2e.project_folder import SandboxProcess

RESOURCES = ("product", "customer", "inventory_lot", "order")


@dataclass(kw_only=True)
class LiveTrip(KilledSyncs):
    """A shop, a platform, and the project between them.

    Attributes:
        seconds: How long each sync took that was not killed.
        refused: Why syncs delivered only a part, because the shop changed while they read it.
    """

    sandbox: SandboxProcess
    exits: frozenset[int] = frozenset({0, 1, 4})  # a list that changes while it is read may be read in part
    seconds: list[int] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)

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
    def acting(self, act: Callable[[], None], times: int) -> Iterator[None]:
        """*act* is done so many times by another thread beside the block, and has been when it ends."""

        def acts() -> None:
            for _ in range(times):
                act()

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
