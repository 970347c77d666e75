"""A migration of three waves whose loads are killed, and what must be at the platform in the end."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from tests.chaos import processes
from tests.chaos.failing import NOTE_VARIABLE, Side
from tests.chaos.killed_syncs import FAILING
from tests.e2e.migrated_folder import MigratedFolder
from tests.ended_commands import Done


@dataclass(frozen=True, slots=True)
class Strike:
    """Where a load is killed.

    Attributes:
        wave: That is being loaded then.
        begun: Whether a run of the wave has begun by then, as the state has it.
    """

    point: str
    nth: int
    side: Side
    wave: str
    begun: bool = True


@dataclass
class KilledLoads:
    """A migration in processes of their own."""

    migrated: MigratedFolder
    customers: int
    products: int
    invoices: int

    def __post_init__(self) -> None:
        self.migrated.fill(self.customers, self.products, self.invoices)

    def load(self, program: Sequence[str]) -> Done:
        config = str(self.migrated.config)
        known = {
            **os.environ,
            "CROSSDOCK_API_KEY": self.migrated.platform.api_key,
            NOTE_VARIABLE: str(self._note),
        }
        return processes.finish([*program, "-C", config, "migrate", "load", "--json"], known)

    @property
    def _note(self) -> Path:
        return self.migrated.folder / "struck"

    def strike(self, strike: Strike) -> None:
        """Kill a load; then status names the wave in which it was killed, and no wave after it has begun."""
        label = f"{strike.point}:{strike.nth}:{strike.side}"
        self._note.unlink(missing_ok=True)
        done = self.load(("-P", FAILING, label))
        assert done.exit_code == -signal.SIGKILL, f"{label} ended with {done.exit_code}\n{done.stderr}{done.stdout}"
        assert self._note.read_text() == f"{label}\n"
        status = self.migrated.status()
        states = {each["wave"]: each["state"] for each in status["waves"]}
        names = list(states)
        assert status["next"] == strike.wave, f"{label}: {states}"
        assert (states[strike.wave] == "incomplete") or not strike.begun, f"{label}: {states}"
        assert {states[name] for name in names[names.index(strike.wave) + 1 :]} <= {"not begun"}, f"{label}: {states}"

    def assert_everything_once(self) -> None:
        """Each record of the exports has one effect, told by what a fold of the standard library expects."""
        effects = self.migrated.effects()
        assert {each["operation"] for each in effects} == {"create"}
        made: dict[str, Counter[str]] = {name: Counter() for name in ("customer", "product", "invoice")}
        names = {each["id"]: each["body"].get("externalId", "") for each in effects}
        for each in effects:
            made[each["resource"]][_content(each["body"], names)] += 1
        assert made == {
            "customer": Counter(f"wms:C{n}" for n in range(self.customers)),
            "product": Counter(f"wms:P{n}" for n in range(self.products)),
            "invoice": Counter(
                f"wms:C{n % self.customers} wms:P{n % self.products} {n + 1}" for n in range(self.invoices)
            ),
        }


def _content(body: dict[str, Any], names: dict[str, str]) -> str:
    if "items" not in body:
        return str(body["externalId"])
    (item,) = body["items"]
    return f"{names[body['customerId']]} {names[item['productId']]} {Decimal(str(item['quantity'])):f}"
