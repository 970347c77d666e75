"""A bicycle wholesaler with ten nights of exports, a shop that sends webhooks, and what an operator asks about them."""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import takewhile
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
import yaml
from tests.chaos import processes
from tests.chaos.listen_stage import body_of, new_secret, signed
from tests.chaos.processes import CROSSDOCK
from tests.e2e.warehouse import PERSON, Result, Site
from tests.partners.partner_server import PartnerAnswer, PartnerRequest, PartnerServer, serving
from tests.partners.versioned_shop import VersionedShop, connection
from tests.servers import free_port
from tests.waiting import eventually

from crossdock.config.project import project

TABLE = Path(__file__).parents[2] / "docs" / "how_to" / "fix" / "morning_questions.md"
SEED, PARTS, SHOPS = 20260301, 40, 30
JOBS = """
nightly:
  streams: [wms.customers, wms.products, wms.invoices]
  schedule: {time_zone: UTC, at: "00:00", days: [mon, tue, wed, thu, fri, sat, sun]}
"""
BINS = """
mode: append
files: "out/BIN_*"
format: {kind: delimited, delimiter: ";"}
key: [CODE]
resource: warehouse_bin
map: {code: CODE, warehouse: HALL, capacity: {from: CAPACITY, as: decimal}}
"""


class Shop(VersionedShop):
    """Refuses the records at its paths `failing` for good."""

    def sells(self) -> None:
        """Two orders of a customer for a part; the second cannot be fetched."""
        self.put_customer("C1")
        self.put_product("P1")
        for key in ("O1", "O2"):
            self.put_order(key, "C1", "P1")
        self.failing.add("/orders/O2")

    def answer(self, request: PartnerRequest) -> PartnerAnswer:
        return PartnerAnswer(403) if request.path in self.failing else super().answer(request)


