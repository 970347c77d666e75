"""`crossdock.run`: runs a config from another program."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from crossdock.config.project import project
from crossdock.errors import ConfigError
from crossdock.pacing.allowance import Priority
from crossdock.reading.sources.run_context import Patience
from crossdock.runs import runner
from crossdock.runs.named_record_delivery import Key, named_records
from crossdock.runs.run_report import Report
from crossdock.values.clock import SystemClock
from crossdock.values.progress import Progress, Silent


def run(
    config: str | Path | Sequence[str | Path],
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

    Args:
        config: The config file; several override one another in order.
        streams: ``CONNECTION`` or ``CONNECTION.STREAM``; by default all.
        keys: Records to deliver instead, by stream: each as the text of the stream's key column, or as a list of texts
            if it has several. They are fetched from the source, with records that they refer to and that were not
            delivered yet.
        priority: ``live`` takes its requests before batches that share the allowance.
        wait: Wait for late files where the config says so, as scheduled runs do.
        progress: Receives what the run does.
        interrupt: Set it to stop the run in order: requests in flight are settled.

    Returns:
        What was done: its `status`, `exit_code`, `tallies` and `errors`, which stopped a stream or the run.

    Raises:
        ConfigError: If the config or the choice is invalid.
        CrossdockError: If the run could not begin: another one uses the state, or a credential cannot be read.
    """
    if keys and streams:
        raise ConfigError("a run delivers streams or named records, not both", hint="leave out streams or keys")
    if keys is not None and not any(keys.values()):
        raise ConfigError("no record is named in keys")
    files = [config] if isinstance(config, str | Path) else list(config)
    loaded, clock = project.load(*map(Path, files)), SystemClock()
    records = [record for stream, wanted in (keys or {}).items() for record in named_records(stream, wanted)]
    for stream in keys or {}:
        loaded.selected([stream])
    return runner.sync(
        loaded,
        list(streams),
        clock=clock,
        progress=progress or Silent(),
        interrupt=interrupt or threading.Event(),
        priority=priority,
        patience=Patience(clock.now()) if wait else None,
        records=records,
    )
