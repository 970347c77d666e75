"""A shop that sends webhooks, the platform, and a config by which ``crossdock listen`` receives and delivers them."""

from __future__ import annotations

import base64
import json
import os
import secrets
import signal
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import yaml
from tests.chaos.processes import CROSSDOCK
from tests.e2e.processes import SchedulerProcesses
from tests.e2e.project_folder import UNPACED, in_process
from tests.partners.partner_server import PartnerServer, serving
from tests.partners.versioned_shop import VersionedShop, connection
from tests.partners.webhook_sender import signature
from tests.servers import free_port
from tests.waiting import eventually

from crossdock.config.project import project
from crossdock.sandbox import SandboxServer, SandboxSettings
from crossdock.testing import sandbox_effects_comparison
from crossdock.testing.sandbox_syncs import write_private_file

JOB = {"schedule": {"time_zone": "UTC", "every": "1d"}}


def new_secret() -> str:
    return f"whsec_{base64.b64encode(secrets.token_bytes(32)).decode()}"


def signed(secret: str, body: bytes, *, name: str, at: float | None = None) -> dict[str, str]:
    """The header fields of a webhook by Standard Webhooks 1.0; without *at*, of one that is sent now."""
    stamp = str(int(time.time() if at is None else at))
    key = base64.b64decode(secret.removeprefix("whsec_"))
    mark = signature(key, f"{name}.{stamp}.".encode() + body)
    return {"webhook-id": name, "webhook-timestamp": stamp, "webhook-signature": f"v1,{mark}"}


def body_of(stream: str, key: str) -> bytes:
    """The body of a webhook that tells of a change of one record."""
    return json.dumps({"type": f"{stream}.changed", "data": {"id": key}}).encode()


def slow_body(port: int) -> socket.socket:
    """A forged webhook whose body lacks its last byte."""
    wire = socket.create_connection(("127.0.0.1", port), timeout=60)
    fields = b"".join(f"{name}: {value}\r\n".encode() for name, value in signed(new_secret(), b"{}", name="s").items())
    wire.sendall(b"POST /webhooks/shop HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n" + fields + b"\r\n{")
    return wire


