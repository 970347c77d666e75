"""Whatever refers to whatever, in whatever order it comes: everything stands in the end, with few requests."""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.chaos.chance import chaos_seed
from tests.chaos.graphs import NEVER, Expected, ScheduledRun, stand, two_nights
from tests.e2e.warehouse import PERSON, Site, ask, expected, open_site

from crossdock.sandbox import SandboxServer

ACCOUNTS = """\
      accounts:
        mode: append
        files: "out/ACC_*"
        format: {kind: delimited, delimiter: ";"}
        key: [CODE]
        resource: ledger_account
        map:
          code: CODE
          name: NAME
          type: TYPE
          parentId: {ref: ledger_account, key: PARENT}
"""
PATH = "/api/v1/finance/ledger-accounts"


@dataclass(slots=True)
class Figures:
    """What was done, over all graphs."""

    graphs: int = 0
    accounts: int = 0
    circles: int = 0
    missing: int = 0
    moved: int = 0
    late_invoices: int = 0
    writes: int = 0
    most_writes: int = 0


def converges(
    folder: Path, platform: SandboxServer, monkeypatch: pytest.MonkeyPatch, *, graphs: int, nodes: int
) -> Figures:
    """Bring *graphs* random graphs of *nodes* accounts to a platform, in two nights each, and judge by the platform."""
    figures = Figures()
    for number in range(graphs):
        rng = Random(f"{chaos_seed()} graph {number}")
        place = folder / str(number)
        place.mkdir(parents=True)
        with open_site(place, platform, monkeypatch) as site:
            _one_graph(site, rng, nodes, figures)
    figures.graphs = graphs
    assert figures.circles >= graphs, f"too few circles were drawn: {figures}"
    assert figures.missing >= graphs, f"too few parents were left out: {figures}"
    assert figures.late_invoices >= graphs, f"too few invoices came before their parents: {figures}"
    return figures


def _one_graph(site: Site, rng: Random, nodes: int, figures: Figures) -> None:
    site.config.write_text(site.config.read_text().replace("in_flight: 4", "in_flight: 16") + ACCOUNTS)
    site.init()
    truth, known = Expected(), dict[str, str]()
    customers, products, rows = set[str](), set[str](), list[str]()
    for number, night in enumerate(two_nights(rng, nodes)):
        _export(site, number, night)
        known |= night.accounts
        truth = stand(truth, known)
        customers |= set(night.customers)
        products |= set(night.products)
        rows += _invoice_rows(night)
        planned = site.run("plan", "--json", "--limit", "100000").json
        already = len(site.effects())
        report = site.sync().json
        effects = site.effects()[already:]
        _judge_accounts(site, truth, effects)
        _judge_plan(planned, report, effects)
        ready = [row for row in rows if _ready(row, rows, customers, products)]
        assert site.invoices() == expected("\n".join([INVOICES_HEAD, *ready]))
        figures.accounts += len(truth.fresh)
        figures.circles += len(truth.circles)
        figures.missing += len(truth.waiting)
        figures.moved += truth.moved
        figures.late_invoices += len({row.split(";")[0] for row in rows} - {row.split(";")[0] for row in ready})
        figures.most_writes += truth.most_writes
        figures.writes += sum(effect["resource"] == "ledger_account" for effect in effects)
        again = site.sync().json
        assert again["requests"] == 0, again
    _export(site, 9, ScheduledRun(dict(reversed(known.items())), [*customers], [*products], {}))
    again = site.sync().json
    assert again["requests"] == 0, f"the same rows under another name and in another order: {again}"


def _judge_accounts(site: Site, truth: Expected, effects: list[dict[str, Any]]) -> None:
    ours = [effect for effect in effects if effect["resource"] == "ledger_account"]
    created = Counter(_key(e["body"]) for e in ours if e["operation"] == "create")
    assert created == Counter(truth.fresh)
    assert len(ours) <= truth.most_writes, f"{len(ours)} writes, {truth.most_writes} nodes and back edges"
    opened = [_key(e["body"]) for e in ours if e["operation"] == "create" and not e["body"].get("parentId")]
    for circle in truth.circles:
        assert len(circle & set(opened)) == 1, f"{circle} was opened by {circle & set(opened)}"
    accounts = _stored(site)
    keys = {body["id"]: _key(body) for body in accounts}
    assert {_key(body): keys.get(body.get("parentId"), "") for body in accounts} == truth.parents
    listed = site.listed("--state", "waiting", "--limit", "100000")
    assert {item["key"] for item in listed if item["stream"] == "wms.accounts"} == truth.waiting


