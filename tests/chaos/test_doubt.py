"""Answers lost on platforms without idempotency keys: nothing twice, nothing lost, and doubt where doubt is."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import pytest
from tests.chaos.chance import chaos_seed
from tests.e2e.warehouse import CUSTOMERS, PRODUCTS, Site, ask, expected, open_site

from crossdock.sandbox import SandboxServer, SandboxSettings

FAULTS = {"lost_answer": 0.05, "reset_before": 0.05, "cut_body": 0.03, "error_after_commit": 0.02}
ORDERS = """\
      orders:
        mode: append
        files: "out/ORD_*"
        format: {kind: delimited, delimiter: ";"}
        key: [ORDNO]
        group_by: [ORDNO]
        resource: order
        map:
          customerId: {ref: customer, key: CUSTNO}
          currency: {const: EUR}
          placedAt: {from: AT, as: instant, format: "%Y-%m-%d %H:%M", timezone: UTC}
          items:
            each:
              productId: {ref: product, key: SKU}
              quantity: {from: QTY, as: decimal}
              unitPrice: {const: 1}
"""


@dataclass(slots=True)
class Figures:
    """What was done. *injected* is what the platform says that it did to us, by name."""

    records: int
    injected: dict[str, int]
    in_doubt: int
    happened: int
    lost: int
    twice: int
    requests: int


@contextmanager
def site_of(
    folder: Path, monkeypatch: pytest.MonkeyPatch, profile: Literal["bare", "no-idempotency"]
) -> Iterator[Site]:
    """A warehouse before a platform that knows no keys, with customers and products delivered to it in peace."""
    settings = SandboxSettings(rate_per_min=600_000, burst=100_000, profile=profile)
    with SandboxServer(folder / "platform", settings) as platform, open_site(folder, platform, monkeypatch) as site:
        site.edit("retry: {attempts: 2, base_s: 0.01, give_up_after_s: 0.1}", "retry: {base_s: 0.01}")
        site.edit("in_flight: 4", "in_flight: 16\n  idempotency: {enabled: false}")
        if profile == "bare":
            site.edit("lookup: {settle_s: 0.05}", "lookup: {enabled: false}\n  conditional_updates: false")
        site.config.write_text(site.config.read_text() + ORDERS)
        site.init()
        site.export("CUST_1.csv", CUSTOMERS)
        site.export("PROD_1.csv", PRODUCTS)
        assert site.sync().code == 0
        yield site


def inject(site: Site, route: str) -> None:
    """Let the platform misbehave on *route*; with an empty one let it behave again."""
    faults = [{"name": name, "probability": p, "route": route} for name, p in FAULTS.items() if route]
    body = json.dumps({"faults": faults, "seed": chaos_seed()}).encode()
    assert _sandbox(site, "POST", "/_sandbox/faults", body)["seed"] == chaos_seed()


def injected(site: Site) -> dict[str, int]:
    """By the platform's own account."""
    return {each["name"]: each["struck"] for each in _sandbox(site, "GET", "/_sandbox/faults")["faults"]}


def _sandbox(site: Site, method: str, path: str, body: bytes = b"") -> dict[str, Any]:
    answer = ask(urlsplit(site.platform.base_url).netloc, method, path, body)
    assert answer.status == 200, answer.body
    document: dict[str, Any] = json.loads(answer.body)
    return document


def parked(site: Site, *, invoices: int) -> Figures:
    """Send invoices that nobody can ask for again, and decide about each in doubt by what really happened."""
    rows = [f"N{n};C{1 + n % 2};P{1 + n % 2};{n + 1};1.50;EUR" for n in range(invoices)]
    text = "\n".join(["INVNO;CUSTNO;SKU;QTY;PRICE;CURRENCY", *rows, ""])
    site.export("INV_1.csv", text)
    inject(site, "POST invoice")
    report = site.sync().json
    struck = injected(site)
    inject(site, "")
    unsettled = {item["key"] for item in site.listed("--state", "in-doubt", "--limit", "100000")}
    made = {int(Decimal(e["body"]["items"][0]["quantity"])): e["id"] for e in site.effects("invoice")}
    figures = Figures(
        records=invoices,
        injected=struck,
        in_doubt=len(unsettled),
        happened=sum(int(key[1:]) + 1 in made for key in unsettled),
        lost=sum(n + 1 not in made and f"N{n}" not in unsettled for n in range(invoices)),
        twice=len(site.effects("invoice")) - len(made),
        requests=report["requests"],
    )
    _enough(figures, invoices)
    assert (figures.lost, figures.twice) == (0, 0), figures
    assert figures.in_doubt == sum(struck.values()) == report["streams"]["wms.invoices"]["records"]["carried_on"]
    assert figures.requests == invoices, "one that is in doubt was sent again"
    again = site.sync().json
    assert again["requests"] == 0, f"what is in doubt was touched: {again}"
    for key in sorted(unsettled):
        number = int(key[1:]) + 1
        word = ("--delivered-as", made[number], "--yes") if number in made else ("--not-delivered",)
        assert site.run("records", "resolve", "wms.invoices", key, *word).code == 0
    end = site.sync()
    assert (end.code, end.json["requests"]) == (0, figures.in_doubt - figures.happened)
    assert site.listed() == []
    assert site.invoices() == expected(text)
    last = site.sync()
    assert (last.code, last.json["requests"]) == (0, 0)
    return figures


def verified(site: Site, *, orders: int) -> Figures:
    """Send orders that can be looked up; every doubt is gone at the end."""
    rows = [f"N{n};C{1 + n % 2};P{1 + n % 2};{n + 1};2026-01-02 03:04" for n in range(orders)]
    site.export("ORD_1.csv", "\n".join(["ORDNO;CUSTNO;SKU;QTY;AT", *rows, ""]))
    inject(site, "order")
    report = site.sync()
    struck = injected(site)
    inject(site, "")
    names = Counter(site.names("order"))
    figures = Figures(
        records=orders,
        injected=struck,
        in_doubt=len(site.listed("--state", "in-doubt", "--limit", "100000")),
        happened=len(names),
        lost=sum(f"wms:N{n}" not in names for n in range(orders)),
        twice=names.total() - len(names),
        requests=report.json["requests"],
    )
    _enough(figures, orders)
    assert (figures.in_doubt, figures.lost, figures.twice, report.code) == (0, 0, 0, 0), (figures, report.out)
    assert {effect["operation"] for effect in site.effects("order")} == {"create"}
    last = site.sync()
    assert (last.code, last.json["requests"]) == (0, 0)
    return figures


def _enough(figures: Figures, sent: int) -> None:
    planned = 0.4 * sent * sum(FAULTS.values())
    assert sum(figures.injected.values()) >= planned, f"seed {chaos_seed()}: too few faults, {planned:.0f}: {figures}"


def test_invoices_in_doubt_are_as_many_as_answers_were_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without keys and look-ups each ambiguous answer is one in doubt, never sent again; a person settles them all."""
    began = time.monotonic()
    with site_of(tmp_path, monkeypatch, "bare") as site:
        figures = parked(site, invoices=150)
    print(f"\ndoubt, parked: seed {chaos_seed()}, {figures}, {time.monotonic() - began:.1f} s")


def test_orders_in_doubt_are_looked_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without keys but with look-ups no doubt is left, nothing is there twice, nothing is lost."""
    began = time.monotonic()
    with site_of(tmp_path, monkeypatch, "no-idempotency") as site:
        figures = verified(site, orders=120)
    print(f"\ndoubt, verified: seed {chaos_seed()}, {figures}, {time.monotonic() - began:.1f} s")
