"""The section ``fleet`` of a base config: what the tenants of a fleet have in common."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from crossdock.values.config_file import ConfigModel, ConfigPath


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
