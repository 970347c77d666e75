"""The states of a fleet, read in sequence. A tenant that cannot be read does not hide the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from crossdock.cli.shared_options import say
from crossdock.errors import CrossdockError, most_severe

if TYPE_CHECKING:
    from crossdock.config.project.project import Project

T = TypeVar("T")
AT_ONCE = 8  # states that are read at the same time


class FleetStates:
    """The tenants of a fleet.

    Attributes:
        errors: Why tenants could not be read, so far.
    """

    def __init__(self, pattern: str, base_files: Sequence[Path]) -> None:
        from crossdock.services.fleet.tenant_files import find

        self._base_files = [path.absolute() for path in base_files]
        self._paths = [path for path in find(pattern) if path not in self._base_files]
        self.errors: dict[str, CrossdockError] = {}

    @property
    def exit_code(self) -> int:
        """0, or the exit code of the most severe error so far."""
        return most_severe(self.errors.values())

    def each(self, read: Callable[[Project], T]) -> Iterator[tuple[str, T]]:
        """Yield the name of each tenant, in order, with the result of *read*. Errors are shown on stderr."""
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for path, future in [(path, pool.submit(self._read, path, read)) for path in self._paths]:
                try:
                    yield path.stem, future.result()
                except CrossdockError as error:
                    self.errors[path.stem] = error
                    say(*f"crossdock: {path.stem}: {error}".split("\n"), err=True)

    def _read(self, path: Path, read: Callable[[Project], T]) -> T:
        from crossdock.config.project import project

        return read(project.load(*self._base_files, path))
