"""A connection that is a source and a target, each of whose methods may raise, and what its partner really did."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from types import FunctionType
from typing import Any
from urllib.parse import urlencode

import httpx
from pydantic import ConfigDict
from tests.chaos.mappings import BenchSettings, Row, batch

from crossdock import Context, RawBatch, Record, Stream
from crossdock.mapping.stream_declaration import GoneLimits, OnGone
from crossdock.pacing.rate_limit_and_retry_settings import Retry
from crossdock.pacing.token_bucket import LimitEstimate
from crossdock.reading.sources.api_declaration import Api
from crossdock.resources import ResourceModel
from crossdock.sources import ApiAnswer, ApiRequest, Paginator, RateLimit
from crossdock.targets import (
    Answer,
    ApiTarget,
    BatchProfile,
    EndpointProfile,
    ExpectedRecord,
    Outcome,
    RecordShape,
    Request,
    TargetResource,
    Update,
)
from crossdock.values import exact_json
from crossdock.values.field_types import Exact, Text
from crossdock.values.raw_rows_and_records import Proof

BASE = "https://depot.example.com"


class OrderDraft(ResourceModel):
    model_config = ConfigDict(alias_generator=None)

    quantity: Exact


class ParcelDraft(ResourceModel):
    model_config = ConfigDict(alias_generator=None)

    code: Text


@dataclass
class Depot:
    """The partner: stores orders and parcels, and loses the first answer to some creates.

    Attributes:
        creates: How often each record was created, by its kind and name.
        lost: Those of which the first answer is lost.
    """

    stored: dict[str, dict[str, Any]] = field(default_factory=dict)
    creates: Counter[str] = field(default_factory=Counter)
    lost: set[str] = field(default_factory=set)
    keys: dict[str, str] = field(default_factory=dict)

    def answer(self, request: httpx.Request) -> httpx.Response:
        _, kind, *rest = request.url.path.split("/")
        if request.method == "POST" and rest:
            made = [self._made(kind, body) for body in json.loads(request.content)]
            self._lose_some(made, request)
            return httpx.Response(200, json=made)
        if request.method == "POST":
            return self._create(request)
        if request.method == "GET" and not rest:
            name = request.url.params.get("reference")
            found = [each for each in self.stored.values() if each["kind"] == kind]
            found = [each for each in found if name in {None, each["reference"]}]
            return httpx.Response(200, json={"data": found})
        held = self.stored.get(rest[0])
        if held is None:
            return httpx.Response(404)
        if request.method == "PATCH":
            held |= json.loads(request.content)
        if request.method == "DELETE":
            del self.stored[rest[0]]
        return httpx.Response(200, json=held)

    def _create(self, request: httpx.Request) -> httpx.Response:
        body, key = json.loads(request.content), request.headers.get("idempotency-key", "")
        known = self.keys.get(key) if key else None
        made = self._made(request.url.path.split("/")[1], body) if known is None else self.stored[known]
        self.keys[key] = made["id"]
        self._lose_some([made], request)
        return httpx.Response(201, json=made)

    def _made(self, kind: str, body: dict[str, Any]) -> dict[str, Any]:
        number = f"{self.creates.total() + 1}"
        self.creates[f"{kind} {body['reference']}"] += 1
        self.stored[number] = body | {"id": number, "kind": kind}
        return self.stored[number]

    def _lose_some(self, made: list[dict[str, Any]], request: httpx.Request) -> None:
        names = {f"{each['kind']} {each['reference']}" for each in made}
        if names & self.lost:
            self.lost -= names
            raise httpx.ReadTimeout("lost", request=request)


class DepotTarget(ApiTarget):
    """Orders are protected by keys, and parcels, which are looked up first and sent together, by their names."""

    resources = {
        "orders": TargetResource(
            "orders",
            OrderDraft,
            endpoint=EndpointProfile(idempotent=True, look_up=True, header="idempotency-key"),
            name_member="reference",
        ),
        "parcels": TargetResource(
            "parcels",
            ParcelDraft,
            endpoint=EndpointProfile(look_up=True, looks_up_first=frozenset({"create"})),
            shape=RecordShape(),
            name_member="reference",
            batch=BatchProfile(3),
        ),
    }
    retry = Retry(attempts=3, base_s=0.01, cap_s=0.01)
    in_flight = 2
    settle_s = 0.0

    def create(self, resource: str, payload: dict[str, Any]) -> Request:
        return Request.json("POST", f"/{resource}", payload)

    def create_from(self, resource: str, payload: dict[str, Any], held: dict[str, Any]) -> Request:
        return Request.json("POST", f"/{resource}", payload)

    def update(self, resource: str, target_id: str, update: Update) -> Request:
        return Request.json("PATCH", f"/{resource}/{target_id}", update.changes)

    def delete(self, resource: str, target_id: str) -> Request:
        return Request("DELETE", f"/{resource}/{target_id}")

    def batch(self, resource: str, requests: Sequence[Request]) -> Request:
        return Request.json("POST", f"/{resource}/batch", [exact_json.loads(each.body or b"") for each in requests])

    def batch_outcomes(
        self, resource: str, answer: Answer, expected: Sequence[ExpectedRecord]
    ) -> Outcome | Sequence[Outcome]:
        results = exact_json.loads(answer.body)
        return [
            self.outcome(resource, Answer(201, {}, exact_json.dumps(result)), each)
            for result, each in zip(results, expected, strict=True)
        ]

    def look_up(self, resource: str, name: str | None, target_id: str | None) -> Request:
        path = f"/{resource}/{target_id}" if target_id is not None else f"/{resource}?{urlencode({'reference': name})}"
        return Request("GET", path)

    def ping(self, resource: str) -> Request:
        return Request("GET", f"/{resource}?limit=1")


class Lines(Stream[BenchSettings]):
    """A snapshot of some rows."""

    mode, key = "snapshot", ("K",)
    on_gone: OnGone = "delete"
    gone = GoneLimits(at_most=100, at_most_percent=100)

    def __init__(self) -> None:
        self.read = 0
        self.rows: list[Row] = [{"K": str(number), "Q": "1"} for number in range(4)]

    def pull(self, ctx: Context[BenchSettings], since: str | None) -> Iterator[RawBatch]:
        self.read += 1
        name = f"{self.name}-{self.read}"
        yield replace(batch(self.rows, name), proof=Proof(lambda: name, counted=True))


class Orders(Lines):
    name, to = "orders", "b.orders"

    def to_resource(self, record: Record) -> dict[str, Any]:
        return {"quantity": int(record.row["Q"] or 0)}


class Parcels(Lines):
    name, to = "parcels", "b.parcels"

    def to_resource(self, record: Record) -> dict[str, Any]:
        return {"code": record.row["Q"]}


class Customers(Lines):
    name, resource = "customers", "customer"

    def to_resource(self, record: Record) -> dict[str, Any]:
        return {"name": record.row["Q"]}


class Raiser:
    """Decides which call raises, and keeps what was raised.

    Attributes:
        raised: How often each method raised.
        chance: That a call raises, from 0 to 1.
    """

    def __init__(self, names: frozenset[str], chance: float, seed: int) -> None:
        self._rng, self.chance, self.names = random.Random(seed), chance, names
        self.raised: Counter[str] = Counter()

    def check(self, name: str) -> None:
        if name in self.names and self._rng.random() < self.chance:
            self.raised[name] += 1
            kinds = ValueError, RuntimeError, SystemExit, MemoryError, GeneratorExit, LookupError
            raise self._rng.choice(kinds)(f"boom in {name}")


def methods_of(*classes: type) -> frozenset[str]:
    """The public methods and properties that *classes* declare: what an author may write."""
    return frozenset(
        name
        for declared in classes
        for name, member in vars(declared).items()
        if isinstance(member, FunctionType | property) and not name.startswith("_")
    )


def raising(own: type, raiser: Raiser) -> type:
    """A subclass of *own*, all of whose methods ask *raiser* first."""
    names = {name for name in methods_of(*own.__mro__) & raiser.names if name not in OPTIONAL or name in vars(own)}
    return type(own.__name__, (own,), {name: _asking(getattr(own, name), name, raiser) for name in names})


def _asking(member: Any, name: str, raiser: Raiser) -> Any:
    function: Any = member.fget if isinstance(member, property) else member

    def asking(self: Any, *arguments: Any, **named: Any) -> Any:
        raiser.check(name)
        return function(self, *arguments, **named)

    return property(asking) if isinstance(member, property) else asking


class Asking(Orders):
    """Asks the API of the connection first, and leaves something to the end of the run."""

    raiser: Raiser

    def pull(self, ctx: Context[BenchSettings], since: str | None) -> Iterator[RawBatch]:
        ctx.run.at_end.callback(lambda: self.raiser.check("at_end"))
        for _ in ctx.api.pages("/nothing", paginator=_Pages(self.raiser)):
            """The depot has no such records."""
        yield from super().pull(ctx, since)


@dataclass(frozen=True)
class _Pages(Paginator):
    raiser: Raiser

    def first(self, request: ApiRequest) -> ApiRequest:
        self.raiser.check("first")
        return request

    def following(self, request: ApiRequest, answer: ApiAnswer) -> ApiRequest | None:
        self.raiser.check("following")
        return None


class _Auth(httpx.Auth):
    def __init__(self, raiser: Raiser) -> None:
        self._raiser = raiser

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        self._raiser.check("auth_flow")
        yield request


class _Transport(httpx.MockTransport):
    def __init__(self, depot: Depot, raiser: Raiser) -> None:
        super().__init__(depot.answer)
        self._raiser = raiser

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self._raiser.check("handle_request")
        return super().handle_request(request)

    def close(self) -> None:
        self._raiser.check("close")


class _Rate:
    def __init__(self, raiser: Raiser) -> None:
        self._raiser = raiser

    def estimate(self, earlier: LimitEstimate | None = None) -> LimitEstimate:
        self._raiser.check("estimate")
        return RateLimit(per_minute=600_000, burst=100_000).estimate(earlier)


def api(depot: Depot, raiser: Raiser) -> Api:
    """An API all of whose parts are an author's, and may raise."""

    def throttled(_: ApiAnswer) -> bool:
        raiser.check("throttled")
        return False

    raiser.check("api")
    return Api(BASE, auth=_Auth(raiser), transport=_Transport(depot, raiser), rate=_Rate(raiser), throttled=throttled)


API = frozenset(
    {"api", "auth_flow", "handle_request", "close", "estimate", "throttled", "first", "following", "at_end"}
)
"""What an author may write for the API of a connection."""


OPTIONAL = frozenset({"existing", "fetch"})
"""Methods of a stream that say what it can do by being there."""
TARGET = methods_of(*ApiTarget.__mro__) - {"connect", "api"}
"""Of a target; the engine connects it, and `Connector.api` declares its API."""
STREAM = methods_of(Stream)
