"""Mixed nights: whatever an export, an operator and the platform do, the plan says what the sync then does.

The short form is in `tests.chaos.test_nights`, the long one in `tests.long.test_nights`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.e2e.warehouse import BREAK, FORWARD, LOSE, Fate, Front, Reply, Seen, Site, open_site
from tests.plan_and_sync import differences

from crossdock.sandbox import SandboxServer

CONFIG = """\
platform:
  base_url: {base_url}
  tenant: {tenant}
  auth: {{kind: api_key, token: env:CROSSDOCK_API_KEY}}
  retry: {{attempts: 2, base_s: 0.01, give_up_after_s: 0.1}}
  lookup: {{enabled: {lookup}, settle_s: 0.01}}
  after_ambiguous: {{invoice: park}}
  in_flight: 4
state: {state}
connections:
  wms:
    kind: folder_warehouse
    path: served/out
    settle_s: 0
    sources:
      heads: {{files: "HEAD_*", format: {{kind: delimited, delimiter: ";"}}}}
      lines: {{files: "LINE_*", format: {{kind: delimited, delimiter: ";"}}}}
      regions: {{files: "REG_*", format: {{kind: delimited, delimiter: ";"}}}}
    streams:
      accounts:
        mode: snapshot
        files: "ACC_*"
        format: {{kind: delimited, delimiter: ";"}}
        key: [CODE]
        duplicates: last
        resource: ledger_account
        map: {{code: CODE, name: NAME, type: TYPE, parentId: {{ref: ledger_account, key: PARENT}}}}
      customers:
        mode: append
        files: "CUST_*"
        format: {{kind: delimited, delimiter: ";"}}
        key: [CUSTNO]
        order_by: [{{column: VER, as: decimal}}]
        changes: {{at_most: 3, at_most_percent: 25}}
        skip: {{test_data: {{field: NAME, starts_with: TEST}}}}
        resource: customer
        map: {{name: NAME, currency: CURRENCY}}
      products:
        mode: snapshot
        files: "PROD_*"
        format: {{kind: delimited, delimiter: ";", trailer: {{prefix: "END;", count: 1}}}}
        key: [SKU]
        on_gone: delete
        gone: {{at_most: 3, at_most_percent: 40}}
        resource: product
        map: {{sku: SKU, name: NAME, unitPrice: {{from: PRICE, as: decimal}}}}
      bins:
        mode: snapshot
        files: "BIN_*"
        format: {{kind: delimited, delimiter: ";", trailer: {{prefix: "END;", count: 1}}}}
        key: [BIN]
        on_gone: archive
        gone: {{at_most: 2, at_most_percent: 50}}
        resource: warehouse_bin
        map: {{code: BIN, warehouse: {{const: Main}}, zone: ZONE}}
      lots:
        mode: append
        files: "LOT_*"
        format: {{kind: delimited, delimiter: ";"}}
        key: [LOT]
        resource: inventory_lot
        map:
          productId: {{ref: product, key: SKU}}
          lotNumber: LOT
          binId: {{ref: warehouse_bin, key: BIN}}
          quantity: {{from: QTY, as: decimal}}
      orders:
        source: heads
        mode: append
        key: [ORDER]
        skip: {{cancelled: {{field: STATUS, equals: X}}}}
        join: {{lines: {{source: lines, on: [ORDER], key: [LINE]}}}}
        lookup: {{region: {{source: regions, on: [REGION]}}}}
        changes: {{at_most: 4, at_most_percent: 40}}
        resource: order
        map:
          customerId: {{ref: customer, key: CUSTNO}}
          currency: region.CURRENCY
          placedAt: {{from: AT, as: instant, timezone: UTC}}
          items:
            of: lines
            each:
              productId: {{ref: product, key: SKU}}
              quantity: {{from: QTY, as: decimal}}
              unitPrice: {{from: QTY, as: decimal}}
      invoices:
        mode: append
        files: "INV_*"
        format: {{kind: delimited, delimiter: ";"}}
        key: [INVNO]
        group_by: [INVNO]
        resource: invoice
        map:
          customerId: {{ref: customer, key: CUSTNO}}
          currency: {{const: EUR}}
          items:
            each:
              productId: {{ref: product, key: SKU}}
              quantity: {{from: QTY, as: decimal}}
              unitPrice: {{from: QTY, as: decimal}}
