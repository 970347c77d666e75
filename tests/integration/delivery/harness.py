"""A scripted platform, and a dispatcher on a state that delivers to it."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, get_args
from urllib.parse import parse_qs, urlsplit

import pytest
from msgspec import structs
from tests.allowances import allowance

from crossdock.errors import CrossdockError
from crossdock.platform.platform_config import Profile
from crossdock.reading.transport.http_answers_and_errors import Answer as HttpAnswer
from crossdock.state import Binding, Intent, RecordIdentity, Scope, State, Transaction, Unchanged
from crossdock.state.tables.intents_and_stored_batches import Status
from crossdock.targets import Client, Request
from crossdock.values.clock import Clock, SystemClock
from crossdock.values.raw_rows_and_records import Record
from crossdock.writing.delivery.delivery_context import AdoptionRules, DeliveringRun, RequestCounters
from crossdock.writing.delivery.dispatcher import Dispatcher
from crossdock.writing.delivery.in_doubt_and_refusal_rules import StateDoubts
from crossdock.writing.delivery.operations_and_intents import Kind, Operation
from crossdock.writing.delivery.send_queue_and_threads import SenderThreads
from crossdock.writing.delivery.state_writer import Settlement
from crossdock.writing.targets.payload_comparison import merge_patch_between
from crossdock.writing.targets.platform_target import PlatformTarget

SCOPE = Scope("platform", "product", "wms")
PRODUCTS = "/api/v1/catalog/products"
PROBE = "externalId=crossdock%3A"
VERIFY = {"idempotency": {"enabled": False}}
"""Settings without keys: what is in doubt is looked up."""

Answer = tuple[int, dict[str, str], bytes] | None  # None: the connection is closed without an answer
Script = Callable[["Seen"], Answer]


@dataclass(frozen=True)
class Seen:
    """A request as the platform saw it; *turn* counts those under its key, from 1."""

    method: str
    path: str
    key: str
    body: bytes
    turn: int
    if_match: str | None = None


def is_number(seen: Seen, number: int) -> bool:
    return b'"wms:%d"' % number in seen.body


class Platform(ThreadingHTTPServer):
    """Answers as a script says, and remembers what it saw."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script: Script = created
        self.seen: list[Seen] = []
        self.probes: list[Seen] = []  # look-ups for a name that does not exist
        self.lock = threading.Lock()

    def of(self, *methods: str) -> list[Seen]:
        """What it saw of these methods."""
        return [seen for seen in self.seen if seen.method in methods]

    def told(self) -> list[str]:
        """The methods of all that it saw, in their order."""
        return [seen.method for seen in self.seen]

    def handle_error(self, *_: Any) -> None:
        """A closed connection is part of the script."""


