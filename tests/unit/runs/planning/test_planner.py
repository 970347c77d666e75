"""Every record of a run ends in exactly one place, and the tally balances."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.conftest import PIN
from tests.unit.runs.planning.accounts import account, bound_accounts, platform_target

from crossdock.config.project.connections_and_bound_streams import BoundStream
from crossdock.delta.changed_record_reading import KeyedRecord
from crossdock.delta.fingerprint import key_hashes
from crossdock.errors import RefusedError, UnavailableError
from crossdock.mapping.stream_declaration import FailureLimits
from crossdock.runs.planning.mapping_to_drafts import AuthorCodeFailureCounter
from crossdock.runs.planning.planner import PlannedChunk, Planner
from crossdock.runs.planning.references import References
from crossdock.runs.planning.removals import Removals
from crossdock.runs.planning.waiting_records import RecordsAwaitingParents
from crossdock.state import Binding, DeadLetter, Scope, State, create_or_upgrade_state, parse_database_url
from crossdock.testing.manual_clock import ManualClock
from crossdock.values.author_code_errors import AuthorCodeError
from crossdock.values.raw_rows_and_records import Record
from crossdock.values.run_states_and_tally import Tally
from crossdock.writing.delivery.delivery_context import DeliveringRun
from crossdock.writing.delivery.operations_and_intents import Operation

AT = datetime(2026, 1, 1, tzinfo=UTC)
TARGET = platform_target()
KEYS = "abcdef"


@dataclass(frozen=True)
class Account:
    """An account as it is read.

    Attributes:
        held: The name that the target already has for it; None if it is new.
        rejected: The target rejects every operation on it.
    """

    parent: str | None
    name: str = "x"
    held: str | None = None
    rejected: bool = False


ACCOUNTS = st.dictionaries(
    st.sampled_from(KEYS),
    st.builds(
        Account,
        parent=st.none() | st.sampled_from(KEYS),
        name=st.sampled_from(["x", "x", "y", "bad"]),
        held=st.sampled_from([None, None, "x"]),
        rejected=st.sampled_from([False, False, False, True]),
    ),
)


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[State]:
    url = parse_database_url("sqlite:///state.db", tmp_path_factory.mktemp("planner"))
    create_or_upgrade_state(url, PIN)
    with closing(State(url, PIN)) as state:
        yield state


@dataclass
class Run:
    """One run over a stream; operations are settled as soon as they are planned."""

    state: State
    bound: BoundStream
    rejecting: frozenset[str] = frozenset()
    planned: set[tuple[Scope, int]] | None = None  # in a plan
    tally: Tally = field(default_factory=Tally)
    ends: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        with self.state.begin() as tx:
            self._id = tx.runs.start(business_date="2026-01-01", at=AT)
        self._run = DeliveringRun(self.state, self._id, ManualClock(), threading.Event())

    def planner(self, gone: Removals, records: int | None = None) -> Planner:
        references = References("platform", self.planned)
        self.held = RecordsAwaitingParents(self.bound, self.state, references, {self.bound.scope})
        failing = AuthorCodeFailureCounter(self.bound, records)
        return Planner(self.held, self.tally, self._run, gone=gone, failing=failing, at_once=2)

    def execute(self, planner: Planner, reads: Iterator[KeyedRecord]) -> None:
        chunks: Iterator[PlannedChunk] | None = planner.decide_in_chunks(reads)
        while chunks is not None:
            for chunk in chunks:
                self._end("suppressed", (binding.key for binding in chunk.suppressed))
                self._end("rejected", (dead_letter.identity.key for dead_letter in chunk.dead_letters))
                for operation in chunk.operations:
                    self._settle(operation)
                if self.planned is None:
                    with self.state.begin() as tx:
                        chunk.store_all_but_operations(tx)
            chunks = planner.plan_ready_cycles_or_removals()
        planner.count_rest_as_carried_on(reads)
        planner.count_unplanned_removals_as_carried_on()
        self.tally.count("carried_on", self.held.discard_all_and_count())

    def _end(self, end: str, keys: Iterator[str]) -> None:
        for key in keys:
            assert self.ends.setdefault(key, end) == end, f"{key} is {self.ends[key]} and {end}"

    def _settle(self, operation: Operation) -> None:
        if operation.identity.key in self.rejecting:
            self._end("rejected", iter([operation.identity.key]))
            self.tally.count("rejected")
            dead_letter = DeadLetter(operation.identity, "delivery", "rejected", None, "", {}, None)
            with self.state.begin() as tx:
                tx.dead_letters.put([dead_letter], run_id=self._id, at=AT)
                tx.waiting_records.remove_records(self.bound.name, [operation.identity.key_hash])
        elif self.planned is not None:
            self.planned.add((operation.scope, operation.identity.key_hash))
            self._delivered(operation)
        else:
            self.bind({operation.identity.key: operation.after}, step=operation.step)
            self._delivered(operation)

    def _delivered(self, operation: Operation) -> None:
        if operation.step != "open":
            assert operation.identity.key not in self.ends, "delivered once"
            self._end("delivered", iter([operation.identity.key]))
            self.tally.count("created" if operation.binding is None else "updated")

    def bind(self, payloads: Mapping[str, dict[str, str]], step: str = "whole") -> None:
        bindings = [
            Binding(key_hashes([key])[key], key, f"id-{key}", 1, None, step, payload, None, 1)  # type: ignore[arg-type]
            for key, payload in payloads.items()
        ]
        with self.state.begin() as tx:
            tx.bindings.put(self.bound.scope, bindings, run_id=self._id, at=AT)

    def waiting(self) -> set[str]:
        with self.state.begin_read_only() as tx:
            return {record.identity.key for record in tx.waiting_records.waits_of_stream(self.bound.name)}


NAMESPACES = count()


def prepared(state: State, accounts: Mapping[str, Account]) -> tuple[Run, Iterator[KeyedRecord]]:
    """A run in a namespace of its own, with the bindings that *accounts* have, and its records."""
    bound = bound_accounts(f"n{next(NAMESPACES)}")
    run = Run(state, bound, frozenset(key for key, each in accounts.items() if each.rejected))
    held = {key: each.held for key, each in accounts.items() if each.held}
    run.bind(
        {
            key: TARGET.payload("ledger_account", bound.namespace, key, {"code": key, "name": name, "type": "asset"})
            for key, name in held.items()
        }
    )
    run.tally.count("read", len(accounts))
    return run, iter([account(bound, key, each.parent, each.name) for key, each in accounts.items()])


@example({"a": Account("b"), "b": Account("a")})
@example({"a": Account("b", rejected=True), "b": Account("a")})
@example({"a": Account("a"), "b": Account("a", held="x"), "c": Account("f")})
@given(accounts=ACCOUNTS)
def test_every_record_ends_in_one_place(database: State, accounts: dict[str, Account]) -> None:
    """Delivered, suppressed, rejected or waiting, each exactly once; the tally has the same numbers and balances."""
    run, reads = prepared(database, accounts)
    run.execute(run.planner(Removals()), reads)
    waiting = run.waiting()
    assert set(run.ends) | waiting == set(accounts)
    assert not set(run.ends) & waiting
    ends = list(run.ends.values())
    records = run.tally.records
    assert records["created"] + records["updated"] == ends.count("delivered")
    assert (records["suppressed"], records["rejected"]) == (ends.count("suppressed"), ends.count("rejected"))
    assert records["carried_on"] == len(waiting)
    assert run.tally.balanced


@given(accounts=ACCOUNTS)
def test_only_a_missing_parent_keeps_a_record_waiting(database: State, accounts: dict[str, Account]) -> None:
    """Without rejections by the target, a record waits only if its chain of parents leads to one that is not there."""
    accounts = {key: Account(each.parent, each.name, each.held) for key, each in accounts.items()}
    run, reads = prepared(database, accounts)
    run.execute(run.planner(Removals()), reads)

    def is_missing(key: str, seen: frozenset[str] = frozenset()) -> bool:
        each = accounts.get(key)
        if each is None or key in seen:
            return each is None
        if each.held:
            return False
        return each.name == "bad" or (each.parent is not None and is_missing(each.parent, seen | {key}))

    expected = {key for key, each in accounts.items() if each.name != "bad" and each.parent and is_missing(each.parent)}
    assert run.waiting() == expected


@given(accounts=ACCOUNTS)
def test_a_plan_decides_as_the_sync_does(database: State, accounts: dict[str, Account]) -> None:
    """The plan has the decisions of the sync that follows it, and writes nothing."""
    accounts = {key: Account(each.parent, each.name, each.held) for key, each in accounts.items()}
    run, reads = prepared(database, accounts)
    records = list(reads)
    plan = Run(database, run.bound, planned=set())
    plan.tally.count("read", len(records))
    plan.execute(plan.planner(Removals()), iter(records))
    assert plan.waiting() == set()
    run.execute(run.planner(Removals()), iter(records))
    assert plan.ends == run.ends
    assert plan.tally == run.tally


def test_records_of_a_failing_source_are_delivered_so_far(database: State) -> None:
    """When a source fails in the middle, complete decisions stay, and the planner says why it stopped."""
    run, reads = prepared(database, {key: Account(None) for key in "abc"})

    def failing() -> Iterator[KeyedRecord]:
        yield from reads
        raise UnavailableError("down")

    planner = run.planner(Removals())
    run.execute(planner, failing())
    assert isinstance(planner.stopped, UnavailableError)
    assert run.ends == dict.fromkeys("abc", "delivered")


def test_a_mapping_that_fails_too_often_stops_the_stream(database: State) -> None:
    """Beyond the limits the rest of the stream is carried on, and the refusal names the limits."""
    run, _ = prepared(database, {})
    stream = run.bound.stream
    stream.mapping_failed = FailureLimits(at_most=1, at_most_percent=0)

    def to_resource(record: Record) -> dict[str, str]:
        raise KeyError(record.key)

    stream.to_resource = to_resource  # type: ignore[method-assign]
    run.tally.count("read", 5)
    planner = run.planner(Removals(), records=5)
    run.execute(planner, iter([account(run.bound, key) for key in "abcde"]))
    assert isinstance(planner.stopped, RefusedError)
    assert "mapping_failed: at_most (1)" in planner.stopped.message
    assert (run.tally.records["rejected"], run.tally.records["carried_on"], run.tally.balanced) == (2, 3, True)


def test_a_target_that_fails_too_often_on_first_steps_stops_the_stream(
    database: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Failures on the records that open cycles count for the limits, and cycles that are not opened are carried on."""
    cycles = {key: Account(parent) for key, parent in zip("abcdefgh", "badcfehg", strict=True)}
    run, reads = prepared(database, cycles)
    run.bound.stream.mapping_failed = FailureLimits(at_most=1, at_most_percent=0)

    def payload(*_: object) -> dict[str, str]:
        raise AuthorCodeError("payload", "raised KeyError")

    monkeypatch.setattr(run.bound.target, "payload", payload)
    planner = run.planner(Removals(), records=len(cycles))
    run.execute(planner, reads)
    assert isinstance(planner.stopped, RefusedError)
    assert "the code of the target failed for 2 of 8 records" in planner.stopped.message
    assert (run.tally.records["rejected"], run.tally.records["carried_on"], run.tally.balanced) == (2, 6, True)


