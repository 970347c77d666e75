"""The report of a run for people, scripts and its exit code, with the counts of its tallies (law 3) and its timings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, Self

from msgspec import Struct, structs

from crossdock.errors import CrossdockError, InternalError
from crossdock.reading.sources.api_token_buckets import ApiUsage
from crossdock.reading.sources.stream_input_report import InputFacts
from crossdock.runs import tables_and_sentences_of_run
from crossdock.state import Intent, RunRecord
from crossdock.state.tables.run_history import COMPLETED
from crossdock.values.clock import Clock
from crossdock.values.run_progress_and_messages import (
    Progress,
    RunMessages,
    SilentProgress,
    Unit,
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


MOST_STEPS = 100  # steps are merged to this number when there are twice as many
SLOTS = 250  # slots of time, each with two samples
OTHERS = "other steps"
_FIRST, _FINEST = "starting", timedelta(milliseconds=10)
_LONGEST_NAME = 200  # characters
_MS = timedelta(milliseconds=1)

Sample = tuple[timedelta, int]  # time since the run began, and tokens


class Step(Struct, frozen=True):
    name: str
    began: timedelta
    lasted: timedelta


class Timings:
    """Passes the progress of a run on to a listener, and records its steps in bounded memory."""

    def __init__(
        self, clock: Clock, listener: Progress | None = None, begun: Callable[[Report], None] = lambda _: None
    ) -> None:
        self._clock, self._listener, self._begun = clock, listener or SilentProgress(), begun
        self.report: Report | None = None
        self.job: str | None = None
        self._reset()

    @classmethod
    def reuse_or_wrap_progress(cls, progress: Progress, clock: Clock) -> Timings:
        """Return *progress* if it is a `Timings`, which its caller reads later, otherwise a new one over it."""
        return progress if isinstance(progress, cls) else cls(clock, progress)

    def start_run(self, report: Report, job: str | None) -> None:
        self._reset()
        self.report, self.job = report, job
        self._begun(report)

    def end_run_and_return_duration(self) -> timedelta:
        self._begin_step(_FIRST)
        return self._since

    def _reset(self) -> None:
        self.began: datetime = self._clock.now()
        self._zero, self._since = timedelta(seconds=self._clock.monotonic()), timedelta()
        self._outer, self._inner, self._left = _FIRST, "", 0
        self._outer_total: int | None = None
        self._outer_done, self._shows_inner = 0, False
        self._steps: list[Step] = []
        self._spacing = _FINEST
        self._slots: dict[int, tuple[Sample, Sample]] = {}  # by number: the lowest and the highest sample of each slot

    # ---- called by the run

    def begin_part(self, stage: str, total: int | None) -> None:
        """Begin a part of the run. It lasts until the next one, even after all of *total* is done."""
        self._listener.begin(stage, total)
        self._begin_step(stage)
        self._outer_total, self._outer_done, self._shows_inner = total, 0, False

    def begin(self, stage: str, total: int | None, unit: Unit = "records") -> None:
        """Begin a stage. One of known size is part of the present stage, which continues after it."""
        if total is None:
            self.begin_part(stage, None)
        elif total > 0:
            self._listener.begin(stage, total, unit)
            self._begin_step(self._outer, stage)
            self._left, self._shows_inner = total, True

    def advance(self, steps: int = 1) -> None:
        if self._inner:
            self._left -= steps
            if self._left <= 0:
                self._begin_step(self._outer)
        else:
            self._show_outer_stage_again()
            self._outer_done += steps
        self._listener.advance(steps)

    def _show_outer_stage_again(self) -> None:
        if self._shows_inner:
            self._shows_inner = False
            self._listener.begin(self._outer, self._outer_total)
            if self._outer_done:
                self._listener.advance(self._outer_done)

    def allowance(self, tokens: int | None) -> None:
        self._listener.allowance(tokens)
        if tokens is not None:
            sample = self._elapsed_since_run_began, tokens
            self._put_sample(sample, sample)
            while len(self._slots) > SLOTS:
                self._spacing *= 2
                kept, self._slots = self._slots, {}
                for low, high in kept.values():
                    self._put_sample(low, high)

    def waiting(self, wait: timedelta) -> None:
        self._listener.waiting(wait)

    def warn(self, text: str) -> None:
        self._listener.warn(text)

    # ---- read after the run

    @property
    def steps(self) -> list[Step]:
        """Finished steps. If there were more than twice `MOST_STEPS`, those of one name are merged."""
        return list(self._steps)

    @property
    def allowance_samples(self) -> list[Sample]:
        """The allowance over time, including its lowest and highest values."""
        return [sample for low, high in self._slots.values() for sample in sorted({low, high})]

    def as_json(self) -> dict[str, Any]:
        """Return times in milliseconds since the run began, without floats."""
        return {
            "steps": [[step.name, step.began // _MS, step.lasted // _MS] for step in self._steps],
            "samples": [[at // _MS, tokens] for at, tokens in self.allowance_samples],
        }

    @property
    def _elapsed_since_run_began(self) -> timedelta:
        return timedelta(seconds=self._clock.monotonic()) - self._zero

    def _begin_step(self, outer: str, inner: str = "") -> None:
        now, name = self._elapsed_since_run_began, _storable_name(self._inner or self._outer)
        if now > self._since:
            self._steps.append(Step(name, self._since, now - self._since))
        if len(self._steps) > 2 * MOST_STEPS:
            self._steps = _merge_steps(self._steps)
        self._outer, self._inner, self._since = outer, inner, now

    def _put_sample(self, low: Sample, high: Sample) -> None:
        number = low[0] // self._spacing
        lowest, highest = self._slots.get(number, (low, high))
        self._slots[number] = (
            min(lowest, low, key=_allowance_tokens_of_sample),
            max(highest, high, key=_allowance_tokens_of_sample),
        )


def _allowance_tokens_of_sample(sample: Sample) -> int:
    return sample[1]


def _storable_name(name: str) -> str:
    """Make *name* storable: file names may contain bytes that are not characters."""
    return name[:_LONGEST_NAME].encode(errors="replace").decode()


def _merge_steps(steps: Iterable[Step]) -> list[Step]:
    """Reduce to `MOST_STEPS`: merge the steps of one name, and the shortest as `OTHERS`."""
    merged: dict[str, Step] = {}
    for step in steps:
        _merge_with_same_name(merged, step)
    others = merged.pop(OTHERS, None)
    longest = sorted(merged.values(), key=lambda step: step.lasted, reverse=True)
    kept = {step.name: step for step in longest[: MOST_STEPS - 1]}
    for step in (*filter(None, (others,)), *longest[MOST_STEPS - 1 :]):
        _merge_with_same_name(kept, structs.replace(step, name=OTHERS))
    return sorted(kept.values(), key=lambda step: step.began)


def _merge_with_same_name(steps: dict[str, Step], step: Step) -> None:
    known = steps.get(step.name)
    if known is None:
        steps[step.name] = step
    else:
        steps[step.name] = structs.replace(known, began=min(known.began, step.began), lasted=known.lasted + step.lasted)
