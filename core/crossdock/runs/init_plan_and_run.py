"""`crossdock.init`, `crossdock.plan` and `crossdock.run`: what the commands of these names do, for other programs."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from os import PathLike
from typing import Any

from crossdock.config.project import project
from crossdock.config.project.project import Project
from crossdock.errors import ConfigError
from crossdock.pacing.allowance import Priority
from crossdock.reading.sources.run_context import WaitingRun
from crossdock.runs import dry_run, run_lines, runner
from crossdock.runs.given_arguments import (
    check_process,
    checked_priority,
    config_sources,
    interrupt_of,
    progress_listener,
    record_keys,
    stream_names,
)
from crossdock.runs.named_record_delivery import Key, named_records
from crossdock.runs.plan_result import PlanListener, PlanResult
from crossdock.runs.run_report import Report
from crossdock.runs.timings import Timings
from crossdock.values.clock import SystemClock
from crossdock.values.progress import Progress, Silent, Unit

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
    return load(config).init()


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
        StateError: If there is no state yet; `init` creates it.
    """
    check_process()
    decisions, names, listening = listener or PlanListener.ignoring(), stream_names(streams), _with_logging(progress)
    return dry_run.plan(load(config), names, decisions, clock=SystemClock(), progress=listening)


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
    check_process()
    names, listening = stream_names(streams), _with_logging(progress)
    if keys and names:
        message = "a run delivers streams or named records, not both"
        raise ConfigError(message, hint="leave out streams or keys", code="options_conflict")
    wanted = {} if keys is None else record_keys(keys)
    loaded, clock = load(config), SystemClock()
    for stream in wanted:
        loaded.selected_streams([stream])
    records = [record for stream, given in wanted.items() for record in named_records(stream, given)]
    report = runner.sync(
        loaded,
        names,
        clock=clock,
        progress=listening,
        interrupt=interrupt_of(interrupt),
        priority=checked_priority(priority),
        patience=WaitingRun(clock.now()) if wait else None,
        records=records,
    )
    _log_report(report)
    return report


def load(config: Config) -> Project:
    return project.load(*config_sources(config))


def _with_logging(progress: Progress | None) -> Progress:
    """Return a listener that logs what it passes on. `Timings` are passed as they are: the run asks for their class."""
    return progress if isinstance(progress, Timings) else _LoggedProgress(progress_listener(progress))


def _log_report(report: Report) -> None:
    for message in report.messages:
        _LOGGER.log(_LEVELS[message.level], "%s", message.in_full)
    for name, tally in report.tallies.items():
        _LOGGER.info("%s", run_lines.tally_sentence(name, tally.as_json()))
    _LOGGER.info("%s", run_lines.run_sentence(report.as_json()))


class _LoggedProgress:
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
            self._listener = Silent()
            _LOGGER.exception("the listener of the progress has failed and is not called any more")
