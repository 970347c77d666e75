"""SIGKILL of a sandbox while invoices are being created."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import httpx
from tests.sandbox_load import INVOICES, Platform, forked

CREATIONS = 1000
CONNECTIONS = 250
KILLED_AFTER = (300, 600)  # answers, a round each


def test_every_answered_invoice_is_there_once_after_kills(tmp_path: Path) -> None:
    """SIGKILL amid 1,000 creations, 250 of them in flight: every 201 is stored and has one effect, in every round."""
    sent: dict[str, bytes | None] = {}
    with forked(tmp_path) as (_, facts):
        platform = Platform(**facts)
        body = platform.invoice()
    for killed_after in KILLED_AFTER:
        keys = [f"{killed_after}-{number}" for number in range(CREATIONS)]
        with forked(tmp_path) as (running, _):
            kill = kill_after(killed_after, running)
            answers = asyncio.run(platform.create(body, keys, connections=CONNECTIONS, answered=kill))
        unanswered = sum(answer is None for answer in answers.values())
        assert unanswered > 0
        assert killed_after <= len(answers) - unanswered < CREATIONS
        sent |= answers
        with forked(tmp_path):
            check(platform, sent)

    with forked(tmp_path):
        before = {each["idempotencyKey"] for each in platform.effects()}
        again = asyncio.run(platform.create(body, sent, connections=50))
        for key, answer in again.items():
            assert answer is not None
            assert answer.startswith(b"HTTP/1.1 201")
            assert (b"idempotent-replayed: true" in answer) == (key in before)
            assert stored_in(sent[key] or answer) == stored_in(answer)
        assert Counter(each["idempotencyKey"] for each in platform.effects()) == dict.fromkeys(sent, 1)


def kill_after(answers: int, running: ForkServerProcess) -> Callable[[int], None]:
    def on_answer(count: int) -> None:
        if count == answers:
            running.kill()

    return on_answer


def check(platform: Platform, sent: dict[str, bytes | None]) -> None:
    """Everything answered has one effect and is stored, and nothing else is."""
    effects = list(platform.effects())
    keys = Counter(each["idempotencyKey"] for each in effects)
    assert {key for key, answer in sent.items() if answer} <= keys.keys() <= sent.keys()
    assert set(keys.values()) == {1}
    ids = {json.loads(stored_in(answer))["id"] for answer in sent.values() if answer}
    assert ids <= {each["id"] for each in effects}
    assert sorted(stored(platform)) == sorted(each["id"] for each in effects)


def stored_in(answer: bytes) -> bytes:
    return answer.partition(b"\r\n\r\n")[2]


def stored(platform: Platform) -> list[str]:
    ids: list[str] = []
    cursor = ""
    with httpx.Client(base_url=platform.base_url, headers=platform.headers, trust_env=False) as client:
        while True:
            page = client.get(f"{INVOICES}?limit=1000{cursor}").json()
            ids += [each["id"] for each in page["data"]]
            if page["nextCursor"] is None:
                return ids
            cursor = f"&cursor={page['nextCursor']}"