class _Handler(BaseHTTPRequestHandler):
    server: Platform
    protocol_version = "HTTP/1.1"

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        key = self.headers.get("idempotency-key", "")
        with self.server.lock:
            turn = 1 + sum(seen.key == key for seen in self.server.seen)
            seen = Seen(self.command, self.path, key, body, turn, self.headers.get("if-match"))
            (self.server.probes if PROBE in self.path else self.server.seen).append(seen)
        answer = self.server.script(seen)
        if answer is None:
            self.close_connection = True
            return
        status, headers, content = answer
        self.send_response(status)
        for name, value in {**headers, "content-length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_PATCH = do_DELETE = _serve  # noqa: N815  the base class calls them so

    def log_message(self, *_: object) -> None:
        """Be quiet."""


def created(seen: Seen) -> Answer:
    """One id for each key, where there are no keys for each body; an update keeps the id."""
    if seen.method == "PATCH":
        return 200, {}, json.dumps({"id": seen.path.rpartition("/")[2]}).encode()
    name = seen.key.strip('"')[:8] or hashlib.sha256(seen.body).hexdigest()[:8]
    return 201, {}, b'{"id":"prd_%s"}' % name.encode()


class Shelf:
    """A script of a platform that keeps records, with versions, look-ups and a memory of its idempotency keys.

    Attributes:
        held: By id.
    """

    def __init__(self) -> None:
        self.held: dict[str, dict[str, Any]] = {}
        self._versions = Counter[str]()
        self._answered: dict[str, Answer] = {}
        self._made = 0
        self._lock = threading.RLock()

    def put(self, members: dict[str, Any]) -> str:
        """Somebody makes a record; its id."""
        with self._lock:
            self._made += 1
            name = f"prd_{self._made}"
            self.held[name] = {"id": name, **members}
            return name

    def edit(self, name: str, /, **members: Any) -> None:
        """Somebody changes a record."""
        with self._lock:
            self.held[name] |= members
            self._versions[name] += 1

    def tag(self, name: str) -> str:
        return f'"{name}-{self._versions[name]}"'

    def __call__(self, seen: Seen) -> Answer:
        with self._lock:
            if seen.key not in self._answered:
                answer = self._answer(seen)
                if not seen.key:
                    return answer
                self._answered[seen.key] = answer
            return self._answered[seen.key]

    def _answer(self, seen: Seen) -> Answer:
        parts = urlsplit(seen.path)
        name = parts.path.removeprefix(PRODUCTS).strip("/")
        members = json.loads(seen.body) if seen.body else {}
        if seen.method == "POST":
            return self._post(members)
        if seen.method == "GET" and not name:
            wanted = parse_qs(parts.query).get("externalId")
            listed = [each for each in self.held.values() if wanted is None or each.get("externalId") in wanted]
            return 200, {"etag": '"of the list"'}, json.dumps({"data": listed}).encode()
        if name not in self.held:
            return 404, {}, b"{}"
        if seen.if_match is not None and seen.if_match != self.tag(name):
            return 412, {}, b"{}"
        if seen.method == "DELETE":
            del self.held[name]
            return 204, {}, b""
        if seen.method == "PATCH":
            _merge(self.held[name], members)
            self._versions[name] += 1
        return 200, {"etag": self.tag(name)}, json.dumps(self.held[name]).encode()

    def _post(self, members: dict[str, Any]) -> Answer:
        if members.get("externalId") in {each.get("externalId") for each in self.held.values()}:
            return 409, {}, b'{"detail":"another product has this externalId"}'
        name = self.put(members)
        return 201, {"etag": self.tag(name)}, json.dumps(self.held[name]).encode()


def _merge(held: dict[str, Any], changes: dict[str, Any]) -> None:
    """RFC 7396, written apart from ours."""
    for name, value in changes.items():
        if value is None:
            held.pop(name, None)
        elif isinstance(value, dict) and isinstance(held.get(name), dict):
            _merge(held[name], value)
        else:
            held[name] = value


@dataclass
class Batch:
    operations: list[Operation]
    acknowledged_settlements: Sequence[Settlement] = ()

    def store_all_but_operations(self, tx: Transaction) -> None:
        """Nothing else."""


def operation(number: int) -> Operation:
    payload = {"externalId": f"wms:{number}", "sku": f"S{number}", "name": "x", "active": True}
    record = Record(str(number), ({"SKU": f"S{number}"},), "f.csv", (number + 2,))
    identity = RecordIdentity("wms.products", record.key, number, number + 1, None, record.source, number + 2)
    return Operation("create", identity, SCOPE, record, payload, payload, None)


def invoice(number: int) -> Operation:
    """The creation of an invoice, which has no name of ours on the wire."""
    payload = {"currency": "EUR", "number": number}
    scope, first = Scope("platform", "invoice", "wms"), operation(number)
    identity = first.identity._replace(stream="wms.invoices")
    return structs.replace(first, identity=identity, scope=scope, after=payload, changes=payload)


def updating(binding: Binding, after: dict[str, Any], *, fingerprint: int = 77) -> Operation:
    """The update that leads from what *binding* holds to *after*."""
    return _of_bound("update", binding, after, merge_patch_between(binding.payload, after), fingerprint)


def deleting(binding: Binding) -> Operation:
    return _of_bound("delete", binding, binding.payload, {}, binding.fingerprint)


def _of_bound(
    kind: Kind, binding: Binding, after: dict[str, Any], changes: dict[str, Any], fingerprint: int | None
) -> Operation:
    first = operation(binding.key_hash)
    identity = first.identity._replace(fingerprint=fingerprint)
    return structs.replace(first, kind=kind, identity=identity, after=after, changes=changes, binding=binding)


class Defective(PlatformTarget):
    """A target that fails with *failure* after it has sent a body of which *breaks* is true.

    Attributes:
        pauses: Called with each body before it is sent.
    """

    breaks: Callable[[bytes], bool]
    failure: Exception
    pauses: Callable[[bytes], None]

    def send(self, client: Client, resource: str, request: Request, *options: Any) -> HttpAnswer:
        self.pauses(request.body or b"")
        answer = super().send(client, resource, request, *options)
        if self.breaks(request.body or b""):
            raise self.failure
        return answer


@dataclass
class Bench:
    """A dispatcher on a state and a platform, one run at a time."""

    state: State
    port: int
    monkeypatch: pytest.MonkeyPatch
    settings: dict[str, Any] = field(default_factory=dict)
    settled: list[Settlement] = field(default_factory=list)
    interrupt: threading.Event = field(default_factory=threading.Event)
    counters: RequestCounters = field(default_factory=RequestCounters)
    warnings: list[str] = field(default_factory=list)
    clock: Clock = field(default_factory=SystemClock)
    adopting: frozenset[str] = frozenset()
    matching: dict[str, str] = field(default_factory=dict)
    rejecting: frozenset[str] = frozenset()
    state_restored: bool = False
    only_unchanged: Unchanged | None = None
    breaks: Callable[[bytes], bool] = lambda _body: False
    failure: Exception = field(default_factory=ZeroDivisionError)
    pauses: Callable[[bytes], None] = lambda _body: None

    def run(self, work: Callable[[Dispatcher], Any]) -> Any:
        self.monkeypatch.setenv("KEY", "k")
        facts = {
            "base_url": f"http://127.0.0.1:{self.port}",
            "tenant": "acme",
            "auth": {"kind": "api_key", "token": "env:KEY"},
            "retry": {"attempts": 3, "base_s": 0.001},
        }
        profile = Profile.model_validate(facts | self.settings, context={"folder": Path()})
        target, clock = Defective(profile), self.clock
        target.breaks, target.failure, target.pauses = self.breaks, self.failure, self.pauses
        self.allowance = allowance(clock)
        with self.state.begin() as tx:
            run_id = tx.runs.start(business_date="2026-01-01", at=clock.now())
        with SenderThreads(target, profile.in_flight) as senders:
            run = DeliveringRun(
                self.state,
                run_id,
                clock,
                self.interrupt,
                only_unchanged=self.only_unchanged,
                warn=self.warnings.append,
            )
            dispatcher = Dispatcher(
                run,
                target,
                self.allowance,
                senders,
                self.settled.append,
                rules=AdoptionRules(self.adopting, self.matching, self.rejecting),
                doubts=StateDoubts(self.state_restored),
            )
            try:
                return work(dispatcher)
            finally:
                self.counters = run.counters

    def deliver(self, count: int) -> None:
        self.carry_out([operation(n) for n in range(count)])

    def carry_out(self, *chunks: Sequence[Operation]) -> None:
        self.run(lambda dispatcher: dispatcher.deliver(iter([Batch(list(chunk)) for chunk in chunks])))

    def resume(self) -> list[Intent]:
        """Go on with what is unsettled; what is in doubt still."""
        with self.state.begin() as tx:
            unsettled = tx.intents.unsettled()

        already = len(self.settled)
        self.run(lambda dispatcher: list(dispatcher.resume_unsettled_intents(unsettled)))
        return [item.intent for item in self.settled[already:] if item.intent.status == "in_doubt"]

    def resume_to_end(self) -> Sequence[CrossdockError]:
        """Go on with what is unsettled, as a run without new records does; why some of it was left out."""
        with self.state.begin() as tx:
            unsettled = tx.intents.unsettled()

        def night(dispatcher: Dispatcher) -> Sequence[CrossdockError]:
            list(dispatcher.resume_unsettled_intents(unsettled))
            assert dispatcher.deliver_held_back_operations()
            return dispatcher.take_undelivered_batch_errors()

        found: Sequence[CrossdockError] = self.run(night)
        return found

    def statuses(self) -> Counter[str]:
        return Counter(item.intent.status for item in self.settled)

    def bound(self) -> int:
        with self.state.begin() as tx:
            return sum(tx.bindings.counts_by_resource().values())

    def binding(self, number: int) -> Binding:
        with self.state.begin() as tx:
            return tx.bindings.get(SCOPE, [number])[number]

    def story(self, number: int, scope: Scope = SCOPE) -> list[tuple[str, str, int]]:
        """Operation, status and counter of all that was ever to be done to a record."""
        with self.state.begin() as tx:
            return [
                (each.operation, each.status, each.counter)
                for each in tx.intents.page_with_statuses(get_args(Status), limit=1_000)
                if (each.scope, each.identity.key_hash) == (scope, number)
            ]

    def unsettled(self) -> dict[str, str]:
        """Status by record key."""
        with self.state.begin() as tx:
            return {each.identity.key: each.status for each in tx.intents.unsettled()}

    def dead_letters(self) -> dict[str, str]:
        """Reason by record key."""
        with self.state.begin() as tx:
            return {each["key"]: each["code"] for each in tx.dead_letters.listed(limit=1000)}
