"""Ten nights of a bicycle wholesaler, each with a mishap: one command answers each question of the morning.

The questions are those of the table in docs/fix.md.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import pytest
from tests.chaos import processes
from tests.chaos.processes import CROSSDOCK
from tests.e2e.warehouse import BREAK, FORWARD, PERSON, Fate, Front, Reply, Seen, Site
from tests.waiting import WITHIN_S

TABLE = Path(__file__).parents[2] / "docs" / "fix.md"
SEED, PARTS, SHOPS = 20260301, 40, 30


class Wholesaler:
    """Parts, shops and invoices as files, the same ones each time."""

    def __init__(self, site: Site) -> None:
        self._site, self._random, self._number, self._night = site, random.Random(SEED), 1000, 0
        self.prices = {f"PART-{part:03}": self._price() for part in range(PARTS)}
        self.shops = [f"SHOP-{shop:03}" for shop in range(SHOPS)]

    def _price(self) -> str:
        return f"{self._random.randint(100, 99_999) / 100:.2f}"

    def night(self, *, customers: str = "", products: str = "", invoices: str = "") -> None:
        self._night += 1
        for name, text in (("CUST", customers), ("PROD", products), ("INV", invoices)):
            if text:
                self._site.export(f"{name}_{self._night:02}.csv", text)

    def customers(self) -> str:
        return "CUSTNO;NAME\n" + "".join(f"{shop};{PERSON} {shop}\n" for shop in self.shops)

    def products(self, number: int = PARTS, *, counted: int | None = None) -> str:
        """The first *number* parts; the trailer tells *counted* of them."""
        rows = [f"{sku};Part {sku};{price}\n" for sku, price in list(self.prices.items())[:number]]
        return f"SKU;NAME;PRICE\n{''.join(rows)}TRL;{number if counted is None else counted}\n"

    def invoices(self, number: int, *, shop: str = "", quantity: str = "2") -> str:
        rows = []
        for _ in range(number):
            self._number += 1
            owner = shop or self._random.choice(self.shops)
            parts = self._random.sample(sorted(self.prices), 2)
            rows += [f"{self._number};{owner};{sku};{quantity};{self.prices[sku]};EUR\n" for sku in parts]
        return "INVNO;CUSTNO;SKU;QTY;PRICE;CURRENCY\n" + "".join(rows)


class Morning:
    """Asks what docs/fix.md says that an operator asks."""

    def __init__(self, site: Site) -> None:
        self._site = site
        lines = TABLE.read_text().split("## Morning questions", 1)[1].split("\n## ", 1)[0].splitlines()
        cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
        self.commands = {question: command.strip("`") for question, command, *_ in cells[1:]}
        self.asked: set[str] = set()

    def ask(self, question: str, *answers: str, **names: str) -> None:
        """Run the command of *question* with *names* in it, and find each of *answers* in what it prints."""
        self.asked.add(question)
        command = self.commands[question].removeprefix("crossdock ")
        for name, value in names.items():
            assert name in command, f"{command} has no {name}"
            command = command.replace(name, value)
        shown = self._site.run(*command.split())
        said = " ".join((shown.out + shown.err).split())
        for answer in answers:
            assert answer in said, f"{question}: '{command}' does not say {answer!r}:\n{shown.out}{shown.err}"


@pytest.fixture
def front(site: Site) -> Iterator[Front]:
    with Front(site.base_url) as front:
        site.base_url = front.base_url
        site.configure()
        site.edit('delimiter: ";"', 'delimiter: ";", trailer: {prefix: "TRL;", count: 1}', within="products:")
        site.edit("mode: append", "mode: snapshot\n        on_gone: delete", within="products:")
        site.init()
        yield front


def test_ten_nights(site: Site, front: Front) -> None:
    """What ran, what did not and why, which records are open, what changed, and what must be done."""
    of, morning = Wholesaler(site), Morning(site)
    ask = morning.ask

    of.night(customers=of.customers(), products=of.products(), invoices=of.invoices(30))
    assert site.sync().code == 0
    ask("What ran last night?", "done")
    ask("What was read, delivered and left out?", "30", "the tally balances", "INV_01.csv")
    ask("Which records are open, and why?", "no record is rejected")
    ask("Does an approval wait for me?", "nothing needs approval")
    ask("Is everything reachable, and is there room on the disks?", " free for ")

    of.night(customers=of.customers())  # no invoices and no products
    assert site.sync().code == 0
    ask("Which file did not come?", "wms.invoices: no new file")

    of.night(products=of.products(20, counted=40), invoices=of.invoices(5))  # a short file
    assert site.sync().code == 4
    ask("What ran last night?", "incomplete")
    ask("What failed, where, and what must I do?", "wms.products", "PROD_03.csv", "40")
    (site.out / "PROD_03.csv").unlink()

    of.night(customers=of.customers() + "SHOP-999\n", products=of.products() + "PART-999\n", invoices=of.invoices(5))
    assert site.sync().code == 4
    ask("What failed, where, and what must I do?", "wms.customers", "CUST_04.csv", "wms.products", "PROD_04.csv")
    (site.out / "CUST_04.csv").unlink()
    (site.out / "PROD_04.csv").unlink()

    bad = of.invoices(3, quantity="two")
    early = of.invoices(2, shop="SHOP-NEW").partition("\n")[2]
    of.night(invoices=bad + early)
    assert site.sync().code == 1
    ask("What ran last night?", "degraded")
    ask("Which records are open, and why?", "3 rejected", "2 waiting")
    ask("What was rejected, and for which reason?", "bad_value", "INV_05.csv:2")
    ask("How many were rejected for each reason?", "1 of 3 rejected", "3 bad_value")
    ask("What waits, and for whom?", "customer wms:SHOP-NEW")
    ask("Why is this record not delivered?", "bad_value", "QTY", "INV_05.csv:2", STREAM="wms.invoices", KEY="1041")

    of.night(invoices=of.invoices(4))
    front.fate = lambda _: Reply(503)  # the platform's outage
    assert site.sync().code == 3
    ask("What failed, where, and what must I do?", "every request fails: HTTP 503", "run again when it answers")
    ask("Which records are open, and why?", "4 in doubt")
    front.fate = lambda _: FORWARD
    assert site.sync().code == 1, "the five records of the night before are open"
    ask("Did the retry work?", "degraded", "incomplete")

    of.night(invoices=of.invoices(4))
    killed_in_a_night(site, front)
    ask("What ran last night?", "incomplete")
    ask("What failed, where, and what must I do?", "its end was not recorded")
    assert site.sync().code == 1
    ask("Did the retry work?", "degraded", "incomplete")

    old, of.prices["PART-007"] = of.prices["PART-007"], "12.34"  # late corrections
    of.night(
        customers=f"CUSTNO;NAME\nSHOP-NEW;{PERSON} New\n",
        products=of.products(),
        invoices=bad.replace("two", "2"),
    )
    assert site.sync().code == 0
    ask("Which records are open, and why?", "no record is rejected")
    changed = f"/unitPrice: {old.rstrip('0').rstrip('.')}"
    ask("What changed for this record, and when?", changed, "-> 12.34", "PROD_08.csv", ID="PART-007")

    of.night(products=of.products(20))  # a mass delete, held back
    assert site.sync().code == 4
    ask("Does an approval wait for me?", "wms.products", "20", "delete")
    ask("What would the next run do?", "20 removals to approve")
    of.prices["PART-008"] = "56.78"
    of.night(products=of.products())  # the whole list again
    assert site.sync().code == 0
    ask("Does an approval wait for me?", "nothing needs approval")

    backup = site.folder / "backup.db"
    shutil.copy2(site.folder / "state.db", backup)
    of.night(invoices=of.invoices(3))
    assert site.sync().code == 0
    for file in site.folder.glob("state.db-*"):
        file.unlink()
    shutil.copy2(backup, site.folder / "state.db")  # restored, and nobody has declared it
    refused = site.sync()  # before there is a run
    assert (refused.code, "crossdock state restored" in refused.err) == (4, True)
    assert site.run("state", "restored").code == 0
    ask("Which records are open, and why?", "unverified")
    assert site.sync().code == 0
    ask("Which records are open, and why?", "no record is rejected")

    assert morning.asked == set(morning.commands)
    assert sorted(site.invoices().values()) == [1] * 56
    assert {effect["operation"] for effect in site.effects("product")} == {"create", "update"}


def killed_in_a_night(site: Site, front: Front) -> None:
    """A run whose process ends as soon as it sends."""
    running: list[ForkServerProcess] = []

    def kill(seen: Seen) -> Fate:
        if seen.method != "POST":
            return FORWARD
        running[0].kill()
        return BREAK

    front.fate = kill
    out = site.folder / "out.txt", site.folder / "err.txt"
    running.append(processes.start((*CROSSDOCK, "-C", str(site.config), "sync"), os.environ, *out))
    running[0].join(WITHIN_S)
    assert running[0].exitcode == -9
    front.fate = lambda _: FORWARD
