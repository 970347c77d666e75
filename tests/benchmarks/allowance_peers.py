"""Other rate limiters against the same server, each in a separate process: 100 tasks with a client each.

One `httpx.AsyncClient` for all 100 would measure its pool: with 64 connections a request costs it 6 ms of CPU.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from tests.benchmarks.allowance_client import KEY
from tests.benchmarks.allowance_server import Server, Size
from tests.benchmarks.bench_delivery import operation

from crossdock.platform.platform_config import PATHS
from crossdock.values import exact_json

if TYPE_CHECKING:
    import httpx

IN_FLIGHT = 100
LIBRARIES = ("aiolimiter", "httpx", "pyrate-limiter")

Acquire = Callable[[], Awaitable[object]]


def aiolimiter(size: Size) -> Acquire:
    from aiolimiter import AsyncLimiter

    return AsyncLimiter(size.burst, size.gain_s(size.burst)).acquire


def pyrate_limiter(size: Size) -> Acquire:
    from pyrate_limiter import Duration, Limiter, Rate, StateBucket, TokenBucket

    rate = Rate(size.per_minute, Duration.MINUTE, burst=size.burst)
    return Limiter(StateBucket([rate], TokenBucket())).try_acquire_async


def retry_after(_: Size) -> Acquire:
    """No pacing at all."""
    return lambda: asyncio.sleep(0)


PEERS: Mapping[str, Callable[[Size], Acquire]] = {
    "aiolimiter": aiolimiter,
    "pyrate-limiter": pyrate_limiter,
    "Retry-After": retry_after,
}


def missing() -> str | None:
    """What to install for the comparison, or None."""
    there = all(importlib.util.find_spec(name.replace("-", "_")) for name in LIBRARIES)
    return None if there else f"pip install {' '.join(LIBRARIES)}"


def deliver(server: Server, peer: str, size: Size, count: int) -> float:
    """Let *peer* deliver *count* products; the CPU seconds that it took."""
    given = [peer, *map(str, size), str(count), server.base_url, server.tenant]
    command = [sys.executable, "-m", "tests.benchmarks.allowance_peers", *given]
    environment = {**os.environ, KEY: server.api_key}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return float(json.loads(done.stdout))


async def _deliver(acquire: Acquire, count: int, base_url: str, tenant: str) -> None:
    import httpx

    numbers = iter(range(count))
    headers = {
        "authorization": f"Bearer {os.environ[KEY]}",
        "x-tenant-slug": tenant,
        "content-type": "application/json",
    }
    async with asyncio.TaskGroup() as tasks:
        for _ in range(min(IN_FLIGHT, count)):
            client = httpx.AsyncClient(base_url=base_url, headers=headers, trust_env=False, verify=False, timeout=60)
            tasks.create_task(_worker(client, acquire, numbers))


async def _worker(client: httpx.AsyncClient, acquire: Acquire, numbers: Iterator[int]) -> None:
    async with client:
        for number in numbers:
            body, key = exact_json.dumps(operation(number).after), {"idempotency-key": f'"peer-{number}"'}
            while True:
                await acquire()
                answer = await client.post(PATHS["product"], content=body, headers=key)
                if answer.status_code == 201:
                    break
                assert answer.status_code == 429, answer.text
                await asyncio.sleep(float(answer.headers.get("retry-after", 0)))


def _main(peer: str, per_minute: str, burst: str, count: str, base_url: str, tenant: str) -> None:
    acquire, cpu_s = PEERS[peer](Size(int(per_minute), int(burst))), time.process_time()
    asyncio.run(_deliver(acquire, int(count), base_url, tenant))
    print(json.dumps(time.process_time() - cpu_s))


if __name__ == "__main__":
    _main(*sys.argv[1:])
