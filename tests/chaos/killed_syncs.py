"""A project whose syncs are processes that are killed: the base of the trips between several systems."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from tests.chaos import processes
from tests.chaos.failing import NOTE_VARIABLE
from tests.chaos.processes import CROSSDOCK
from tests.e2e.project_folder import balance
from tests.ended_commands import Done

FAILING = str(Path(__file__).with_name("failing.py"))


@dataclass(kw_only=True)
class KilledSyncs:
    """The config ``c.yaml`` in *folder*.

    Attributes:
        environment: The secrets that the config names.
        random: Decides what happens.
        happened: What was done, for the report.
        exits: How a sync may end that is not killed.
    """

    folder: Path
    environment: Mapping[str, str]
    random: Random
    happened: Counter[str] = field(default_factory=Counter)
    exits: frozenset[int] = frozenset({0, 1, 3})

    def command(self, *arguments: str, program: tuple[str, ...] = CROSSDOCK) -> Done:
        command = [*program, "-C", str(self.folder / "c.yaml"), *arguments]
        known = {**os.environ, **self.environment, NOTE_VARIABLE: str(self.folder / "note")}
        return processes.finish(command, known)

    def run(self, *arguments: str) -> Done:
        """Run a command that must succeed."""
        done = self.command(*arguments)
        assert done.exit_code == 0, f"{done.stderr}{done.stdout}"
        return done

    def struck(self, name: str, nth: int, side: str) -> None:
        """A sync that ends in SIGKILL at a failpoint, unless it comes by it less often."""
        done = self.command("sync", program=("-P", FAILING, f"{name}:{nth}:{side}"))
        killed = done.exit_code == -signal.SIGKILL
        assert killed or done.exit_code in self.exits, f"{done.stderr}{done.stdout}"
        self.happened["kills" if killed else "ended before the kill"] += 1

    def struck_somewhere(self, requests: int) -> None:
        """The same at a random failpoint of delivery; within so many *requests* if it is one that each passes."""
        point = self.random.choice(("sent", "settle_written", "committed", "intents_added"))
        nth = self.random.randint(1, requests if point == "sent" else 3)
        self.struck(point, nth, self.random.choice(("before", "after")))

    def sync(self) -> dict[str, Any]:
        """A sync that is not killed; its tally balances."""
        done = self.command("sync", "--json")
        assert done.exit_code in self.exits, f"{done.stderr}{done.stdout}"
        balance(done.document)
        return {**done.document, "exit": done.exit_code, "said": done.stderr + done.stdout}

    def converge(self) -> None:
        """Sync without faults until everything is delivered."""
        for _ in range(4):
            report = self.sync()
            if report["exit"] == 0:
                return
        raise AssertionError(report["said"])
