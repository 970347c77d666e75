"""Rehearsal files, and the check that the first load of each wave sends exactly what was rehearsed."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from contextlib import closing
from typing import Annotated, Any, ClassVar

from pydantic import Field

from crossdock.config.project.connections_and_bound_streams import BoundStream
from crossdock.config.project.project import Project
from crossdock.errors import RefusedError, StoppedError
from crossdock.migration.waves import NumberedWave, waves_numbered_in_config_order
from crossdock.runs import dry_run
from crossdock.runs.plan_and_apply import ExpectedInput, SavedHashesFile
from crossdock.runs.plan_result import PlanListener, PlanResult
from crossdock.runs.session_shared_by_runs import Session
from crossdock.runs.stream_delivery import RunInputFactory
from crossdock.runs.stream_input import StreamInput
from crossdock.state import Migration, State
from crossdock.state.tables.run_history import COMPLETED
from crossdock.values.clock import Clock
from crossdock.values.config_base_types import ConfigModel
from crossdock.values.run_progress_and_messages import SilentProgress
from crossdock.values.run_states_and_tally import Tally


class _InterruptibleProgress(SilentProgress):
    def __init__(self, interrupt: threading.Event) -> None:
        self._interrupt = interrupt

    def advance(self, steps: int = 1) -> None:  # noqa: ARG002  the number does not matter
        if self._interrupt.is_set():
            raise StoppedError("stopped while reading", hint="nothing was changed; run again")


def dry_run_load(
    project: Project, streams: Iterable[str], *, clock: Clock, interrupt: threading.Event, state: State | None = None
) -> PlanResult:
    """Read *streams* and plan what a load would do. Nothing is written or sent. Errors of sources are raised."""
    if state is None:
        with closing(project.open_state(read_only=True)) as opened:
            return dry_run_load(project, streams, clock=clock, interrupt=interrupt, state=opened)
    names, progress = sorted(streams), _InterruptibleProgress(interrupt)
    planned = dry_run.plan_sync_with_open_state(
        project, state, names, PlanListener.ignoring(), clock, progress, hash_sources=True
    )
    for error in planned.errors.values():
        raise error
    return planned


_Count = Annotated[int, Field(ge=0)]


class RehearsedStream(ConfigModel):
    """The reading of one stream.

    Attributes:
        source: SHA-256 over the records, independent of their order, and the version of the mapping; see
            `crossdock.runs.plan_result.PlanResult.sources`.
        operations: The number of creates and updates.
    """

    source: str
    records: _Count
    operations: _Count


class RehearsedWave(ConfigModel):
    """The needs of one wave.

    Attributes:
        requests: The requests to all targets. A record in two steps needs two.
    """

    streams: Mapping[str, RehearsedStream]
    requests: _Count


class Rehearsal(SavedHashesFile):
    """A rehearsal as hashes and counts, without data of records.

    Attributes:
        waves: The waves by name. The config has their order.
    """

    noun: ClassVar[str] = "rehearsal"
    hint: ClassVar[str] = "'crossdock migrate rehearse -o FILE' writes one"

    base_url: str
    tenant: str
    waves: Mapping[str, RehearsedWave]


_CHANGED = (
    "the source has changed since the rehearsal",
    "rehearse again, look at the result, and give its file to 'crossdock migrate load --rehearsal'",
)


def raise_if_rehearsal_differs_from_config(project: Project, rehearsal: Rehearsal) -> None:
    """Raise RefusedError for a rehearsal of another platform, or of other waves or streams."""
    pin = project.pinned_tenant
    hint = "rehearse with this config: crossdock migrate rehearse -o FILE"
    if (rehearsal.base_url, rehearsal.tenant) != (pin.base_url, pin.tenant):
        raise RefusedError(
            f"the rehearsal is of {rehearsal.base_url}, tenant {rehearsal.tenant}", hint=hint, code="rehearsal_differs"
        )
    for wave in waves_numbered_in_config_order(project):
        rehearsed = rehearsal.waves.get(wave.name)
        if rehearsed is None or rehearsed.streams.keys() != wave.streams:
            raise RefusedError(
                f"the rehearsal has other streams in the wave {wave.name}", hint=hint, code="rehearsal_differs"
            )


def parse_stored_rehearsal(rehearsal: dict[str, Any] | None) -> Rehearsal | None:
    return None if rehearsal is None else Rehearsal.model_validate(rehearsal)


def input_factory_or_raise_if_rehearsal_differs(
    session: Session, migration: Migration, wave: NumberedWave, interrupt: threading.Event
) -> RunInputFactory | None:
    """Return the source of the records of *wave*; None for the streams' own sources.

    Streams that have sent nothing yet must read what was rehearsed. All of them are read before any is delivered, so
    that a wave is refused as a whole. What is then delivered is compared once more.
    """
    rehearsal = parse_stored_rehearsal(migration.rehearsal)
    names = _unsent_streams(session.state, migration, wave) if rehearsal is not None else set()
    if rehearsal is None or not names:
        return None
    expected = {name: stream.source for name, stream in rehearsal.waves[wave.name].streams.items() if name in names}
    found = dry_run_load(session.project, names, clock=session.clock, interrupt=interrupt, state=session.state)
    for name in sorted(names):
        if found.sources.get(name) != expected[name]:
            message, hint = _CHANGED
            raise RefusedError(
                f"{message}; nothing of the wave was sent", where=name, hint=hint, code="rehearsal_differs"
            )

    def source(bound: BoundStream, tally: Tally, run_id: int) -> StreamInput:
        if bound.name not in expected:
            return StreamInput(bound, session.state, tally, run_id)
        digest = expected[bound.name]
        return ExpectedInput(bound, session.state, tally, run_id, digest=digest, refusal=_CHANGED)

    return source


def _unsent_streams(state: State, migration: Migration, wave: NumberedWave) -> set[str]:
    """Return the streams of a wave that have sent nothing since it was undone; none once a load has reached its end."""
    with state.begin_read_only() as tx:
        sent = tx.migrations.streams_sent_since_undo(migration.id, wave.name)
        runs = tx.migrations.loads_since_undo(migration.id).get(wave.name, [])
        completed = any((found := tx.runs.get(run_id)) and found.status in COMPLETED for run_id in runs)
    return set() if completed else set(wave.streams - sent)
