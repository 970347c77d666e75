"""How crossdock's delivery is judged: by what really happened at the platform, never by crossdock's own word.

Three witnesses are asked, and none of them is crossdock's state or report:

- the **stored resources**, read back page by page with a second API key, ids replaced by the external ids that the
  platform returns. Their multiset is compared with the one that the generator of the exports computed by the standard
  library alone: `lost` is expected and not there, `twice` is there more often than expected, `unexpected` was never
  expected. Invoices have no external id and some have equal bodies, so nothing less than a multiset will do. A value
  that drifted is one lost and one unexpected;
- the **effects** (``/_sandbox/effects``), each written in the transaction that did the work. They must add up to what
  is stored, and no idempotency key may have two;
- the **requests**: the sandbox's log (``/_sandbox/requests``) has the key and fate of every attempt but not its bytes;
  where bytes matter a `tests.e2e.warehouse.Front` stands before the platform and keeps them.

A run that injected fewer faults than planned proves nothing and fails (`Trial`). Kills are SIGKILL of a real process:
from outside at some instant, or by itself at a failpoint (`tests.chaos.failing`), whose note proves that it struck.
"""

from __future__ import annotations

import hashlib
import math
import os
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, Protocol, Self

from tests.e2e.project_folder import GIVEN
from tests.e2e.retail_truth import Holdings, canonical
from tests.e2e.warehouse import Seen

SEED_VARIABLE = "CROSSDOCK_CHAOS_SEED"
SEED = int(os.environ.get(SEED_VARIABLE, "20260116"))


# ---- what is there


class Witness(Protocol):
    """What really happened: `SandboxProcess`, or `tests.chaos.partner_depot.Witness3pl`."""

    def effects(self) -> list[dict[str, Any]]:
        """All effects, oldest first."""

    def holdings(self) -> Holdings:
        """Everything stored, with external ids in place of ids."""

    def request_log(self, after: int) -> list[dict[str, Any]]:
        """The requests after the first *after* ones."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is wrong with a multiset of bodies; *keys_twice* are idempotency keys with more than one effect."""

    records: int
    lost: Counter[str]
    twice: Counter[str]
    unexpected: Counter[str]
    keys_twice: tuple[str, ...] = ()

    @property
    def clean(self) -> bool:
        return not (self.lost or self.twice or self.unexpected or self.keys_twice)

    def __str__(self) -> str:
        kinds = {"lost": self.lost, "twice": self.twice, "unexpected": self.unexpected}
        figures = [f"{name} {bodies.total()}" for name, bodies in kinds.items()]
        examples = [f"\n  {name}: {body}" for name, bodies in kinds.items() for body in list(bodies)[:3]]
        keys = [f"\n  two effects under {key}" for key in self.keys_twice[:3]]
        return f"{self.records} records, {', '.join(figures)}{''.join(examples + keys)}"


def compare(expected: Counter[str], found: Counter[str]) -> Verdict:
    surplus = found - expected
    twice = Counter({body: number for body, number in surplus.items() if body in expected})
    return Verdict(expected.total(), expected - found, twice, surplus - twice)


def judge(expected: Holdings, sandbox: Witness) -> Verdict:
    """Compare what the platform holds and what its witness tells with what was expected of creates and updates."""
    effects = sandbox.effects()
    stored, told = bodies(sandbox.holdings()), bodies(witnessed(effects))
    assert stored == told, f"what is stored and what happened disagree: {compare(told, stored)}"
    found = compare(bodies(expected), stored)
    return Verdict(found.records, found.lost, found.twice, found.unexpected, tuple(effective_twice(effects)))


def bodies(held: Holdings) -> Counter[str]:
    """All bodies of *held* in one multiset, each with its resource."""
    kinds = {"customer": held.customers, "product": held.products, "invoice": held.invoices}
    return Counter({f"{name} {body}": number for name, all_ in kinds.items() for body, number in all_.items()})


def witnessed(effects: Iterable[Mapping[str, Any]]) -> Holdings:
    """What must be stored after *effects*, creates and updates only, with external ids in place of ids."""
    last: dict[str, Mapping[str, Any]] = {}
    for effect in effects:
        assert effect["operation"] in {"create", "update"}, effect["operation"]
        assert (effect["operation"] == "update") == (effect["id"] in last), f"{effect['id']} was made twice, or never"
        last[effect["id"]] = effect
    names = {own_id: effect["body"].get("externalId") for own_id, effect in last.items()}
    held = Holdings()
    for effect in last.values():
        body = {name: value for name, value in effect["body"].items() if name not in GIVEN}
        if effect["resource"] == "invoice":
            items = [{**item, "productId": names[item["productId"]]} for item in body["items"]]
            held.add_invoice({**body, "customerId": names[body["customerId"]], "items": items})
        elif effect["resource"] == "order":
            held.invoices[canonical(body)] += 1  # of a 3PL, which has no ids in it
        else:
            {"customer": held.customers, "product": held.products}[effect["resource"]][canonical(body)] += 1
    return held


