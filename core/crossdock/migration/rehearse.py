"""A rehearsal: the plan of all waves, with a profile of what is read. No call to the platform; nothing is written."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from crossdock.clock import Clock
from crossdock.migration.load_forecast import LoadForecast
from crossdock.migration.rehearsal import Rehearsal, RehearsedStream, RehearsedWave
from crossdock.migration.rehearsed_decisions import Decisions
from crossdock.migration.source_profile import SourceProfile
from crossdock.migration.wave_order import later_parents, streams_of_waves
from crossdock.progress import Progress
from crossdock.project.migration_config import MigrationConfig
from crossdock.project.project import Project
from crossdock.records import RawBatch
from crossdock.runs import dry_run
from crossdock.runs.plan_results import Planned
from crossdock.state import Pin
from crossdock.stream_facts import PLATFORM


@dataclass(frozen=True, slots=True)
class WaveForecast:
    """What one wave needs if the load begins now.

    Attributes:
        streams: Their names.
        requests: To all targets; what an earlier run left is sent by the first wave.
        begins, ends: When its first and last request can be sent; None if nobody can know.
    """

    name: str
    streams: tuple[str, ...]
    requests: int
    begins: datetime | None
    ends: datetime | None


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """What a rehearsal found.

    Attributes:
        waves: In the order in which they are loaded.
        profiles: Of what each stream read, by its name; of one that could not be read, as far as it was.
    """

    name: str
    pin: Pin
    began: datetime
    waves: tuple[WaveForecast, ...]
    planned: Planned
    decisions: Decisions
    profiles: Mapping[str, SourceProfile]

    @property
    def is_open(self) -> bool:
        """Whether some records will not be delivered by the load."""
        return any(each.is_open for each in self.decisions.streams.values()) or bool(self.planned.rejected_before)

    def document(self) -> Rehearsal:
        """What `crossdock migrate load` compares with; only if every stream was read."""
        return Rehearsal(
            base_url=self.pin.base_url,
            tenant=self.pin.tenant,
            waves={wave.name: self._wave(wave) for wave in self.waves},
        )

    def _wave(self, wave: WaveForecast) -> RehearsedWave:
        return RehearsedWave(streams={name: self._stream(name) for name in wave.streams}, requests=wave.requests)

    def _stream(self, name: str) -> RehearsedStream:
        tally = self.planned.tallies[name]
        return RehearsedStream(
            source=self.planned.sources[name], records=tally.records["read"], operations=tally.delivered
        )


def rehearse(project: Project, migration: MigrationConfig, *, clock: Clock, progress: Progress) -> Rehearsed:
    """Plan all waves, and profile what they read.

    Raises:
        CrossdockError: If the state cannot be read. Errors of sources are in the result.
    """
    waves = streams_of_waves(project, migration)
    decisions = Decisions(project.scopes, later_parents(project, waves))
    profiles: dict[str, SourceProfile] = defaultdict(SourceProfile)

    def observe(stream: str, batch: RawBatch) -> None:
        profiles[stream].take(batch)

    began, names = clock.now(), [name for streams in waves.values() for name in streams]
    planned = dry_run.plan(
        project, names, decisions.listener(), clock=clock, progress=progress, summed=True, observe=observe
    )
    for profile in profiles.values():
        profile.finish()
    forecasts = tuple(_forecasts(migration, waves, planned, began))
    return Rehearsed(migration.name, project.pin, began, forecasts, planned, decisions, profiles)


def _forecasts(
    migration: MigrationConfig,
    waves: Mapping[str, tuple[str, ...]],
    planned: Planned,
    began: datetime,
) -> Iterator[WaveForecast]:
    limits = {PLATFORM: planned.forecast} | planned.other_forecasts
    loads = {name: LoadForecast(migration, limit, began) for name, limit in limits.items()}
    wave_of = {stream: wave for wave, streams in waves.items() for stream in streams}
    first = next(iter(waves))
    needed: dict[str, Counter[str]] = {wave: Counter() for wave in waves}
    for (target, stream), requests in planned.requests.items():
        needed[wave_of.get(stream, first)][target] += requests
    begins: datetime | None = began
    for wave, streams in waves.items():
        ends = _end(loads, needed[wave], begins)
        yield WaveForecast(wave, streams, needed[wave].total(), begins, ends)
        begins = ends


def _end(loads: Mapping[str, LoadForecast], needed: Counter[str], begins: datetime | None) -> datetime | None:
    """When the last of the targets has its requests."""
    if begins is None:
        return None
    ends = [loads[target].send(requests, begins) for target, requests in needed.items()]
    known = [each for each in ends if each is not None]
    return max(known, default=begins) if len(known) == len(ends) else None
