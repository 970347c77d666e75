"""Removals against a model of plain sets: snapshots of every kind, approvals and kills."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl
from hypothesis import event, example, given, settings
from hypothesis import strategies as st
from tests.conftest import PIN
from tests.examples import examples
from tests.hashes import HASHES

from crossdock.config.project.connections_and_bound_streams import BoundStream
from crossdock.connector import Context, Settings, Stream
from crossdock.mapping.stream_declaration import Filter, GoneLimits, OnGone
from crossdock.platform.platform_config import Profile
from crossdock.reading.sources.run_context import SourceContext
from crossdock.runs.imported_file_log import EmptyIntakeLog
from crossdock.runs.planning.planner import PlannedChunk, Planner
from crossdock.runs.planning.references import References
from crossdock.runs.planning.removals import _as_key_series, _exclude_keys_and_count
from crossdock.runs.planning.waiting_records import RecordsAwaitingParents
from crossdock.runs.stream_input import StreamInput
from crossdock.state import Binding, Scope, State, create_or_upgrade_state, parse_database_url
from crossdock.state.tables.inputs_of_streams import COMPARED_SNAPSHOTS
from crossdock.testing.manual_clock import ManualClock
from crossdock.values.raw_rows_and_records import LINE, Proof, RawBatch, Record
from crossdock.values.run_progress_and_messages import SilentProgress
from crossdock.values.run_states_and_tally import Tally, Term
from crossdock.writing.delivery.delivery_context import DeliveringRun
from crossdock.writing.delivery.operations_and_intents import Operation
from crossdock.writing.targets.platform_target import PlatformTarget

SCOPE = Scope("platform", "product", "w")
STREAM = "w.things"
LIMITS = GoneLimits(at_most=2, at_most_percent=40, rows_within_percent=50)
KEYS = "abcdefgh"


@dataclass(frozen=True)
class ScheduledRun:
    """What a source lists, and what happens to the run.

    Attributes:
        rows: Value by key.
        counted: The source has a row count.
        keyless: One more row has no key.
        filtered: Keys of further rows, which a filter excludes.
        approved: Removals that the run stops at are approved.
        killed_after: Operations that each run delivers before it is killed; a run after 0 is not killed.
    """

    rows: dict[str, str]
    counted: bool
    keyless: bool
    filtered: frozenset[str]
    approved: bool
    killed_after: int | None

    @property
    def skipped(self) -> frozenset[str]:
        return self.filtered - self.rows.keys()

    @property
    def height(self) -> int:
        return len(self.rows) + len(self.skipped) + self.keyless


RUN = st.builds(
    ScheduledRun,
    rows=st.dictionaries(st.sampled_from(KEYS), st.sampled_from("xy"), min_size=3),
    counted=st.booleans(),
    keyless=st.sampled_from([False, False, False, True]),
    filtered=st.frozensets(st.sampled_from(KEYS), max_size=1),
    approved=st.booleans(),
    killed_after=st.sampled_from([None, 0, 1, 2]),
)


class Listing(Stream[Any]):
    """A snapshot of products; its content is set for each run."""

    name, resource, mode, key = "things", "product", "snapshot", ("K",)
    uses, gone = ("V",), LIMITS
    skip = {"out": Filter(field="S", equals="out")}

    def __init__(self, on_gone: OnGone) -> None:
        self.on_gone = on_gone
        self.content, self.run = "", ScheduledRun({}, True, False, frozenset(), False, None)

    def pull(self, ctx: Context[Any], since: str | None) -> Iterator[RawBatch]:
        run = self.run
        rows = [(key, value, "") for key, value in run.rows.items()] + [("", "x", "")] * run.keyless
        rows += [(key, "x", "out") for key in run.skipped]
        frame = pl.DataFrame(rows, schema=dict.fromkeys("KVS", pl.String), orient="row")
        numbered = frame.with_row_index(LINE, offset=2).cast({LINE: pl.UInt64})
        yield RawBatch("run", numbered, proof=Proof(lambda: self.content, counted=run.counted))

    def to_resource(self, record: Record) -> dict[str, Any]:
        return {"sku": record.row["K"], "name": record.row["V"]}


class Warehouse:
    """Executes runs on a state; operations are delivered as soon as they are planned."""

    def __init__(self, folder: Path, state: State, on_gone: OnGone) -> None:
        self._state, self._clock, self._stream_template_values, self._contents = (
            state,
            ManualClock(),
            Listing(on_gone),
            count(1),
        )
        place = SourceContext(self._clock, SilentProgress(), EmptyIntakeLog(), folder, folder, folder)
        auth = {"kind": "api_key", "token": "env:NOBODY"}
        facts = {"base_url": PIN.base_url, "tenant": PIN.tenant, "auth": auth}
        self._target = PlatformTarget(Profile.model_validate(facts, context={"folder": folder}))
        context = Context(Settings(kind="none"), "w", place)
        self._bound = BoundStream(STREAM, "w", self._stream_template_values, SCOPE, context, self._target)

    def runs(self, run: ScheduledRun) -> None:
        """Repeat a run until it ends, or waits for an approval that it does not get."""
        self._clock.advance(86_400)
        self._stream_template_values.run, self._stream_template_values.content = run, f"{next(self._contents):064}"
        held = self._to_its_end(run.killed_after)
        if held and run.approved:
            with self._state.begin() as tx:
                waits = tx.pending_approvals.get(STREAM)
                assert waits is not None
                assert waits.record_count == held
                tx.pending_approvals.approve(waits, at=self._clock.now())
            assert not self._to_its_end(run.killed_after), "an approval is requested once"

    def _to_its_end(self, killed_after: int | None) -> int:
        """The number of records that wait for approval."""
        budget = killed_after
        while True:
            ended, held = self._run(budget)
            if ended:
                return held
            budget = None if budget == 0 else budget  # else it would be killed forever

    def _run(self, budget: int | None) -> tuple[bool, int]:
        """Run once; False if killed after *budget* operations, and the number of records that wait for approval."""
        tally = Tally()
        with self._state.begin() as tx:
            run_id = tx.runs.start(business_date="2026-01-01", at=self._clock.now())
        reading = StreamInput(self._bound, self._state, tally, run_id)
        reading.read_next_part([], lambda _rows: None)
        held = RecordsAwaitingParents(self._bound, self._state, References(self._target.name), {self._bound.scope})
        run = DeliveringRun(self._state, run_id, self._clock, threading.Event())
        planner = Planner(held, tally, run, gone=reading.removals, failing=reading.new_failure_counter())
        chunks: Iterator[PlannedChunk] | None = planner.decide_in_chunks(reading.records())
        while chunks is not None:
            for decided in chunks:
                for operation in decided.operations:
                    if budget == 0:
                        return False, 0
                    budget = None if budget is None else budget - 1
                    self._deliver(operation, run_id, tally)
                with self._state.begin() as tx:
                    decided.store_all_but_operations(tx)
            chunks = planner.plan_ready_cycles_or_removals()
        planner.count_unplanned_removals_as_carried_on()
        reading.store_completion()
        assert tally.balanced, tally
        return True, reading.removals.withheld.record_count if reading.removals.withheld else 0

    def _deliver(self, operation: Operation, run_id: int, tally: Tally) -> None:
        key, payload = operation.identity.key_hash, operation.after
        with self._state.begin() as tx:
            if operation.kind == "delete":
                tx.bindings.mark_deleted(SCOPE, [key], at=self._clock.now())
                tally.count("deleted")
                return
            fingerprint, step = operation.identity.fingerprint, operation.step
            made = Binding(key, operation.record.key, "p", fingerprint, None, step, payload, None, 1)
            tx.bindings.put(SCOPE, [made], run_id=run_id, at=self._clock.now())
            tally.count("created" if operation.binding is None else "updated")

    def active(self) -> dict[str, str]:
        """Value by key of every record at the target that is not archived."""
        keys = [row[0] for row in self._state.key_index_frame_of_scope(SCOPE).rows()]
        with self._state.begin() as tx:
            held = tx.bindings.get(SCOPE, keys)
        return {each.key: each.payload["name"] for each in held.values() if each.payload["active"]}


class Model:
    """The same in plain sets."""

    def __init__(self) -> None:
        self.active: dict[str, str] = {}
        self._rows: list[int] = []
        self._present: int | None = None

    def runs(self, run: ScheduledRun) -> None:
        gone = self.active.keys() - run.rows.keys() - run.skipped
        self.active |= run.rows
        over = len(gone) > LIMITS.at_most or len(gone) * 100 > LIMITS.at_most_percent * (self._present or 0)
        is_proven, needs_approval = self._is_proven(run), over if self._is_proven(run) else self._is_doubtful(run)
        if gone and needs_approval:
            event("approved" if run.approved else "stopped")
            if is_proven and not run.approved:
                return  # the run does not end
        if gone and (run.approved if needs_approval else is_proven):
            for key in gone:
                del self.active[key]
        self._rows, self._present = [run.height, *self._rows][:COMPARED_SNAPSHOTS], len(self.active)

    def _is_proven(self, run: ScheduledRun) -> bool:
        if run.keyless or self._present is None:
            return False
        return run.counted or (len(self._rows) == COMPARED_SNAPSHOTS and self._is_usual(run))

    def _is_doubtful(self, run: ScheduledRun) -> bool:
        """Whether an operator must decide, since later lists do not."""
        is_known = self._present is not None and len(self._rows) == COMPARED_SNAPSHOTS
        return run.keyless or (is_known and not run.counted and not self._is_usual(run))

    def _is_usual(self, run: ScheduledRun) -> bool:
        return all(abs(run.height - rows) * 100 <= LIMITS.rows_within_percent * rows for rows in self._rows)


@given(keys=st.sets(HASHES, min_size=1), others=st.sets(HASHES))
def test_without_counts_what_it_leaves_out(keys: set[int], others: set[int]) -> None:
    """The rest equals a plain set difference, and the other keys are counted."""
    terms: Counter[Term] = Counter()
    rest = _exclude_keys_and_count(_as_key_series(keys), _as_key_series(others), terms, "ignored")
    assert set(rest) == keys - others
    assert terms["ignored"] == len(keys & others)


RUNS = st.lists(RUN, min_size=2, max_size=7)
ON_GONE: st.SearchStrategy[OnGone] = st.sampled_from(["archive", "delete"])
FULL = ScheduledRun(dict.fromkeys(KEYS, "x"), True, False, frozenset(), False, None)
HALF = ScheduledRun(dict.fromkeys(KEYS[:3], "x"), True, False, frozenset(), True, 1)


@example([FULL, HALF, FULL, HALF], "delete")
@settings(max_examples=examples(30), deadline=None)  # `tests.long.test_properties` has more
@given(RUNS, ON_GONE)
def test_runs_remove_what_plain_sets_would(scheduled_runs: list[ScheduledRun], on_gone: OnGone) -> None:
    """Records come, go and come back, runs are killed: exactly the permitted records are removed."""
    removes_what_plain_sets_would(scheduled_runs, on_gone)


def removes_what_plain_sets_would(scheduled_runs: list[ScheduledRun], on_gone: OnGone) -> None:
    model = Model()
    with TemporaryDirectory() as work:
        folder = Path(work)
        url = parse_database_url("sqlite:///state.db", folder)
        create_or_upgrade_state(url, PIN)
        with closing(State(url, PIN)) as state:
            warehouse = Warehouse(folder, state, on_gone)
            for run in scheduled_runs:
                warehouse.runs(run)
                model.runs(run)
                assert warehouse.active() == model.active
