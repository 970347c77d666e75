"""Fetches named records and delivers them, with undelivered records that they refer to."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any

import polars as pl
from msgspec import Struct, field

from crossdock.config.project.connections_and_bound_streams import BoundStream
from crossdock.config.project.project import Project
from crossdock.delta.fingerprint import key_hashes
from crossdock.delta.row_preparation import KEY_HASH
from crossdock.delta.state_comparison import Delta
from crossdock.errors import ConfigError
from crossdock.runs.active_run import ActiveRun
from crossdock.runs.batches_read_from_connector import FetchOfRecordsNotFinal, fetch_checked_batches
from crossdock.runs.planning.mapping_to_drafts import AuthorCodeFailureCounter
from crossdock.runs.planning.removals import Removals
from crossdock.runs.planning.update_limits import UpdateCandidates
from crossdock.runs.session_shared_by_runs import Session
from crossdock.runs.stream_input import StreamInput
from crossdock.state import Intent, NamedRecord, Scope, State, Transaction
from crossdock.values.record_keys import key_parts_of, key_text
from crossdock.values.run_states_and_tally import Tally
from crossdock.writing.delivery.delivery_context import RecordsOfRun

ROUNDS = 4  # an order refers to products and a customer, which may refer to others

Key = str | Sequence[str]
"""The text of a record's key column, or those of its key columns."""


def named_records(stream: str, keys: Iterable[Key]) -> list[NamedRecord]:
    texts = list(dict.fromkeys(key_text([key] if isinstance(key, str) else key) for key in keys))
    hashes = key_hashes(texts)
    return [NamedRecord(stream, text, hashes[text]) for text in texts]


class NamedDeliveryResult(Struct):
    """The records that were not delivered; the run has done what it could for all others.

    Attributes:
        withheld: Those of `failed` whose removal needs approval.
        postponed: Another operation on the record must be settled first, or it waits for a record that was not fetched
            because the fetch of others failed.
        elsewhere: Records of other streams to be fetched, because a delivered record waits for them, or they for one.
    """

    failed: dict[NamedRecord, str] = field(default_factory=dict)
    withheld: set[NamedRecord] = field(default_factory=set)
    postponed: set[NamedRecord] = field(default_factory=set)
    elsewhere: set[NamedRecord] = field(default_factory=set)


class NamedRecordDelivery:
    def __init__(self, session: Session, run: ActiveRun) -> None:
        self._session, self._run = session, run
        self._streams = {bound.name: bound for bound in run.streams}
        self._awaited = AwaitedRecords(session, run)
        self._inputs: dict[str, FetchedInput] = {}

    def deliver(self, records: Sequence[NamedRecord]) -> NamedDeliveryResult:
        """Fetch and deliver *records*. Errors of streams and targets are also in the run's report."""
        for bound in self._run.streams:
            bound.context.renew()
        refused = {each: self._run.refused[each.stream] for each in records if each.stream in self._run.refused}
        wanted = [each for each in records if each not in refused]
        result, asked = NamedDeliveryResult(), set(wanted)
        for _ in range(ROUNDS):
            self._deliver_round(wanted, result)
            if result.failed:
                self._fail_or_postpone_waiting(asked, result)
                break
            fetched = {name: read.taken for name, read in self._inputs.items()}
            found = (*self._awaited.missing_parents(fetched), *self._awaited.waiting_for_fetched(fetched))
            result.elsewhere.update(each for each in found if each.stream not in self._streams)
            more = [each for each in dict.fromkeys(found) if each not in asked and each.stream in self._streams]
            if not more:
                break
            asked.update(more)
            waiting = self._awaited.streams_whose_fetched_records_wait(fetched)
            wanted = [*more, *(each for each in wanted if each.stream in waiting)]
        for record, error in refused.items():
            result.failed[record] = str(error)
            self._run.report.messages.add_error(record.stream, error)
        return result

    def _deliver_round(self, records: Sequence[NamedRecord], result: NamedDeliveryResult) -> None:
        postponed = {record for record in records if self._is_worked_on_by_others(record)}
        result.postponed |= postponed
        wanted = [record for record in records if record not in postponed]
        by_stream = attrgetter("stream")
        keys = {name: list(group) for name, group in groupby(sorted(set(wanted), key=by_stream), key=by_stream)}
        self._inputs = {}

        def source(bound: BoundStream, tally: Tally, run_id: int) -> FetchedInput:
            made = FetchedInput(bound, self._session.state, tally, run_id, keys[bound.name], self._run.records)
            self._inputs[bound.name] = made
            return made

        self._run.records.record_begin_of_reading()
        try:
            self._run.settle_then_deliver_streams([bound for bound in self._run.streams if bound.name in keys], source)
        finally:
            self._run.records.record_that_all_read_is_planned()
        for record in wanted:
            self._add_result(record, result)

    def _is_worked_on_by_others(self, record: NamedRecord) -> bool:
        """Return whether another run works on the record, so that what is fetched now could not be delivered."""
        return self._run.records.is_busy_in_other_run(self._streams[record.stream].scope, record.key_hash)

    def _fail_or_postpone_waiting(self, asked: set[NamedRecord], result: NamedDeliveryResult) -> None:
        """Fail the records that wait for a failed one. Others that wait are postponed until the next attempt."""
        for record, awaited in list(self._awaited.waiting_with_parents(asked - result.failed.keys())):
            error = next((result.failed[each] for each in awaited if each in result.failed), None)
            if error is None:
                result.postponed.add(record)
            else:
                result.failed[record] = error

    def _add_result(self, record: NamedRecord, result: NamedDeliveryResult) -> None:
        errors, read = self._run.report.errors, self._inputs.get(record.stream)
        target = self._streams[record.stream].scope.target
        error = errors.get(record.stream) or errors.get(target) or errors.get("")
        if read is not None and error is not None and error is read.removals.refusal:
            if record.key_hash not in read.withheld_removal_key_hashes:
                error = None  # it is not gone
            else:
                result.withheld.add(record)
        if error is not None:
            result.failed[record] = str(error)
        elif read is not None and record.key_hash in read.postponed_keys:
            result.postponed.add(record)