def test_removals_are_planned_last(database: State) -> None:
    """Removals come after the records of the run; those without a binding any more are ignored."""
    run, reads = prepared(database, {"a": Account(None), "b": Account(None, held="x")})
    run.bound.stream.on_gone = "delete"
    gone = key_hashes(["b", "c"])
    run.tally.count("gone", 2)
    planner = run.planner(Removals(removed=tuple(gone.values()), source="s.csv"))
    kinds = [
        operation.kind for chunk in planner.decide_in_chunks(iter([next(reads)])) for operation in chunk.operations
    ]
    (removals,) = [list(planner.plan_ready_cycles_or_removals() or ())]
    kinds += [operation.kind for chunk in removals for operation in chunk.operations]
    assert kinds == ["create", "delete"]
    assert run.tally.records["ignored"] == 1
    assert planner.plan_ready_cycles_or_removals() is None


def test_removals_of_a_stopped_run_are_carried_on(database: State) -> None:
    """When a stream stops, its removals are not planned."""
    run, _ = prepared(database, {})
    run.tally.count("gone", 2)

    def failing() -> Iterator[KeyedRecord]:
        raise UnavailableError("down")
        yield account(run.bound, "a")

    run.execute(run.planner(Removals(removed=(1, 2))), failing())
    assert (run.tally.records["carried_on"], run.tally.balanced) == (2, True)
