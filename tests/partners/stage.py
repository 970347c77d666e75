"""A project for tests: a platform as a sandbox, other systems as fakes, and a config that connects them."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from tests.hints import work_on_hints

from crossdock.config.project import project
from crossdock.runs import sync_and_replay
from crossdock.runs.run_report import Report
from crossdock.runs.session_shared_by_runs import open_session
from crossdock.sandbox import SandboxServer
from crossdock.services.inbox import webhook_record_delivery
from crossdock.services.inbox.vendor_webhook_subscriptions import open_subscriptions_of_connection
from crossdock.services.inbox.webhook_receiver_and_writer import WebhookReceiver
from crossdock.services.inbox.webhook_record_delivery import InboxWorker
from crossdock.services.inbox.webhook_verification_and_parsing import endpoints_by_connection
from crossdock.state import InboxRecord
from crossdock.state.tables.dead_letters_and_waiting_records import ALL_RECORDS
from crossdock.testing import sandbox_effects_comparison
from crossdock.testing.sandbox_syncs import write_private_file
from crossdock.values import exact_json
from crossdock.values.clock import Clock
from crossdock.values.run_progress_and_messages import SilentProgress
from crossdock.webhooks import Subscription


class Project:
    """A config in *folder*, with its state.

    Args:
        connections: As in a config file.
    """

    def __init__(
        self, folder: Path, sandbox: SandboxServer, connections: Mapping[str, Any], clock: Clock, **more: Any
    ) -> None:
        self.folder, self.clock = folder, clock
        document = {
            "platform": {
                "base_url": sandbox.base_url,
                "tenant": "sandbox",
                "auth": {"kind": "api_key", "token": write_private_file(folder / "platform-key", sandbox.api_key)},
                "rate": {"per_minute": 600_000, "burst": 100_000},
            },
            "state": "sqlite:///state.db",
            "connections": connections,
            **more,
        }
        self.config = folder / "crossdock.yaml"
        self.config.write_bytes(exact_json.dumps(document))
        self._project = project.load(self.config)
        self._project.create_or_upgrade_state()

    def sync(self, *streams: str) -> Report:
        """The report of a sync in this process."""
        return sync_and_replay.sync(
            self._project, list(streams), clock=self.clock, progress=SilentProgress(), interrupt=threading.Event()
        )

    @contextmanager
    def delivering(self, receiver: WebhookReceiver) -> Iterator[Callable[[], None]]:
        """*receiver* takes the webhooks of this config; the function delivers what it has received."""
        receiver.replace_endpoints_and_state(
            endpoints_by_connection(self._project.connections, self.clock), self._project.open_state
        )
        worker = InboxWorker(self.clock, SilentProgress, threading.Event(), lambda *_: None)

        def deliver() -> None:
            with (
                open_session(self._project, self.clock) as session,
                mock.patch.object(webhook_record_delivery, "IDLE_S", 0.0),
            ):
                work_on_hints(worker, session)

        yield deliver

    def subscribe(self, connection: str) -> list[Subscription]:
        """Register for the webhooks of a connection, as the command does."""
        with open_subscriptions_of_connection(self._project, connection, self.clock) as opened:
            registered = opened.register()
            assert not registered.refused, registered.refused
            return registered.subscriptions

    def process(self, *streams: str) -> subprocess.Popen[str]:
        """A process that syncs."""
        command = [sys.executable, "-m", "crossdock", "-C", str(self.config), "sync", *streams, "--json"]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def hints(self) -> list[InboxRecord]:
        """The records that are to be fetched."""
        with self._project.read_state() as tx:
            return tx.inbox.records_to_fetch(limit=10_000)

    def restore(self, backup: Path) -> None:
        """Put a copy of the state back, and declare it."""
        shutil.copy2(backup, self.folder / "state.db")
        with self._project.open_state_exclusively(restored=True) as opened:
            opened.run_transaction(lambda tx: tx.runs.declare_state_restored(at=self.clock.now()))

    def dead_letters(self) -> dict[str, str]:
        """The reason of each dead letter, with its message, by stream and key."""
        with self._project.read_state() as tx:
            return {
                f"{each.identity.stream} {each.identity.key}": f"{each.code} {each.pointer}: {each.message}"
                for each in tx.dead_letters.rejected_matching(ALL_RECORDS)
            }

    def waiting(self) -> list[str]:
        """Each waiting record's stream and what it waits for."""
        with self._project.read_state() as tx:
            return [
                f"{each.identity.stream} waits for "
                + ", ".join(f"{one['resource']} {one['namespace']}:{one['key']}" for one in each.waits_for)
                for each in tx.waiting_records.matching(ALL_RECORDS)
            ]

    def stored(self, resource: str) -> dict[str, dict[str, Any]]:
        """What the platform has, by external id."""
        found: dict[str, dict[str, Any]] = {}
        for effect in self.effects(resource):
            if effect["operation"] in {"create", "update"}:
                found[effect["body"]["externalId"]] = dict(effect["body"])
        return found

    def effects(self, resource: str) -> list[dict[str, Any]]:
        """What happened to these resources at the platform, oldest first."""
        effects = sandbox_effects_comparison.list_effects_of_tenant(self._project.platform)
        return [dict(each) for each in effects if each["resource"] == resource]

    def invoices(self) -> list[dict[str, Any]]:
        """The invoices that the platform created; they have no external id."""
        return [dict(each["body"]) for each in self.effects("invoice")]
