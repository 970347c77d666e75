"""What a run did, for people, scripts and its exit code."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from crossdock.delivery.dispatcher import Counters
from crossdock.errors import CrossdockError, InternalError
from crossdock.sources.input_facts import InputFacts
from crossdock.tally import Tally


@dataclass(slots=True)
class Report:
    """What a run did.

    Attributes:
        tallies: By stream, in the order they ran.
        errors: What stopped a stream, by its name, or the run, under an empty name.
        notes: Other remarks on a stream, by its name.
        inputs: What the sources of files found, by the stream's name.
        warnings: Those of *notes* that people are notified about, with the stream's name.
        still_refused: Dead letters of earlier runs that this run did not see again.
    """

    run: int
    business_date: str
    seconds: float = 0.0
    counters: Counters = field(default_factory=Counters)
    tallies: dict[str, Tally] = field(default_factory=dict)
    errors: dict[str, CrossdockError] = field(default_factory=dict)
    notes: dict[str, list[str]] = field(default_factory=dict)
    inputs: dict[str, InputFacts] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    still_refused: int = 0

    def tally(self, stream: str) -> Tally:
        return self.tallies.setdefault(stream, Tally())

    @property
    def balanced(self) -> bool:
        return all(tally.balanced for tally in self.tallies.values())

    @property
    def status(self) -> Literal["done", "incomplete", "failed"]:
        if self.exit_code == InternalError.exit_code:
            return "failed"
        return "incomplete" if self.errors else "done"

    @property
    def exit_code(self) -> int:
        """The most severe of what happened; ``crossdock sync --help`` lists the codes."""
        if not self.balanced:
            return InternalError.exit_code
        codes = {error.exit_code for error in self.errors.values()}
        for code in (70, 130, 3, 4, 2):
            if code in codes:
                return code
        return 1 if any(tally.unfinished for tally in self.tallies.values()) else 0

    def accounts(self) -> dict[str, Any]:
        """The tally of each stream, with its notes and the files it read."""
        return {
            name: tally.as_json()
            | {"notes": self.notes.get(name, [])}
            | (self.inputs[name].as_json() if name in self.inputs else {})
            for name, tally in self.tallies.items()
        }

    def as_json(self) -> dict[str, Any]:
        return {
            "run": self.run,
            "business_date": self.business_date,
            "status": self.status,
            "seconds": round(self.seconds, 3),
            "requests": self.counters.requests,
            "throttled": self.counters.throttled,
            "balanced": self.balanced,
            "streams": self.accounts(),
            "still_refused": self.still_refused,
            "errors": {name or "run": str(error) for name, error in self.errors.items()},
        }
