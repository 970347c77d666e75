"""Orders handed over in files over a real ``sshd``, with kills at each step of the wire, lost answers and full disks.

The warehouse keeps its own book of what it has taken; the book is compared with what was exported, night by night.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Literal

import yaml
from tests.chaos import processes
from tests.ended_commands import Done
from tests.partners import file_depot, sftp_wire
from tests.partners.file_depot import FileDepot, How

from crossdock.testing.openssh_server import OpenSshServer

Fault = Literal["before", "done", "answered", "lost", "full", "copied"]
KILLS: tuple[Fault, ...] = ("before", "done", "answered")
STEPS = 4  # of one file: open, write, flush, rename
PER_FILE = 4
AUTH = {"kind": "api_key", "token": "env:TOKEN"}
Lines = dict[str, int]


@dataclass(frozen=True)
class Trouble:
    """What happens to one run: *fault* at the change number *at* on the server. *polls*: the file is taken at once."""

    fault: Fault
    at: int
    polls: bool


class Stage:
    """A folder with orders, and the warehouse behind ``sshd`` that they are handed over to."""

    def __init__(self, folder: Path, how: How, *, acknowledges: bool = True, copies: bool = False) -> None:
        self.folder, self.how = folder, how
        self.depot = FileDepot(folder / "depot", how)
        self._plan = folder / "plan.json"
        self._plan.write_text("{}")
        self.server_is: dict[str, Any] = {}
        (folder / "orders").mkdir()
        self.environment = {**os.environ, "TOKEN": "t"}
        self._acknowledges, self._copies, self._nights = acknowledges, copies, 0

    @contextmanager
    def server(self) -> Iterator[OpenSshServer]:
        """Serve the warehouse's folder through the failing wire."""
        words = (sys.executable, sftp_wire.__file__, str(self.depot.folder), str(self._plan))
        with OpenSshServer(self.depot.folder, command=shlex.join(words)) as server:
            (self.folder / "key").touch(0o600)
            (self.folder / "key").write_text(server.client_key)
            self._configure(server)
            assert self.run("init").exit_code == 0
            yield server

    def export(self, orders: dict[str, Lines], gone: set[str]) -> None:
        """Write all orders that there are, and those that are *gone* since the last night."""
        self._nights += 1
        rows = [f"{number},{sku},{qty}," for number, lines in orders.items() for sku, qty in lines.items()]
        rows += [f"{number},,,yes" for number in sorted(gone)]
        path = self.folder / "orders" / f"orders_{self._nights:04}.csv"
        path.write_text("\n".join(["number,sku,qty,gone", *rows]) + "\n")

    def run(self, *arguments: str) -> Done:
        """Run a command to its end, on a wire that works."""
        self._plan.write_text(json.dumps(self.server_is))
        return processes.finish(self._command(*arguments), self.environment)

    def troubled_run(self, trouble: Trouble) -> bool:
        """Run a sync that meets *trouble*, and return whether it did."""
        steps = self._plan.with_suffix(".steps")
        steps.unlink(missing_ok=True)
        plan: dict[str, Any] = {"fault": trouble.fault, "at": trouble.at}
        if trouble.polls:
            plan["poll"] = [sys.executable, file_depot.__file__, str(self.depot.folder), self.how]
        self._plan.write_text(json.dumps(self.server_is))
        with processes.running(self._command("sync"), self.environment) as process:
            self._plan.write_text(json.dumps(self.server_is | plan | {"pid": process.pid}))
        return steps.exists() and int(steps.read_text()) >= trouble.at

    def listed(self) -> list[dict[str, Any]]:
        """The records that are open."""
        found: list[dict[str, Any]] = json.loads(self.run("records", "list", "--limit", "1000", "--json").stdout)
        return found

    def _command(self, *arguments: str) -> list[str]:
        return ["-m", "crossdock", "-C", str(self.folder / "crossdock.yaml"), *arguments]

    def _configure(self, server: OpenSshServer) -> None:
        columns = {
            "code": {"from": "operation", "table": {"create": "N", "update": "C", "delete": "X"}},
            "order_no": "{number}",
            "sku": "{line.sku}",
            "qty": "{line.qty}",
        }
        resource: dict[str, Any] = {
            "name": "number",
            "members": {"lines": {"type": "list", "members": {"sku": "text", "qty": "integer"}}},
            "folder": "in",
            "file": "ord_{number:5}.csv",
            "records_per_file": PER_FILE,
            "content": {"kind": "delimited", "rows": [{"each": "lines", "columns": columns}]},
        }
        resource |= {"taken": ["in/done"]} if self.how == "moves" else {"if_missing": "handed_over"}
        resource |= {"acknowledged": {"within": "8h"}} if self._acknowledges else {}
        resource |= {"copies": True} if self._copies else {}
        acknowledgements = {
            "files": "out/ack_*.csv",
            "mode": "append",
            "to": "wms.acknowledgements",
            "key": ["file", "order_no"],
            "map": {
                "file": "file",
                "record": "order_no",
                "accepted": {"from": "status", "as": "boolean", "true_text": "OK", "false_text": "NO"},
                "reason": "text",
            },
        }
        orders = {
            "files": "orders_*.csv",
            "mode": "append",
            "to": "wms.orders",
            "key": ["number"],
            "group_by": ["number"],
            "deleted": {"field": "gone", "equals": "yes"},
            "on_gone": "delete",
            "gone": {"at_most": 10_000, "at_most_percent": 100},
            "changes": {"at_most": 10_000, "at_most_percent": 100},
            "map": {"lines": {"each": {"sku": "sku", "qty": {"from": "qty", "as": "integer"}}}},
        }
        login = {"host": server.host, "port": server.port, "user": server.user, "host_key": server.fingerprint}
        document = {
            "platform": {"base_url": "http://127.0.0.1:9", "tenant": "t", "auth": AUTH},
            "connections": {
                "shop": {"kind": "folder_warehouse", "path": "orders", "settle_s": 0, "streams": {"orders": orders}},
                "wms": {
                    "kind": "sftp_warehouse",
                    **login,
                    "private_key": f"file:{self.folder / 'key'}",
                    "settle_s": 0,
                    "streams": {"acknowledgements": acknowledgements},
                    "target": {
                        "resources": {"orders": resource},
                        "retry": {"attempts": 3, "base_s": 0.01, "cap_s": 0.05, "give_up_after_s": 1},
                    },
                },
            },
        }
        (self.folder / "crossdock.yaml").write_text(yaml.safe_dump(document, sort_keys=False))


