"""Loads the selected config, and opens its state or those of a fleet for commands that only read."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from crossdock.cli.shared_options_messages_and_signals import overriding_config_files, print_sentences
from crossdock.errors import ConfigError, CrossdockError, StateError, text_with_code, worst_exit_code

if TYPE_CHECKING:
    from crossdock.config.project.project import Project
    from crossdock.state import Transaction

T = TypeVar("T")
_OWN_STATE = "give each tenant a state of its own: what is shown of this one is that of the other"
AT_ONCE = 8  # states that are read at the same time


class FleetStates:
    def __init__(self, pattern: str, base_files: Sequence[Path]) -> None:
        from crossdock.services.fleet.tenants_and_watched_configs import find_config_files

        self._base_files = [path.absolute() for path in base_files]
        self._paths = [path for path in find_config_files(pattern) if path not in self._base_files]
        if not self._paths:
            raise ConfigError(
                "there is no config of a tenant",
                where=pattern,
                hint="for example --fleet 'tenants/*.yaml'",
                code="config_missing",
            )
        self.errors: dict[str, CrossdockError] = {}

    @property
    def exit_code(self) -> int:
        return worst_exit_code(self.errors.values())

    def read_each_tenant(self, read: Callable[[Project], T]) -> Iterator[tuple[str, T]]:
        """Yield each tenant's name with the result of *read*, in order. Errors are shown, such as a shared state."""
        from concurrent.futures import ThreadPoolExecutor

        tenants = dict[str, str]()
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for path, future in [(path, pool.submit(self._state_url_and_result, path, read)) for path in self._paths]:
                try:
                    place, result = future.result()
                    if (first := tenants.setdefault(place, path.stem)) != path.stem:
                        raise ConfigError(
                            f"has the same state as {first}",
                            where=str(path),
                            hint=_OWN_STATE,
                            code="fleet_state_shared",
                        )
                    yield path.stem, result
                except CrossdockError as error:
                    self.errors[path.stem] = error
                    print_sentences(*f"crossdock: {path.stem}: {text_with_code(error)}".split("\n"), err=True)

    def _state_url_and_result(self, path: Path, read: Callable[[Project], T]) -> tuple[str, T]:
        from crossdock.config.project import project
        from crossdock.state.db.database_opening_and_errors import url_without_password

        loaded = project.load(*self._base_files, path)
        return url_without_password(loaded.state_url), read(loaded)


def load_project(config: Path) -> Project:
    """Load the selected config. Its models are imported here, so that ``--help`` need not wait for them."""
    from crossdock.config.project import project

    loaded = project.load(config, *overriding_config_files(config))
    gc.freeze()  # what was imported stays: a collection that goes through it takes 0.1 s and finds nothing
    return loaded


@contextmanager
def read_state_of_config(config: Path) -> Iterator[tuple[Transaction, str]]:
    """Read the state of the selected config; yield it with the name of its tenant.

    Only what says where the state is is read of the config, all of it if the state cannot be opened: a mistake in the
    config may be the reason.
    """
    from crossdock.config import state_location
    from crossdock.state import State

    found = state_location.state_url_and_tenant_or_none(config, *overriding_config_files(config))
    url, pin = found or ((loaded := load_project(config)).state_url, loaded.pinned_tenant)
    with ExitStack() as stack:
        try:
            state = stack.enter_context(closing(State(url, pin, read_only=True)))
            tx = stack.enter_context(state.begin_read_only())
        except StateError:
            load_project(config)
            raise
        yield tx, pin.tenant