class Wholesaler:
    """Its exports are the same ones each time, and its config has a job, a migration of bins and a shop.

    Attributes:
        today: The last night's date.
        prices: Of the parts, by SKU.
        amount: Of all invoices whose rows are in order.
    """

    def __init__(self, site: Site, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
        self.site, self._random, self._number, self._night = site, random.Random(SEED), 1000, 0
        self.today = datetime.now(UTC).date()
        self.prices = {f"PART-{part:03}": Decimal(self._random.randint(100, 99_999)) / 100 for part in range(PARTS)}
        self.shops = [f"SHOP-{shop:03}" for shop in range(SHOPS)]
        self.amount, self.secret = Decimal(0), new_secret()
        monkeypatch.setenv("SHOP_SECRET", self.secret)
        config = yaml.safe_load(site.config.read_text())
        streams = config["connections"]["wms"]["streams"]
        streams["customers"]["skip"] = {"test_data": {"field": "CUSTNO", "starts_with": "TEST"}}
        streams["products"] |= {"mode": "snapshot", "on_gone": "delete", "required": True}
        streams["products"]["format"]["trailer"] = {"prefix": "TRL;", "count": 1}
        streams["bins"] = yaml.safe_load(BINS)
        config["connections"]["shop"] = connection(url, ["env:SHOP_SECRET"])
        del config["connections"]["shop"]["streams"]["invoices"]
        del config["connections"]["shop"]["webhooks"]["hints"][-1]
        config["jobs"] = yaml.safe_load(JOBS)
        config["migration"] = {"name": "halls", "waves": {"bins": {"streams": ["wms.bins"]}}}
        self._write(config)

    def _write(self, config: dict[str, Any]) -> None:
        self.site.config.write_text(yaml.safe_dump(config, sort_keys=False))

    @contextmanager
    def configured(self, change: Callable[[dict[str, Any]], object]) -> Iterator[None]:
        """The config with a *change*, for a while."""
        before = self.site.config.read_text()
        config = yaml.safe_load(before)
        change(config)
        self._write(config)
        yield
        self.site.config.write_text(before)

    # ---- nights

    def date(self, night: int) -> date:
        return self.today - timedelta(days=10 - night)

    def run(self, *, code: int) -> None:
        """The run of this night."""
        done = self.site.run("schedule", "--once", str(self.date(self._night)))
        assert done.code == code, f"night {self._night}: exit {done.code}\n{done.out}{done.err}"

    def night(self, **texts: str) -> None:
        """The next night, with a file of each of *texts*: customers, products, invoices, bins."""
        self._night += 1
        for name, text in texts.items():
            self.export(name, text)

    def export(self, name: str, text: str, version: str = "") -> None:
        self.site.export(self.file(name, version), text)

    def file(self, name: str, version: str = "", *, night: int = 0) -> str:
        """The name of a file of this night, or of another one."""
        start = {"customers": "CUST", "products": "PROD", "invoices": "INV", "bins": "BIN"}[name]
        return f"{start}_{night or self._night:02}{version}.csv"

    def withdraw(self, *names: str) -> None:
        """Remove this night's files."""
        for name in names:
            (self.site.out / self.file(name)).unlink()

    # ---- exports

    def customers(self, *more: str) -> str:
        return "CUSTNO;NAME\n" + "".join(f"{shop};{PERSON} {shop}\n" for shop in (*self.shops, *more))

    def products(self, number: int = PARTS, *, counted: int | None = None) -> str:
        """The first *number* parts, and a trailer with their number, or *counted*."""
        rows = [f"{sku};Part {sku};{price}\n" for sku, price in list(self.prices.items())[:number]]
        return f"SKU;NAME;PRICE\n{''.join(rows)}TRL;{number if counted is None else counted}\n"

    def invoices(self, number: int, *, shop: str = "", quantity: str = "2") -> str:
        """The next *number* invoices, of two lines each."""
        rows = []
        for _ in range(number):
            self._number += 1
            owner = shop or self._random.choice(self.shops)
            parts = self._random.sample(sorted(self.prices), 2)
            self.amount += sum(2 * self.prices[sku] for sku in parts)
            rows += [f"{self._number};{owner};{sku};{quantity};{self.prices[sku]};EUR\n" for sku in parts]
        return "INVNO;CUSTNO;SKU;QTY;PRICE;CURRENCY\n" + "".join(rows)

    @property
    def invoice(self) -> str:
        """The number of the last invoice."""
        return str(self._number)

    # ---- processes

    def command(self, *arguments: str) -> tuple[str, ...]:
        return (*CROSSDOCK, "-C", str(self.site.config), *arguments)

    @property
    def once(self) -> tuple[str, ...]:
        """The run of this night, as a process has it."""
        return self.command("schedule", "--once", str(self.date(self._night)))

    def posted(self, webhooks: list[tuple[bytes, str]], left: set[str]) -> list[int]:
        """The statuses of *webhooks*, each with its secret, from a ``listen`` that ends when only *left* is left."""
        loaded = project.load(self.site.config)

        def is_done() -> bool:
            with loaded.read_state() as tx:
                return {hint.key: hint.error is None for hint in tx.inbox.records_to_fetch(limit=9)} == dict.fromkeys(
                    left, False
                )

        port, log = free_port(), self.site.folder / "listen.log"
        with processes.running(self.command("listen", "--address", str(port)), os.environ, log, log) as process:
            eventually(lambda: "receiving webhooks at" in log.read_text() if log.exists() else False)
            url = f"http://127.0.0.1:{port}/webhooks/shop"
            statuses = [
                httpx.post(
                    url, content=body, headers=signed(secret, body, name=uuid4().hex), trust_env=False
                ).status_code
                for body, secret in webhooks
            ]
            eventually(is_done)
            process.terminate()
        return statuses


def changed(key: str) -> bytes:
    """The webhook about an order of the shop."""
    return body_of("orders", key)


@contextmanager
def shop() -> Iterator[tuple[Shop, str]]:
    """An empty shop and its address."""
    opened = Shop()
    with serving(PartnerServer(opened)) as server:
        yield opened, server.url


def name_of(command: str) -> str:
    """Its words without arguments, which are in capitals, and options."""
    return " ".join(takewhile(lambda word: word.islower() and word[0] != "-", command.split()))


class Morning:
    """Asks what the page of morning questions says that an operator asks, once as a person and once as a program.

    Attributes:
        asked: The questions that were asked.
        learned: The names of the commands that were also run with ``--json``.
    """

    def __init__(self, site: Site) -> None:
        self._site = site
        rows = re.findall(r"^\| (.+?\?) \| `crossdock (.+)` \|$", TABLE.read_text(), re.MULTILINE)
        self.commands: dict[str, str] = dict(rows)
        assert len(self.commands) == len(rows), "a question is there twice"
        self.asked, self.learned = set[str](), set[str]()
        self._answers: dict[tuple[str, ...], Result] = {}

    def comes(self) -> None:
        """Something has happened since the last answers."""
        self._answers.clear()

    def ask(self, question: str, *answers: str, lacks: str = "", **names: str) -> list[str]:
        """Run the command of *question* with *names* in it, and find each of *answers* in what it prints.

        Args:
            lacks: What it must not print.

        Returns:
            The command.
        """
        self.asked.add(question)
        words = self.commands[question].split()
        assert names.keys() <= {*words}, f"{words} lacks one of {names.keys()}"
        command = [names.get(word, word) for word in words]
        shown = self._run(*command)
        said = " ".join((shown.out + shown.err).split())
        for answer in answers:
            assert answer in said, f"{question} '{command}' does not say {answer!r}:\n{shown.out}{shown.err}"
        assert not lacks or lacks not in said, f"{question} '{command}' says {lacks!r}:\n{shown.out}{shown.err}"
        return command

    def learn(self, question: str, *answers: str, lacks: str = "", **names: str) -> Any:
        """The same; returns what the command prints with ``--json``."""
        command = self.ask(question, *answers, lacks=lacks, **names)
        found, shown = self._run(*command, "--json"), self._run(*command)
        assert found.code == shown.code, f"{command}: exit {shown.code}, with --json {found.code}"
        self.learned.add(name_of(self.commands[question]))
        return json.loads(found.out, parse_float=Decimal)

    def _run(self, *command: str) -> Result:
        if command not in self._answers:
            self._answers[command] = self._site.run(*command, raw="--raw" in command)
        return self._answers[command]