def raise_unless_streams_can_fetch(project: Project, records: Iterable[NamedRecord]) -> None:
    for name in sorted({record.stream for record in records} - project.streams_fetching_by_key):
        hint = "its connector or its config has no way to read one record; sync the whole stream"
        raise ConfigError(f"{name} cannot fetch named records", hint=hint, code="choice_unsuitable")


WAITING_AT_MOST = 1_000  # waiting records of one stream that are searched


class AwaitedRecords:
    """The records that delivered ones wait for, and those that wait for them, of all streams that can fetch records."""

    def __init__(self, session: Session, run: ActiveRun) -> None:
        self._state, self._targets = session.state, session.targets
        scopes, fetching = session.project.scope_by_stream, session.project.streams_fetching_by_key - run.refused.keys()
        self._own = {bound.name: bound.scope for bound in run.streams if bound.stream.fetches}
        self._writers = {scopes[name]: name for name in sorted(fetching)}

    def missing_parents(self, fetched: Mapping[str, Collection[int]]) -> Iterator[NamedRecord]:
        """Yield what *fetched* records wait for, without waiting records of other runs: two runs would not end."""
        for name, hashes in fetched.items():
            with self._state.begin_read_only() as tx:
                waits = tx.waiting_records.awaited_references(name, list(hashes)).values()
            waits_for = [each for record in waits for each in record]
            for scope, key, key_hash in _awaited_keys(self._own[name], waits_for):
                writer = self._writers.get(scope)
                if writer is not None and (writer in self._own or not self._is_waiting_for_others(writer, key_hash)):
                    yield NamedRecord(writer, key, key_hash)

    def _is_waiting_for_others(self, stream: str, key_hash: int) -> bool:
        with self._state.begin_read_only() as tx:
            return key_hash in tx.waiting_records.awaited_references(stream, [key_hash])

    def waiting_with_parents(self, records: Iterable[NamedRecord]) -> Iterator[tuple[NamedRecord, list[NamedRecord]]]:
        by_stream: dict[str, dict[int, NamedRecord]] = {}
        for record in records:
            by_stream.setdefault(record.stream, {})[record.key_hash] = record
        for name, asked in by_stream.items():
            with self._state.begin_read_only() as tx:
                waits = tx.waiting_records.awaited_references(name, list(asked))
            for key_hash, waits_for in waits.items():
                found = _awaited_keys(self._own[name], waits_for)
                writers = ((self._writers.get(scope), key, awaited) for scope, key, awaited in found)
                yield asked[key_hash], [NamedRecord(each, key, awaited) for each, key, awaited in writers if each]

    def streams_whose_fetched_records_wait(self, fetched: Mapping[str, Collection[int]]) -> set[str]:
        with self._state.begin_read_only() as tx:
            return {
                name for name, hashes in fetched.items() if tx.waiting_records.awaited_references(name, list(hashes))
            }

    def waiting_for_fetched(self, fetched: Mapping[str, Collection[int]]) -> Iterator[NamedRecord]:
        """Yield the records that wait for *fetched* ones; those of other runs only if the target has these."""
        parents = {self._own[name]: set(hashes) for name, hashes in fetched.items()}
        with self._state.begin_read_only() as tx:
            bound = {
                scope: tx.bindings.target_id_by_key_hash(scope, list(hashes)).keys()
                for scope, hashes in parents.items()
            }
        resources = {scope.resource for scope in parents}
        for scope, name in self._writers.items():
            if resources.isdisjoint(self._targets[scope.target].resources[scope.resource].parents):
                continue
            with self._state.begin_read_only() as tx:
                waiting = tx.waiting_records.longest_waiting(name, WAITING_AT_MOST)
            come = parents if name in self._own else bound
            for record in waiting:
                if any(
                    key_hash in come.get(parent, ()) for parent, _, key_hash in _awaited_keys(scope, record.waits_for)
                ):
                    yield NamedRecord(name, record.identity.key, record.identity.key_hash)


