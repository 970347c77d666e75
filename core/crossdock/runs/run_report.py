"""The report of a run for people, scripts and its exit code, and the counts of its tallies (law 3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, Self

from crossdock.errors import CrossdockError, InternalError
from crossdock.reading.sources.request_allowance_of_run import ApiUsage
from crossdock.reading.sources.stream_input_report import InputFacts
from crossdock.runs import tables_and_sentences_of_run
from crossdock.state import Intent, RunRecord
from crossdock.state.tables.run_history import COMPLETED
from crossdock.values.run_progress_and_messages import (
    RunMessages,
    error_texts,
    streams_and_messages_document,
    warning_and_note_texts_by_stream,
    warning_texts,
)
from crossdock.values.run_states_and_tally import NOTHING_OPEN, OpenCounts, Tally, Term
from crossdock.writing.delivery.delivery_context import RequestCounters

if TYPE_CHECKING:
    from crossdock.writing.delivery.state_writer import Settlement
    from crossdock.writing.targets.target import Target

Status = Literal["done", "degraded", "incomplete", "failed"]


@dataclass(slots=True, repr=False)
class Report:
    """The results of a run. Printed, it is the tally of each stream, what is open, the errors and how the run ended.

    Attributes:
        lasted: The duration. Show and store `duration_ms` or `seconds` instead.
        tallies: By stream, in the order in which they ran.
        messages: Errors that stopped a stream or the run, warnings and notes.
        inputs: What the file sources found, by stream.
        api_usage: The requests to the source APIs, by connection.
        is_partial: Whether an error ended the run in the middle of a step, so that its tally need not balance.
        open: The open records at the end of the run, by stream, whether or not the run read them again.
        postponed: Records, by stream, of which a newer version was read while an operation on them was not settled. The
            next run reads them again.
        awaiting: The same where only a partner's acknowledgement is to come, whose time is not over.
    """

    run: int
    business_date: str
    lasted: timedelta = timedelta()
    counters: RequestCounters = field(default_factory=RequestCounters)
    tallies: dict[str, Tally] = field(default_factory=dict)
    messages: RunMessages = field(default_factory=RunMessages)
    inputs: dict[str, InputFacts] = field(default_factory=dict)
    api_usage: dict[str, ApiUsage] = field(default_factory=dict)
    open: dict[str, OpenCounts] = field(default_factory=dict)
    postponed: Counter[str] = field(default_factory=Counter)
    awaiting: Counter[str] = field(default_factory=Counter)
    is_partial: bool = False

    @classmethod
    def of_earlier(cls, run: RunRecord) -> Self:
        tallies = {name: Tally.of_json(account) for name, account in (run.tally or {}).items()}
        counters = RequestCounters(run.requests, run.throttled)
        return cls(run.id, run.business_date, run.duration or timedelta(), counters, tallies, RunMessages(run.messages))

    @property
    def errors(self) -> Mapping[str, CrossdockError]:
        """The first error that stopped each stream, by name, or the run, under an empty name."""
        return self.messages.first_exception_by_stream

    @property
    def notes(self) -> dict[str, list[str]]:
        return warning_and_note_texts_by_stream(self.messages)

    @property
    def warnings(self) -> list[str]:
        """Warnings to notify people about, each after the name of its stream. They stopped nothing."""
        return warning_texts(self.messages)

    @property
    def duration_ms(self) -> int:
        return round(self.lasted / timedelta(milliseconds=1))

    @property
    def seconds(self) -> float:
        """The duration in seconds, rounded to milliseconds."""
        return self.duration_ms / 1000

    def tally(self, stream: str) -> Tally:
        return self.tallies.setdefault(stream, Tally())

    def left_to_next(self, stream: str, number: int, *, is_awaited: bool) -> None:
        """Count newer versions that the next run reads again; *is_awaited* as `awaiting`."""
        counts = self.awaiting if is_awaited else self.postponed
        counts[stream] += number

    @property
    def balanced(self) -> bool | None:
        """Whether the tally balances; None if it does not because the run is partial."""
        return all(tally.balanced for tally in self.tallies.values()) or (None if self.is_partial else False)

    @property
    def all_open(self) -> OpenCounts:
        return sum(self.open.values(), NOTHING_OPEN)

    @property
    def _has_open_or_postponed(self) -> bool:
        return self.all_open.total > 0 or self.postponed.total() > 0

    @property
    def status(self) -> Status:
        """The status; ``degraded`` if records are open at the end, or a newer version of some was not delivered."""
        if self.exit_code == InternalError.exit_code:
            return "failed"
        if self.errors:
            return "incomplete"
        return "degraded" if self._has_open_or_postponed else "done"

    @property
    def completed(self) -> bool:
        return self.status in COMPLETED

    @property
    def exit_code(self) -> int:
        """The exit code for the most severe event; ``crossdock sync --help`` lists the codes."""
        if self.balanced is False:
            return InternalError.exit_code
        return self.messages.exit_code or (1 if self._has_open_or_postponed else 0)

    def __str__(self) -> str:
        document = self.as_json()
        tallies = (tables_and_sentences_of_run.tally_sentence(name, each) for name, each in document["streams"].items())
        open_records = tables_and_sentences_of_run.open_record_lines(document["streams"])
        return "\n".join(
            (*tallies, *open_records, *error_texts(self.messages), tables_and_sentences_of_run.run_sentence(document))
        )

    __repr__ = __str__

    def accounts(self) -> dict[str, Any]:
        return {
            name: tally.as_json()
            | {"balanced": tally.balanced or (None if self.is_partial else False)}
            | {"open": self.open.get(name, NOTHING_OPEN).as_json()}
            | (self.inputs[name].as_json() if name in self.inputs else {})
            for name, tally in self.tallies.items()
        }

    def apis(self) -> dict[str, Any]:
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
            **streams_and_messages_document(self.accounts(), self.messages),
        }


class SettlementCount:
    """Counts each operation once, in the tally of its stream. `resuming` has the ids that an earlier run left."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._opened: set[tuple[str, int]] = set()  # records with a settled first step
        self.resuming: set[int] = set()

    def count_carried_over(self, intents: Sequence[Intent]) -> None:
        """Count what an earlier run left. The record of a first step waits, and is counted with the waiting ones."""
        for intent in intents:
            if intent.step != "open":
                self._report.tally(intent.identity.stream).count("carried_over")

    def count_settled_operation(self, item: Settlement) -> bool:
        """Count a settled operation. Return False for the first of two steps, whose record continues to wait."""
        intent, identity = item.intent, item.intent.identity
        tally = self._report.tally(identity.stream)
        record = identity.stream, identity.key_hash
        if intent.step != "open":
            first_time = intent.operation == "create" or record in self._opened
            tally.count("carried_over", item.acknowledged)
            tally.count(settled_tally_term(item, first_time=first_time))
            return True
        if intent.operation == "create":  # otherwise it was taken over
            self._opened.add(record)
        if intent.status == "rejected":  # the record no longer waits
            tally.count("carried_over", intent.id in self.resuming)
            tally.count("rejected")
        return False


def settled_tally_term(item: Settlement, *, first_time: bool) -> Term:
    intent = item.intent
    if intent.status in {"rejected", "handed_over"}:
        return "rejected" if intent.status == "rejected" else "handed_over"
    if intent.status != "delivered":
        return "carried_on"
    return "suppressed" if item.untouched else delivered_tally_term(intent.operation, first_time=first_time)


def tally_term_if_target_accepts(target: Target, resource: str, operation: str, *, first_time: bool) -> Term:
    """Return the term of an operation that *target* takes; see `delivered_tally_term`."""
    kind = target.resources.get(resource)  # a connection may have lost it
    is_awaited = kind is not None and kind.batch is not None and kind.batch.acknowledged_within_s is not None
    return "handed_over" if is_awaited else delivered_tally_term(operation, first_time=first_time)


def delivered_tally_term(operation: str, *, first_time: bool) -> Term:
    """Return the term of a delivered operation. *first_time* means that this run creates the record, even in two."""
    if operation == "delete":
        return "deleted"
    return "created" if first_time else "updated"
