"""The tenants of a fleet: each is a config file, on top of a common base file."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from crossdock.config.notify_config import NotifyConfig
from crossdock.config.project import project
from crossdock.config.project.config_model import FleetConfig
from crossdock.config.project.project import Project
from crossdock.config.schedules.job_and_schedule_config import JOBS_EXAMPLE, JobConfig
from crossdock.errors import ConfigError
from crossdock.platform.platform_config import Profile
from crossdock.state import StateUrl, parse_database_url
from crossdock.state.db.database_opening_and_errors import url_without_password
from crossdock.values import config_file, exact_json
from crossdock.values.config_base_types import NAME_FORM, Secret, is_valid_name


@dataclass(frozen=True)
class FleetBase:
    """The common settings of the tenants. *notify* names who is notified of the runs of all tenants, in one message."""

    paths: tuple[Path, ...]
    config: FleetConfig
    database: StateUrl
    notify: NotifyConfig | None

    def base_and_tenant_files(self, tenant: Path) -> tuple[Path, ...]:
        return (*self.paths, tenant)


def load_fleet_base(*paths: Path) -> FleetBase:
    """Read the sections ``fleet`` and ``notify`` of the base file and of those that override it. They have defaults."""
    if not paths:
        config = FleetConfig()
        return FleetBase((), config, parse_database_url(config.database, Path.cwd(), where="fleet.database"), None)
    paths = tuple(path.absolute() for path in paths)  # workers may be started in another folder
    document = config_file.read(*paths)
    config = document.validated_as_model(FleetConfig, document.data.get("fleet") or {}, ("fleet",))
    notify = document.data.get("notify")
    return FleetBase(
        paths,
        config,
        parse_database_url(config.database, document.folder, where="fleet.database"),
        None if notify is None else document.validated_as_model(NotifyConfig, notify, ("notify",)),
    )


@dataclass(frozen=True)
class Tenant:
    """The facts about a tenant for a scheduler. Its runs load the config again.

    Attributes:
        credential: Identifies the address and the credential of the platform; equal for tenants that share them.
        shares_limit: Whether its own config has the address of the platform's bucket.
        is_grouped: Whether the recipients of the fleet are notified of its runs.
    """

    name: str
    files: tuple[Path, ...]
    digest: str
    jobs: Mapping[str, JobConfig]
    hosts: Mapping[str, frozenset[str]]
    state: str
    spool: Path
    is_local: bool
    credential: str
    shares_limit: bool
    has_own_notify: bool
    is_grouped: bool = False


def checked_tenant_name(path: Path) -> str:
    if not is_valid_name(path.stem):
        hint = f"rename the file: {NAME_FORM}"
        raise ConfigError(
            f"a tenant cannot be called {path.stem!r}", where=str(path), hint=hint, code="fleet_tenant_invalid"
        )
    return path.stem


def load_tenant(path: Path, base: FleetBase) -> Tenant:
    """Load the config of a tenant. Raise AuthorCodeError if an author's settings do not say which host is read."""
    name, files = checked_tenant_name(path), base.base_and_tenant_files(path)
    before = digest_of_files(files)
    loaded = project.load(*files)
    if not loaded.jobs:
        raise ConfigError("has no jobs", where=str(path), hint=f"add {JOBS_EXAMPLE}", code="jobs_missing")
    return Tenant(
        name,
        files,
        before,
        loaded.jobs,
        {job: _connection_hosts_of_job(loaded, job) for job in loaded.jobs},
        url_without_password(loaded.state_url),
        loaded.spool,
        loaded.state_url.drivername == "sqlite",
        _hash_of_credential_references(loaded.platform),
        loaded.platform.rate.shared is not None,
        loaded.notify is not None and "notify" in config_file.read(path).data,
        base.notify is not None,
    )


def digest_of_files(files: Sequence[Path]) -> str:
    found = hashlib.sha256()
    for path in files:
        try:
            content = path.read_bytes()
        except OSError as error:
            raise ConfigError(
                f"the config file cannot be read: {error.strerror}", where=str(path), code="config_unreadable"
            ) from error
        found.update(len(content).to_bytes(8, "big") + content)
    return found.hexdigest()


def _connection_hosts_of_job(loaded: Project, job: str) -> frozenset[str]:
    wanted = loaded.connection_names_of_job(job)
    found = (each.source_host for each in loaded.connections if each.name in wanted)
    return frozenset(host for host in found if host is not None)


def _hash_of_credential_references(platform: Profile) -> str:
    """Hash the references to the secrets, not the secrets: nothing is read here."""
    auth = {name: _absolute_secret_reference(value) for name, value in platform.auth}
    return hashlib.sha256(exact_json.dumps({"base_url": platform.base_url, **auth})).hexdigest()[:24]


def _absolute_secret_reference(value: object) -> object:
    if not isinstance(value, Secret):
        return value
    kind, _, name = value.reference.partition(":")
    return f"file:{value.folder / name}" if kind == "file" else value.reference
