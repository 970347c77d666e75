"""The section ``migration`` of a config file."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, time
from typing import Annotated, Self
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, Field, model_validator

from crossdock.mapping.stream_declaration import Percent
from crossdock.values.config_base_types import ConfigModel, Name, TimeOfDay
from crossdock.values.time_formats_and_zones import check_zone_name, naive_local_time_at


class Gate(ConfigModel):
    """What must hold before the next wave begins."""

    rejected_at_most: Annotated[int, Field(ge=0)] = 0
    """The most records that may be rejected, waiting or in doubt after the wave. It is enough if this or the percentage
    is kept."""
    rejected_at_most_percent: Percent = 0
    """Percent of the records that the streams of the wave know, whichever load read them."""
    person: bool = False
    """Whether a person must let it go on in any case: ``crossdock migrate go WAVE``."""


class Wave(ConfigModel):
    """Streams that are loaded together, before those of the next wave."""

    streams: Annotated[tuple[str, ...], Field(min_length=1)]
    """``CONNECTION`` or ``CONNECTION.STREAM``. Each stream is in one wave."""
    gate: Gate = Gate()
    """What must hold before the next wave begins. Default: no record is open."""


class Hours(ConfigModel):
    """A part of each day in which less is sent."""

    from_: Annotated[TimeOfDay, Field(alias="from")]
    """The local time of day at which the part begins, in quotes, such as "08:00"."""
    to: TimeOfDay
    """The local time of day at which the part ends. If it is earlier than ``from``, it is on the next day."""
    percent: Annotated[int, Field(ge=0, le=100)]
    """Percent of the allowance that is used; 0 stops the load until then."""

    def contain(self, at: time) -> bool:
        begin, end = time.fromisoformat(self.from_), time.fromisoformat(self.to)
        return begin <= at < end if begin < end else at >= begin or at < end


class MigrationConfig(ConfigModel):
    """The move of a legacy system, which ``crossdock migrate`` carries out once."""

    name: Name = "migration"
    """The name in reports and in the state."""
    waves: Annotated[Mapping[Name, Wave], Field(min_length=1)]
    """The waves by name, in the order in which they are loaded."""
    time_zone: Annotated[str, AfterValidator(check_zone_name)] = "UTC"
    """The time zone of ``hours``, such as ``Europe/London``."""
    hours: tuple[Hours, ...] = ()
    """Parts of the day in which less is sent; of several that contain the present, the first counts."""

    @model_validator(mode="after")
    def _check_hours(self) -> Self:
        for each in self.hours:
            if each.from_ == each.to:
                raise ValueError(f"hours: from and to are both {each.from_}")
        return self

    def allowance_percent(self, at: datetime) -> int:
        """Return the percentage of the allowance that may be used *at* that time."""
        local = naive_local_time_at(at, ZoneInfo(self.time_zone)).time()
        return next((each.percent for each in self.hours if each.contain(local)), 100)
