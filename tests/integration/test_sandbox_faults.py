"""Faults over real sockets: what a client sees against the effects log."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest
from tests.sandbox_load import INVOICES, Platform

from crossdock.sandbox import SandboxServer

CUSTOMERS = "/api/v1/sales/customers"


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    with SandboxServer(tmp_path_factory.mktemp("sandbox")) as server:
        yield Platform(server.base_url, server.tenant, server.api_key)


def activate(platform: Platform, name: str, probability: float = 1, route: str = "", seed: int = 0) -> None:
    faults = [{"name": name, "probability": probability, "route": route}]
    platform.call("POST", "/_sandbox/faults", json.dumps({"faults": faults, "seed": seed}))


class Wire:
    """One connection with hand-written requests."""

    def __init__(self, platform: Platform) -> None:
        host, port = platform.base_url.removeprefix("http://").split(":")
        self.socket = socket.create_connection((host, int(port)), timeout=300)
        headers = {**platform.headers, "Host": host}
        self.head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())

    def create(self, name: str) -> tuple[bytes, str]:
        """Create a customer; return the received bytes, and the state of the connection afterwards."""
        body = f'{{"externalId":"{name}","name":"n"}}'
        head = f"POST {CUSTOMERS} HTTP/1.1\r\n{self.head}Content-Length: {len(body)}\r\n\r\n"
        self.socket.sendall((head + body).encode())
        received = b""
        try:
            while not whole(received):
                if not (chunk := self.socket.recv(65536)):
                    return received, "closed"
                received += chunk
        except ConnectionResetError:
            return received, "reset"
        return received, "open"


def whole(answer: bytes) -> bool:
    head, found, body = answer.partition(b"\r\n\r\n")
    return bool(found) and len(body) == length(head)


def length(head: bytes) -> int:
    return int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])


@pytest.mark.parametrize(
    ("fault", "ending", "happened"), [("reset_before", "reset", False), ("lost_answer", "closed", True)]
)
def test_a_connection_ends_without_a_byte(
    platform: Platform, fault: str, ending: str, happened: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """On a connection in use the response is missing completely, and the server logs nothing and keeps running."""
    wire = Wire(platform)
    assert wire.create(f"{fault}-before")[1] == "open"
    activate(platform, fault)
    with wire.socket, caplog.at_level(logging.INFO):
        assert wire.create(fault) == (b"", ending)
    platform.call("DELETE", "/_sandbox/faults")
    assert len(platform.call("GET", f"{CUSTOMERS}?externalId={fault}")["data"]) == happened
    assert not [record for record in caplog.records if record.name.startswith(("uvicorn", "crossdock", "asyncio"))]


def test_a_body_is_cut(platform: Platform) -> None:
    """The headers are complete and announce a length, half of which is sent before the connection is closed."""
    activate(platform, "cut_body")
    wire = Wire(platform)
    with wire.socket:
        received, ending = wire.create("cut")
    platform.call("DELETE", "/_sandbox/faults")
    head, _, body = received.partition(b"\r\n\r\n")
    assert (head.startswith(b"HTTP/1.1 201"), ending) == (True, "closed")
    assert len(body) == length(head) // 2
    (stored,) = platform.call("GET", f"{CUSTOMERS}?externalId=cut")["data"]
    assert body.startswith(f'{{"createdAt":"{stored["createdAt"]}"'.encode())


def test_answers_are_lost_in_the_stated_share(platform: Platform) -> None:
    """Of 1,000 creations all happen, exactly the draws below 0.1 have no response, and their keys replay it."""
    body = platform.invoice()
    activate(platform, "lost_answer", 0.1, "POST invoice", seed=5)
    keys = [f"k{number}" for number in range(1000)]
    answers = asyncio.run(platform.create(body, keys, connections=50))
    fault = platform.call("GET", "/_sandbox/faults")["faults"][0]
    platform.call("DELETE", "/_sandbox/faults")

    draw = Random("5 lost_answer POST invoice")
    expected = sum(draw.random() < 0.1 for _ in keys)
    lost = [key for key, answer in answers.items() if answer is None]
    assert (len(answers), len(lost), fault["met"], fault["struck"]) == (1000, expected, 1000, expected)
    assert 80 < expected < 120
    effects = list(platform.effects())
    assert Counter(each["idempotencyKey"] for each in effects) == dict.fromkeys(keys, 1)
    log = platform.call("GET", f"/_sandbox/requests?fault=lost_answer&path={INVOICES}&limit=10000")["data"]
    assert sorted(each["idempotencyKey"] for each in log) == sorted(lost)

    again = asyncio.run(platform.create(body, lost, connections=10))
    ids = {each["idempotencyKey"]: each["id"] for each in effects}
    assert all(
        b"idempotent-replayed: true" in answer and ids[key].encode() in answer for key, answer in responses(again)
    )
    assert len(list(platform.effects())) == 1000


def responses(answers: dict[str, bytes | None]) -> Iterator[tuple[str, bytes]]:
    for key, answer in answers.items():
        assert answer is not None
        yield key, answer


def test_the_command_has_options_for_everything(tmp_path: Path) -> None:
    """Profile, faults, seed and limits are options of ``crossdock sandbox``."""
    options = "--profile bare --fault throttle=0.5 --fault slow=0 --seed 3 --max-items 1 --rate-headers triple"
    command = [sys.executable, "-m", "crossdock", "sandbox", "--data", str(tmp_path), *options.split()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout is not None
            platform = Platform(**json.loads(running.stdout.readline()))
            with httpx.Client(base_url=platform.base_url, headers=platform.headers, trust_env=False) as client:
                active: dict[str, Any] = client.get("/_sandbox/faults").json()
                answers = [client.get(f"{CUSTOMERS}?externalId=x") for _ in range(20)]
        finally:
            running.terminate()
    assert active["seed"] == 3
    assert [(each["name"], each["probability"]) for each in active["faults"]] == [("throttle", 0.5), ("slow", 0)]
    draw = Random("3 throttle ")
    assert [each.status_code for each in answers] == [429 if draw.random() < 0.5 else 400 for _ in range(20)]
    assert {each.headers.get("content-type") for each in answers} == {None, "text/plain; charset=utf-8"}
