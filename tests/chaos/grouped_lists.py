"""Orders of which an API lists each line, or the lines inside of each order, and which change while they are read.

The API is written from what APIs do. A case is judged by what the platform holds: each order must have the lines that
it had at one moment, whatever the exit code, and after a run of a list that stands still, those that it has now.
The short form is in `tests.chaos.test_lists`, the long one in `tests.long.test_lists`.
"""

from __future__ import annotations

import base64
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import parse_qsl

import httpx
from tests.chaos.books import Platform, empty
from tests.chaos.lists import Stage, open_stage, sync

from crossdock.state import StateUrl
from crossdock.testing.manual_clock import ManualClock

KINDS: Mapping[str, Mapping[str, str]] = {
    "cursor_in_body": {"path": "next", "param": "token"},
    "next_url": {"path": "next"},
    "link_header": {},
    "offset": {},
    "page_number": {},
    "after_id": {"param": "since_id", "id": "number"},
}
EVENTS = ("edit", "edit", "add", "drop", "create", "delete")
CHANGING_RUNS = 2
_START = 1_760_000_000  # the time of the first change
_Lines = dict[int, tuple[int, int]]  # quantity and time of change, by number


@dataclass(frozen=True, slots=True)
class Case:
    """How the list is declared and sorted.

    Attributes:
        explodes: Whether the list has orders with lines, and not lines.
        by_change: Whether it is sorted by the time of the last change, so that what changes moves to its end.
        only_changes: Whether it is asked for what changed; then a change of a line is one of all lines of its order.
    """

    seed: int
    kind: str
    size: int
    explodes: bool
    by_change: bool
    only_changes: bool
    states_total: bool

    @classmethod
    def drawn(cls, seed: int) -> Case:
        random, kind = Random(seed), Random(-seed).choice(sorted(KINDS))
        return cls(
            seed=seed,
            kind=kind,
            size=random.choice((1, 2, 3, 5)),
            explodes=random.random() < 0.3,
            by_change=kind != "after_id" and random.random() < 0.6,
            only_changes=random.random() < 0.3,
            states_total=random.random() < 0.4,
        )


class Api:
    """Lists orders, and changes them between its answers."""

    def __init__(self, case: Case) -> None:
        self._case, self._random = case, Random(case.seed)
        self.orders: dict[str, _Lines] = {}
        self.versions = defaultdict[str, list[list[int]]](list)
        self._numbers = self._time = self._answers = 0
        self._changes = Counter[int]()
        for _ in range(self._random.randint(2, 9)):
            self._happen("create")

    def begin(self, *, changes: bool) -> None:
        """A run begins, in which the orders change after some of the requests, or stand still."""
        self._answers = 0
        moments = [self._random.randint(1, 4) for _ in range(self._random.randint(1, 3))]
        self._changes = Counter(moments if changes else ())

    def answer(self, request: httpx.Request) -> httpx.Response:
        for _ in range(self._changes[self._answers]):
            self._happen(self._random.choice(EVENTS))
        self._answers += 1
        case, asked, listed = self._case, dict(parse_qsl(request.url.query.decode())), self._listed()
        start = self._start(asked, listed)
        page, rest = listed[start : start + case.size], listed[start + case.size :]
        token = base64.b64encode("~".join(map(str, self._place(page[-1]))).encode()).decode() if rest else None
        url = httpx.URL("https://lists.example/orders", params={"token": token or ""})
        body: dict[str, Any] = {"data": page, "next": token if case.kind == "cursor_in_body" else token and str(url)}
        if case.kind not in {"cursor_in_body", "next_url"}:
            del body["next"]
        if case.states_total:
            body["total"] = len(listed)
        links = {"link": f'<{url}>; rel="next"'} if rest and case.kind == "link_header" else {}
        return httpx.Response(200, json=body, headers=links)

    def quantities(self, order: str) -> list[int]:
        return sorted(quantity for quantity, _ in self.orders[order].values())

    def _happen(self, event: str) -> None:
        self._time += self._random.choice((0, 1))
        order = f"o{self._numbers}" if event == "create" else self._random.choice(sorted(self.orders))
        lines = self.orders.setdefault(order, {})
        match event:
            case "edit":
                lines[self._random.choice(sorted(lines))] = self._new_line()
            case "drop" if len(lines) > 1:
                del lines[max(lines)]
            case "delete" if len(self.orders) > 2 and not self._case.only_changes:
                del self.orders[order]
                return
            case "create" | "add":
                for _ in range(self._random.randint(1, 3)):
                    self._numbers += 1
                    lines[self._numbers] = self._new_line()
        if self._case.only_changes or self._case.explodes:
            for number, (quantity, _) in lines.items():
                lines[number] = quantity, self._time
        self.versions[order].append(self.quantities(order))

    def _new_line(self) -> tuple[int, int]:
        return self._random.randint(1, 99), self._time

    def _listed(self) -> list[dict[str, Any]]:
        rows = list[dict[str, Any]]()
        for order, lines in self.orders.items():
            own: list[dict[str, Any]] = [
                {"id": order, "number": number, "changed": _START + changed, "quantity": quantity}
                for number, (quantity, changed) in sorted(lines.items())
            ]
            inside = [{"quantity": row["quantity"]} for row in own]
            rows += [{**own[0], "lines": inside}] if self._case.explodes else own
        return sorted(rows, key=self._place)

    def _place(self, row: Mapping[str, Any]) -> tuple[int, ...]:
        return (row["changed"], row["number"]) if self._case.by_change else (row["number"],)

    def _start(self, asked: Mapping[str, str], listed: list[dict[str, Any]]) -> int:
        if "offset" in asked:
            return int(asked["offset"])
        if "page" in asked:
            return (int(asked["page"]) - 1) * self._case.size
        if "since_id" in asked:
            return sum(row["number"] <= int(asked["since_id"]) for row in listed)
        if "token" in asked:
            after = tuple(map(int, base64.b64decode(asked["token"]).decode().split("~")))
            return sum(self._place(row) <= after for row in listed)
        return 0


