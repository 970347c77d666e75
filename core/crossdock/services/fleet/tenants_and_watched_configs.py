"""The tenants of a fleet: each is a config file on top of a base file. Changes take effect without a restart."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from msgspec import Struct

from crossdock.config.notify_config import NotifyConfig
from crossdock.config.project import project
from crossdock.config.project.project import FleetConfig, Project
from crossdock.config.schedules.job_and_schedule_config import JOBS_EXAMPLE, JobConfig
from crossdock.errors import ConfigError, ConnectorError, text_with_code
from crossdock.platform.platform_config import Profile
from crossdock.state import StateUrl, parse_database_url
from crossdock.state.db.database_opening_and_errors import url_without_password
from crossdock.values import config_file, exact_json
from crossdock.values.config_base_types import NAME_FORM, Secret, is_valid_name
from crossdock.values.config_file import Signature, file_signature


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
    document = config_file.read_config_with_overrides(*paths)
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


def tenant_name_of_file_or_raise(path: Path) -> str:
    if not is_valid_name(path.stem):
        hint = f"rename the file: {NAME_FORM}"
        raise ConfigError(
            f"a tenant cannot be called {path.stem!r}", where=str(path), hint=hint, code="fleet_tenant_invalid"
        )
    return path.stem


def load_tenant(path: Path, base: FleetBase) -> Tenant:
    """Load the config of a tenant. Raise AuthorCodeError if an author's settings do not say which host is read."""
    name, files = tenant_name_of_file_or_raise(path), base.base_and_tenant_files(path)
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
        loaded.notify is not None and "notify" in config_file.read_config_with_overrides(path).data,
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


_SUFFIXES = (".yaml", ".yml")
_PATTERN_SIGNS = "*?["  # of a pattern
_LOST_FILES = "lost+found"  # a folder of each ext4 file system that only root can read
_ADVICE = {
    "name": "rename one of the files",
    "state": "state: a database for each tenant",
    "spool": "leave out spool, or set it in the config of each tenant",
}


class TenantChanges(Struct):
    """The result of a scan. *broken* says by file name why a config cannot be used. Its tenant no longer runs."""

    loaded: list[Tenant]
    removed: list[str]
    broken: dict[str, str]

    def __bool__(self) -> bool:
        return bool(self.loaded or self.removed or self.broken)


class WatchedTenantConfigs:
    """Finds the configs of the tenants and loads those that changed. With *on_other_hosts*, no state may be a file."""

    def __init__(
        self, pattern: str, base: FleetBase, *, on_other_hosts: bool = False, loading: Callable[[], None] = lambda: None
    ) -> None:
        self._pattern, self._base, self._on_other_hosts, self._loading = pattern, base, on_other_hosts, loading
        self._seen: dict[Path, Signature | None] = {}
        self._loaded: dict[Path, tuple[Signature | None, Tenant | str]] = {}
        self._owners: dict[tuple[str, str], Path] = {}  # of what two tenants may not share
        self._is_first = True

    @property
    def tenants(self) -> Mapping[str, Tenant]:
        return {found.name: found for _, found in self._loaded.values() if isinstance(found, Tenant)}

    @property
    def config_errors(self) -> Mapping[str, str]:
        return {path.stem: found for path, (_, found) in self._loaded.items() if isinstance(found, str)}

    def config_paths(self) -> list[Path]:
        return [path for path in find_config_files(self._pattern) if path not in self._base.paths]

    def load_changed_configs(self, *, reload: bool = False) -> TenantChanges:
        """Load what has changed, or all with *reload*. A changed file is loaded once two scans find it the same.

        Raises ConfigError if all configs have disappeared.
        """
        tenants, broken, found = self.tenants, self.config_errors, self.config_paths()
        if self._loaded and not found:  # as in a folder whose disk is not mounted any more
            raise ConfigError(
                "no config of a tenant is there any more, and all tenants go on with what was read before",
                where=self._pattern,
                hint="restore the files; to end the last tenant, stop the scheduler",
                code="config_missing",
            )
        for path in self._loaded.keys() - set(found):
            self._unload(path)
        seen = {path: file_signature(self._base.base_and_tenant_files(path)) for path in found}
        stable = [path for path in found if self._is_first or self._seen.get(path, ()) == seen[path]]
        for path in stable:
            if reload or path not in self._loaded or self._loaded[path][0] != seen[path]:
                self._load(path, seen[path])
        if self.tenants != tenants:  # a former conflict with another tenant may be gone
            for path in stable:
                if isinstance(self._loaded[path][1], str):
                    self._load(path, seen[path])
        self._seen, self._is_first = seen, False
        return TenantChanges(
            [tenant for name, tenant in self.tenants.items() if tenants.get(name) != tenant],
            [name for name in tenants if name not in self.tenants],
            {name: error for name, error in self.config_errors.items() if broken.get(name) != error},
        )

    def _unload(self, path: Path) -> None:
        _, before = self._loaded.pop(path, (None, None))
        for claim in [claim for claim in _values_to_keep_unique(before) if self._owners.get(claim) == path]:
            del self._owners[claim]

    def _load(self, path: Path, signature: Signature | None) -> None:
        self._loading()
        self._unload(path)
        try:
            tenant = load_tenant(path, self._base)
            self._raise_if_tenant_conflicts(tenant, path)
        except (ConfigError, ConnectorError) as error:
            self._loaded[path] = signature, text_with_code(error)
            return
        self._loaded[path] = signature, tenant
        self._owners |= dict.fromkeys(_values_to_keep_unique(tenant), path)

    def _raise_if_tenant_conflicts(self, tenant: Tenant, path: Path) -> None:
        if self._on_other_hosts and tenant.is_local:
            message = f"its state {tenant.state} is a file of one host, and its runs may be on other hosts"
            hint = "state: postgresql://user@host/database, one for each tenant"
            raise ConfigError(message, where=str(path), hint=hint, code="fleet_state_local")
        for claim in _values_to_keep_unique(tenant):
            if (other := self._owners.get(claim)) is not None:
                what, _ = claim
                raise ConfigError(
                    f"{other} has the same {what}", where=str(path), hint=_ADVICE[what], code="fleet_state_shared"
                )


