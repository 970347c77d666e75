"""The tenants that a console shows: one config, or those of a fleet, each with its state."""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from msgspec import Struct, field

from crossdock.config import state_location
from crossdock.config.project import project
from crossdock.config.project.project import Project
from crossdock.services.fleet import tenants_and_watched_configs
from crossdock.state import PinnedTenant, State, StateUrl, Transaction

_IN_ADDRESSES = re.compile(r"[A-Za-z0-9._-]+")
OPEN_STATES = 50  # each holds up to three files open, of the 1,024 that a process mostly may

FileStamp = tuple[tuple[int, int] | None, ...]


class Tenant(Struct):
    """A tenant with its config *files*, of which later ones override earlier ones. Any thread may use it."""

    name: str
    files: tuple[Path, ...]
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _loaded: tuple[FileStamp, Project] | None = None

    @property
    def config_path(self) -> Path:
        return self.files[-1]

    def config_files_stamp(self) -> FileStamp:
        """Return what changes with the config files."""
        return tuple(map(_file_stamp, self.files))

    def project(self) -> Project:
        """Return the loaded config, which is loaded again once a file has changed. Raises ConfigError."""
        with self._lock:
            stamp = self.config_files_stamp()
            if self._loaded is None or self._loaded[0] != stamp:
                self._loaded = stamp, project.load(*self.files)
            return self._loaded[1]

    def open_state(self, *, write_waits_s: float | None = None) -> State:
        """Open the state to read it, which also works while other settings of the config are wrong.

        With *write_waits_s*, open it to write short transactions, which wait so long for others.
        """
        place = self._locate_state()
        return State(*place, read_only=True) if write_waits_s is None else State(*place, waits_s=write_waits_s)

    def _locate_state(self) -> tuple[StateUrl, PinnedTenant]:
        known = self._loaded
        found = (
            None
            if known is not None and known[0] == self.config_files_stamp()
            else state_location.state_url_and_tenant_or_none(*self.files)
        )
        if found is None:
            loaded = self.project()
            found = loaded.state_url, loaded.pinned_tenant
        return found


class Tenants:
    """The tenants of a console, by name. *find* lists the config files, those of a fleet again and again."""

    def __init__(self, find: Callable[[], Mapping[str, tuple[Path, ...]]], *, of_fleet: bool) -> None:
        self.of_fleet = of_fleet
        self._find, self._lock = find, threading.Lock()
        self._known: dict[str, Tenant] = {}
        self._states: OrderedDict[str, _OpenState] = OrderedDict()

    def all(self) -> list[Tenant]:
        """Return the tenants in the order of their names. Configs that were added or removed are noticed."""
        files = self._find()
        with self._lock:
            self._known = {
                name: known if (known := self._known.get(name)) and known.files == paths else Tenant(name, paths)
                for name, paths in sorted(files.items())
            }
            return list(self._known.values())

    def get(self, name: str) -> Tenant | None:
        with self._lock:
            known = self._known.get(name)
        return known or next((each for each in self.all() if each.name == name), None)

    @contextmanager
    def read_transaction(self, tenant: Tenant) -> Iterator[Transaction]:
        """Read the state of *tenant* in one transaction, which neither waits for a run nor delays one.

        Raises ConfigError or StateError.
        """
        state = self._take_open_state(tenant)
        try:
            with state.opened.begin_read_only() as tx:
                yield tx
        finally:
            self._return_open_state(tenant, state)

    def close_open_states(self) -> None:
        with self._lock:
            states, self._states = list(self._states.values()), OrderedDict()
        for each in states:
            each.opened.close()

    def _take_open_state(self, tenant: Tenant) -> _OpenState:
        """Take an open state out of those that nobody uses now, or open it."""
        stamp = tenant.config_files_stamp()
        with self._lock:
            known = self._states.pop(tenant.name, None)
        if known is not None and known.stamp == stamp and known.opened.is_still_same_file():
            return known
        if known is not None:
            known.opened.close()
        return _OpenState(stamp, tenant.open_state())

    def _return_open_state(self, tenant: Tenant, state: _OpenState) -> None:
        with self._lock:
            self._states[tenant.name], other = state, self._states.pop(tenant.name, None)
            surplus = [other] if other else []
            if len(self._states) > OPEN_STATES:
                surplus.append(self._states.popitem(last=False)[1])
        for each in surplus:
            each.opened.close()


class _OpenState(Struct, frozen=True):
    stamp: FileStamp
    opened: State


def single_tenant(files: Sequence[Path]) -> Tenants:
    """Return the tenant of one config. Raises ConfigError if it cannot be loaded, or its state cannot be read."""
    paths = tuple(each.absolute() for each in files)
    loaded = project.load(*paths)
    name = loaded.platform.tenant if _IN_ADDRESSES.fullmatch(loaded.platform.tenant) else paths[-1].stem
    with closing(State(loaded.state_url, loaded.pinned_tenant, read_only=True)):
        return Tenants(lambda: {name: paths}, of_fleet=False)


def fleet_tenants(pattern: str, base_files: Sequence[Path]) -> Tenants:
    """Return the tenants of a fleet, each named by its file. Raises ConfigError if *pattern* finds none."""
    base = tuple(path.absolute() for path in base_files)

    def find() -> dict[str, tuple[Path, ...]]:
        return {
            path.stem: (*base, path)
            for path in map(Path.absolute, tenants_and_watched_configs.find_config_files(pattern))
            if path not in base
        }

    find()
    return Tenants(find, of_fleet=True)


def _file_stamp(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