@dataclass
class ListenStage:
    """A project in *folder*, whose connection is called ``shop``.

    Attributes:
        secret: With which the shop signs its webhooks now.
        program: What Python runs as crossdock.
    """

    folder: Path
    platform: SandboxServer
    shop: VersionedShop
    server: PartnerServer
    state: str = "sqlite:///state.db"
    secret: str = field(default_factory=new_secret)
    program: tuple[str, ...] = CROSSDOCK
    _numbers: Iterator[int] = field(default_factory=count)

    def __post_init__(self) -> None:
        self.port = free_port()
        self.config = self.folder / "c.yaml"
        self._token = write_private_file(self.folder / "key", self.platform.sandbox.new_key())
        self.configure(self.secret)
        done = in_process(self.config, "init", environment={})
        assert done.exit_code == 0, done.stderr

    def configure(self, *texts: str) -> None:
        """Write the config with these secrets."""
        files = [write_private_file(self.folder / f"secret-{next(self._numbers)}", text) for text in texts]
        document = {
            "platform": {
                "base_url": self.platform.base_url,
                "tenant": self.platform.tenant,
                "auth": {"kind": "api_key", "token": self._token},
                "rate": {"per_minute": UNPACED.per_minute, "burst": UNPACED.burst},
                "retry": {"base_s": 0.01},
            },
            "state": self.state,
            "connections": {"shop": connection(self.server.url, files)},
            "jobs": {"nightly": JOB},
        }
        new = self.config.with_suffix(".new")
        new.write_text(yaml.safe_dump(document))
        new.replace(self.config)
        self.project = project.load(self.config)

    def edit(self, change: Callable[[dict[str, Any]], object]) -> None:
        """Write the config with another connection ``shop``."""
        document = yaml.safe_load(self.config.read_text())
        change(document["connections"]["shop"])
        self.config.write_text(yaml.safe_dump(document))

    # ---- crossdock

    def listening(self, *options: str, port: int | None = None, anew: bool = False) -> SchedulerProcesses:
        """Processes of ``crossdock listen`` with *options*; of another command, if they begin with one."""
        address = str(self.port if port is None else port)
        arguments = options if "schedule" in options else ("listen", "--address", address, *options)
        command = [*self.program, "-C", str(self.config), *arguments]
        return SchedulerProcesses(command, self.folder / f"listen-{address}.log", within_s=60, anew=anew)

    @contextmanager
    def receiving(self, *options: str, anew: bool = False) -> Iterator[SchedulerProcesses]:
        """One process that receives webhooks."""
        with self.listening(*options, anew=anew) as processes:
            before = processes.said("receiving webhooks at")
            processes.start()
            processes.until(lambda: processes.said("receiving webhooks at") > before)
            yield processes

    def hints(self) -> dict[str, str | None]:
        """The error of each record that is to be fetched, by stream and key; for tests of the state alone."""
        with self.project.read_state() as tx:
            return {f"{hint.stream} {hint.key}": hint.error for hint in tx.inbox.records_to_fetch(limit=1_000)}

    # ---- the shop's webhooks

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/webhooks/shop"

    def tell(self, stream: str, key: str) -> httpx.Response:
        """Send a webhook about a record, once."""
        body = body_of(stream, key)
        return self.post(body, signed(self.secret, body, name=uuid4().hex))

    def post(self, body: bytes, headers: Mapping[str, Any], *, to: str = "shop", port: int = 0) -> httpx.Response:
        url = f"http://127.0.0.1:{port or self.port}/webhooks/{to}"
        return httpx.post(url, content=body, headers=headers, trust_env=False, timeout=60)

    # ---- the platform

    def effects(self) -> list[dict[str, Any]]:
        return list(sandbox_effects_comparison.list_effects_of_tenant(self.project.platform))

    def stored(self) -> Counter[str]:
        """What the platform has, by its witness: a text for each record that tells its version."""
        latest = {effect["id"]: effect for effect in self.effects()}
        return Counter(_shown(effect) for effect in latest.values())

    def expected(self, keys: Mapping[str, set[str]]) -> Counter[str]:
        """What the platform must have of the records *keys* of each stream, and of those that they refer to."""
        wanted = {stream: set(found) for stream, found in keys.items()}
        for stream in ("orders", "invoices"):
            for key in wanted.get(stream, ()):
                sale = self.shop.records[stream][key]
                wanted.setdefault("customers", set()).add(sale["customer"])
                wanted.setdefault("products", set()).update(item["product"] for item in sale["items"])
        return Counter(_of_shop(stream, self.shop.records[stream][key]) for stream in wanted for key in wanted[stream])

    def until_delivered(self, keys: Mapping[str, set[str]], within_s: float = 120) -> None:
        """Wait until all that is expected of *keys* is there; what is there beyond it, `judge` finds."""
        expected = self.expected(keys)
        eventually(lambda: not expected - self.stored(), within_s)

    def judge(self, keys: Mapping[str, set[str]]) -> None:
        """Fail unless the platform has exactly the last versions of *keys*, and did nothing twice."""
        effects, expected, stored = self.effects(), self.expected(keys), self.stored()
        assert stored == expected, f"missing {expected - stored}, unexpected or doubled {stored - expected}"
        assert {each["operation"] for each in effects} <= {"create", "update"}
        shown = Counter(f"{each['operation']} {_shown(each)}" for each in effects)
        assert not (twice := {text: number for text, number in shown.items() if number > 1}), f"done twice: {twice}"
        created = Counter(_name(each) for each in effects if each["operation"] == "create")
        assert set(created.values()) <= {1}, f"created twice: {created - Counter(set(created))}"


def _name(effect: Mapping[str, Any]) -> str:
    """The record of an effect; an invoice has no external id, and its price tells it."""
    body = effect["body"]
    told = str(body["items"][0]["unitPrice"]) if effect["resource"] == "invoice" else body["externalId"]
    return f"{effect['resource']} {told}"


def _shown(effect: Mapping[str, Any]) -> str:
    body = effect["body"]
    told = {"customer": "name", "order": "status", "product": "sku"}.get(effect["resource"])
    return f"{_name(effect)} {body[told] if told else ''}".strip()


def _of_shop(stream: str, record: Mapping[str, Any]) -> str:
    """The same text for a record of the shop."""
    resource = stream.removesuffix("s")
    if stream == "invoices":
        return f"invoice {record['items'][0]['price']}"
    told = {"customer": "name", "order": "status", "product": "sku"}[resource]
    return f"{resource} shop:{record['id']} {record[told]}"


@contextmanager
def listen_stage(folder: Path, state: str = "sqlite:///state.db") -> Iterator[ListenStage]:
    """An empty shop and an empty platform."""
    unpaced = SandboxSettings(rate_per_min=UNPACED.per_minute, burst=UNPACED.burst)
    shop = VersionedShop()
    with SandboxServer(folder / "platform", unpaced) as platform, serving(PartnerServer(shop)) as server:
        yield ListenStage(folder, platform, shop, server, state)


def hang_up(processes: SchedulerProcesses) -> None:
    """Have the process read its config again, and wait until it has."""
    (pid,) = processes.pids
    before = processes.said("SIGHUP: watching")
    os.kill(pid, signal.SIGHUP)
    processes.until(lambda: processes.said("SIGHUP: watching") > before)
