"""Executors of the runs of a fleet: any `concurrent.futures.Executor`, found by entry point.

A kind of executor is an `ExecutorKind` in the group ``crossdock.executors``; its name is what ``--executor`` takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points

from msgspec import Struct

from crossdock.errors import ConfigError
from crossdock.values.author_code_errors import (
    convert_author_errors,
    is_interruption_or_engine_error,
    masked_error_text,
    shortened_text,
)

GROUP = "crossdock.executors"
Opened = AbstractContextManager[Executor]


@dataclass(frozen=True, slots=True)
class ExecutorKind:
    """A kind of executor.

    An executor may lose a call: then its future is cancelled or raises, or `submit` raises, and the call is made again
    later. At the end of its context no call begins any more. Calls that have begun are asked to stop, or continue
    elsewhere.

    Attributes:
        open: Opens an executor, given the address of ``--executor NAME=ADDRESS``, or an empty text, and the most calls
            at the same time. It raises `ConfigError` for an address that cannot be right, and `RemoteError` if nothing
            answers there.
        needs_address: Whether it is reached at an address.
        on_other_hosts: Whether its runs may be on other hosts, so that every state must be on PostgreSQL.
    """

    open: Callable[[str, int], Opened]
    needs_address: bool = False
    on_other_hosts: bool = False


class ChosenExecutor(Struct, frozen=True):
    text: str
    kind: ExecutorKind
    address: str

    def open(self, at_once: int) -> Opened:
        """Open the executor; see `ExecutorKind`. Any other exception of its code becomes a `ConnectorError`."""
        return _open_with_translated_errors(self, at_once)


@contextmanager
def _open_with_translated_errors(choice: ChosenExecutor, at_once: int) -> Iterator[Executor]:
    guard = convert_author_errors("open", choice.text, code=choice.kind.open, only_authors=True)
    with guard, choice.kind.open(choice.address, at_once) as executor:
        yield executor


def parse_executor_option(text: str) -> ChosenExecutor:
    name, _, address = text.partition("=")
    found = {point.name: point for point in entry_points(group=GROUP)}
    if name not in found:
        hint = f"known: {', '.join(sorted(found))}; another one is an entry point of the group {GROUP}"
        raise ConfigError(f"no executor is called {name!r}", where="--executor", hint=hint, code="executor_invalid")
    kind = _load_kind(found[name])
    if kind.needs_address and not address:
        raise ConfigError(
            f"{name} needs an address",
            where="--executor",
            hint=f"for example {name}=tcp://127.0.0.1:8786",
            code="executor_invalid",
        )
    if address and not kind.needs_address:
        raise ConfigError(
            f"{name} takes no address", where="--executor", hint=f"--executor {name}", code="executor_invalid"
        )
    return ChosenExecutor(text, kind, address)


def _load_kind(point: EntryPoint) -> ExecutorKind:
    try:
        kind = point.load()
    except BaseException as error:  # any class: the module belongs to another package
        if is_interruption_or_engine_error(error):
            raise
        message = (
            f"the executor {point.name!r} cannot be loaded: {shortened_text(type(error).__name__)}: "
            f"{masked_error_text(error)}"
        )
        hint = f"pip install 'crossdock[{point.name}]'" if point.extras or point.name == "dask" else None
        raise ConfigError(message, where="--executor", hint=hint, code="executor_invalid") from error
    if not isinstance(kind, ExecutorKind):
        raise ConfigError(
            f"{point.value} is not an ExecutorKind but a {type(kind).__name__}",
            where="--executor",
            code="executor_invalid",
        )
    return kind