def find_config_files(pattern: str) -> list[Path]:
    """Return the YAML files of a folder, or those of a pattern such as ``tenants/*.yaml``, in order of their paths.

    A file that cannot be looked at is among them, and a folder below that cannot be read. Raises ConfigError if the
    folder itself cannot be read.
    """
    try:
        return _config_files_of_folder_or_pattern(pattern)
    except OSError as error:
        raise ConfigError(
            f"the folder cannot be read: {error.strerror}", where=pattern, code="config_unreadable"
        ) from error


def _config_files_of_folder_or_pattern(pattern: str) -> list[Path]:
    place = Path(pattern).absolute()
    if place.is_dir():
        return sorted(path for path in place.iterdir() if path.suffix in _SUFFIXES and _may_be_config(path))
    if not any(sign in pattern for sign in _PATTERN_SIGNS):
        if place.is_file():
            return [place]
        raise ConfigError(
            "there is no such folder or file",
            where=pattern,
            hint="for example --fleet 'tenants/*.yaml'",
            code="config_missing",
        )
    return sorted({path for path in _matching_paths(Path(place.anchor), place.parts[1:]) if _may_be_config(path)})


def _matching_paths(folder: Path, names: Sequence[str]) -> Iterator[Path]:
    """Yield what the parts *names* of a pattern find in *folder*, and folders that cannot be read.

    `Path.glob` leaves such a folder out, as if it had no file, so that its tenants would be gone.
    """
    if not names:
        yield folder
        return
    name, *rest = names
    if not any(sign in name for sign in _PATTERN_SIGNS):
        yield from _matching_paths(folder / name, rest)
        return
    try:
        with os.scandir(folder) as entries:
            found = {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError:
        yield folder
        return
    if name == "**":
        yield from _matching_paths(folder, rest)
    for each, is_folder in found.items():
        if name == "**" and is_folder:
            yield from _matching_paths(folder / each, names)
        elif name != "**" and fnmatchcase(each, name):
            yield from _matching_paths(folder / each, rest)


def _values_to_keep_unique(tenant: Tenant | str | None) -> list[tuple[str, str]]:
    if not isinstance(tenant, Tenant):
        return []
    return [("name", tenant.name), ("state", tenant.state), ("spool", str(tenant.spool))]


def _may_be_config(path: Path) -> bool:
    if path.name.startswith(".") or path.name == _LOST_FILES:
        return False
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True  # to load it says why it cannot be used
    return stat.S_ISREG(mode) or (stat.S_ISDIR(mode) and not os.access(path, os.R_OK))
