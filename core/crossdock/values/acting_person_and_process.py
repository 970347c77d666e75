"""Who acts: a person, from where and why, and a process, by whose name others see who uses a state."""

from __future__ import annotations

import getpass
import hashlib
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path

from msgspec import Struct

from crossdock.printable import printable


def own_process_name() -> str:
    """Return the name of this process: ``HOST:NUMBER#PLACE``, of at most 128 characters."""
    return f"{socket.gethostname()[:100]}:{os.getpid()}#{_machine_start_and_container_hash()}"


def host_and_process_number(name: str) -> str:
    """Return the part of a process name that people need to find the process."""
    return name.partition("#")[0]


def has_process_ended(name: str) -> bool:
    """Return whether the process of this name has ended; False if that cannot be seen from here."""
    return _is_running(name) is False


def is_other_process_running(name: str) -> bool:
    """Return whether the process of this name is another one and is running; False if that cannot be seen from here."""
    return name != own_process_name() and _is_running(name) is True


def _is_running(name: str) -> bool | None:
    """Return None if that cannot be seen from here.

    The number of a process in another container, or on another machine of the same name, is that of any process here.
    """
    found, _, place = name.partition("#")
    host, _, number = found.rpartition(":")
    if (host, place) != (socket.gethostname()[:100], _machine_start_and_container_hash()) or not number.isdecimal():
        return None
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return not _is_zombie(number)


def _is_zombie(number: str) -> bool:
    """Return whether a process has ended, and the one that started it has not asked for its exit code yet."""
    try:
        return Path(f"/proc/{number}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[0] == "Z"
    except OSError:  # a system without them
        return False


@cache
def _machine_start_and_container_hash() -> str:
    """Return what tells a machine since its start, and a container with its own numbers, from all others."""
    try:
        start, numbers = Path("/proc/sys/kernel/random/boot_id").read_text(), str(Path("/proc/self/ns/pid").readlink())
    except OSError:  # a system without them has no containers
        return ""
    return hashlib.sha256(f"{start}{numbers}".encode()).hexdigest()[:8]


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
