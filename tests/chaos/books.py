"""A source, a platform and a state that are small enough for hundreds of runs, and who keeps book over all three."""

from __future__ import annotations

import json
import threading
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qs, urlsplit

import pytest
from sqlalchemy import Engine, create_engine, delete, select
from tests.chaos.scripted import Asked, Said

from crossdock import Connector, Context, RawBatch, Record, RecordError, Reference, Settings, Stream
from crossdock.config.project import connections_and_bound_streams, project
from crossdock.errors import StoppedError
from crossdock.mapping.stream_declaration import Filter
from crossdock.resources import ResourceName
from crossdock.runs import sync_and_replay
from crossdock.runs.run_report import Report
from crossdock.state import Intent, RecordFilter, State, StateUrl, Transaction
from crossdock.state.db import schema
from crossdock.testing.manual_clock import ManualClock
from crossdock.values.run_progress_and_messages import SilentProgress
from crossdock.writing.delivery import operator_decisions
from crossdock.writing.delivery.send_queue_and_threads import SendBatch, SenderThreads

ACCOUNTS, CUSTOMERS, INVOICES = "accounts", "customers", "invoices"
RESOURCE: dict[str, ResourceName] = {ACCOUNTS: "ledger_account", CUSTOMERS: "customer", INVOICES: "invoice"}
TEST_DATA = "T"  # keys that begin so are filtered out

Rule = Literal["resend", "verify", "park"]
Item = dict[str, Any]
Named = tuple[str, str]  # stream and key


class ChaosSettings(Settings):
    """Nothing to set."""

    kind: Literal["chaos"]


class _Pages(Stream[ChaosSettings]):
    """What the shelf of this stream holds above the cursor, a page a batch."""

    key = ("id",)
    skip = {"test_data": Filter(field="id", starts_with=TEST_DATA)}

    def __init__(self, shelf: list[list[Item]], pulled: Counter[str]) -> None:
        self._shelf, self._pulled = shelf, pulled

    def pull(self, ctx: Context[ChaosSettings], since: str | None) -> Iterator[RawBatch]:
        for number, page in enumerate(self._shelf, 1):
            if number > int(since or 0):
                self._pulled[f"wms.{self.name}"] += len(page)
                yield RawBatch.json(page, source=f"{self.name}-{number}", key=["id"], cursor=str(number))

    def to_resource(self, record: Record) -> dict[str, Any]:
        item = record.json()
        if item.get("bad"):
            raise RecordError("bad_value", "is bad", pointer="bad")
        return self.members(item)

    def members(self, item: Item) -> dict[str, Any]:
        raise NotImplementedError


class Accounts(_Pages):
    name, resource = ACCOUNTS, "ledger_account"

    def members(self, item: Item) -> dict[str, Any]:
        parent = {"parentId": Reference("ledger_account", item["parent"])} if item.get("parent") else {}
        return {"code": item["id"], "name": str(item["v"]), "type": "asset", **parent}


class Customers(_Pages):
    name, resource = CUSTOMERS, "customer"

    def members(self, item: Item) -> dict[str, Any]:
        return {"name": str(item["v"])}


class Invoices(_Pages):
    """Each line says in its price which invoice it is of, since nothing else on the wire does."""

    name, resource = INVOICES, "invoice"

    def members(self, item: Item) -> dict[str, Any]:
        line = {"productId": "prd_1", "quantity": item["v"], "unitPrice": number_of(item["id"])}
        return {"customerId": Reference("customer", item["parent"]), "currency": "EUR", "items": [line]}


def _is_named(body: Mapping[str, Any], names: Sequence[str]) -> bool:
    return body.get("externalId") in names


def number_of(key: str) -> int:
    return int(key[1:])


def version_of(stream: str, payload: dict[str, Any]) -> int:
    """Which version of a record *payload* is."""
    return int(payload["items"][0]["quantity"] if stream == INVOICES else payload["name"])


