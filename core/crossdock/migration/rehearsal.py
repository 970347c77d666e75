"""A rehearsal: the plan and forecast of all waves, counts and examples of outcomes, and a profile of what is read.

It writes nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct, field

from crossdock.config.project.migration_config import MigrationConfig
from crossdock.config.project.project import Project
from crossdock.errors import CrossdockError, strip_traceback_and_causes
from crossdock.mapping.stream_declaration import PLATFORM
from crossdock.migration.load_progress_and_duration import next_start_of_allowed_hours, time_to_send_requests
from crossdock.migration.planned_creates_already_on_platform import (
    AlreadyOnPlatform,
    PlannedCreates,
    find_already_on_platform,
)
from crossdock.migration.rehearsal_file_and_load_check import Rehearsal, RehearsedStream, RehearsedWave
from crossdock.migration.source_profile import SourceProfile
from crossdock.migration.waves import NumberedWave, migration_config_or_raise, waves_numbered_in_config_order
from crossdock.pacing.token_bucket import Forecast
from crossdock.reading.sources.run_context import Observe
from crossdock.runs import dry_run
from crossdock.runs.open_records import ParentRecord
from crossdock.runs.plan_result import PlanListener, PlanResult
from crossdock.runs.planning.references import placeholder_of_planned_record_id
from crossdock.state import DeadLetter, Intent, PinnedTenant, RecordIdentity, Scope, WaitingRecord
from crossdock.values.clock import Clock
from crossdock.values.raw_rows_and_records import RawBatch
from crossdock.values.run_progress_and_messages import Progress
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


class PlannedOutcomeCounts:
    """Counts the decisions of a plan. *later* comes from `later_waves_by_stream_and_placeholder_prefix`."""

    def __init__(
        self,
        scopes: Mapping[str, Scope],
        later: Mapping[str, Mapping[str, str]],
        creates: PlannedCreates | None = None,
    ) -> None:
        self._scopes, self._later, self._creates = scopes, later, creates
        self._rejected: set[ParentRecord] = set()
        self._waiting: set[ParentRecord] = set()
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

    def missing_parent_reason(self, parent: ParentRecord) -> str:
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

    def _identity_as_parent(self, identity: RecordIdentity) -> ParentRecord:
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


class RehearsalResult(Struct, frozen=True):
    """The result of a rehearsal.

    Attributes:
        profiles: The profile of what each stream read, also of an incomplete reading.
        joined_profiles: The profiles of look-ups and joins, by stream and their name.
        adoption_members: The member by which a stream takes over records with other names.
        already_there: None if the platform was not read.
    """

    name: str
    pin: PinnedTenant
    began: datetime
    waves: tuple[WaveForecast, ...]
    planned: PlanResult
    outcome_counts: PlannedOutcomeCounts
    profiles: Mapping[str, SourceProfile]
    joined_profiles: Mapping[str, Mapping[str, SourceProfile]]
    left_out: tuple[str, ...]
    adoption_members: Mapping[str, str]
    already_there: AlreadyOnPlatform | None

    @property
    def has_open_records(self) -> bool:
        """Whether the load will leave some records undelivered."""
        found = any(each.has_open_records for each in self.outcome_counts.streams.values()) or bool(
            self.planned.rejected_before
        )
        there = self.already_there
        return found or (
            there is not None
            and (any(each.counts.several for each in there.matched.values()) or any(there.conflicts.values()))
        )

    def to_rehearsal(self) -> Rehearsal:
        """Return what `crossdock migrate load` compares with; only if every stream was read."""
        return Rehearsal(
            base_url=self.pin.base_url,
            tenant=self.pin.tenant,
            waves={wave.wave.name: self._rehearsed_wave(wave) for wave in self.waves},
        )

    def _rehearsed_wave(self, wave: WaveForecast) -> RehearsedWave:
        return RehearsedWave(
            streams={name: self._rehearsed_stream(name) for name in wave.wave.streams}, requests=wave.requests
        )

    def _rehearsed_stream(self, name: str) -> RehearsedStream:
        tally = self.planned.tallies[name]
        return RehearsedStream(
            source=self.planned.sources[name], records=tally.records["read"], operations=tally.delivered
        )


def rehearse(project: Project, *, clock: Clock, progress: Progress, against_platform: bool = False) -> RehearsalResult:
    """Plan all waves, and profile what they read. With *against_platform*, also read what the platform has already.

    Errors of sources and of the platform are in the result.
    """
    migration, waves = migration_config_or_raise(project), waves_numbered_in_config_order(project)
    creates = PlannedCreates(project.adoption_member_by_stream) if against_platform else None
    decisions = PlannedOutcomeCounts(
        project.scope_by_stream, later_waves_by_stream_and_placeholder_prefix(project, waves), creates
    )
    profiles: dict[str, SourceProfile] = defaultdict(SourceProfile)
    joined: dict[str, dict[str, SourceProfile]] = defaultdict(lambda: defaultdict(SourceProfile))

    def observe(stream: str, part: str, batch: RawBatch) -> None:
        if part:
            joined[stream][part].add_batch(batch)
        else:
            profiles[stream].add_batch(batch, joined[stream])

    began, names = clock.now(), [name for wave in waves for name in wave.streams]
    planned = dry_run.plan_sync(
        project, names, decisions.listener(observe), clock=clock, progress=progress, hash_sources=True
    )
    for profile in (*profiles.values(), *(part for parts in joined.values() for part in parts.values())):
        profile.profile_buffered_rows()
    forecasts = tuple(wave_forecasts(migration, waves, planned, began))
    left_out = tuple(name for name in project.scope_by_stream if name not in names)
    there = None
    if creates is not None:
        try:
            there = find_already_on_platform(project, names, creates, clock=clock, progress=progress)
        except CrossdockError as error:  # the results so far are worth showing
            planned.errors[PLATFORM] = strip_traceback_and_causes(error)
    return RehearsalResult(
        name=migration.name,
        pin=project.pinned_tenant,
        began=began,
        waves=forecasts,
        planned=planned,
        outcome_counts=decisions,
        profiles=profiles,
        joined_profiles=joined,
        left_out=left_out,
        adoption_members=project.adoption_member_by_stream,
        already_there=there,
    )


def later_waves_by_stream_and_placeholder_prefix(
    project: Project, waves: Sequence[NumberedWave]
) -> dict[str, dict[str, str]]:
    """Map streams that may refer to records of later waves to the prefixes of their placeholders and these waves."""
    scopes, wave_of = project.scope_by_stream, {name: wave for wave in waves for name in sorted(wave.streams)}
    found: dict[str, dict[str, str]] = {}
    for name, wave in wave_of.items():
        parents, target = project.stream(name).resource_type.parents, scopes[name].target
        for other, later in wave_of.items():
            scope = scopes[other].whole_record_scope
            if later.number > wave.number and scope.target == target and scope.resource in parents:
                found.setdefault(name, {})[placeholder_of_planned_record_id(scope, "").removesuffix(">")] = later.name
    return found


class WaveForecast(Struct, frozen=True):
    """The forecast of one wave. Its requests go to all targets; the first wave also sends operations of earlier runs.

    *begins* and *ends* are when its first and last request can be sent, in UTC; None if that cannot be known.
    """

    wave: NumberedWave
    requests: int
    begins: datetime | None
    ends: datetime | None


def wave_forecasts(
    migration: MigrationConfig, waves: Sequence[NumberedWave], planned: PlanResult, began: datetime
) -> Iterator[WaveForecast]:
    wave_of = {stream: wave.name for wave in waves for stream in wave.streams}
    needed: dict[str, Counter[str]] = {wave.name: Counter() for wave in waves}
    for (target, stream), requests in planned.requests.items():
        needed[wave_of.get(stream, waves[0].name)][target] += requests
    forecasts = {PLATFORM: planned.forecast} | planned.other_forecasts
    loads = {name: _TargetLoad(migration, forecast) for name, forecast in forecasts.items()}
    begins: datetime | None = began
    for wave in waves:
        ends = _end_of_slowest_target(
            begins, [(loads[target], requests) for target, requests in needed[wave.name].items()]
        )
        yield WaveForecast(wave, needed[wave.name].total(), begins, ends)
        begins = ends


def _end_of_slowest_target(begins: datetime | None, loads: Sequence[tuple[_TargetLoad, int]]) -> datetime | None:
    ends = [None if begins is None else load.end_of_requests(requests, begins) for load, requests in loads]
    known = [each for each in ends if each is not None]
    return max(known, default=begins) if len(known) == len(ends) else None


class _TargetLoad:
    """The requests to one target. As many as its burst are sent at once; none if the burst is unknown."""

    def __init__(self, migration: MigrationConfig, forecast: Forecast) -> None:
        self._migration, self._rate_per_s = migration, forecast.rate_per_s
        self._at_once = forecast.at_once or 0

    def end_of_requests(self, requests: int, begins: datetime) -> datetime | None:
        """Return when *requests* more are sent, the first of them at *begins* or later."""
        if self._rate_per_s is None:
            return None
        allowed = (
            begins
            if self._migration.allowance_percent(begins)
            else next_start_of_allowed_hours(self._migration, begins)
        )
        if allowed is None:
            return None
        at_once = min(requests, self._at_once)
        self._at_once -= at_once
        left = time_to_send_requests(requests - at_once, self._rate_per_s, self._migration, allowed)
        return None if left is None else allowed + left