def effective_twice(effects: Iterable[Mapping[str, Any]]) -> list[str]:
    """The idempotency keys under which more than one thing happened."""
    return [
        key for key, number in Counter(effect["idempotencyKey"] for effect in effects).items() if key and number > 1
    ]


# ---- what was asked for


@dataclass(frozen=True, slots=True)
class Attempts:
    """How often each operation was tried, by its idempotency key; where there are none, by what tells it apart."""

    by_key: Counter[str]

    @property
    def first(self) -> int:
        return len(self.by_key)

    @property
    def resends(self) -> int:
        return self.by_key.total() - self.first

    @property
    def most(self) -> int:
        """Attempts of the operation that was tried most often."""
        return max(self.by_key.values(), default=0)

    @property
    def amplification(self) -> float:
        """Attempts for each operation: 1.0 where nothing was sent again."""
        return self.by_key.total() / self.first if self.first else 1.0

    def resent(self) -> dict[str, int]:
        """The operations that were tried again, and how often they were tried in all."""
        return {key: number for key, number in self.by_key.items() if number > 1}


def attempts(requests: Iterable[Mapping[str, Any]]) -> Attempts:
    """The attempts in the sandbox's log; what has no idempotency key (reading, mostly) is no attempt."""
    return Attempts(Counter(each["idempotencyKey"].strip('"') for each in requests if each["idempotencyKey"]))


def attempts_seen(seen: Iterable[Seen]) -> Attempts:
    """The attempts that a front saw: by key, and by method, path and body where there is none.

    Equal invoices are one entry then: their attempts are to be compared with how many there are.
    """
    writes = (each for each in seen if each.method != "GET")
    return Attempts(Counter(each.key or f"{each.method} {each.path} {digest(each.body)}" for each in writes))


def requests(sandbox: Witness, after: int = 0) -> Iterator[dict[str, Any]]:
    """Every request after the first *after* ones; fails if the sandbox no longer keeps them all."""
    while page := sandbox.request_log(after):
        assert page[0]["seq"] == after + 1, f"requests {after + 1} to {page[0]['seq'] - 1} are no longer kept"
        yield from page
        after = int(page[-1]["seq"])


def digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def bytes_by_key(seen: Iterable[Seen]) -> dict[str, set[str]]:
    """Of each idempotency key the hashes of all bodies that went out under it; one, where law 2 holds.

    A process that is killed may leave the beginning of a body behind, which is no other body.
    """
    found: dict[str, set[bytes]] = defaultdict(set)
    for each in seen:
        if each.key:
            found[each.key].add(each.body)
    return {key: {digest(body) for body in sent if not _is_begun(body, sent)} for key, sent in found.items()}


def _is_begun(body: bytes, sent: Iterable[bytes]) -> bool:
    return any(whole != body and whole.startswith(body) for whole in sent)


# ---- what was done to it


@dataclass
class Trial:
    """One run of a promise; a context manager that prints what it was, whether it held or not.

    Attributes:
        injected: Faults that really happened, by kind.
        planned: The least of each kind that makes the run a proof.
        told: Other figures to be printed.
    """

    promise: str
    seed: int = SEED
    injected: Counter[str] = field(default_factory=Counter)
    planned: Counter[str] = field(default_factory=Counter)
    told: dict[str, object] = field(default_factory=dict)
    _began: float = field(default_factory=time.monotonic)

    @property
    def random(self) -> Random:
        """A generator of this promise's own; equal each time it is asked for."""
        return Random(f"{self.seed} {self.promise}")

    def plan(self, kind: str, rate: float, chances: int) -> None:
        """Plan a fault that strikes each of *chances* at *rate*: four standard deviations below the mean is enough."""
        mean = rate * chances
        self.planned[kind] += max(1, int(mean - 4 * math.sqrt(mean)))

    def judge(self, expected: Holdings, sandbox: Witness) -> Verdict:
        """Fail if less was injected than planned, or if something is lost, done twice or never asked for."""
        found = judge(expected, sandbox)
        self.told["verdict"] = found
        assert not (missing := self.planned - self.injected), f"planned and not injected: {dict(missing)}"
        assert found.clean, str(found)
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        faults = ", ".join(f"{kind} {number}" for kind, number in sorted(self.injected.items())) or "none"
        told = "; ".join(f"{name} {value}" for name, value in self.told.items())
        seconds = time.monotonic() - self._began
        sys.stdout.write(f"{self.promise}: seed {self.seed}; injected {faults}; {told}; {seconds:.1f} s\n")
