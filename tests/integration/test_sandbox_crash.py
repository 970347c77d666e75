"""SIGKILL of a real sandbox while invoices are being created."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

INVOICES = "/api/v1/finance/invoices"
THREADS = 8
KILLS = 4
ANSWERS_BEFORE_KILL = 40
PROGRAM = "import sys, pathlib; from crossdock.sandbox import serve; serve(pathlib.Path(sys.argv[1]))"


class Load:
    """Creates invoices from several threads, each under its own key, until the server is gone."""

    def __init__(self, base_url: str, headers: dict[str, str], body: bytes) -> None:
        self.base_url = base_url
        self.headers = headers
        self.body = body
        self.sent: set[str] = set()
        self.answered: dict[str, bytes] = {}

    def run_into(self, kill: Callable[[], None], name: str) -> None:
        """Create until there are some answers more, kill the server meanwhile, and wait for every thread to notice."""
        self.wanted = len(self.answered) + ANSWERS_BEFORE_KILL
        self.enough = threading.Event()
        threads = [threading.Thread(target=self._create, args=(f"{name}-{n}",)) for n in range(THREADS)]
        for thread in threads:
            thread.start()
        assert self.enough.wait(30)
        kill()
        for thread in threads:
            thread.join()

    def _create(self, name: str) -> None:
        with httpx.Client(trust_env=False) as client:
            for count in range(100_000):
                key = f"{name}-{count}"
                self.sent.add(key)
                try:
                    answer = send(client, self, key)
                except httpx.TransportError:
                    return
                assert answer.status_code == 201
                self.answered[key] = answer.content
                if len(self.answered) >= self.wanted:
                    self.enough.set()


def send(client: httpx.Client, load: Load, key: str) -> httpx.Response:
    return client.post(load.base_url + INVOICES, content=load.body, headers={**load.headers, "Idempotency-Key": key})


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[str]]]:
    """The processes of a test; whatever happens, they end with it."""
    processes: list[subprocess.Popen[str]] = []
    yield processes
    for each in processes:
        with each:
            each.kill()


def start(data_dir: Path, started: list[subprocess.Popen[str]]) -> tuple[subprocess.Popen[str], dict[str, Any]]:
    running = subprocess.Popen([sys.executable, "-c", PROGRAM, str(data_dir)], stdout=subprocess.PIPE, text=True)
    started.append(running)
    assert running.stdout is not None
    return running, json.loads(running.stdout.readline())


def invoice_body(base_url: str, headers: dict[str, str]) -> bytes:
    with httpx.Client(base_url=base_url, headers=headers, trust_env=False) as client:
        customer = client.post("/api/v1/sales/customers", content='{"externalId":"c","name":"n"}').json()["id"]
        product = client.post("/api/v1/catalog/products", content='{"externalId":"p","sku":"s","name":"n"}').json()[
            "id"
        ]
    line = f'{{"productId":"{product}","quantity":1,"unitPrice":0.1}}'
    return f'{{"customerId":"{customer}","currency":"EUR","items":[{line}]}}'.encode()


def test_every_answered_invoice_is_there_once_after_kills(tmp_path: Path, started: list[subprocess.Popen[str]]) -> None:
    """After each SIGKILL every 201 is stored and witnessed once, and resending every key doubles nothing."""
    running, facts = start(tmp_path, started)
    headers = {
        "Authorization": f"Bearer {facts['api_key']}",
        "x-tenant-slug": facts["tenant"],
        "Content-Type": "application/json",
    }
    load = Load(facts["base_url"], headers, invoice_body(facts["base_url"], headers))
    for number in range(KILLS):
        load.run_into(running.kill, str(number))
        running.wait(10)
        running, _ = start(tmp_path, started)
        with httpx.Client(base_url=load.base_url, headers=headers, trust_env=False) as client:
            witnessed = effects(client)
            keys = Counter(each["idempotencyKey"] for each in witnessed)
            assert load.answered.keys() <= keys.keys() <= load.sent
            assert {json.loads(body)["id"] for body in load.answered.values()} <= {each["id"] for each in witnessed}
            assert sorted(stored(client)) == sorted(each["id"] for each in witnessed)

    with httpx.Client(base_url=load.base_url, headers=headers, trust_env=False) as client:
        for key in sorted(load.sent):
            answer = send(client, load, key)
            assert answer.status_code == 201
            assert answer.headers.get("idempotent-replayed") == ("true" if key in keys else None)
            assert load.answered.get(key, answer.content) == answer.content
        assert Counter(each["idempotencyKey"] for each in effects(client)) == dict.fromkeys(load.sent, 1)


def effects(client: httpx.Client) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = client.get("/_sandbox/effects?resource=invoice&limit=10000").json()["data"]
    return told


def stored(client: httpx.Client) -> list[str]:
    ids: list[str] = []
    cursor = ""
    while True:
        page = client.get(f"{INVOICES}?limit=1000{cursor}").json()
        ids += [each["id"] for each in page["data"]]
        if page["nextCursor"] is None:
            return ids
        cursor = f"&cursor={page['nextCursor']}"
