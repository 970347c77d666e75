"""Who changes something: a person, from where, and why."""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from msgspec import Struct

from crossdock.printable import printable

LONGEST_NAME = 128  # characters, as the state keeps them
_LONGEST_REASON = 1_000
_COMMAND_LINE = "command line, "
_acting: ContextVar[Actor | None] = ContextVar("acting", default=None)


class Actor(Struct, frozen=True):
    """A person, or the account of a program. *address* is that of a browser, or the command line with its host."""

    name: str
    address: str
    reason: str = ""

    @property
    def name_with_host(self) -> str:
        """The name, with the host of a command line."""
        host = self.address.removeprefix(_COMMAND_LINE)
        return (self.name if host == self.address else f"{self.name}@{host}")[:LONGEST_NAME]


def current_actor() -> Actor:
    """Return who acts now: as `acting_as` says, else the environment, else the user of this process."""
    given = _acting.get()
    if given is not None:
        return given
    return Actor(
        _text_from_environment("CROSSDOCK_PERSON", LONGEST_NAME) or user_of_process()[:LONGEST_NAME],
        _text_from_environment("CROSSDOCK_ADDRESS", LONGEST_NAME)
        or f"{_COMMAND_LINE}{socket.gethostname()}"[:LONGEST_NAME],
        _text_from_environment("CROSSDOCK_REASON", _LONGEST_REASON),
    )


@contextmanager
def acting_as(actor: Actor) -> Iterator[None]:
    """Let *actor* be the one who acts, in this thread and during the block."""
    token = _acting.set(actor)
    try:
        yield
    finally:
        _acting.reset(token)


def user_of_process() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())  # a container may have no name for it


def _text_from_environment(variable: str, longest: int) -> str:
    return printable(os.environ.get(variable, "").strip())[:longest].strip()