def _judge_plan(planned: dict[str, Any], report: dict[str, Any], effects: list[dict[str, Any]]) -> None:
    told = planned["operations"]
    done = Counter(effect["operation"] for effect in effects)
    assert report["balanced"]
    assert {kind: told.get(kind, 0) for kind in ("create", "update", "resend")} == {
        "create": done["create"],
        "update": done["update"],
        "resend": 0,
    }
    assert sum(told.values()) == report["requests"] == len(effects)
    creates = Counter((each["stream"], each["key"]) for each in planned["shown"] if each["do"] == "create")
    assert creates.total() == done["create"]
    assert all(number == 1 for number in creates.values()), "a plan announces a record twice"


def _key(body: dict[str, Any]) -> str:
    return str(body["externalId"]).removeprefix("wms:")


def _stored(site: Site) -> list[dict[str, Any]]:
    """All accounts of the site's tenant, read with a key of our own."""
    headers = {
        "authorization": f"Bearer {site.platform.sandbox.new_key(site.tenant)}",
        "x-tenant-slug": site.tenant,
    }
    found: list[dict[str, Any]] = []
    cursor = ""
    while True:
        netloc = urlsplit(site.platform.base_url).netloc
        page = json.loads(ask(netloc, "GET", f"{PATH}?limit=1000{cursor}", headers=headers).body)
        found += [
            body for body in page["data"] if body["externalId"].startswith("wms:")
        ]  # the others were there before
        if page["nextCursor"] is None:
            return found
        cursor = f"&cursor={page['nextCursor']}"


INVOICES_HEAD = "INVNO;CUSTNO;SKU;QTY;PRICE;CURRENCY"


def _invoice_rows(night: ScheduledRun) -> list[str]:
    return [
        f"{number};{customer};{sku};{line + 1};{int(number, 36) % 97}.25;EUR"
        for number, (customer, skus) in night.invoices.items()
        for line, sku in enumerate(skus)
    ]


def _ready(row: str, rows: list[str], customers: set[str], products: set[str]) -> bool:
    number, customer = row.split(";")[:2]
    skus = {other.split(";")[2] for other in rows if other.split(";")[0] == number}
    return customer in customers and skus <= products


def _export(site: Site, number: int, night: ScheduledRun) -> None:
    accounts = [f"{code};Account {code};asset;{parent}" for code, parent in night.accounts.items()]
    site.export(f"ACC_{number}.csv", "\n".join(["CODE;NAME;TYPE;PARENT", *accounts, ""]))
    site.export(f"CUST_{number}.csv", "\n".join(["CUSTNO;NAME", *(f"{c};{PERSON} {c}" for c in night.customers), ""]))
    site.export(f"PROD_{number}.csv", "\n".join(["SKU;NAME;PRICE", *(f"{p};P {p};1.5" for p in night.products), ""]))
    if night.invoices:
        site.export(f"INV_{number}.csv", "\n".join([INVOICES_HEAD, *_invoice_rows(night), ""]))


def test_every_graph_converges(tmp_path: Path, platform: SandboxServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chains, trees, loops, circles, late and missing parents end as they should, with a write a node and back edge."""
    began = time.monotonic()
    figures = converges(tmp_path, platform, monkeypatch, graphs=2, nodes=40)
    print(f"\nconverges: seed {chaos_seed()}, {figures}, {time.monotonic() - began:.1f} s")


def test_a_long_chain_backwards_costs_one_write_each(
    tmp_path: Path, platform: SandboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worst order of a chain, every parent after its child, costs one request an account, and one for a circle."""
    with open_site(tmp_path, platform, monkeypatch) as site:
        site.config.write_text(site.config.read_text() + ACCOUNTS)
        site.init()
        chain = {f"A{n}": f"A{n + 1}" for n in range(60)} | {"A60": "A50"}
        _export(site, 1, ScheduledRun(chain, [], [], {}))
        report = site.sync().json
        assert (report["requests"], report["streams"]["wms.accounts"]["records"]["created"]) == (62, 61)
        assert NEVER not in str(site.effects())
        assert {_key(b): b.get("parentId") is None for b in _stored(site)} == dict.fromkeys(chain, False)
