"""``crossdock schedule --fleet``: the service of many tenants."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from crossdock.cli.console_options import ConsoleOptions, fleet_tenants
from crossdock.cli.listen_addresses import ListenAddress
from crossdock.cli.schedule import show_preview
from crossdock.cli.service import interruptible_service
from crossdock.errors import ConfigError

if TYPE_CHECKING:
    from crossdock.config.project.project import Project
    from crossdock.services.fleet.executors import ChosenExecutor
    from crossdock.services.fleet.fleet_scheduler import FleetScheduler, Listener
    from crossdock.services.fleet.fleet_service import FleetService
    from crossdock.services.fleet.tenants import FleetBase
    from crossdock.services.notifications.notifier import Notifier
    from crossdock.services.scheduler.stderr_log import LogFormat
    from crossdock.state.fleet_database import JobFacts
    from crossdock.values.clock import Clock


@dataclass(frozen=True, slots=True)
class FleetOptions:
    """Options of the service. *executor* is ``NAME`` or ``NAME=ADDRESS``; without *at_once*, the base file decides."""

    log_format: LogFormat
    executor: str
    at_once: int | None = None
    health: ListenAddress | None = None
    allowed_hosts: tuple[str, ...] = ()
    console: ConsoleOptions | None = None


def serve_or_preview(
    pattern: str,
    base_files: Sequence[Path],
    options: FleetOptions,
    others: Mapping[str, object],
    days: int | None,
    *,
    as_json: bool,
) -> int:
    """Run the service, or show the runs of the next *days*. *others* are options that ``--fleet`` refuses."""
    if given := [name for name, value in others.items() if value is not None]:
        hint = f"for one tenant: crossdock -C BASE -C TENANT schedule {given[0]}"
        raise ConfigError(f"{given[0]} does not go with --fleet", hint=hint, code="options_conflict")
    return serve(pattern, base_files, options) if days is None else preview(pattern, base_files, days, as_json=as_json)


def serve(pattern: str, base_files: Sequence[Path], options: FleetOptions) -> int:
    from crossdock.services.fleet import executors
    from crossdock.services.fleet.fleet_service import FleetService
    from crossdock.services.fleet.grouped_notices import GroupedNotices
    from crossdock.services.fleet.tenant_files import TenantFiles
    from crossdock.services.fleet.tenants import load_base
    from crossdock.services.observability.health import serve as serve_health
    from crossdock.services.observability.metrics import Metrics
    from crossdock.services.scheduler import stderr_log
    from crossdock.services.scheduler.daemon import Daemon
    from crossdock.state.fleet_database import FleetDatabase
    from crossdock.values.clock import SystemClock

    base, executor = load_base(*base_files), executors.chosen_executor(options.executor)
    if executor.kind.on_other_hosts and base.database.drivername == "sqlite":
        message = "the database of the fleet is a file of one host, and runs may be on other hosts"
        raise ConfigError(
            message, where="fleet.database", hint="database: postgresql://user@host/database", code="fleet_state_local"
        )
    clock, daemon = SystemClock(), Daemon(1)
    metrics = Metrics(clock, of_fleet=True)
    files = TenantFiles(pattern, base, on_other_hosts=executor.kind.on_other_hosts, loading=metrics.record_heartbeat)
    files.paths()  # a pattern that is the path of nothing is refused at once
    with stderr_log.logging_to_stderr(options.log_format), ExitStack() as stack:
        interrupt = stack.enter_context(interruptible_service(options.log_format))
        if options.health is not None:
            served = serve_health(metrics, *options.health, allowed_hosts=options.allowed_hosts)
            stderr_log.LOGGER.info("serving %s", stack.enter_context(served))
        if options.console is not None:
            found = partial(fleet_tenants, pattern, base_files)
            url = stack.enter_context(options.console.served(found, options.allowed_hosts))
            if url is not None:
                stderr_log.LOGGER.info("serving the console at %s", url)
        service = FleetService(
            files,
            lambda: FleetDatabase(base.database),
            clock,
            interrupt,
            metrics,
            GroupedNotices(_notifier(base)),
            _scheduler_maker(base, options, executor, clock, daemon.wake),
        )
        asked = stack.enter_context(_reload_on_sighup(service))
        gc.freeze()  # what is imported stays
        try:
            daemon.run(service, interrupt, asked)
        except KeyboardInterrupt:  # the second signal; threads cannot be ended, and the states survive any kill
            os._exit(130)
    return 0


def _scheduler_maker(
    base: FleetBase, options: FleetOptions, executor: ChosenExecutor, clock: Clock, wake: Callable[[], None]
) -> Callable[[Listener, Callable[[str, Iterable[JobFacts]], None]], FleetScheduler]:
    from crossdock.services.fleet.fleet_scheduler import FleetScheduler
    from crossdock.services.fleet.run_slots import RunSlots

    slots = RunSlots(options.at_once or base.config.at_once, base.config.per_host)
    database = base.database.render_as_string(hide_password=False)  # it has no password: see `parse_url`

    def make(listener: Listener, known: Callable[[str, Iterable[JobFacts]], None]) -> FleetScheduler:
        return FleetScheduler(clock, slots, lambda: executor.open(slots.at_once), database, listener, known, wake)

    return make


def preview(pattern: str, base_files: Sequence[Path], days: int, *, as_json: bool) -> int:
    from crossdock.cli.tenant_states import FleetStates
    from crossdock.services.scheduler.schedule_preview import preview_rows
    from crossdock.values.clock import SystemClock

    now, states = SystemClock().now(), FleetStates(pattern, base_files)

    def read(loaded: Project) -> list[dict[str, Any]]:
        with loaded.read_state() as tx:
            return preview_rows(tx, loaded.jobs, now, days)

    found = states.each(read)
    rows = [{"tenant": name, **row} for name, each in found for row in each]
    rows.sort(key=lambda row: (row["begins"], row["tenant"]))
    show_preview(rows, ("tenant", "job", "date", "begins", "expected end", "requests"), days, as_json=as_json)
    return states.exit_code


def _notifier(base: FleetBase) -> Notifier | None:
    from crossdock.services.notifications.notifier import Notifier
    from crossdock.values.clock import SystemClock

    return None if base.notify is None else Notifier(base.notify, SystemClock())


@contextmanager
def _reload_on_sighup(service: FleetService) -> Iterator[Callable[[], Callable[[], None] | None]]:
    asked: list[Callable[[], None]] = []

    def ask(_number: int, _frame: FrameType | None) -> None:
        asked.append(service.reload)

    before = signal.signal(signal.SIGHUP, ask)
    try:
        yield lambda: asked.pop() if asked else None
    finally:
        signal.signal(signal.SIGHUP, before)
