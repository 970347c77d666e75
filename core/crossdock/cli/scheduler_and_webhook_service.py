"""The service that ``crossdock schedule`` and ``crossdock listen`` run until it is stopped."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, NamedTuple

import click
from msgspec import Struct, structs

from crossdock.cli.shared_options_messages_and_signals import (
    ListenAddress,
    listen_address_option,
    stop_event_set_by_signals,
)
from crossdock.cli.web_console_serving_options import WebConsoleOptions
from crossdock.errors import ConfigError, CrossdockError, text_with_code

if TYPE_CHECKING:
    from crossdock.config.project.project import Project
    from crossdock.services.inbox.webhook_receiver_and_writer import WebhookReceiver
    from crossdock.services.inbox.webhook_verification_and_parsing import WebhookEndpoint
    from crossdock.services.notifications.mail_and_webhook_notifier import Notifier
    from crossdock.services.scheduler.monitored_scheduler import MonitoredScheduler
    from crossdock.services.scheduler.stderr_log import LogFormat

log_format_option = click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Log to stderr as sentences, or as one JSON object per line.",
)


SWITCH_S = 0.0005
"""How long a thread may keep the interpreter. An answer to a webhook takes several turns of two threads, each of which
would wait for 5 ms while a run computes.
"""
GARBAGE_AT = 10_000  # objects; a collection of the 200,000 of other commands stops all threads for 70 ms


health_option = listen_address_option(
    "--health", help="Serve /healthz, /readyz and /metrics; by default on 127.0.0.1 only."
)


class ServiceOptions(Struct, frozen=True):
    """Options of the service. *allowed_hosts* are further names of this machine for the health endpoints."""

    log_format: LogFormat
    at_once: int = 1
    health: ListenAddress | None = None
    allowed_hosts: tuple[str, ...] = ()
    listen: ListenAddress | None = None
    runs_jobs: bool = True
    console: WebConsoleOptions | None = None


def serve_until_stopped(loaded: Project, config: Path, options: ServiceOptions) -> int:
    """Run due jobs, and deliver the records of webhooks, until a signal stops the service."""
    from crossdock.services.inbox.webhook_receiver_and_writer import RefusedWebhookCounts
    from crossdock.services.inbox.webhook_record_delivery import (
        WORKS_AT_ONCE,
        ConnectionAndTarget,
        InboxWorker,
        InboxWorkResult,
    )
    from crossdock.services.observability.health_and_metrics import Metrics
    from crossdock.services.observability.monitoring_server import serve_monitoring_in_thread as serve_health
    from crossdock.services.observability.optional_trace_export import open_trace_export
    from crossdock.services.scheduler import stderr_log
    from crossdock.services.scheduler.apscheduler_daemon import Daemon
    from crossdock.services.scheduler.monitored_scheduler import (
        MonitoredScheduler,
        WebhookReception,
        report_refused_webhooks,
    )
    from crossdock.services.scheduler.scheduler import WorkerPool
    from crossdock.values.clock import SystemClock

    listens = options.listen is not None
    if listens:
        sys.setswitchinterval(SWITCH_S)
        gc.set_threshold(GARBAGE_AT)
    clock, daemon = SystemClock(), Daemon(options.at_once + listens * WORKS_AT_ONCE)
    loaded = _without_jobs_if_only_listening(loaded, options)
    metrics, refused = Metrics(clock), RefusedWebhookCounts()
    with (
        stderr_log.logging_to_stderr(options.log_format),
        open_trace_export(stderr_log.log_warning) as trace,
        ExitStack() as stack,
    ):
        interrupt = stack.enter_context(stop_event_with_logged_notice(options.log_format))
        if options.health is not None:
            served = serve_health(metrics, *options.health, allowed_hosts=options.allowed_hosts)
            stderr_log.LOGGER.info("serving %s", stack.enter_context(served))
        if options.console is not None:
            files, warn = (config, *loaded.overrides), stderr_log.log_warning
            url = stack.enter_context(
                options.console.serve_console_in_own_process(files, None, options.allowed_hosts, warn)
            )
            if url is not None:
                stderr_log.LOGGER.info("serving the console at %s", url)
        worker = receiver = None
        if listens:

            def on_end(partners: ConnectionAndTarget, worked: InboxWorkResult) -> None:
                stderr_log.log_inbox_work(partners, worked)
                metrics.count_requests(worked.requests, worked.throttled)

            worker = InboxWorker(clock, stderr_log.WebhookLog, interrupt, on_end, daemon.wake)
        if options.listen is not None and worker is not None:
            stack.callback(report_refused_webhooks, refused, metrics)  # of the last seconds
            receiver = stack.enter_context(
                _serve_receiver(loaded, options.listen, refused, worker.wake_works_on_streams)
            )
        reloaded = stack.enter_context(_poll_for_reload_on_sighup((config, *loaded.overrides), options, receiver))
        if loaded.jobs:
            stderr_log.LOGGER.info("watching %s", ", ".join(loaded.jobs))
        service = MonitoredScheduler(
            loaded,
            clock,
            interrupt,
            metrics,
            notifier=_notifier(loaded),
            trace=trace,
            workers=WorkerPool(daemon.executor, options.at_once),
            webhooks=None if worker is None else WebhookReception(worker, refused),
        )
        gc.freeze()  # what is imported stays: a collection that looks through it would stop all threads for 0.2 s
        try:
            daemon.run(service, interrupt, lambda: _call_to_reload_when_idle(service, reloaded()))
        except KeyboardInterrupt:  # the second signal; threads cannot be ended, and the state survives any kill
            os._exit(130)
    return 0


def _call_to_reload_when_idle(service: MonitoredScheduler, fresh: _Reloaded | None) -> Callable[[], None] | None:
    return None if fresh is None else partial(service.reload_when_idle, fresh.project, fresh.notifier)


def _without_jobs_if_only_listening(loaded: Project, options: ServiceOptions) -> Project:
    return loaded if options.runs_jobs else structs.replace(loaded, jobs={})


def _webhook_endpoints(loaded: Project) -> dict[str, WebhookEndpoint]:
    from crossdock.services.inbox.webhook_verification_and_parsing import WEBHOOKS_EXAMPLE, endpoints_by_connection
    from crossdock.values.clock import SystemClock

    found = endpoints_by_connection(loaded.connections, SystemClock())
    if not found:
        hint = f"add webhooks: to a connection, such as {WEBHOOKS_EXAMPLE}"
        raise ConfigError(
            "no connection receives webhooks", where=str(loaded.path), hint=hint, code="webhooks_not_configured"
        )
    return found


@contextmanager
def _serve_receiver(
    loaded: Project,
    address: ListenAddress,
    refused: Callable[[str, str], None],
    on_stored_records: Callable[[Collection[str]], None],
) -> Iterator[WebhookReceiver]:
    from crossdock.services.inbox import webhook_receiver_and_writer
    from crossdock.services.inbox.webhook_receiver_and_writer import WebhookWriter
    from crossdock.services.scheduler.stderr_log import LOGGER
    from crossdock.values.clock import SystemClock

    found = _webhook_endpoints(loaded)
    loaded.open_state().close()  # one that does not exist is reported before anything is received
    writer = WebhookWriter(loaded.open_state, SystemClock(), on_stored_records)
    try:
        made = webhook_receiver_and_writer.WebhookReceiver(found, writer, refused)
        with webhook_receiver_and_writer.serve_webhook_receiver_in_thread(made, address.host, address.port) as base_url:
            for name in found:
                LOGGER.info(
                    "receiving webhooks at %s%s%s", base_url, webhook_receiver_and_writer.WEBHOOK_PATH_PREFIX, name
                )
            yield made
    finally:
        writer.store_queued_and_close()


def stop_event_with_logged_notice(log_format: LogFormat) -> AbstractContextManager[threading.Event]:
    """Do the same as `interruptible`, for a process whose threads log."""
    from crossdock.services.scheduler.stderr_log import LOGGER, print_notice_between_log_lines

    return stop_event_set_by_signals(LOGGER.info if log_format == "json" else print_notice_between_log_lines)


def _notifier(loaded: Project) -> Notifier | None:
    from crossdock.services.notifications.mail_and_webhook_notifier import Notifier
    from crossdock.values.clock import SystemClock

    return None if loaded.notify is None else Notifier(loaded.notify, SystemClock())


class _Reloaded(NamedTuple):
    project: Project
    notifier: Notifier | None


@contextmanager
def _poll_for_reload_on_sighup(
    files: Sequence[Path], options: ServiceOptions, receiver: WebhookReceiver | None
) -> Iterator[Callable[[], _Reloaded | None]]:
    """Yield a function that returns the config reloaded after SIGHUP. An invalid one is logged and ignored."""
    from crossdock.config.project import project
    from crossdock.services.scheduler.stderr_log import LOGGER

    asked = threading.Event()
    files = [each.absolute() for each in files]  # an author's code may change the working folder

    def ask(_number: int, _frame: FrameType | None) -> None:
        asked.set()

    def reloaded() -> _Reloaded | None:
        if not asked.is_set():
            return None
        asked.clear()
        try:
            fresh = _without_jobs_if_only_listening(project.load(*files), options)
            notifier = _notifier(fresh)
            if receiver is not None:
                receiver.replace_endpoints_and_state(_webhook_endpoints(fresh), fresh.open_state)
        except CrossdockError as error:
            LOGGER.error("SIGHUP: the config was not reloaded: %s", text_with_code(error))
            return None
        LOGGER.info("SIGHUP: watching %s", ", ".join(fresh.jobs) or "webhooks")
        return _Reloaded(fresh, notifier)

    before = signal.signal(signal.SIGHUP, ask)
    try:
        yield reloaded
    finally:
        signal.signal(signal.SIGHUP, before)