def a_drop_box(folder: Path) -> None:
    """A server that renames in two steps, first not at all, and lets nobody read files back, gets each file once."""
    stage = Stage(folder, "moves", acknowledges=False)
    orders = {f"SO-{number}": {"A1": number} for number in range(1, PER_FILE + 2)}
    with stage.server():
        stage.export(orders, set())
        stage.server_is = {"denied": ["rename"], "plain": True}
        done = stage.run("sync")
        assert (done.exit_code, "permission denied while renaming" in done.stderr) == (3, True), done.stderr
        assert {each["state"] for each in stage.listed()} == {"pending"}
        stage.server_is = {"denied": ["read"], "plain": True}
        assert stage.troubled_run(Trouble("lost", 1, polls=False))
        assert stage.depot.poll() == ["ord_00001.csv", "ord_00002.csv"]
        assert not stage.listed()
        assert stage.depot.orders() == {number: [("N", lines)] for number, lines in orders.items()}


def a_copying_server(folder: Path) -> None:
    """A server that copies in place of renaming, and fails before it removes the temporary file, gets the file once."""
    stage = Stage(folder, "deletes", acknowledges=False, copies=True)
    with stage.server():
        stage.export({"SO-1": {"A1": 1}}, set())
        stage.server_is = {"plain": True}
        assert stage.troubled_run(Trouble("copied", STEPS - 1, polls=True))
        (left,) = stage.listed()
        assert (left["state"], stage.depot.poll(), stage.depot.files()) == ("in-doubt", [], ["ord_00001.csv"])
        assert stage.run("records", "resolve", "shop.orders", "SO-1", "--delivered").exit_code == 0
        assert stage.run("sync").exit_code == 0
        assert (stage.depot.poll(), stage.listed()) == ([], [])


def orders_arrive_once(
    folder: Path, how: How, troubles: Sequence[Trouble], seed: int, *, acknowledges: bool = True
) -> Counter[str]:
    """Each version of each order arrives once, in the order of its changes, in files whose numbers have no gaps.

    Returns:
        How many nights met their trouble, by fault; how many files and how many versions arrived.
    """
    random, stage = Random(f"files {seed}"), Stage(folder, how, acknowledges=acknowledges)
    orders, expected = dict[str, Lines](), dict[str, list[tuple[str, Lines]]]()
    met = Counter[str]()
    with stage.server():
        for night, trouble in enumerate(troubles):
            gone = set[str]()
            for code, number in _changes(random, orders, night):
                expected.setdefault(number, []).append((code, dict(orders[number])))
                if code == "X":
                    gone.add(number)
                    del orders[number]
            stage.export(orders, gone)
            met[trouble.fault] += stage.troubled_run(trouble)
            if random.random() < 0.5:
                stage.depot.poll()
            done = stage.run("sync")
            assert done.exit_code == 0, f"night {night}, {trouble}: {done.exit_code} {done.stderr}\n{stage.listed()}"
            stage.depot.poll()
            if acknowledges:
                stage.depot.acknowledge()
                done = stage.run("sync")
                assert done.exit_code == 0, f"night {night}, {trouble}: {done.stderr}"
            found = stage.depot.orders()
            wrong = {each: (found.get(each), expected.get(each)) for each in found.keys() | expected.keys()}
            wrong = {each: (were, are) for each, (were, are) in wrong.items() if were != are}
            assert not wrong, f"night {night}, {trouble}: arrived and expected differ: {wrong}"
        assert not stage.listed()
    names = stage.depot.files()
    assert [int(re.sub(r"\D", "", name)) for name in names] == list(range(1, len(names) + 1))
    hidden = [each.name for each in (stage.depot.folder / "in").iterdir() if each.is_file()]
    assert not hidden, f"left behind: {hidden}"
    return met + Counter(files=len(names), versions=sum(map(len, expected.values())))


def _changes(random: Random, orders: dict[str, Lines], night: int) -> Iterator[tuple[str, str]]:
    """Make the changes of a night, and yield a code and the number of each."""
    for number in random.sample(sorted(orders), min(len(orders), 2)):
        if random.random() < 0.4:
            yield "X", number
        else:
            orders[number] = _lines(random, other_than=orders[number])
            yield "C", number
    for count in range(random.randint(PER_FILE + 1, 2 * PER_FILE)):
        number = f"SO-{night:04}-{count}"
        orders[number] = _lines(random)
        yield "N", number


def _lines(random: Random, other_than: Lines | None = None) -> Lines:
    while True:
        lines = {f"A{random.randint(1, 9)}": random.randint(1, 99) for _ in range(random.randint(1, 3))}
        if lines != other_than:
            return lines
