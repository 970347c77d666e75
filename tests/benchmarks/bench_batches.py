"""Records a second at an API that takes lists of a hundred, beside the same records one by one, at 50 ms an answer.

Both are syncs of a folder with the same settings: 8 requests in flight. What counts is the time between the first
request and the last answer, as the server sees it.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path
from threading import Lock

import yaml
from tests.benchmarks import results
from tests.benchmarks.delta_processes import python, run
from tests.chaos.scripted import Asked, Said, Scripted

GOAL = 20.0
DELAY_S = 0.05
SIZE = 100


class Api:
    """An API that takes orders, in lists or one by one."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.times: list[float] = []
        self.records = 0

    def answer(self, asked: Asked) -> Said:
        arrived = time.monotonic()
        body = json.loads(asked.body)
        orders = body.get("orders", [body])
        with self._lock:
            ids = range(self.records, self.records + len(orders))
            self.records += len(orders)
        time.sleep(DELAY_S)  # the time that an answer takes is what is measured
        self.times += [arrived, time.monotonic()]
        made = [{"id": f"o{number}"} for number in ids]
        return Said(201, json.dumps({"results": made} if "orders" in body else made[0]).encode())

    @property
    def a_second(self) -> float:
        return self.records / (max(self.times) - min(self.times))


def measure(folder: Path, records: int, batch: int | None) -> float:
    """Records a second of one sync."""
    api = Api()
    with Scripted(api.answer) as server:
        resource = {"members": {"amount": "number"}, "create": "POST /orders"}
        resource |= {} if batch is None else {"batch": {"size": batch, "items": "orders", "results": "results"}}
        amount = {"from": "AMOUNT", "as": "decimal"}
        orders = {"files": "*.csv", "mode": "append", "key": ["NO"], "to": "depot.orders", "map": {"amount": amount}}
        depot = {"kind": "http_json", "base_url": server.base_url, "rate": {"per_minute": 6_000_000, "burst": 100_000}}
        config = {
            "platform": {
                "base_url": "http://127.0.0.1:9",
                "tenant": "bench",
                "auth": {"kind": "api_key", "token": "env:BENCH_KEY"},
            },
            "state": "sqlite:///state.db",
            "connections": {
                "wms": {"kind": "folder_warehouse", "path": "out", "settle_s": 0, "streams": {"orders": orders}},
                "depot": depot | {"target": {"resources": {"orders": resource}}},
            },
        }
        (folder / "out").mkdir(parents=True)
        (folder / "c.yaml").write_text(yaml.safe_dump(config))
        rows = "".join(f"{number},{number}.5\n" for number in range(records))
        (folder / "out" / "orders.csv").write_text(f"NO,AMOUNT\n{rows}")
        for command in ("init", "sync"):
            run(python("-m", "crossdock", "-C", folder / "c.yaml", command), limit_s=3_600)
    assert api.records == records
    return api.a_second


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", type=int, default=20_000)
    arguments = parser.parse_args()
    os.environ["BENCH_KEY"] = "k"
    with tempfile.TemporaryDirectory() as name:
        alone = measure(Path(name, "alone"), arguments.records // 20, None)
        together = measure(Path(name, "together"), arguments.records, SIZE)
    ratio = f"{together / alone:.1f}, goal {GOAL:.0f}"
    rows = [("one by one", f"{alone:,.0f}", ""), (f"{SIZE} in a request", f"{together:,.0f}", ratio)]
    notes = "Between the first request and the last answer; 8 requests in flight."
    results.write("Records in one request, 50 ms an answer", ("records", "a second", "ratio"), rows, notes)


if __name__ == "__main__":
    main()
