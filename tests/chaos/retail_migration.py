"""The migration of retail exports: rehearse, load with kills, catch up, reconcile, repair, undo."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.chaos.retail_divergences import Divergences, Found, Seeded
from tests.chaos.retail_stage import Records, RetailStage, opened
from tests.e2e.project_folder import LISTS, exports

from crossdock.values import exact_json

FEW = frozenset({0, 1})
OWN = ("customer", "product", "invoice")


@dataclass
class Trial:
    """One migration.

    Attributes:
        taken_over: Ids of records that the migration takes over: customers by name, products by SKU.
        seeded: What was damaged.
        figures: For the report.
    """

    stage: RetailStage
    files: list[Path]
    before: Records = field(default_factory=dict)
    taken_over: set[str] = field(default_factory=set)
    seeded: Seeded = field(default_factory=Seeded)
    figures: dict[str, Any] = field(default_factory=dict)

    def prepare(self, late: int) -> None:
        """Serve all days but the last *late* ones, beside records of others."""
        self.stage.exports.serve(self.files[: len(self.files) - late])
        self.stage.begin()
        expected, create = self.stage.exports.expected(), self.stage.sandbox.create
        customer = create(LISTS["customer"], {"externalId": "crm:1", "name": "Of the CRM", "phone": "123"})["id"]
        product = create(LISTS["product"], {"externalId": "erp:1", "sku": "E1", "name": "Of the ERP"})["id"]
        item = {"productId": product, "quantity": 1, "unitPrice": 2}
        create(LISTS["invoice"], {"customerId": customer, "currency": "GBP", "items": [item]})
        for key in sorted(expected.countries.values)[::40]:
            body: dict[str, Any] = {"externalId": f"shop:{key}", "name": f"Old {key}", "phone": f"+44 {key}"}
            self.taken_over.add(create(LISTS["customer"], body)["id"])
        for key in sorted(filter(str.isalnum, expected.descriptions.values))[::40]:
            body = {"externalId": f"erp:{key}", "sku": key, "name": f"Old {key}", "active": False}
            self.taken_over.add(create(LISTS["product"], body)["id"])
        self.before = self.stage.records()
        self.stage.others = {each["id"] for of in self.before.values() for each in of} - self.taken_over

    def rehearse(self) -> None:
        """Nothing is written, and the first load is held to what was rehearsed."""
        effects, file = len(self.stage.sandbox.effects()), str(self.stage.folder / "retail.rehearsal")
        self.stage.run("migrate", "rehearse", "--against-platform", "-o", file, exit_codes=FEW)
        assert len(self.stage.sandbox.effects()) == effects
        self.stage.options = ("--rehearsal", file)

    def load(self, kills: int) -> None:
        """Load with kills; the platform holds what the files say, and each record was created once."""
        began = time.monotonic()
        expected = self.stage.exports.expected()
        sizes = len(expected.countries.values), len(expected.descriptions.values), len(expected.invoices)
        self.stage.kill(kills, sum(sizes))
        self.stage.load()
        self._judged()
        self.figures |= dict(zip(("customers", "products", "invoices"), sizes, strict=True))
        self.figures |= {"lines": dict(expected.lines), **self.stage.happened}
        self.figures["load, seconds"] = round(time.monotonic() - began)

    def catch_up(self, late: int) -> None:
        """More days, and corrections in days that were loaded."""
        exports, expected, self.stage.options = self.stage.exports, self.stage.exports.expected(), ()
        exports.serve(self.files[len(self.files) - late :])
        choose = self.stage.random.sample
        customers = choose(sorted(expected.countries.values), 5)
        exports.correct_newest(expected, customers, choose(sorted(expected.descriptions.values), 10))
        self.figures["catch-up, requests"] = self.stage.load()
        self._judged()
        assert self.stage.load() == 0

    def _judged(self) -> None:
        self.stage.judge()
        created = Counter(
            exact_json.dumps([each["resource"], each["id"]])
            for each in self.stage.sandbox.effects()
            if each["operation"] == "create"
        )
        assert set(created.values()) == {1}

    # ---- differences

    def nothing_differs(self) -> None:
        found = self.stage.reconciled()
        assert _listed(found) == set(), found["shown"][:20]
        self.figures["reconcile, requests"] = found["requests"]
        self.figures["reconcile, records"] = sum(found["compared"].values())

    def diverge(self, number: int) -> None:
        """Seeded divergences are found, nothing else is, and the plan repairs them."""
        self.seeded = seeded = Divergences(self.stage, number).seed()
        plan = self.stage.folder / "repair.plan"
        found = self.stage.reconciled("-o", str(plan), "--remove-extra")
        _same(_listed(found), seeded, seeded.found.keys(), "found")
        self.stage.run("apply", str(plan), exit_codes=FEW)
        _same(_listed(self.stage.reconciled()), seeded, seeded.stays, "left after the repair")
        self._repaired(seeded)

    def _repaired(self, seeded: Seeded) -> None:
        self.figures["divergences"] = dict(seeded.kinds)
        self.figures["seeded, found, repaired, left"] = (
            seeded.kinds.total(), len(seeded.found), len(seeded.found) - len(seeded.stays), len(seeded.stays),
        )  # fmt: skip

    # ---- undo

    def undo(self) -> None:
        """Only what was there before is left, the invoices, which the platform keeps, and what the invoices name."""
        plan, began = self.stage.folder / "undo.plan", self.stage.records()
        planned = self.stage.run("migrate", "undo", "-o", str(plan), "--json", exit_codes=FEW).document
        self.stage.run("apply", str(plan), exit_codes=FEW)
        after = self.stage.records()
        assert after["invoice"] == began["invoice"]
        after["invoice"] = self.before["invoice"]
        named = _named_by(began["invoice"]) - {each["id"] for of in self.before.values() for each in of}
        for resource, held in after.items():
            stays = [each for each in began[resource] if each["id"] in named]
            wanted, left = _by_id([*self.before[resource], *stays], self.taken_over), _by_id(held, self.taken_over)
            odd = {name: (left.get(name), wanted.get(name)) for name in left.keys() | wanted.keys()}
            assert left == wanted, [each for each in odd.items() if each[1][0] != each[1][1]][:5]
        self.figures["undo"] = planned["operations"]
        self.figures["kept by the undo"] = kept = Counter[str]()
        for each in planned["kept"]:
            kept[each["reason"]] += each["records"]
        invoices = len(self.stage.ids("invoice"))
        assert kept == {
            "what is written once can be neither changed nor deleted": invoices,
            "it was deleted, and a new record would have another id": self.figures["divergences"]["product added"],
            "an invoice that stays refers to it": len(named),
        }

    def load_again(self) -> None:
        """What was undone is loaded, and what stayed is found again: nothing new differs, and no invoice is created.

        The late days came after the first rehearsal, so the load needs another one.
        """
        self.rehearse()
        began = self.stage.records()["invoice"]
        self.stage.load(exit_codes=frozenset({4}))  # what was seeded and stays closes the last gate
        after = self.stage.records()
        assert after["invoice"] == began
        assert _named_by(began) <= {each["id"] for of in after.values() for each in of}
        _same(_listed(self.stage.reconciled()), self.seeded, self.seeded.stays, "left after the load")


def retail_migration(folder: Path, *, seed: int, days: int, late: int, kills: int, divergences: int) -> str:
    """A whole migration.

    Args:
        late: The last days, which come after the first load.
        divergences: At least.

    Returns:
        What happened, with figures.
    """
    with opened(folder, seed) as stage:
        trial = Trial(stage, exports()[:days])
        trial.prepare(late)
        trial.rehearse()
        trial.load(kills)
        trial.catch_up(late)
        trial.nothing_differs()
        trial.diverge(divergences)
        trial.undo()
        trial.load_again()
        return "\n".join(f"{name}: {figure}" for name, figure in trial.figures.items())


def _listed(found: dict[str, Any]) -> set[Found]:
    listed = [(each["class"], each["resource"], each["key"]) for each in found["shown"]]
    assert len(set(listed)) == len(listed) == sum(each["records"] for each in found["differences"])
    return set(listed)


def _same(found: set[Found], seeded: Seeded, expected: AbstractSet[Found], what: str) -> None:
    kinds = {(resource, key): kind for (_, resource, key), kind in seeded.found.items()}

    def named(differences: AbstractSet[Found]) -> list[str]:
        return [f"{kinds.get(each[1:], 'nothing')}: {each}" for each in sorted(differences)]

    assert found == expected, f"not {what}: {named(expected - found)[:30]}; more: {named(found - expected)[:30]}"


def _named_by(invoices: list[dict[str, Any]]) -> set[str]:
    """The ids of the records that *invoices* refer to."""
    return {name for each in invoices for name in (each["customerId"], *(item["productId"] for item in each["items"]))}


def _by_id(records: list[dict[str, Any]], restored: AbstractSet[str]) -> dict[str, dict[str, Any]]:
    """Records by id; those that were *restored* without the time of their last change."""
    return {
        each["id"]: {name: value for name, value in each.items() if name != "updatedAt" or each["id"] not in restored}
        for each in records
    }