class Platform:
    """Keeps what it is sent, answers as it is told, and remembers what really happened.

    Attributes:
        fates: What becomes of the next requests, in their order; what comes after them goes through.
        struck: How often each fate struck.
        effects: Every create, update and delete: operation, resource, body as stored, id.
        on_fate: Called with a fate that is none of the platform's own.
    """

    def __init__(self, *, keys: bool) -> None:
        self._keys = keys
        self.fates: deque[str] = deque()
        self.struck: Counter[str] = Counter()
        self.effects: list[tuple[str, str, dict[str, Any]]] = []
        self.on_fate: dict[str, threading.Event] = {}
        self._stored: dict[str, dict[str, Any]] = {}
        self._answers: dict[str, Said] = {}
        self._numbers = count(1)
        self._lock = threading.Lock()

    def answer(self, asked: Asked) -> Said | None:
        with self._lock:
            fate = self.fates.popleft() if self.fates else "ok"
            known = self._answers.get(asked.key) if self._keys else None
            if fate in {"refused", "conflict", "changed"} and (known or not _fits(fate, asked)):
                fate = "ok"  # what has happened already is not refused any more
            if fate != "ok":
                self.struck[fate] += 1
            if fate in self.on_fate:
                self.on_fate[fate].set()
            if fate in _INSTEAD:
                return _INSTEAD[fate]
            said = known or self._do(asked)
            if self._keys and asked.key:
                self._answers[asked.key] = said
            return _AFTER.get(fate, said)

    def named(self, external_id: str) -> dict[str, Any]:
        """What it holds under a name of ours."""
        with self._lock:
            return next(dict(held) for held in self._stored.values() if held.get("externalId") == external_id)

    def find(self, intent: Intent) -> str | None:
        """The id of what *intent* wanted, if it happened; as a person would look for it."""
        stream = next(name for name, resource in RESOURCE.items() if resource == intent.resource)
        wanted = intent.after if intent.after is not None else json.loads(intent.body or b"{}")
        held = self.stored(stream).get(intent.identity.key)
        members = {*wanted, *(intent.before or {})}
        return held["id"] if held and all(held.get(name) == wanted.get(name) for name in members) else None

    def stored(self, stream: str) -> dict[str, dict[str, Any]]:
        """What it holds of a stream's resource, by record key."""
        kinds = {ACCOUNTS: "ledger-accounts", CUSTOMERS: "customers", INVOICES: "invoices"}
        bodies = [body for body in self._stored.values() if body["path"].endswith(kinds[stream])]
        if stream == INVOICES:
            return {f"I{_price(body)}": body for body in bodies}
        return {body["externalId"].removeprefix("wms:"): body for body in bodies}

    def _do(self, asked: Asked) -> Said:
        parts = urlsplit(asked.path)
        collection, _, last = parts.path.rpartition("/")
        if asked.method == "GET":
            if parts.query:
                names = parse_qs(parts.query).get("externalId")  # else it is asked whether it works
                return _json(200, {"data": [b for b in self._stored.values() if not names or _is_named(b, names)]})
            held = self._stored.get(last)
            return _json(200, held) if held else Said(404)
        sent = json.loads(asked.body or b"{}")
        if asked.method == "POST":
            name = sent.get("externalId")
            if name and any(b.get("externalId") == name and b["path"] == parts.path for b in self._stored.values()):
                return _json(409, {"detail": "is there already"})
            target_id = f"id{next(self._numbers)}"
            self._stored[target_id] = sent | {"id": target_id, "path": parts.path, "etag": 1}
            self.effects.append(("create", parts.path, dict(self._stored[target_id])))
            return _json(201, self._stored[target_id])
        return self._change(asked, collection, last)

    def _change(self, asked: Asked, collection: str, last: str) -> Said:
        if asked.method == "DELETE" and last not in self._stored:
            return Said(404)
        held, sent = self._stored[last], json.loads(asked.body or b"{}")
        if asked.headers.get("if-match", f'"{held["etag"]}"') != f'"{held["etag"]}"':
            return Said(412)
        if asked.method == "DELETE":
            del self._stored[last]
            self.effects.append(("delete", collection, dict(held)))
            return Said(204)
        held |= sent
        for gone in [member for member, value in held.items() if value is None]:
            del held[gone]
        held["etag"] += 1
        self.effects.append(("update", collection, dict(held)))
        return _json(200, held)


def _price(body: dict[str, Any]) -> int:
    return int(body["items"][0]["unitPrice"])


def _fits(fate: str, asked: Asked) -> bool:
    return asked.method in {"refused": ("POST", "PATCH"), "conflict": ("POST",), "changed": ("PATCH",)}[fate]


def _json(status: int, body: dict[str, Any]) -> Said:
    etag = {"etag": f'"{body["etag"]}"'} if "etag" in body else {}
    return Said(status, json.dumps(body).encode(), etag)


_INSTEAD: dict[str, Said | None] = {
    "reset": None,
    "throttled": Said(429, headers={"retry-after": "1"}),
    "throttled, mute": Said(429),
    "away": Said(503, headers={"retry-after": "1"}),
    "away, mute": Said(503),
    "failing": Said(500),
    "unauthorized": Said(401),
    "refused": Said(422, b'{"errors":[{"pointer":"/name","detail":"is wrong"}]}'),
    "conflict": Said(409, b'{"detail":"is taken"}'),
    "changed": Said(412),
}
_AFTER: dict[str, Said | None] = {"lost": None, "failed after": Said(500), "cut": Said(201, b'{"id":')}
OWN_FATES = ("interrupt", "dies")
FATES = (*_INSTEAD, *_AFTER, *OWN_FATES)


