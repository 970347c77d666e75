"""SIGKILL of real processes that read the platform while its records change: nothing is lost, stale or doubled."""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Self

import httpx
import yaml
from tests.chaos import processes
from tests.chaos.processes import CROSSDOCK
from tests.e2e.project_folder import UNPACED, balance
from tests.waiting import eventually

from crossdock.client import Client, Product
from crossdock.config.project import project
from crossdock.sandbox import SandboxServer, SandboxSettings
from crossdock.testing import sandbox_effects_comparison
from crossdock.testing.sandbox_syncs import write_private_file

PATH = "/api/v1/catalog/products"
PAGE = 50


@dataclass
class Copier:
    """A config whose stream writes what it reads to the same platform, under other names, and its processes.

    Attributes:
        names: Of the records to copy, by id.
    """

    folder: Path
    server: SandboxServer
    random: Random
    names: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.client = Client(self.server.base_url, self.server.tenant, self.server.api_key)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()

    def begin(self, records: int) -> None:
        """Create the records, the config and the state."""
        auth = {"kind": "api_key", "token": write_private_file(self.folder / "key", self.server.sandbox.new_key())}
        rate = {"per_minute": UNPACED.per_minute, "burst": UNPACED.burst}
        stream = {
            "read": "product",
            "resource": "product",
            "namespace": "copies",
            "overlap_s": 5,
            "skip": {"ours": {"field": "externalId", "starts_with": "copies:"}},
            "changes": {"at_most": 10**6},
            "map": {"sku": "sku", "name": "name"},
        }
        erp = {"kind": "platform", "page_size": PAGE, "streams": {"products": stream}}
        platform = {"base_url": self.server.base_url, "tenant": self.server.tenant, "auth": auth, "rate": rate}
        document = {"platform": platform, "state": "sqlite:///state.db", "connections": {"erp": erp}}
        (self.folder / "c.yaml").write_text(yaml.safe_dump(document))
        for number in range(records):
            self._create(f"K{number:05}")
        created = processes.finish(self._command("init"), os.environ)
        assert created.exit_code == 0, created.stderr

    def _create(self, key: str) -> None:
        made = self.client.products.create(Product(external_id=key, sku=key, name=f"Part {key}"))
        self.names[made.id] = made.name

    def change(self) -> None:
        """One change of the platform by somebody else."""
        if self.random.random() < 0.3:
            self._create(f"N{len(self.names):05}")
        else:
            key = self.random.choice(list(self.names))
            self.names[key] = f"Part {self.random.randrange(10**6)}"
            self.client.products.update(key, {"name": self.names[key]})

    def _command(self, *arguments: str) -> list[str]:
        return [*CROSSDOCK, "-C", str(self.folder / "c.yaml"), *arguments]

    def sync(self) -> None:
        """A sync that must deliver everything, and balance."""
        done = processes.finish(self._command("sync", "--json"), os.environ)
        assert done.exit_code == 0, done.stderr
        balance(done.document)

    def killed_at_page(self, number: int) -> bool:
        """Kill a sync once it has requested so many pages; False if it ended before."""
        before = self._log(limit=1)["total"]
        with self._changing(), processes.running(self._command("sync"), os.environ) as process:
            eventually(lambda: self._log(after=before, limit=number)["data"][number - 1 :] or not process.is_alive())
            process.kill()
        return process.exitcode == -signal.SIGKILL

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """The platform changes all the time, in a thread."""
        ended = threading.Event()

        def change() -> None:
            while not ended.wait(0.01):
                self.change()

        thread = threading.Thread(target=change)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def _log(self, **query: object) -> dict[str, Any]:
        params = {name: str(value) for name, value in {"path": PATH, "method": "GET", **query}.items()}
        answer = httpx.get(f"{self.server.base_url}/_sandbox/requests", params=params, trust_env=False)
        found: dict[str, Any] = answer.json()
        return found

    def copies(self) -> dict[str, str]:
        """The names of the copies, by the id of the record."""
        stored = ((each.external_id.partition(":"), each.name) for each in self.client.products.list(page_size=1000))
        return {key: name for (namespace, _, key), name in stored if namespace == "copies"}


def killed_reads(folder: Path, *, seed: int, records: int, kills: int) -> Counter[str]:
    """Syncs are killed at pages anywhere in the list while it changes; then one sync delivers all, and one nothing.

    Returns:
        How often a sync was killed, and how often it ended before.
    """
    happened = Counter[str]()
    limits = SandboxSettings(rate_per_min=UNPACED.per_minute, burst=UNPACED.burst, delay_s=0.01)
    with SandboxServer(folder / "sandbox", limits) as server, Copier(folder, server, Random(seed)) as copier:
        copier.begin(records)
        for _ in range(kills):
            killed = copier.killed_at_page(copier.random.randrange(1, 2 * records // PAGE))
            happened["killed" if killed else "ended"] += 1
        copier.sync()
        assert copier.copies() == copier.names, f"seed {seed}"
        created = Counter(
            each["body"]["externalId"]
            for each in sandbox_effects_comparison.list_effects_of_tenant(project.load(folder / "c.yaml").platform)
            if each["operation"] == "create"
        )
        assert set(created.values()) == {1}, f"seed {seed}"
    assert happened["killed"], f"seed {seed}"
    return happened
