"""The states of a fleet, several of which are read at once. A tenant that cannot be read does not hide the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from crossdock.cli.sentence_printing import say
from crossdock.errors import ConfigError, CrossdockError, text_with_code, worst_exit_code

if TYPE_CHECKING:
    from crossdock.config.project.project import Project

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
                    say(*f"crossdock: {path.stem}: {text_with_code(error)}".split("\n"), err=True)

    def _state_url_and_result(self, path: Path, read: Callable[[Project], T]) -> tuple[str, T]:
        from crossdock.config.project import project
        from crossdock.state.db.database_opening_and_errors import url_without_password

        loaded = project.load(*self._base_files, path)
        return url_without_password(loaded.state_url), read(loaded)
