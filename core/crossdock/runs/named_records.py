"""Fetches named records and delivers them, with undelivered records that they refer to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter

from crossdock.config.project.connector_instances import BoundStream
from crossdock.config.project.project import Project
from crossdock.errors import ConfigError
from crossdock.planning.references import key_hashes
from crossdock.records import key_text
from crossdock.runs.awaited_records import AwaitedRecords
from crossdock.runs.fetched_input import FetchedInput
from crossdock.runs.open_run import OpenRun
from crossdock.runs.state_session import Session
from crossdock.state import NamedRecord
from crossdock.values.tally import Tally

ROUNDS = 4  # an order refers to products and a customer, which may refer to others

Key = str | Sequence[str]
"""The text of a record's key column, or those of its key columns."""


def named(stream: str, keys: Iterable[Key]) -> list[NamedRecord]:
    texts = list(dict.fromkeys(key_text([key] if isinstance(key, str) else key) for key in keys))
    hashes = key_hashes(texts)
    return [NamedRecord(stream, text, hashes[text]) for text in texts]


@dataclass(slots=True)
class Delivered:
    """The records that were not delivered; the run has done what it could for all others.

    Attributes:
        failed: Why a record could not be fetched or delivered.
        blocked: Another operation on the record must be settled first, or it waits for a record that was not fetched
            because the fetch of others failed.
    """

    failed: dict[NamedRecord, str] = field(default_factory=dict)
    blocked: set[NamedRecord] = field(default_factory=set)


class NamedRecords:
    def __init__(self, session: Session, run: OpenRun) -> None:
        self._session, self._run = session, run
        self._streams = {bound.name: bound for bound in run.streams}
        self._awaited = AwaitedRecords(session.state, (bound for bound in run.streams if bound.stream.fetches))
        self._inputs: dict[str, FetchedInput] = {}

    def deliver(self, records: Sequence[NamedRecord]) -> Delivered:
        """Fetch and deliver *records*. Errors of streams and targets are also in the run's report.

        Raises:
            StateError: If the state fails.
        """
        for bound in self._run.streams:
            bound.context.renew()
        refused = {each: self._run.refused[each.stream] for each in records if each.stream in self._run.refused}
        wanted = [each for each in records if each not in refused]
        result, asked = Delivered(), set(wanted)
        for _ in range(ROUNDS):
            self._deliver(wanted, result)
            if result.failed:
                self._leave_waiting(asked, result)
                break
            fetched = {name: read.taken for name, read in self._inputs.items()}
            found = (*self._awaited.missing(fetched), *self._awaited.released(fetched))
            more = [each for each in dict.fromkeys(found) if each not in asked]
            if not more:
                break
            asked.update(more)
            waiting = self._awaited.waiting(fetched)
            wanted = [*more, *(each for each in wanted if each.stream in waiting)]
        for record, error in refused.items():
            result.failed[record] = str(error)
            self._run.report.messages.fail(record.stream, error)
        return result

    def _deliver(self, records: Sequence[NamedRecord], result: Delivered) -> None:
        blocked = {record for record in records if self._is_worked_on(record)}
        result.blocked |= blocked
        wanted = [record for record in records if record not in blocked]
        by_stream = attrgetter("stream")
        keys = {name: list(group) for name, group in groupby(sorted(set(wanted), key=by_stream), key=by_stream)}
        self._inputs = {}

        def source(bound: BoundStream, tally: Tally, run_id: int) -> FetchedInput:
            made = FetchedInput(bound, self._session.state, tally, run_id, keys[bound.name], self._run.records)
            self._inputs[bound.name] = made
            return made

        self._run.records.read()
        try:
            self._run.deliver([bound for bound in self._run.streams if bound.name in keys], source)
        finally:
            self._run.records.rest()
        for record in wanted:
            self._add(record, result)

    def _is_worked_on(self, record: NamedRecord) -> bool:
        """Return whether another run works on the record, so that what is fetched now could not be delivered."""
        return self._run.records.is_worked_on(self._streams[record.stream].scope, record.key_hash)

    def _leave_waiting(self, asked: set[NamedRecord], result: Delivered) -> None:
        """Keep records to deliver again if what they wait for was not fetched because of a failure.

        A record that waits for a failed one has failed with it. Others are blocked only until the next attempt.
        """
        for record, awaited in list(self._awaited.waits(asked - result.failed.keys())):
            error = next((result.failed[each] for each in awaited if each in result.failed), None)
            if error is None:
                result.blocked.add(record)
            else:
                result.failed[record] = error

    def _add(self, record: NamedRecord, result: Delivered) -> None:
        errors, read = self._run.report.errors, self._inputs.get(record.stream)
        target = self._streams[record.stream].scope.target
        error = errors.get(record.stream) or errors.get(target) or errors.get("")
        if error is not None:
            result.failed[record] = str(error)
        elif read is not None and record.key_hash in read.blocked:
            result.blocked.add(record)


def check_fetching(project: Project, records: Iterable[NamedRecord]) -> None:
    """Raise ConfigError if a stream of *records* cannot fetch records by key."""
    for name in sorted({record.stream for record in records} - project.fetching):
        hint = "its connector or its config has no way to read one record; sync the whole stream"
        raise ConfigError(f"{name} cannot fetch named records", hint=hint)
