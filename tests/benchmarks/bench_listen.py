"""Answers of ``crossdock listen`` to webhooks in three shuffled copies: from the request to the end of the answer."""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from random import Random
from typing import Literal, get_args
from uuid import uuid4

from tests.benchmarks import results
from tests.chaos.listen_stage import ListenStage, body_of, listen_stage, signed
from tests.waiting import eventually

CLIENTS = 8
COPIES = 3
RECORDS = 500  # that the webhooks of a case are about, in turn
GOAL_99_MS = 10
DEADLINE_S = 600.0

RATE = 100  # webhooks a second: 5,000 in three copies within two and a half minutes

Case = Literal[
    "no connection of this name",
    "about no record",
    "records delivered meanwhile, 100 a second",
    "records delivered meanwhile, as many as are answered",
]
CASES: Sequence[Case] = get_args(Case)


def measure(folder: Path, case: Case, count: int) -> list[float]:
    """Milliseconds of each of *count* answers, sorted; afterwards what they were about is at the platform, once."""
    random = Random(0)
    with listen_stage(folder) as stage:
        keys = [f"C{number}" for number in range(min(RECORDS, count // COPIES))]
        for key in keys:
            stage.shop.put_customer(key)
        stream = "customers" if case in CASES[2:] else "others"
        bodies = [(body_of(stream, keys[number % len(keys)]), uuid4().hex) for number in range(count // COPIES)]
        webhooks = bodies * COPIES
        random.shuffle(webhooks)
        with stage.receiving() as processes:
            path, status = ("/webhooks/shop", 200) if case != CASES[0] else ("/webhooks/none", 404)
            requests = [_request(stage, path, body, name) for body, name in webhooks]
            # A process of its own: the shop and the platform work in this one.
            with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
                rate = RATE if case == CASES[2] else None
                found = pool.submit(sent, stage.port, requests, status, rate).result(DEADLINE_S)
            eventually(lambda: not stage.hints(), DEADLINE_S)
            assert processes.stop() == [0]
        stage.judge({"customers": set(keys)} if stream == "customers" else {})
    return sorted(found)


def _request(stage: ListenStage, path: str, body: bytes, name: str) -> bytes:
    fields = signed(stage.secret, body, name=name) | {"host": "127.0.0.1", "content-length": str(len(body))}
    lines = "".join(f"{field}: {value}\r\n" for field, value in fields.items())
    return f"POST {path} HTTP/1.1\r\n{lines}\r\n".encode() + body


def sent(port: int, requests: Sequence[bytes], status: int, rate: int | None) -> list[float]:
    """Milliseconds of each answer, which must have this status; over `CLIENTS` connections.

    Args:
        rate: Requests a second, each timed from when it was to be sent; None for the next as soon as one is answered.
    """
    return asyncio.run(_sent(port, requests, status, rate))


async def _sent(port: int, requests: Sequence[bytes], status: int, rate: int | None) -> list[float]:
    left, found, start = iter(enumerate(requests)), list[float](), time.perf_counter()

    async def client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for number, request in left:
            began = time.perf_counter() if rate is None else start + number / rate
            await asyncio.sleep(max(0.0, began - time.perf_counter()))
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]))
            found.append((time.perf_counter() - began) * 1000)
            assert head.split()[1] == str(status).encode(), head
        writer.close()

    await asyncio.gather(*(client() for _ in range(CLIENTS)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=15_000, help="webhooks of each case, copies included")
    count = parser.parse_args().count
    rows, least = [], 0.0
    for case in CASES:
        with tempfile.TemporaryDirectory() as folder:
            began = time.perf_counter()
            found = measure(Path(folder), case, count)
            seconds = time.perf_counter() - began
        half, last = found[len(found) // 2], found[int(len(found) * 0.99)]
        least = least or last
        figures = (f"{half:.1f}", f"{last:.1f}", f"{last / least:.1f}", f"{found[-1]:.1f}", f"{seconds:.0f}")
        rows.append((case, len(found), *figures))
    columns = (
        "webhooks",
        "answers",
        "50 % ms",
        f"99 % ms (goal {GOAL_99_MS})",
        "ratio of 99 %",
        "longest ms",
        "seconds",
    )
    notes = (
        f"{CLIENTS} connections, each with one webhook at a time, timed from when it was due; {COPIES} copies of each"
        f" webhook, about {RECORDS}"
        " customers. Ratio: to the first row, whose answers need no signature and no state. Seconds: of the whole case,"
        " until the records are at the platform. Shop and platform run on the same machine."
    )
    results.write("Answers to webhooks", columns, rows, notes)


if __name__ == "__main__":
    main()