def _awaited_keys(waiting: Scope, waits_for: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Scope, str, int]]:
    hashes = key_hashes([each["key"] for each in waits_for])
    for each in waits_for:
        key = each["key"]
        yield Scope(waiting.target, each["resource"], each["namespace"]), key, hashes[key]


class FetchedInput(StreamInput):
    """The records that `Stream.fetch` gives, without lists or cursors. `postponed_keys` must be fetched again."""

    finds_changes_without_webhooks = False
    requested_key_hashes: Sequence[int]

    def __init__(
        self,
        bound: BoundStream,
        state: State,
        tally: Tally,
        run_id: int,
        records: Sequence[NamedRecord],
        own_records: RecordsOfRun,
    ) -> None:
        self._keys = [key_parts_of(record.key) for record in records]
        self._own_records = own_records
        self.requested_key_hashes = [record.key_hash for record in records]
        self.taken: Collection[int] = ()
        self.postponed_keys: Collection[int] = ()
        self._followed = FetchOfRecordsNotFinal(bound, state)
        super().__init__(bound, state, tally, run_id)

    def read_next_part(self, unsettled: list[Intent], advance: Callable[[int], None]) -> None:
        super().read_next_part(unsettled, advance)
        self.postponed_keys = {intent.identity.key_hash for intent in unsettled}

    def _compare_with_state(self, unsettled: list[Intent]) -> Delta:
        self.taken = self._scan.latest[KEY_HASH].to_list()
        if others := list({*self.taken} - {*self.requested_key_hashes}):
            with self._state.begin_read_only() as tx:
                unsettled += self._own_records.without_records_of_other_runs(
                    tx.intents.unsettled_in_scope(self._bound.scope, others)
                )
        return super()._compare_with_state(unsettled)

    def _begin_part_and_return_decides_waiting(self) -> bool:
        return False

    def _read_part(self, advance: Callable[[int], None]) -> Tally:
        counted = Tally()
        self._scan.find_latest_of_each_key(
            self._followed.track_not_final(fetch_checked_batches(self._bound, self._keys)), counted, advance
        )
        return counted

    @property
    def _sources_whose_keyless_rows_are_replaced(self) -> Sequence[str]:
        return self._scan.source_names

    @property
    def _lists_all(self) -> bool:
        return False

    def _time_of_mapping_change_text(self, tx: Transaction) -> str:  # noqa: ARG002  the next run of the stream reports it
        return ""

    def _known_records(self) -> pl.DataFrame:
        return self._state.key_index_frame_of_keys(self._bound.scope, self._scan.latest[KEY_HASH].to_list())

    def _decide_removals(self, found: Delta, counted: Tally, unsettled: Sequence[Intent]) -> Removals:  # noqa: ARG002
        """Decide about the records that `fetch` names as deleted, within the daily limits of the continued run."""
        self._tally.count("ignored", self._gone.add_part_and_count_undeleted(self._scan, found))
        return self._gone.decide_by_deletion_marks(unsettled, self._tally.records["deleted"], self.requested_key_hashes)

    @property
    def withheld_removal_key_hashes(self) -> Collection[int]:
        """The key hashes of the records whose removal needs approval, also of those that other parts have fetched."""
        pending = self.removals.withheld
        return () if pending is None else {*pending.key_hashes}

    def updates_for_limit_check(self) -> UpdateCandidates:
        """Return no candidates: the limits compare what changed with what was listed."""
        return UpdateCandidates(0, 0, self.records, "")

    def new_failure_counter(self) -> AuthorCodeFailureCounter:
        """Return no limit: these are few records, each of which was named."""
        return AuthorCodeFailureCounter(self._bound, None)

    def store_completion(self) -> None:
        assert self._delta is not None
        with self._state.begin_read_only() as tx:
            asked = self.removals.withheld or tx.pending_approvals.get(self._bound.name)
            had_keyless = tx.dead_letters.has_rejected_row_without_key(self._bound.name, self._scan.source_names)
        if (
            had_keyless
            or self._scan.dead_letters_without_key
            or self._delta.cured
            or self._delta.unmoved
            or self._followed.has_unstored_changes
            or asked
        ):
            with self._state.begin() as tx:
                self._store_keyless_and_clear_resolved(tx)
                self._followed.store(tx, is_done=not self._delta.postponed)
                if self.removals.withheld is not None:
                    tx.pending_approvals.request_approval(self.removals.withheld)
                else:
                    tx.pending_approvals.remove_records(
                        self._bound.name, {*self.requested_key_hashes}.difference(self.postponed_keys)
                    )
