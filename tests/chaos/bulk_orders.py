"""Orders sent to an API that takes them in lists, with lost answers, half executed requests, refusals and kills.

The API is written from what bulk endpoints do: each record has a result of its own, a request may end in the middle,
and one with a record that cannot be read is refused as a whole, after a part of it was executed. It counts each
creation by its reference; that book, which knows nothing of crossdock, is the judge.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any, Literal
from urllib.parse import parse_qs, urlsplit

import yaml
from tests.chaos import processes
from tests.chaos.scripted import Asked, Said, Scripted
from tests.ended_commands import Done

Knows = Literal["repeated", "look_up", "nothing"]
"""What an unanswered request is protected by: the API refuses a second record, or has a look-up by name, or neither."""
SIZE, WRONG, POISON = 20, "wrong", "poison"
FAILED_DEPENDENCY = 424
FAULTS = ("lost", "lost before", "half", "500", "429", "503", "none of it")


@dataclass
class BulkApi:
    """An API with ``POST /orders/bulk`` and ``PUT /orders/bulk``.

    Attributes:
        faults: The part of requests that end badly.
        refuses_with: The status of an answer with results of which one is a refusal; 424 if nothing is executed then.
        throttled: References for which there is never any rate left.
        kill: The process that is killed at the request number `kill_at`, before or after it is executed.
        effects: How often an order was created, by reference.
        taken: References that orders of somebody else have: a request with one ends there, with a 409 about all.
        requests: The numbers of records of all requests that write.
    """

    knows: Knows
    seed: int
    faults: float = 0.0
    by_name: bool = False
    refuses_with: int = 207
    throttled: set[str] = field(default_factory=set)
    kill: int = 0
    kill_at: int | None = None
    effects: Counter[str] = field(default_factory=Counter)
    held: dict[str, dict[str, Any]] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    requests: list[int] = field(default_factory=list)
    kills: int = 0

    def __post_init__(self) -> None:
        self._random, self._lock = Random(self.seed), threading.Lock()

    def take(self, names: set[str]) -> None:
        """Let somebody else have orders with these references."""
        self.taken |= names
        for name in sorted(names):
            self.held[name] = {"reference": name, "note": "theirs", "amount": 0.01, "id": f"o{len(self.held) + 1}"}

    def answer(self, asked: Asked) -> Said | None:
        with self._lock:
            path = urlsplit(asked.path)
            if asked.method == "GET":
                return self._looked_up(path.path, parse_qs(path.query))
            return self._written(asked) if b'{"orders":' in asked.body else self._written_alone(asked)

    def _looked_up(self, path: str, query: dict[str, list[str]]) -> Said:
        found = [each for each in self.held.values() if each["reference"] in query.get("reference", [])]
        if path != "/orders":
            found = [each for each in self.held.values() if path == f"/orders/{each['id']}"]
            return _said(200, found[0]) if found else _said(404, {"message": "no such order"})
        return _said(200, {"orders": found})

    def _written(self, asked: Asked) -> Said | None:
        orders = json.loads(asked.body)["orders"]
        self.requests.append(len(orders))
        fault = self._random.choice(FAULTS) if self._random.random() < self.faults else ""
        if self.kill and len(self.requests) == self.kill_at:
            self._carry_out(asked.method, orders[: self._random.randint(0, len(orders))])
            os.kill(self.kill, signal.SIGKILL)
            self.kills += 1
            return None
        if fault in {"429", "503"}:
            return Said(int(fault), b"{}", {"retry-after": "0"})
        if fault in {"lost before", "none of it"}:
            return None if fault == "lost before" else _said(500, {"message": "out of memory"})
        for number, order in enumerate(orders):
            if (refusal := self._refused_together(asked.method, order)) is not None:
                self._carry_out(asked.method, orders[:number])
                return refusal
        if fault in {"half", "500"}:
            self._carry_out(asked.method, orders[: len(orders) // 2])
            return None if fault == "half" else _said(500, {"message": "out of memory"})
        results = self._rolled_back(orders) or self._carry_out(asked.method, orders)
        if self.by_name:
            self._random.shuffle(results)
        is_bad = any(each["status"] >= 400 for each in results)
        return None if fault == "lost" else _said(self.refuses_with if is_bad else 207, {"results": results})

    def _refused_together(self, method: str, order: dict[str, Any]) -> Said | None:
        """The answer about a whole request that ends at this order."""
        if order.get("note") == POISON:
            return _said(412 if self.by_name else 400, {"message": "cannot be read"})
        is_taken = method == "POST" and order["reference"] in self.taken
        return _said(409, {"message": "reference exists"}) if is_taken else None

    def _written_alone(self, asked: Asked) -> Said:
        if asked.path.endswith("/bulk"):
            return _said(400, {"message": "no list of orders"})
        result = self._one(asked.method, json.loads(asked.body) | {"id": asked.path.rpartition("/")[2]})
        return _said(result["status"], result.get("order", result))

    def _rolled_back(self, orders: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The results if one order is wrong and all others are undone because of it; none if that is not so."""
        wrong = [order.get("note") == WRONG for order in orders]
        if self.refuses_with != FAILED_DEPENDENCY or not any(wrong) or len(orders) == 1:
            return []
        return [
            {"status": 422 if is_wrong else FAILED_DEPENDENCY, "reference": order["reference"], "message": "the note"}
            for is_wrong, order in zip(wrong, orders, strict=True)
        ]

    def _carry_out(self, method: str, orders: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [self._one(method, order) for order in orders]

    def _one(self, method: str, order: dict[str, Any]) -> dict[str, Any]:
        if method == "PUT":
            held = next(each for each in self.held.values() if each["id"] == order["id"])
            held.update(order)
            return {"status": 200, "reference": held["reference"], "order": held}
        name = order["reference"]
        if order.get("note") == WRONG:
            return {"status": 422, "reference": name, "message": "the note is wrong"}
        if name in self.taken or (self.knows == "repeated" and name in self.held):
            return {"status": 409, "reference": name, "message": "reference exists"}
        if name in self.throttled:
            return {"status": 429, "reference": name, "message": "too many requests"}
        self.effects[name] += 1
        self.held[name] = {**order, "id": f"o{len(self.held) + 1}"}
        return {"status": 201, "reference": name, "order": self.held[name]}


def _said(status: int, body: Any) -> Said:
    return Said(status, json.dumps(body).encode(), {"content-type": "application/json"})


class Stage:
    """A folder with orders, and the API that they are sent to."""

    def __init__(self, folder: Path, api: BulkApi, server: Scripted) -> None:
        self.folder, self.api, server.answer = folder, api, api.answer
        self.environment = {**os.environ, "KEY": "k"}
        (folder / "out").mkdir(parents=True)
        resource: dict[str, Any] = {
            "members": {"note": "text", "amount": "number"},
            "name": "reference",
            "create": "POST /orders/bulk",
            "update": "PUT /orders/bulk",
            "read": "GET /orders/{id}",
            "batch": {"size": SIZE, "items": "orders", "results": "results", "id": "id"},
        }
        resource["batch"] |= {"status": "status", "record": "order"}
        resource["batch"] |= {"by": "reference"} if api.by_name else {}
        if api.knows == "repeated":
            resource["repeated"] = {"status": 409, "text": "reference exists"}
        if api.knows != "nothing":
            resource["look_up"] = {"path": "/orders", "params": {"reference": "{name}"}, "records": "orders"}
        orders = {
            "files": "*.csv",
            "mode": "append",
            "key": ["NO"],
            "to": "depot.orders",
            "map": {"note": "NOTE", "amount": {"from": "AMOUNT", "as": "decimal"}},
        }
        retry = {"attempts": 6, "base_s": 0.01, "cap_s": 0.05, "give_up_after_s": 60}
        target = {"resources": {"orders": resource}, "settle_s": 0, "in_flight": 3, "retry": retry}
        depot = {"kind": "http_json", "base_url": server.base_url, "rate": {"per_minute": 600_000}, "target": target}
        config = {
            "platform": {
                "base_url": "http://127.0.0.1:9",
                "tenant": "acme",
                "auth": {"kind": "api_key", "token": "env:KEY"},
            },
            "state": "sqlite:///state.db",
            "connections": {
                "wms": {"kind": "folder_warehouse", "path": "out", "settle_s": 0, "streams": {"orders": orders}},
                "depot": depot,
            },
        }
        (folder / "crossdock.yaml").write_text(yaml.safe_dump(config))
        self.run("init")

    def config(self, **requests: Any) -> None:
        """Change requests of the orders; None removes one."""
        path = self.folder / "crossdock.yaml"
        whole = yaml.safe_load(path.read_text())
        orders = whole["connections"]["depot"]["target"]["resources"]["orders"]
        orders |= requests
        path.write_text(yaml.safe_dump(whole))

    def export(self, night: int, rows: Mapping[str, tuple[str, str]]) -> None:
        lines = ["NO,NOTE,AMOUNT", *(f"{number},{note},{amount}" for number, (note, amount) in rows.items())]
        (self.folder / "out" / f"{night:04}.csv").write_text("\n".join(lines) + "\n")

    def run(self, *arguments: str) -> Done:
        return processes.finish(self._command(*arguments), self.environment)

    def killed_run(self, at: int) -> None:
        """Run a sync that is killed in the middle of its request number *at*, if it makes so many."""
        self.api.requests.clear()
        with processes.running(self._command("sync"), self.environment) as process:
            assert process.pid is not None
            self.api.kill, self.api.kill_at = process.pid, at
        self.api.kill = 0

    def listed(self, state: str) -> set[str]:
        """The references of the records in this state."""
        found = json.loads(self.run("records", "list", "--state", state, "--limit", "1000", "--json").stdout)
        return {f"wms:{each['key']}" for each in found}

    def _command(self, *arguments: str) -> list[str]:
        return ["-m", "crossdock", "-C", str(self.folder / "crossdock.yaml"), *arguments]


def orders_arrive_once(folder: Path, knows: Knows, seed: int, orders: int, kills: int) -> Counter[str]:
    """Every order arrives once, or is in doubt where the API offers nothing to find out; wrong ones are refused alone.

    Returns:
        How many records were created, and how many runs were killed.
    """
    random = Random(f"orders {seed}")
    with Scripted(lambda _: None) as server:
        api = BulkApi(
            knows, seed, faults=0.3, by_name=random.random() < 0.5, refuses_with=random.choice([207, 422, 424])
        )
        stage = Stage(folder, api, server)
        rows = {f"{number:05}": ("", f"{random.randint(1, 9999)}.{random.randint(10, 99)}") for number in range(orders)}
        wrong = set(random.sample(sorted(rows), 3))
        poison = {random.choice(sorted(rows.keys() - wrong))}
        if knows != "nothing":
            api.take({f"wms:{name}" for name in random.sample(sorted(rows.keys() - wrong - poison), 2)})
        rows |= {name: (WRONG if name in wrong else POISON, rows[name][1]) for name in wrong | poison}
        stage.export(1, rows)
        planned = stage.run("plan", "--json").document
        assert planned["other_forecasts"]["depot"]["requests"] == -(-orders // SIZE)
        for _ in range(kills):
            stage.killed_run(random.randint(1, max(2, orders // SIZE)))
        for _ in range(6):
            done = stage.run("sync")
            assert done.exit_code in {0, 1, 3}, done.stderr
        api.faults = 0.0
        done = stage.run("sync")
        changed = {name: (note, "7.5") for name, (note, _) in rows.items() if not note and random.random() < 0.15}
        changed = {name: row for name, row in changed.items() if f"wms:{name}" not in api.taken}
        stage.export(2, changed)
        done = stage.run("sync")
        assert done.exit_code == 1, done.stderr  # the dead letters
        twice = {name: count for name, count in api.effects.items() if count > 1}
        assert not twice, f"created twice: {twice}"
        good = {f"wms:{name}": amount for name, (note, amount) in (rows | changed).items() if not note}
        good = {name: amount for name, amount in good.items() if name not in api.taken}
        lacking = good.keys() - api.held.keys()
        doubtful = stage.listed("in-doubt")
        assert knows == "nothing" or doubtful <= api.taken, f"in doubt: {sorted(doubtful)}"
        assert lacking <= doubtful, f"lost: {sorted(lacking - doubtful)}"
        shown = {name: api.held[name]["amount"] for name in good.keys() & api.held.keys() - doubtful}
        other = [name for name, amount in shown.items() if Decimal(str(amount)) != Decimal(good[name])]
        assert not other, f"another amount: {other}"
        assert {f"wms:{name}" for name in wrong} - doubtful <= stage.listed("rejected")
        assert api.taken <= stage.listed("rejected") | doubtful, "an order of somebody else was taken as ours"
        assert all(api.held[name]["note"] == "theirs" for name in api.taken), "an order of somebody else was changed"
        return Counter(created=sum(api.effects.values()), kills=api.kills)
