"""What a run did, for people, scripts and its exit code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal, Self

from crossdock.errors import CrossdockError, InternalError
from crossdock.reading.sources.api_usage import ApiUsage
from crossdock.reading.sources.input_facts import InputFacts
from crossdock.state import RunRecord
from crossdock.state.tables.run_history import COMPLETED
from crossdock.values.run_messages import RunMessages, document_of, notes_of, warnings_of
from crossdock.values.tally import NOTHING_OPEN, OpenCounts, Tally
from crossdock.writing.delivery.delivering_run import Counters

Status = Literal["done", "degraded", "incomplete", "failed"]


@dataclass(slots=True)
class Report:
    """What a run did.

    Attributes:
        lasted: How long it took; all that show or store it use `duration_ms` or `seconds`.
        tallies: By stream, in the order they ran.
        messages: What stopped a stream or the run, warnings and notes.
        inputs: What the sources of files found, by the stream's name.
        api_usage: What was requested of the APIs that were read, by connection.
        is_partial: An error ended the run in the middle of a step, so that its tally need not balance.
        open: What is open at the end of the run, by stream, whether or not the run read it again.
    """

    run: int
    business_date: str
    lasted: timedelta = timedelta()
    counters: Counters = field(default_factory=Counters)
    tallies: dict[str, Tally] = field(default_factory=dict)
    messages: RunMessages = field(default_factory=RunMessages)
    inputs: dict[str, InputFacts] = field(default_factory=dict)
    api_usage: dict[str, ApiUsage] = field(default_factory=dict)
    open: dict[str, OpenCounts] = field(default_factory=dict)
    is_partial: bool = False

    @classmethod
    def of_earlier(cls, run: RunRecord) -> Self:
        """The report of a run that ended, to be continued."""
        tallies = {name: Tally.of_json(account) for name, account in (run.tally or {}).items()}
        counters = Counters(run.requests, run.throttled)
        return cls(run.id, run.business_date, run.duration or timedelta(), counters, tallies, RunMessages(run.messages))

    @property
    def errors(self) -> Mapping[str, CrossdockError]:
        """What stopped a stream first, by its name, or the run, under an empty name."""
        return self.messages.errors

    @property
    def notes(self) -> dict[str, list[str]]:
        """Warnings and notes by stream."""
        return notes_of(self.messages)

    @property
    def warnings(self) -> list[str]:
        """What people are notified about although nothing was stopped, each after the name of its stream."""
        return warnings_of(self.messages)

    @property
    def duration_ms(self) -> int:
        return round(self.lasted / timedelta(milliseconds=1))

    @property
    def seconds(self) -> float:
        """How long it took, in whole milliseconds."""
        return self.duration_ms / 1000

    def tally(self, stream: str) -> Tally:
        return self.tallies.setdefault(stream, Tally())

    @property
    def balanced(self) -> bool | None:
        """None if it does not balance because it is partial."""
        return all(tally.balanced for tally in self.tallies.values()) or (None if self.is_partial else False)

    @property
    def all_open(self) -> OpenCounts:
        """What is open of all streams."""
        return sum(self.open.values(), NOTHING_OPEN)

    @property
    def status(self) -> Status:
        """``degraded``: the run reached its end, but records are open."""
        if self.exit_code == InternalError.exit_code:
            return "failed"
        if self.errors:
            return "incomplete"
        return "degraded" if self.all_open.total else "done"

    @property
    def completed(self) -> bool:
        """True if the run reached its end."""
        return self.status in COMPLETED

    @property
    def exit_code(self) -> int:
        """The most severe of what happened; ``crossdock sync --help`` lists the codes."""
        if self.balanced is False:
            return InternalError.exit_code
        return self.messages.exit_code or (1 if self.all_open.total else 0)

    def accounts(self) -> dict[str, Any]:
        """The tally of each stream, with its open records and the files it read."""
        return {
            name: tally.as_json()
            | {"balanced": tally.balanced or (None if self.is_partial else False)}
            | {"open": self.open.get(name, NOTHING_OPEN).as_json()}
            | (self.inputs[name].as_json() if name in self.inputs else {})
            for name, tally in self.tallies.items()
        }

    def apis(self) -> dict[str, Any]:
        """What was requested of each API that was read, by connection."""
        return {name: usage.as_json() for name, usage in sorted(self.api_usage.items())}

    def as_json(self) -> dict[str, Any]:
        return {
            "run": self.run,
            "business_date": self.business_date,
            "status": self.status,
            "seconds": self.seconds,
            "requests": self.counters.requests,
            "throttled": self.counters.throttled,
            "balanced": self.balanced,
            "apis": self.apis(),
            "open": self.all_open.as_json(),
            **document_of(self.accounts(), self.messages),
        }
