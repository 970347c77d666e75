"""Webhooks of a shop as vendors send them: several copies in any order, sent again until they are accepted.

Among them are requests that nobody may process: forged, stale and malformed ones. They name records of their own, so
that the platform's witness tells whether one was processed.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from operator import itemgetter
from random import Random
from uuid import uuid4

import httpx
from tests.chaos.listen_stage import ListenStage, body_of, new_secret, signed
from tests.waiting import WITHIN_S, eventually

CLIENTS = 8
_PAUSE_S = 0.02  # before a webhook is sent again
_LARGE = 10 << 20  # bytes
_LATE = 0.3  # of all that is sent, between the first and the last copy of a webhook

Headers = Mapping[str, str | bytes]
BAD: Mapping[str, tuple[int, Callable[[str, bytes, str], Headers]]] = {
    "forged": (401, lambda _, body, name: signed(new_secret(), body, name=name)),
    "altered": (401, lambda secret, body, name: signed(secret, body + b" ", name=name)),
    "stale": (400, lambda secret, body, name: signed(secret, body, name=name, at=time.time() - 3_600)),
    "future": (400, lambda secret, body, name: signed(secret, body, name=name, at=time.time() + 3_600)),
    "bad base64": (401, lambda secret, body, name: _with(secret, body, name, {"webhook-signature": "v1,%%%="})),
    "no signature": (400, lambda secret, body, name: _without(secret, body, name, "webhook-signature")),
    "no timestamp": (400, lambda secret, body, name: _without(secret, body, name, "webhook-timestamp")),
    "bytes in a header": (400, lambda secret, body, name: _with(secret, body, name, {"webhook-id": b"\xff\xfe"})),
    "bytes as signature": (401, lambda secret, body, name: _with(secret, body, name, {"webhook-signature": b"\xff"})),
}  # fmt: skip
"""The status and the header fields of what is refused: of a secret, a body and an id."""


@dataclass(frozen=True, slots=True)
class Item:
    """One request.

    Attributes:
        kind: ``valid``, ``bytes``, ``large``, or one of `BAD`.
    """

    kind: str
    stream: str
    key: str
    name: str

    @property
    def body(self) -> bytes:
        padding = b" " * _LARGE if self.kind == "large" else b""
        return b"\xff\xfe" if self.kind == "bytes" else body_of(self.stream, self.key) + padding


@dataclass
class Traffic:
    """What is sent to *stage*.

    Attributes:
        accepted: How many copies of valid webhooks were accepted.
        answers: How often each kind was answered with each status; 0 for none.
        wrong: Answers that must not be.
    """

    stage: ListenStage
    items: Sequence[Item]
    accepted: int = 0
    answers: Counter[tuple[str, int]] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    _changed: set[str] = field(default_factory=set)
    _signing: Counter[str] = field(default_factory=Counter)  # requests in flight by their secret
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _released: queue.Queue[Item | None] = field(default_factory=queue.Queue)
    _next: int = 0  # to be released

    @property
    def keys(self) -> dict[str, set[str]]:
        """The records that valid webhooks are about, by stream."""
        found: dict[str, set[str]] = {}
        for item in self.items:
            if item.kind == "valid":
                found.setdefault(item.stream, set()).add(item.key)
        return found

    @property
    def unsent(self) -> int:
        """How many requests are released, and not answered for good."""
        return self._released.unfinished_tasks

    def release(self, share: float) -> int:
        """Have this share of all items sent, or what is left; how many valid ones are among them."""
        end = min(len(self.items), self._next + max(1, round(share * len(self.items))))
        part, self._next = self.items[self._next : end], end
        for item in part:
            self._released.put(item)
        return sum(item.kind == "valid" for item in part)

    def rotate(self, secret: str) -> None:
        """Sign with *secret* from now on; returns when no request in flight is signed with the one before."""
        before, self.stage.secret = self.stage.secret, secret
        eventually(lambda: not self._signing[before])

    @contextmanager
    def sending(self) -> Iterator[None]:
        """Send what is released in other threads; the end of the block waits until all of it is answered."""
        with ThreadPoolExecutor(CLIENTS) as pool:
            clients = [pool.submit(self._send_all) for _ in range(CLIENTS)]
            try:
                yield
            finally:
                for _ in clients:
                    self._released.put(None)
        for client in clients:
            client.result()

    def _send_all(self) -> None:
        with httpx.Client(trust_env=False, timeout=60) as http:
            while (item := self._released.get()) is not None:
                self._change(item)
                deadline = time.monotonic() + WITHIN_S
                while not self._sent(http, item):
                    assert time.monotonic() < deadline, f"{item.kind} {item.key} was not accepted"
                    time.sleep(_PAUSE_S)
                self._released.task_done()

    def _change(self, item: Item) -> None:
        """Before a webhook is sent first, what it tells of happens."""
        with self._lock:
            if item.kind != "valid" or item.name in self._changed or item.stream == "invoices":
                return
            self._changed.add(item.name)
            if item.stream == "customers":
                self.stage.shop.put_customer(item.key)
            else:
                order = self.stage.shop.records["orders"][item.key]
                self.stage.shop.put_order(item.key, order["customer"], order["items"][0]["product"])

    def _sent(self, http: httpx.Client, item: Item) -> bool:
        """Send once; False if it is to be sent again."""
        with self._lock:
            secret = self.stage.secret
            self._signing[secret] += 1
        try:
            status = self._status(http, item, secret)
        finally:
            with self._lock:
                self._signing[secret] -= 1
        with self._lock:
            self.answers[item.kind, status] += 1
            self._judge(item, status)
        return status not in {0, 503}

    def _status(self, http: httpx.Client, item: Item, secret: str) -> int:
        body = item.body
        made = BAD[item.kind][1] if item.kind in BAD else _signed
        fields = made(secret, body, item.name).items()
        headers = [(name.encode(), value.encode() if isinstance(value, str) else value) for name, value in fields]
        try:
            return http.post(self.stage.url, content=body, headers=headers).status_code
        except httpx.TransportError:
            return 0  # the process is away

    def _judge(self, item: Item, status: int) -> None:
        due = {"valid": 200, "bytes": 200, "large": 413}.get(item.kind) or BAD[item.kind][0]
        self.accepted += item.kind == "valid" and status == 200
        if status not in {0, 503, due}:
            self.wrong.append(f"{item.kind}: {status} instead of {due}")


def _signed(secret: str, body: bytes, name: str) -> Headers:
    return signed(secret, body, name=name)


def _with(secret: str, body: bytes, name: str, other: Headers) -> Headers:
    return {**signed(secret, body, name=name), **other}


def _without(secret: str, body: bytes, name: str, header: str) -> Headers:
    return {field: value for field, value in signed(secret, body, name=name).items() if field != header}


def planned(stage: ListenStage, random: Random, *, webhooks: int, copies: int, bad: int, large: int) -> Traffic:
    """Fill the shop, and plan as many webhooks, each in *copies*, with *bad* requests of each kind among them.

    Half of them tell of changes of orders, a quarter of customers, a quarter of new invoices.
    """
    people, parts, orders = (max(3, webhooks // share) for share in (25, 50, 10))
    for number in range(people):
        stage.shop.put_customer(f"C{number}")
    for number in range(parts):
        stage.shop.put_product(f"P{number}")
    for number in range(orders):
        stage.shop.put_order(f"O{number}", f"C{random.randrange(people)}", f"P{random.randrange(parts)}")
    sent: list[tuple[float, Item]] = []
    for number in range(webhooks):
        stream = ("orders", "customers", "orders", "invoices")[number % 4]
        key = {"orders": f"O{random.randrange(orders)}", "customers": f"C{random.randrange(people)}"}.get(stream)
        if key is None:
            key, price = f"I{number}", f"{number + 1}.25"
            stage.shop.put_invoice(key, f"C{random.randrange(people)}", f"P{random.randrange(parts)}", price)
        item, first = Item("valid", stream, key, uuid4().hex), random.random()
        sent += [(first, item), *((first + random.random() * _LATE, item) for _ in range(copies - 1))]
    for kind, number in {**dict.fromkeys(BAD, bad), "bytes": bad, "large": large}.items():
        for each in range(number):
            key = f"{kind.replace(' ', '-')}-{each}"
            stage.shop.put_customer(key)
            sent.append((random.random(), Item(kind, "customers", key, uuid4().hex)))
    return Traffic(stage, [item for _, item in sorted(sent, key=itemgetter(0))])
