"""`crossdock.init`, `crossdock.plan` and `crossdock.run`: what the commands of these names do, for other programs."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from os import PathLike
from pathlib import Path
from typing import Any, get_args

from crossdock.config.project import project
from crossdock.config.project.project import Project
from crossdock.errors import ConfigError
from crossdock.pacing.request_allowance import Priority
from crossdock.reading.sources.run_context import WaitingRun
from crossdock.runs import dry_run, sync_and_replay, tables_and_sentences_of_run
from crossdock.runs.named_record_delivery import Key, named_records
from crossdock.runs.plan_result import PlanListener, PlanResult
from crossdock.runs.run_report import Report, Timings
from crossdock.values.clock import SystemClock
from crossdock.values.config_file import ConfigSource
from crossdock.values.run_progress_and_messages import Progress, SilentProgress, Unit

_used_by = 0  # the process that was the first to read or run
_METHODS = ("begin", "advance", "allowance", "waiting", "warn")


def raise_if_process_was_forked() -> None:
    """Refuse a process that was forked after a run: the threads of polars do not exist in it, and it would hang.

    Raises:
        ConfigError: If the process was forked from one that has called this function.
    """
    global _used_by  # noqa: PLW0603  it is a fact of the process
    _used_by = _used_by or os.getpid()
    if _used_by != os.getpid():
        hint = "start processes with the method 'spawn' or 'forkserver', or use threads"
        raise ConfigError("the process was forked from one that has run crossdock", hint=hint, code="process_forked")


def checked_list_of_config_sources(config: object) -> list[ConfigSource]:
    """Return the files and mappings of *config*, which is one of them or several.

    Raises:
        ConfigError: If there is none.
        TypeError: If something is neither a path nor a mapping.
    """
    is_one = isinstance(config, str | bytes | os.PathLike | Mapping)
    several = [config] if is_one or not isinstance(config, Iterable) else list(config)
    if not several:
        raise ConfigError("no config is given", hint="give a file, or its content as a mapping", code="config_missing")
    return [_checked_config_source(each) for each in several]


def _checked_config_source(given: object) -> ConfigSource:
    if isinstance(given, Mapping):
        return given
    if isinstance(given, str | os.PathLike):
        return Path(given)
    raise TypeError(f"config is a path, a mapping or a list of these, not {type(given).__name__}")


def checked_list_of_stream_names(streams: Iterable[str]) -> list[str]:
    """Return *streams* as a list.

    Raises:
        ConfigError: If it is one text, of which each character would be a name, or has something else than texts.
    """
    names = [] if isinstance(streams, str) else list(streams)
    if isinstance(streams, str) or not all(isinstance(each, str) for each in names):
        raise _invalid_option_error("streams is a list of names", 'such as ["wms.products"]')
    return names


def checked_lists_of_record_keys(keys: Mapping[str, Sequence[Key]]) -> dict[str, list[Key]]:
    """Return *keys* with lists.

    Raises:
        ConfigError: If a record has no key, or a key is not text.
    """
    if not _are_key_lists(keys):
        raise _invalid_option_error(
            "keys has a list of texts for each stream", 'such as {"shop.orders": ["1001"]}; a key is text'
        )
    lists = {stream: list(wanted) for stream, wanted in keys.items()}
    given = [key for wanted in lists.values() for key in wanted]
    if not given:
        raise ConfigError("no record is named in keys", code="options_incomplete")
    if not all(_is_record_key(key) for key in given):
        raise _invalid_option_error(
            "a key is text, or a list of texts if the stream has several key columns", "write 17 as '17'"
        )
    return lists


def _are_key_lists(keys: object) -> bool:
    return isinstance(keys, Mapping) and all(
        isinstance(stream, str) and isinstance(wanted, Collection) and not isinstance(wanted, str | bytes)
        for stream, wanted in keys.items()
    )


def _is_record_key(key: Any) -> bool:
    if isinstance(key, str):
        return bool(key)
    return isinstance(key, Sequence) and bool(key) and all(isinstance(part, str) for part in key)


def checked_priority(priority: Priority) -> Priority:
    if priority not in get_args(Priority):
        raise _invalid_option_error(f"there is no priority {priority!r}", f"it is {' or '.join(get_args(Priority))}")
    return priority


def checked_interrupt_event(interrupt: threading.Event | None) -> threading.Event:
    """Return *interrupt*, or an event that nobody sets.

    Raises:
        TypeError: If it is not an event.
    """
    if interrupt is None:
        return threading.Event()
    if not callable(getattr(interrupt, "is_set", None)):
        raise TypeError(f"interrupt is a threading.Event, not {type(interrupt).__name__}")
    return interrupt


def checked_or_silent_progress_listener(progress: Progress | None) -> Progress:
    """Return *progress*, or a listener that does nothing.

    Raises:
        TypeError: If it lacks a method.
    """
    lacking = [name for name in _METHODS if progress is not None and not callable(getattr(progress, name, None))]
    if lacking:
        raise TypeError(f"progress lacks the methods {', '.join(lacking)} of crossdock.Progress")
    return progress or SilentProgress()


def _invalid_option_error(message: str, hint: str) -> ConfigError:
    return ConfigError(message, hint=hint, code="option_value_invalid")


_LOGGER = logging.getLogger("crossdock.run")
_LOGGER.addHandler(logging.NullHandler())  # the program decides where these go; defects of servers are always shown
_LEVELS = {"error": logging.ERROR, "warning": logging.WARNING, "note": logging.INFO}

_One = str | PathLike[str] | Mapping[str, Any]
Config = _One | Sequence[_One]
"""A config file, or its content as a mapping. Of several, later ones override earlier ones."""


def init(config: Config) -> bool:
    """Create the state, as ``crossdock init`` does. Return whether it was created or upgraded now.

    Raises:
        ConfigError: If the config is invalid.
        StateError: If the state cannot be created, or is that of another platform or tenant.
    """
    return load_project(config).create_or_upgrade_state() == 0


def plan(
    config: Config,
    streams: Sequence[str] = (),
    *,
    listener: PlanListener | None = None,
    progress: Progress | None = None,
) -> PlanResult:
    """Return what `run` would do now, as ``crossdock plan`` does. Nothing is written, and no target is called.

    Args:
        config: As for `run`.
        streams: As for `run`.
        listener: Receives each decision, such as each request with the members that it changes.
        progress: Receives what is being read.

    Raises:
        ConfigError: If the config or the choice is invalid.
        StateError: If there is no state yet; `crossdock.init` creates it.
    """
    raise_if_process_was_forked()
    decisions, names, listening = (
        listener or PlanListener.ignoring(),
        checked_list_of_stream_names(streams),
        _listener_that_logs(progress),
    )
    return dry_run.plan_sync(load_project(config), names, decisions, clock=SystemClock(), progress=listening)


def run(
    config: Config,
    streams: Sequence[str] = (),
    *,
    keys: Mapping[str, Sequence[Key]] | None = None,
    priority: Priority = "batch",
    wait: bool = False,
    progress: Progress | None = None,
    interrupt: threading.Event | None = None,
) -> Report:
    """Deliver what is new or changed, as ``crossdock sync`` does.

    >>> report = crossdock.run("warehouse.yaml", ["wms.products"])
    >>> report = crossdock.run("shop.yaml", keys={"shop.orders": ["1001", "1002"]})
    >>> report.status, report.tallies["shop.orders"].delivered
    ('done', 2)

    What happens is also logged, to ``crossdock.run``. Several threads may run configs with different states.

    Args:
        config: The config file, or its content as a mapping, with relative paths from the working folder. Of several,
            later ones override earlier ones.
        streams: ``CONNECTION`` or ``CONNECTION.STREAM``; by default all.
        keys: Records to deliver instead, by stream: each as the text of the stream's key column, or as a list of texts
            if it has several. They are fetched from the source, with records that they refer to and that were not
            delivered yet.
        priority: ``live`` takes its requests before batches that share the allowance.
        wait: Wait for late files where the config says so, as scheduled runs do.
        progress: Receives what the run does. An exception that it raises is logged, and it is not called any more.
        interrupt: Set it to stop the run in order: requests in flight are settled.

    Returns:
        What was done: its `status`, `exit_code`, `tallies` and `errors`, which stopped a stream or the run.

    Raises:
        ConfigError: If the config or the choice is invalid.
        CrossdockError: If the run could not begin: another one uses the state, or a credential cannot be read.
    """
    raise_if_process_was_forked()
    names, listening = checked_list_of_stream_names(streams), _listener_that_logs(progress)
    if keys and names:
        message = "a run delivers streams or named records, not both"
        raise ConfigError(message, hint="leave out streams or keys", code="options_conflict")
    wanted = {} if keys is None else checked_lists_of_record_keys(keys)
    loaded, clock = load_project(config), SystemClock()
    for stream in wanted:
        loaded.selected_streams([stream])
    records = [record for stream, given in wanted.items() for record in named_records(stream, given)]
    report = sync_and_replay.sync(
        loaded,
        names,
        clock=clock,
        progress=listening,
        interrupt=checked_interrupt_event(interrupt),
        priority=checked_priority(priority),
        patience=WaitingRun(clock.now()) if wait else None,
        records=records,
    )
    _log_report(report)
    return report


def load_project(config: Config) -> Project:
    return project.load(*checked_list_of_config_sources(config))


def _listener_that_logs(progress: Progress | None) -> Progress:
    """Return a listener that logs what it passes on. `Timings` are passed as they are: the run asks for their class."""
    return (
        progress
        if isinstance(progress, Timings)
        else _StageLoggingProgress(checked_or_silent_progress_listener(progress))
    )


def _log_report(report: Report) -> None:
    for message in report.messages:
        _LOGGER.log(_LEVELS[message.level], "%s", message.text_with_stream_and_code)
    for name, tally in report.tallies.items():
        _LOGGER.info("%s", tables_and_sentences_of_run.tally_sentence(name, tally.as_json()))
    _LOGGER.info("%s", tables_and_sentences_of_run.run_sentence(report.as_json()))


class _StageLoggingProgress:
    """Logs the beginning of each stage, and passes everything on until the listener raises an exception."""

    def __init__(self, listener: Progress) -> None:
        self._listener = listener

    def begin(self, stage: str, total: int | None, unit: Unit = "records") -> None:
        _LOGGER.info("%s", stage)
        self._call_listener(lambda: self._listener.begin(stage, total, unit))

    def advance(self, steps: int = 1) -> None:
        self._call_listener(lambda: self._listener.advance(steps))

    def allowance(self, tokens: int | None) -> None:
        self._call_listener(lambda: self._listener.allowance(tokens))

    def waiting(self, wait: timedelta) -> None:
        self._call_listener(lambda: self._listener.waiting(wait))

    def warn(self, text: str) -> None:
        self._call_listener(lambda: self._listener.warn(text))

    def _call_listener(self, call: Callable[[], None]) -> None:
        try:
            call()
        except Exception:  # a defect of a display neither ends a run nor counts as one of the connector
            self._listener = SilentProgress()
            _LOGGER.exception("the listener of the progress has failed and is not called any more")
