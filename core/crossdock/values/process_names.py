"""Names of processes, by which others see who uses a state, and whether a process that used it has ended."""

from __future__ import annotations

import hashlib
import os
import socket
from functools import cache
from pathlib import Path


def own_process_name() -> str:
    """Return the name of this process: ``HOST:NUMBER#PLACE``, of at most 128 characters."""
    return f"{socket.gethostname()[:100]}:{os.getpid()}#{_place()}"


def host_and_number(name: str) -> str:
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
    if (host, place) != (socket.gethostname()[:100], _place()) or not number.isdecimal():
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
def _place() -> str:
    """Return what tells a machine since its start, and a container with its own numbers, from all others."""
    try:
        start, numbers = Path("/proc/sys/kernel/random/boot_id").read_text(), str(Path("/proc/self/ns/pid").readlink())
    except OSError:  # a system without them has no containers
        return ""
    return hashlib.sha256(f"{start}{numbers}".encode()).hexdigest()[:8]
