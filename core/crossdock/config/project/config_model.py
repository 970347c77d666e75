"""The sections of a config file, as a pydantic model."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from crossdock.config.notify_config import NotifyConfig
from crossdock.config.project.migration_config import MigrationConfig
from crossdock.config.schedules.job_and_schedule_config import JobConfig, jobs_in_order
from crossdock.config.state_location import DEFAULT_STATE
from crossdock.platform.platform_config import Profile
from crossdock.state.upkeep.retention import MAX_AGE
from crossdock.values.config_base_types import BaseUrl, ConfigModel, ConfigPath, Name, is_duration, parse_duration

KEPT = "90d"
_LEAST_KEPT = timedelta(days=7)
_RETENTION_SCHEMA = {"anyOf": [{"type": "string", "pattern": "^([1-9][0-9]{0,4})d$"}, {"enum": ["off", False]}]}


def _check_retention(value: Any) -> str:
    if value is False or value == "off":  # YAML 1.1 reads off as false
        return "off"
    if not is_duration(value, "d") or not _LEAST_KEPT <= parse_duration(value) <= MAX_AGE:
        raise ValueError(f"must be a number of days from 7d to {MAX_AGE.days}d, or off; not {str(value)!r}")
    return str(value)


Retention = Annotated[str, BeforeValidator(_check_retention), WithJsonSchema(_RETENTION_SCHEMA)]


class ListenConfig(ConfigModel):
    """How webhooks reach ``crossdock listen``."""

    public_url: BaseUrl
    """The public address of the receiver, such as ``https://hooks.example.com``, without ``/webhooks/CONNECTION``; for
    ``crossdock listen register`` and ``remove``."""


class ConfigFile(ConfigModel):
    """All sections of a config file."""

    platform: Profile
    """The platform: its address, the credential, and what is assumed about it."""
    state: str = DEFAULT_STATE
    """``sqlite:///FILE``, relative to this file, or ``postgresql://user@host/database``."""
    spool: ConfigPath | None = None
    """Folder for copies of the files in progress. Default: next to a SQLite state; with PostgreSQL next to the config
    file, or in ``fleet.folder``, named after the database, such as ``acme.spool``."""
    connections: Annotated[Mapping[Name, Mapping[str, Any]], Field(min_length=1)]
    """The connections by name."""
    retention: Retention = KEPT
    """How long the state keeps what nothing depends on any more, 7d to 36525d: settled operations, the data of dead
    letters, and facts about runs, scheduled runs, files and snapshots. ``crossdock schedule`` deletes it; ``off`` keeps
    everything."""
    jobs: Mapping[Name, JobConfig] = {}
    """What ``crossdock schedule`` runs, and when."""
    listen: ListenConfig | None = None
    """Where vendors send webhooks, for ``crossdock listen register``."""
    migration: MigrationConfig | None = None
    """The one-off move of a legacy system, for ``crossdock migrate``."""
    notify: NotifyConfig | None = None
    """Who is notified of the runs of ``crossdock schedule``."""
    fleet: FleetConfig | None = None
    """What many tenants have in common, for ``crossdock schedule --fleet``; in the base file."""

    @model_validator(mode="after")
    def _check_job_order(self) -> Self:
        jobs_in_order(self.jobs)
        return self


class FleetConfig(ConfigModel):
    """How ``crossdock schedule --fleet`` runs the jobs of many tenants."""

    database: str = "sqlite:///fleet.db"
    """Database of the fleet, in which its schedulers agree who leads: ``sqlite:///FILE``, relative to this file, or
    ``postgresql://user@host/database``. It is created if it is missing; no state of a tenant may be in it."""
    at_once: Annotated[int, Field(ge=1, le=1000)] = 4
    """The most runs at the same time, of all tenants."""
    per_host: Annotated[int, Field(ge=1, le=1000)] = 2
    """The most runs at the same time that read from one host, such as an SFTP server."""
    folder: ConfigPath | None = None
    """Folder for the working files of all tenants on the machine of a run. Default: the folder of this file."""