class Boom(Exception):  # noqa: N818  what it is called is no matter
    """A failpoint: raised where no code foresees anything."""


@dataclass(slots=True)
class Books:
    """What is known of every record from outside: its newest version, and in which page of its stream it came."""

    shelves: dict[str, list[list[Item]]] = field(default_factory=lambda: {name: [] for name in RESOURCE})
    newest: dict[Named, tuple[int, Item]] = field(default_factory=dict)

    def put(self, stream: str, items: Sequence[Item]) -> None:
        """Put a page on the shelf of *stream*."""
        self.shelves[stream].append(list(items))
        for item in items:
            if item["id"] and not item["id"].startswith(TEST_DATA):
                self.newest[stream, item["id"]] = len(self.shelves[stream]), item


class World:
    """All of it, for one example; the database is emptied before."""

    def __init__(
        self,
        folder: Path,
        url: StateUrl,
        base_url: str,
        platform: Platform,
        rule: Rule,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        self.platform, self.rule = platform, rule
        self.books, self.pulled = Books(), Counter[str]()
        self.clock, self.interrupt, self.dead = ManualClock(), threading.Event(), threading.Event()
        platform.on_fate = {"interrupt": self.interrupt, "dies": self.dead}
        shelves = self.books.shelves
        streams = [kind(shelves[kind.name], self.pulled) for kind in (Accounts, Customers, Invoices)]
        connector = Connector("chaos", "Chaos", ChaosSettings, lambda _settings: streams)
        monkeypatch.setattr(connections_and_bound_streams, "load_connector", lambda _name: connector)
        monkeypatch.setenv("KEY", "k")
        path = folder / "c.yaml"
        path.write_text(
            f"platform:\n  base_url: {base_url}\n  tenant: acme\n  auth: {{kind: api_key, token: env:KEY}}\n"
            f"  idempotency: {{enabled: {str(rule == 'resend').lower()}}}\n  after_ambiguous: {rule}\n"
            "  in_flight: 3\n  lookup: {settle_s: 1}\n"
            "  retry: {attempts: 3, base_s: 0.1, give_up_after_s: 5}\n"
            f"state: {url.render_as_string(hide_password=False)}\nconnections:\n  wms: {{kind: chaos}}\n"
        )
        self.project = project.load(path)
        self.runs = Counter[str]()

    def sync(self) -> Report | None:
        """A sync; None if a failpoint ended it."""
        return self._run("sync", lambda: sync_and_replay.sync(self.project, [], **self._kept()))

    def replay(self) -> Report | None:
        return self._run("replay", lambda: sync_and_replay.replay(self.project, RecordFilter(), **self._kept()))

    def _kept(self) -> dict[str, Any]:
        return {"clock": self.clock, "progress": SilentProgress(), "interrupt": self.interrupt}

    def _run(self, kind: str, work: Any) -> Report | None:
        self.clock.advance(1)
        self.pulled.clear()
        self.interrupt.clear()
        self.dead.clear()
        self.runs[kind] += 1
        try:
            report: Report = work()
        except Boom:
            self.runs["crashed"] += 1
            return None
        self.runs["interrupted"] += any(isinstance(error, StoppedError) for error in report.errors.values())
        return report

    def mend(self, work: Any) -> None:
        """Change the state as ``crossdock records`` does."""
        with self.project.open_state_exclusively() as state:
            state.run_transaction(work)

    def resolve(self, chosen: Iterable[str] = RESOURCE) -> int:
        """Say of all in doubt what the platform knows of them; how many that were."""
        streams = {f"wms.{name}" for name in chosen}

        def decide(tx: Transaction) -> int:
            found = [
                intent
                for intent in operator_decisions.intents_for_person_to_decide(tx, RecordFilter())
                if intent.identity.stream in streams
            ]
            for intent in found:
                held = self.platform.find(intent)
                if held is None:
                    operator_decisions.settle_intents_as_not_delivered(tx, [intent], at=self.clock.now())
                else:
                    is_new = intent.operation == "create"
                    operator_decisions.settle_intents_as_delivered(
                        tx, [intent], held if is_new else None, at=self.clock.now()
                    )
            return len(found)

        with self.project.open_state_exclusively() as state:
            return state.run_transaction(decide)

    def drop(self, stream: str) -> None:
        """Give up everything of *stream* that did not get through."""
        choice = RecordFilter(f"wms.{stream}")

        def drop(tx: Transaction) -> None:
            found = (
                tx.dead_letters.rejected_matching(choice),
                tx.waiting_records.matching(choice),
            )
            operator_decisions.drop_records(tx, *found, [], at=self.clock.now())

        self.mend(drop)


def empty(url: StateUrl) -> None:
    """Make a state as new."""
    engine = create_engine(url)
    with engine.begin() as connection:
        for table in reversed(schema.metadata.sorted_tables):
            if table not in {schema.meta, schema.leases}:
                connection.execute(delete(table))
    engine.dispose()


@contextmanager
def failpoints() -> Iterator[Failpoints]:
    """Failpoints in the state and in the senders, until the block ends."""
    points = Failpoints()
    with ExitStack() as undone, pytest.MonkeyPatch.context() as patch:
        undone.callback(points.disarm)
        transaction, send = State._new_transaction, SenderThreads._send_request_of_batch

        def watched_transaction(state: State, connection: Any) -> Transaction:
            points.in_state()
            return transaction(state, connection)

        def watched_apply(state: State, work: Any) -> Any:
            points.before_commit()
            done = apply(state, work)
            points.after_commit()
            return done

        def watched_send(senders: SenderThreads, client: Any, batch: SendBatch) -> Any:
            points.before_send()
            outcome = send(senders, client, batch)
            points.after_send()
            return outcome

        apply = State.run_transaction
        patch.setattr(State, "_new_transaction", watched_transaction)
        patch.setattr(State, "run_transaction", watched_apply)
        patch.setattr(SenderThreads, "_send_request_of_batch", watched_send)
        yield points


class Failpoints:
    """Where an exception is raised next; after one in the state nothing reaches it any more in that run, as if it died.

    Attributes:
        raised: How often, by place.
    """

    def __init__(self) -> None:
        self.raised: Counter[str] = Counter()
        self.dead = threading.Event()
        self._place, self._countdown = "", 0
        self._died = False
        self._lock = threading.Lock()

    def arm(self, place: str, countdown: int, dead: threading.Event) -> None:
        """Raise at the *countdown*-th time of *place*: ``before commit``, ``after commit``, ``before send``, ``after
        send``; and in the state as soon as *dead* is set."""
        self._place, self._countdown, self._died, self.dead = place, countdown, False, dead

    def disarm(self) -> None:
        self._place, self._countdown, self._died, self.dead = "", 0, False, threading.Event()

    def in_state(self) -> None:
        if self._died:
            raise Boom
        if self.dead.is_set():
            self._die("at an answer")

    def before_commit(self) -> None:
        self._reach("before commit", dies=True)

    def after_commit(self) -> None:
        self._reach("after commit", dies=True)

    def before_send(self) -> None:
        self._reach("before send", dies=False)

    def after_send(self) -> None:
        self._reach("after send", dies=False)

    def _reach(self, place: str, *, dies: bool) -> None:
        with self._lock:
            if place != self._place or self._died:
                return
            self._countdown -= 1
            if self._countdown != 0:
                return
        if dies:
            self._die(place)
        self.raised[place] += 1
        raise Boom

    def _die(self, place: str) -> None:
        self._died = True
        self.raised[place] += 1
        raise Boom


@dataclass(slots=True)
class Places:
    """Where the versions of every record are, in the state as it is now."""

    found: dict[Named, list[tuple[str, int]]]
    cursors: dict[str, int]
    unsettled: Counter[str]
    waiting: dict[str, set[str]]


class Eye:
    """Looks into a state past crossdock's own questions; keeps a connection."""

    def __init__(self, url: StateUrl) -> None:
        self._engine: Engine = create_engine(url)

    def close(self) -> None:
        self._engine.dispose()

    def look(self) -> Places:
        found: dict[Named, list[tuple[str, int]]] = defaultdict(list)
        unsettled, waiting = Counter[str](), defaultdict[str, set[str]](set)
        streams = {resource: name for name, resource in RESOURCE.items()}
        with self._engine.connect() as connection:
            for row in connection.execute(select(schema.bindings)):
                if row.step != "open":  # else the first of two steps, and its record waits
                    name = streams[row.resource]
                    found[name, row.key].append(("delivered", version_of(name, row.payload)))
            for row in connection.execute(select(schema.dead_letters).where(schema.dead_letters.c.key != "")):
                found[_named(row)].append((row.status, _version(row.raw)))
            for row in connection.execute(select(schema.waiting_records)):
                found[_named(row)].append(("waiting", _version(row.raw)))
                waiting[row.stream].add(row.key)
            open_ones = schema.intents.c.status.in_(("pending", "sending", "in_doubt"))
            for row in connection.execute(select(schema.intents).where(open_ones)):
                if row.step != "open":
                    found[_named(row)].append(("unsettled", _version(row.raw)))
                    unsettled[row.stream] += 1
            kept = connection.execute(select(schema.cursors)).all()
        return Places(found, {row.stream.partition(".")[2]: int(row.value) for row in kept}, unsettled, waiting)


def _named(row: Any) -> Named:
    return row.stream.partition(".")[2], row.key


def _version(raw: dict[str, Any]) -> int:
    (cells,) = raw["rows"]
    return int(json.loads(cells[raw["columns"].index("_json")])["v"])