def declared(case: Case) -> dict[str, Any]:
    """The stream of a config that reads the list of *case*."""
    paging: dict[str, Any] = {"kind": case.kind, **KINDS[case.kind]}
    if case.states_total and case.kind not in {"next_url", "link_header"}:
        paging["total"] = "total"
    quantity = "lines.quantity" if case.explodes else "quantity"
    line = {"productId": {"const": "p"}, "quantity": {"from": quantity, "as": "integer"}, "unitPrice": {"const": 1}}
    order = {"customerId": {"const": "c"}, "currency": {"const": "EUR"}, "placedAt": {"const": "2026-01-01T00:00:00Z"}}
    stream: dict[str, Any] = {"path": "/orders", "records": "data", "key": ["id"], "group_by": ["id"]}
    stream |= {"resource": "order", "map": {**order, "items": {"each": line}}, "pagination": paging}
    stream |= {"explode": "lines"} if case.explodes else {}
    if not case.only_changes:
        return stream | {"mode": "snapshot"}
    cursor = {"column": "changed", "as": "instant", "format": "unix", "sorted": False}
    stream |= {"mode": "incremental", "params": {"since": "{since}"}, "cursor": cursor}
    return stream if case.explodes else stream | {"whole_groups": True}


def _play(stage: Stage, case: Case, told: Counter[int]) -> str:
    """What is wrong after the runs of *case*; empty if nothing is."""
    empty(stage.url)
    platform, clock, api = Platform(keys=True), ManualClock(), Api(case)
    stage.server.answer = platform.answer
    read = stage.project(declared(case), api.answer)
    for _ in range(CHANGING_RUNS):
        api.begin(changes=True)
        told[sync(read, clock).exit_code] += 1
        if torn := [each for each, lines in _held(platform).items() if lines not in api.versions[each]]:
            return f"{torn} have lines of two moments"
    api.begin(changes=False)
    last, held = sync(read, clock), _held(platform)
    if last.exit_code:
        return f"a list that stands still: exit {last.exit_code}: {last.errors}"
    wrong = [each for each in api.orders if held.get(each) != api.quantities(each)]
    return f"{wrong} are not as they are listed" if wrong else ""


def _held(platform: Platform) -> dict[str, list[int]]:
    """The quantities of each order that the platform holds."""
    return {
        body["externalId"].removeprefix("shop:"): sorted(int(item["quantity"]) for item in body["items"])
        for body in platform._stored.values()
    }


def no_order_is_made_of_two_moments(folder: Path, url: StateUrl, first: int, number: int) -> Counter[int]:
    """However its orders change while they are read, each has the lines that it had at one moment.

    Returns:
        How many runs ended with each exit code while the orders changed.
    """
    told = Counter[int]()
    with open_stage(folder, url) as stage:
        for seed in range(first, first + number):
            case = Case.drawn(seed)
            wrong = _play(stage, case, told)
            assert not wrong, f"{wrong}\n{case}"
    return told
