"""Methods of authors that raise: no run ends with exit 70, no message is hidden, and everything else is delivered."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Literal

from tests.chaos.guarded_target import (
    API,
    STREAM,
    TARGET,
    Asking,
    Customers,
    Depot,
    DepotTarget,
    Orders,
    Parcels,
    Raiser,
    api,
)
from tests.chaos.guarded_target import raising as made_raising
from tests.chaos.mappings import Bench, open_bench

from crossdock.errors import ConfigError
from crossdock.runs.run_report import Report
from crossdock.state import StateUrl

LOADED = frozenset({"resources", "resource_type", "fetches", "finds_deleted", "lists_existing", "rereads_gone"})
"""Read while the config is loaded, where a failure is a finding."""


UNTOLD = frozenset({"close"})
"""That is told before anything begins, if it always raises. At the end of a sender everything was sent."""

KEPT = (
    "CREATE TABLE IF NOT EXISTS said (message TEXT)",
    *(
        f"CREATE TRIGGER IF NOT EXISTS said_{verb} AFTER {verb} ON dead_letters "
        "BEGIN INSERT INTO said VALUES (NEW.message); END"
        for verb in ("INSERT", "UPDATE")
    ),
    "DELETE FROM said",
)
"""Keep what each dead letter said: one that is replaced in the same run by that of a newer version was not hidden."""


Part = Literal["target", "stream", "api"]
PARTS: Mapping[Part, frozenset[str]] = {"target": TARGET, "stream": STREAM, "api": API}


class Nights:
    """A bench with three streams, of which the target, the orders or the API of the connection may raise."""

    def __init__(self, bench: Bench, raiser: Raiser, part: Part) -> None:
        self.bench, self.raiser, self.depot = bench, raiser, Depot(lost={"orders b:1", "parcels b:1"})
        orders = made_raising(Orders, raiser) if part == "stream" else Asking if part == "api" else Orders
        target = made_raising(DepotTarget, raiser) if part == "target" else DepotTarget
        Asking.raiser = raiser
        self.customers, self.orders, self.parcels = Customers(), orders(), Parcels()
        self.said = list[str]()
        bench.begin(
            [self.customers, self.orders, self.parcels],
            api=lambda _: api(self.depot, raiser),
            target=lambda _: target(),
        )
        self._in_state(*KEPT)

    def sync(self) -> Report:
        """One run: no exit 70, nothing twice, and the stream without defects is delivered."""
        report = self.bench.sync()
        assert report.exit_code in {0, 1, 3, 4}, report.errors
        assert report.balanced
        assert max(self.depot.creates.values(), default=0) <= 1, self.depot.creates
        assert {f"b:{row['K']}" for row in self.customers.rows} <= set(self.bench.created())
        self.said += [str(error) for error in report.messages.exceptions_of_this_run]
        self.said += [message for (message,) in self._in_state("SELECT message FROM said")]
        self.said += self.bench.attempts()
        return report

    def _in_state(self, *statements: str) -> list[Any]:
        """The rows of the last of *statements*."""
        with closing(sqlite3.connect(self.bench.url.database or "")) as state, state:
            return [state.execute(each).fetchall() for each in statements][-1]

    def change(self) -> None:
        """Update a record of each stream, delete one and add one, of which the first answer is lost."""
        for stream in (self.orders, self.parcels, self.customers):
            stream.rows = [{"K": "0", "Q": "2"}, *stream.rows[2:], {"K": "9", "Q": "1"}]
        self.depot.lost |= {"orders b:9", "parcels b:9"}

    def hidden(self) -> set[str]:
        """The methods that raised without a message."""
        return _hidden(self.raiser, self.said)

    def mend(self) -> None:
        """Nothing raises any more: everything is delivered, once."""
        self.raiser.chance = 0
        for _ in range(2):
            self.bench.replay()
            report = self.sync()
        # a record that was rejected before it was gone, and is delivered by the replay, may need an approval to go
        assert all("is gone, more than" in str(error) for error in report.errors.values()), report.errors
        assert report.exit_code == (4 if report.errors else 0), (
            report.accounts(),
            report.messages.exceptions_of_this_run,
        )
        assert not self.bench.dead_letters()
        stored = [each for each in self.depot.stored.values() if each["reference"] != "b:1" or not report.errors]
        held = Counter((each["kind"], each["reference"], each.get("quantity")) for each in stored)
        orders = [("orders", f"b:{row['K']}", int(row["Q"] or 0)) for row in self.orders.rows]
        assert held == Counter(orders + [("parcels", f"b:{row['K']}", None) for row in self.parcels.rows]), held


def _hidden(raiser: Raiser, said: Sequence[str]) -> set[str]:
    texts = "\n".join(said)
    return {name for name in raiser.raised if f"boom in {name}" not in texts}


def each_method(folder: Path, url: StateUrl, names: Sequence[str], part: Part, seed: int = 1) -> Counter[str]:
    """Each of *names* raises whenever it is called, for two nights.

    Returns:
        How often each raised.
    """
    raised: Counter[str] = Counter()
    with open_bench(folder, url) as bench:
        for name in names:
            raiser = Raiser(frozenset({name}), 1.0, seed)
            try:
                nights = Nights(bench, raiser, part)
            except ConfigError as error:  # it is called while the config is loaded
                hidden = _hidden(raiser, [str(error)])
            else:
                nights.sync()
                nights.change()
                nights.sync()
                hidden = nights.hidden()
                nights.mend()
            assert not hidden
            raised += raiser.raised
    return raised


def any_methods(folder: Path, url: StateUrl, seeds: range) -> Counter[str]:
    """All methods of one part raise at random, for four nights; *seeds* chooses which.

    Returns:
        How often each raised.
    """
    raised: Counter[str] = Counter()
    with open_bench(folder, url) as bench:
        for seed in seeds:
            part = list(PARTS)[seed % 3]
            raiser = Raiser(PARTS[part] - LOADED - UNTOLD, (0.02, 0.1, 0.3)[seed // 3 % 3], seed)
            nights = Nights(bench, raiser, part)
            nights.sync()
            nights.change()
            for _ in range(3):
                nights.sync()
            assert not nights.hidden(), (nights.hidden(), nights.said)
            nights.mend()
            raised += raiser.raised
    return raised
