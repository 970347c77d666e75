"""Facts about a wave when a load of it begins, from the state and the rehearsal."""

from __future__ import annotations

from dataclasses import dataclass

from crossdock.config.project.project import Project
from crossdock.migration.rehearsed_sources import of_state
from crossdock.migration.wave_status import delivered
from crossdock.migration.waves import NumberedWave, numbered_waves
from crossdock.state import Migration, Transaction


@dataclass(frozen=True, slots=True)
class WaveNumbers:
    """Numbers of one wave.

    Attributes:
        delivered: Records that earlier runs have delivered.
        rehearsed: The number of its records in the rehearsal; 0 without one.
        later: The requests of the following waves; None without a rehearsal.
    """

    delivered: int
    rehearsed: int
    later: int | None


def wave_numbers(tx: Transaction, project: Project, migration: Migration, wave: NumberedWave) -> WaveNumbers:
    rehearsal = of_state(migration.rehearsal)
    if rehearsal is None:
        return WaveNumbers(delivered(tx, project, wave), 0, None)
    later = 0
    for each in numbered_waves(project)[wave.number :]:
        later += max(0, rehearsal.waves[each.name].requests - delivered(tx, project, each))
    records = sum(stream.records for stream in rehearsal.waves[wave.name].streams.values())
    return WaveNumbers(delivered(tx, project, wave), records, later)