"""
HEADS = {
    "ACC": "CODE;NAME;TYPE;PARENT",
    "CUST": "CUSTNO;NAME;CURRENCY;VER",
    "PROD": "SKU;NAME;PRICE",
    "BIN": "BIN;ZONE",
    "LOT": "LOT;SKU;BIN;QTY",
    "INV": "INVNO;CUSTNO;SKU;QTY",
    "HEAD": "ORDER;CUSTNO;REGION;STATUS;AT",
    "LINE": "ORDER;LINE;SKU;QTY",
    "REG": "REGION;CURRENCY",
}
TRAILER = {"PROD", "BIN"}
LEAVES = ("/inventory/lots", "/finance/invoices")
RESTORED = 27  # the night before which the state is declared a restored backup
TERMS = (
    "read", "gone", "carried_over", "created", "updated", "deleted", "unchanged", "suppressed", "rejected", "replaced",
    "ignored", "dropped", "carried_on",
)  # fmt: skip
"""Those whose totals are printed for each night."""


class Exports:
    """A warehouse's files: new, repeated, shorter, damaged, and of rows that are bad or lack a key."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._accounts = {f"A{n}": self._parent(n) for n in range(12)}
        self._products = {f"P{n}": n for n in range(10)}
        self._bins = {f"B{n}": "cold" for n in range(6)}
        self._invoices = self._lots = self._orders = 0
        self._written: dict[str, list[str]] = {kind: [] for kind in HEADS}
        self.done: Counter[str] = Counter()

    def night(self) -> Iterator[tuple[str, str, bool]]:
        """The kind and content of each file of a night, and whether it is damaged."""
        for kind, head in HEADS.items():
            way = self._random.choice(("new",) * 6 + ("none", "repeated", "damaged"))
            way = "new" if not self._written[kind] else way
            self.done[f"{way} file"] += 1
            if way == "none":
                continue
            if way == "repeated":
                yield kind, self._random.choice(self._written[kind]), False
                continue
            rows = getattr(self, f"_new_{kind.lower()}")()
            self._random.shuffle(rows)
            if self._random.random() < 0.4:
                rows.append(";" + rows[0].partition(";")[2])
                self.done["row without a key"] += 1
            content = "\n".join([head, *rows, *([f"END;{len(rows)}"] if kind in TRAILER else []), ""])
            if way == "damaged":
                content = content.replace(";", "#", 1) if self._random.random() < 0.5 else content + 'x;"\n'
            else:
                self._written[kind].append(content)
            yield kind, content, way == "damaged"

    def _some(self, names: list[str], share: float = 0.5) -> list[str]:
        return [name for name in names if self._random.random() < share] or names[:1]

    def _parent(self, number: int) -> str:
        """None, an earlier or a later one, itself, one that nobody exports."""
        kind = self._random.choice(("", "tree", "tree", "any", "any", "self", "never"))
        names = {"tree": number // 2, "any": self._random.randrange(16), "self": number, "never": 900 + number}
        return f"A{names[kind]}" if kind else ""

    def _new_acc(self) -> list[str]:
        for _ in range(3):
            number = self._random.randrange(16)
            self._accounts[f"A{number}"] = self._parent(number)
        if self._random.random() < 0.5:
            del self._accounts[self._random.choice(sorted(self._accounts))]
        types = ("asset",) * 9 + ("nonsense",)
        return [f"{code};Account;{self._random.choice(types)};{parent}" for code, parent in self._accounts.items()]

    def _new_cust(self) -> list[str]:
        names = self._some([f"C{n}" for n in range(14)])
        rows = []
        for name in names:
            currency = self._random.choice(("EUR",) * 8 + ("E",))
            title = self._random.choice(("Amsel", "Meise", "Star", "TEST"))
            rows.append(f"{name};{title};{currency};{self._random.randrange(9)}")
        return rows

    def _new_prod(self) -> list[str]:
        for _ in range(self._random.randrange(2, 8)):
            self._products[f"P{self._random.randrange(16)}"] = self._random.randrange(9)
        gone = self._random.choice((0, 0, 0, 1, 2, 6))
        for sku in self._random.sample(sorted(self._products), min(gone, len(self._products) - 3)):
            del self._products[sku]
        prices = {sku: "x" if self._random.random() < 0.05 else f"{price}.50" for sku, price in self._products.items()}
        return [f"{sku};Thing;{price}" for sku, price in prices.items()]

    def _new_bin(self) -> list[str]:
        self._bins[f"B{self._random.randrange(9)}"] = self._random.choice(("cold", "warm"))
        if len(self._bins) > 3 and self._random.random() < 0.5:
            del self._bins[self._random.choice(sorted(self._bins))]
        return [f"{code};{zone}" for code, zone in self._bins.items()]

    def _new_lot(self) -> list[str]:
        self._lots += 3
        again = [self._random.randrange(self._lots) for _ in range(2)]
        numbers = dict.fromkeys([*again, *range(self._lots - 3, self._lots)])
        return [f"L{n};P{n % 17};B{n % 10};{self._random.choice(('1', '2', 'x'))}" for n in numbers]

    def _new_inv(self) -> list[str]:
        self._invoices += 3
        again = [self._random.randrange(self._invoices)] if self._random.random() < 0.4 else []
        numbers = dict.fromkeys([*again, *range(self._invoices - 3, self._invoices)])
        return [f"{n};C{n % 16};P{(n + line) % 16};{self._random.randint(1, 2)}" for n in numbers for line in range(2)]

    def _new_head(self) -> list[str]:
        """Some orders have no lines yet, and some come again, changed."""
        self._orders += 3
        numbers = dict.fromkeys([self._random.randrange(self._orders), *range(self._orders - 3, self._orders)])
        at, status = "2026-03-01T12:00:00", self._random.choice(("", "", "X", "open"))
        return [f"{n};C{n % 16};R{self._random.randrange(4)};{status};{at}" for n in numbers]

    def _new_line(self) -> list[str]:
        """Of the orders of this night, of an earlier and of a later one."""
        last = self._orders
        numbers = dict.fromkeys([self._random.randrange(last + 4), *range(max(0, last - 3), last)])
        return [f"{n};{line};P{(n + line) % 16};{self._random.choice('12')}" for n in numbers for line in range(2)]

    def _new_reg(self) -> list[str]:
        return [f"R{n};{self._random.choice(('EUR', 'EUR', 'USD', 'E'))}" for n in range(3)]


@dataclass(slots=True)
class Night:
    """What a plan said and its sync did.

    Attributes:
        happened: Before the plan.
        said: Totals of the plan over all streams, by term.
        done: The same of the sync.
    """

    number: int
    happened: str
    said: Counter[str]
    done: Counter[str]
    differences: list[str]


@dataclass(slots=True)
class Nights:
    """Some nights of one warehouse."""

    site: Site
    front: Front
    random: Random
    exports: Exports
    happened: Counter[str] = field(default_factory=Counter)
    damaged: list[Path] = field(default_factory=list)

    def night(self, number: int) -> Night:
        happened = self._before(number)
        self._export(f"{number:03}_b")
        planned = self.site.run("plan", "--json", "--limit", "100000").json
        known = self._refused()
        unverified = self.site.listed("--state", "unverified", "--limit", "1")  # which a plan says
        self.front.fate = self._refusing(number) if self.random.random() < 0.2 else lambda _: FORWARD
        sent_before = len(self.front.seen)
        report = self.site.sync().json
        looked_up = any(seen.method == "GET" for seen in self.front.seen[sent_before:])
        self.front.fate = lambda _: FORWARD
        refused = Counter(stream for stream, *_ in self._refused() - known)
        happened += ["refused by the platform"] if refused.total() else []
        self.happened.update(happened)
        found = differences(planned, report, refused, looked_up=looked_up)
        found += self._listing(planned) if not refused else []
        found = [] if unverified else found
        return Night(number, ", ".join(happened), _totals(planned), _totals(report), found)

    def _export(self, name: str) -> None:
        """Write the files of a night; those that were damaged before are gone by then."""
        while self.damaged:
            self.damaged.pop().unlink()
        for kind, content, is_damaged in self.exports.night():
            path = self.site.export(f"{kind}_{name}", content)
            self.damaged += [path] * is_damaged

    def _before(self, number: int) -> list[str]:
        """What happened since the last night."""
        done = []
        if number == RESTORED:
            done += ["a restored backup"] * (self.site.run("state", "restored").code == 0)
        if number and self.random.random() < 0.4:
            done.append("an interrupted sync")
            self._export(f"{number:03}_a")
            self.front.fate = self._failing(number, self.random.choice((0.15, 0.7)))
            self.site.sync()
            self.front.fate = lambda _: FORWARD
        chosen = self.random.choice(("", "", "drop", "replay", "settle", "approve"))
        listed = self.site.listed("--limit", "100000")
        if chosen == "drop" and (found := [each for each in listed if each["key"]]):
            for each in self.random.sample(found, min(2, len(found))):
                done += ["a drop"] * (self.site.run("records", "drop", each["stream"], each["key"]).code == 0)
        elif chosen == "replay":
            done += ["a replay"] * (self.site.run("records", "replay", "--json").code in {0, 1})
        elif chosen == "settle" and (found := [each for each in listed if each["state"] == "in-doubt"]):
            for each in found:
                place = each["stream"], each["key"]
                done += ["a decision"] * (self.site.run("records", "resolve", *place, "--not-delivered").code == 0)
        elif chosen == "approve":
            for each in self.site.run("approve", "--json").json:
                done += ["an approval"] * (self.site.run("approve", each["stream"], str(each["number"])).code == 0)
        return done

    def _failing(self, number: int, share: float) -> Callable[[Seen], Fate]:
        def fate(seen: Seen) -> Fate:
            random = Random(f"{number} {seen.method} {seen.path} {seen.key}")
            return random.choice((LOSE, BREAK, Reply(503))) if random.random() < share else FORWARD

        return fate

    def _refusing(self, number: int) -> Callable[[Seen], Fate]:
        """The platform refuses some lots and invoices, to which nothing refers."""

        def fate(seen: Seen) -> Fate:
            is_leaf = any(path in seen.path for path in LEAVES) and seen.method in {"POST", "PATCH"}
            if not is_leaf or Random(f"{number} {seen.key}").random() > 0.5:
                return FORWARD
            return Reply(422, b'{"title": "no", "errors": [{"pointer": "#/quantity", "detail": "no"}]}')

        return fate

    def _refused(self) -> set[tuple[str, str, str]]:
        """Stream, key and time of each record that the platform has rejected."""
        listed = self.site.listed("--state", "rejected", "--limit", "100000")
        return {(each["stream"], each["key"], each["since"]) for each in listed if each["stage"] == "delivery"}

    def _listing(self, planned: dict[str, Any]) -> list[str]:
        """A plan names each record once, besides what an earlier run left of it, and what waits as the state does."""
        shown = [each for each in planned["shown"] if each["do"] not in {"send", "resend"} and each["key"]]
        named = Counter((each["stream"], each["key"]) for each in shown)
        found = [f"{name} is named {number} times" for name, number in named.items() if number > 1]
        listed = self.site.listed("--state", "waiting", "--limit", "100000")
        waiting = {(each["stream"], each["key"]) for each in listed if each["stream"] not in planned["errors"]}
        in_doubt = {(each["stream"], each["key"]) for each in shown if each["do"] == "doubt"}
        said = {(each["stream"], each["key"]) for each in shown if each["do"] == "wait"}
        said = {place for place in said if place[0] not in planned["errors"]}
        found += [f"{place} waits, or not" for place in (said ^ waiting) - in_doubt]
        accounts = {name: account for name, account in planned["streams"].items() if name not in planned["errors"]}
        without_key = sum(account["rows"]["rejected"] for account in accounts.values())
        told = sum(not each["key"] and each["stream"] in accounts for each in planned["shown"])
        return found + ([] if told == without_key else [f"{told} of {without_key} rows without a key are shown"])


def _totals(document: dict[str, Any]) -> Counter[str]:
    totals: Counter[str] = Counter()
    for account in document["streams"].values():
        totals["rows"] += account["rows"]["read"]
        totals["rejected rows"] += account["rows"]["rejected"]
        totals.update({term: account["records"][term] for term in TERMS})
    totals["requests"] = document["forecast"]["requests"] if "forecast" in document else document["requests"]
    return totals


@contextmanager
def open_nights(
    folder: Path, platform: SandboxServer, monkeypatch: pytest.MonkeyPatch, seed: int, state: str = "sqlite:///state.db"
) -> Iterator[Nights]:
    """A warehouse before its first night, with an empty platform and an empty state.

    Args:
        seed: With an even one, records cannot be looked up on the platform.
    """
    with open_site(folder, platform, monkeypatch) as site, Front(platform.base_url) as front:
        facts = {"base_url": front.base_url, "tenant": site.tenant, "lookup": "true" if seed % 2 else "false"}
        site.config.write_text(CONFIG.format(**facts, state=state))
        site.init()
        random = Random(seed)
        yield Nights(site, front, random, Exports(random))


def table(nights: list[Night]) -> str:
    """One line for each night: each number as the plan said it and the sync did it."""
    names = ("rows", "rejected rows", *TERMS, "requests")
    lines = [" | ".join(("night", *names, "before the plan"))]
    for night in nights:
        numbers = (f"{night.said[name]}/{night.done[name]}" for name in names)
        lines.append(" | ".join((str(night.number), *numbers, night.happened)))
    return "\n".join(lines)
