"""What a plan would do with the records of a migration: counts and a few examples, without their data."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct, field

from crossdock.migration.planned_creates_already_on_platform import PlannedCreates
from crossdock.reading.sources.run_context import Observe
from crossdock.runs.plan_result import PlanListener
from crossdock.runs.waiting_records_by_cause import Parent
from crossdock.state import DeadLetter, Intent, RecordIdentity, Scope, WaitingRecord
from crossdock.writing.delivery.operations_and_intents import Operation

EXAMPLES = 5


class RejectedRecord(Struct, frozen=True):
    """An example. *message* has no personal data."""

    key: str
    source: str
    line: int
    pointer: str | None
    message: str


class Rejected(Struct):
    records: int = 0
    examples: list[RejectedRecord] = field(default_factory=list)

    def add(self, dead_letter: DeadLetter) -> None:
        self.records += 1
        if len(self.examples) < EXAMPLES:
            at = dead_letter.identity
            self.examples.append(RejectedRecord(at.key, at.source, at.line, dead_letter.pointer, dead_letter.message))


class StreamCounts(Struct):
    """The decisions about the records of one stream. *missing* counts the records that wait for each record."""

    rejected: dict[str, Rejected] = field(default_factory=lambda: defaultdict(Rejected))
    missing: dict[tuple[str, str], Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    waiting: int = 0
    in_doubt: int = 0
    withheld: int = 0
    refers_to_later: Counter[str] = field(default_factory=Counter)

    @property
    def has_open_records(self) -> bool:
        return bool(self.rejected or self.waiting or self.in_doubt or self.withheld)


class PlanCounts:
    """Counts the decisions of a plan. *later* comes from `later_waves_by_stream_and_placeholder_prefix`."""

    def __init__(
        self,
        scopes: Mapping[str, Scope],
        later: Mapping[str, Mapping[str, str]],
        creates: PlannedCreates | None = None,
    ) -> None:
        self._scopes, self._later, self._creates = scopes, later, creates
        self._rejected: set[Parent] = set()
        self._waiting: set[Parent] = set()
        self.streams: dict[str, StreamCounts] = defaultdict(StreamCounts)

    def listener(self, observe: Observe | None = None) -> PlanListener:
        listening = (
            self._add_create_and_count_later_wave_references,
            self._count_rejected,
            self._count_waiting,
            _ignore_operation_of_earlier_run,
            self._count_in_doubt,
            self._count_withheld,
        )
        return PlanListener(*listening, observe=observe)

    def missing_parent_reason(self, parent: Parent) -> str:
        """Return why an awaited record will be missing: ``rejected``, ``waiting``, or ``not read``."""
        if parent in self._rejected:
            return "rejected"
        return "waiting" if parent in self._waiting else "not read"

    def _add_create_and_count_later_wave_references(self, operation: Operation) -> None:
        stream = operation.identity.stream
        if self._creates is not None:
            self._creates.add(operation)
        if not (later := self._later.get(stream)):
            return
        waves = {
            wave for text in _nested_texts(operation.after) for begin, wave in later.items() if text.startswith(begin)
        }
        self.streams[stream].refers_to_later.update(waves)

    def _count_rejected(self, dead_letter: DeadLetter) -> None:
        self.streams[dead_letter.identity.stream].rejected[dead_letter.code].add(dead_letter)
        self._rejected.add(self._identity_as_parent(dead_letter.identity))

    def _count_waiting(self, record: WaitingRecord) -> None:
        found = self.streams[record.identity.stream]
        found.waiting += 1
        for each in record.waits_for:
            found.missing[each["resource"], each["namespace"]][each["key"]] += 1
        self._waiting.add(self._identity_as_parent(record.identity))

    def _count_in_doubt(self, identity: RecordIdentity) -> None:
        self.streams[identity.stream].in_doubt += 1

    def _count_withheld(self, operation: Operation) -> None:
        self.streams[operation.identity.stream].withheld += 1

    def _identity_as_parent(self, identity: RecordIdentity) -> Parent:
        scope = self._scopes[identity.stream].whole_record_scope
        return scope.resource, scope.namespace, identity.key


def _nested_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for member in value.values() if isinstance(value, dict) else value:
            yield from _nested_texts(member)


def _ignore_operation_of_earlier_run(_: Intent) -> None:
    """Ignore it: operations of earlier runs are counted in the tally and the requests."""
