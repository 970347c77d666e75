"""Checks of what another program gives to `crossdock.run`, `plan`, `check` and `init`."""

from __future__ import annotations

import os
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from crossdock.errors import ConfigError
from crossdock.pacing.allowance import Priority
from crossdock.runs.named_record_delivery import Key
from crossdock.values.config_file import ConfigSource
from crossdock.values.progress import Progress, Silent

_used_by = 0  # the process that was the first to read or run
_METHODS = ("begin", "advance", "allowance", "waiting", "warn")


def check_process() -> None:
    """Refuse a process that was forked after a run: the threads of polars do not exist in it, and it would hang.

    Raises:
        ConfigError: If the process was forked from one that has called this function.
    """
    global _used_by  # noqa: PLW0603  it is a fact of the process
    _used_by = _used_by or os.getpid()
    if _used_by != os.getpid():
        hint = "start processes with the method 'spawn' or 'forkserver', or use threads"
        raise ConfigError("the process was forked from one that has run crossdock", hint=hint, code="process_forked")


def config_sources(config: object) -> list[ConfigSource]:
    """Return the files and mappings of *config*, which is one of them or several.

    Raises:
        ConfigError: If there is none.
        TypeError: If something is neither a path nor a mapping.
    """
    is_one = isinstance(config, str | bytes | os.PathLike | Mapping)
    several = [config] if is_one or not isinstance(config, Iterable) else list(config)
    if not several:
        raise ConfigError("no config is given", hint="give a file, or its content as a mapping", code="config_missing")
    return [_config_source(each) for each in several]


def _config_source(given: object) -> ConfigSource:
    if isinstance(given, Mapping):
        return given
    if isinstance(given, str | os.PathLike):
        return Path(given)
    raise TypeError(f"config is a path, a mapping or a list of these, not {type(given).__name__}")


def stream_names(streams: Iterable[str]) -> list[str]:
    """Return *streams* as a list.

    Raises:
        ConfigError: If it is one text, of which each character would be a name, or has something else than texts.
    """
    names = [] if isinstance(streams, str) else list(streams)
    if isinstance(streams, str) or not all(isinstance(each, str) for each in names):
        raise _invalid("streams is a list of names", 'such as ["wms.products"]')
    return names


def record_keys(keys: Mapping[str, Sequence[Key]]) -> dict[str, list[Key]]:
    """Return *keys* with lists.

    Raises:
        ConfigError: If a record has no key, or a key is not text.
    """
    if not _are_key_lists(keys):
        raise _invalid("keys has a list of texts for each stream", 'such as {"shop.orders": ["1001"]}; a key is text')
    lists = {stream: list(wanted) for stream, wanted in keys.items()}
    given = [key for wanted in lists.values() for key in wanted]
    if not given:
        raise ConfigError("no record is named in keys", code="options_incomplete")
    if not all(_is_key(key) for key in given):
        raise _invalid("a key is text, or a list of texts if the stream has several key columns", "write 17 as '17'")
    return lists


def _are_key_lists(keys: object) -> bool:
    return isinstance(keys, Mapping) and all(
        isinstance(stream, str) and isinstance(wanted, Collection) and not isinstance(wanted, str | bytes)
        for stream, wanted in keys.items()
    )


def _is_key(key: Any) -> bool:
    if isinstance(key, str):
        return bool(key)
    return isinstance(key, Sequence) and bool(key) and all(isinstance(part, str) for part in key)


def checked_priority(priority: Priority) -> Priority:
    if priority not in get_args(Priority):
        raise _invalid(f"there is no priority {priority!r}", f"it is {' or '.join(get_args(Priority))}")
    return priority


def interrupt_of(interrupt: threading.Event | None) -> threading.Event:
    """Return *interrupt*, or an event that nobody sets.

    Raises:
        TypeError: If it is not an event.
    """
    if interrupt is None:
        return threading.Event()
    if not callable(getattr(interrupt, "is_set", None)):
        raise TypeError(f"interrupt is a threading.Event, not {type(interrupt).__name__}")
    return interrupt


def progress_listener(progress: Progress | None) -> Progress:
    """Return *progress*, or a listener that does nothing.

    Raises:
        TypeError: If it lacks a method.
    """
    lacking = [name for name in _METHODS if progress is not None and not callable(getattr(progress, name, None))]
    if lacking:
        raise TypeError(f"progress lacks the methods {', '.join(lacking)} of crossdock.Progress")
    return progress or Silent()


def _invalid(message: str, hint: str) -> ConfigError:
    return ConfigError(message, hint=hint, code="option_value_invalid")
