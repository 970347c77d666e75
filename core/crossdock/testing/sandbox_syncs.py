"""Syncs of one stream to a sandbox in this process, over a transport in place of the stream's network."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from copy import copy
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from unittest import mock

from msgspec import structs

from crossdock.config.project.connections_and_bound_streams import BoundStream, Connection
from crossdock.config.project.project import Project
from crossdock.connector import Connector, Context, Stream
from crossdock.errors import UnavailableError
from crossdock.mapping.row_order_and_cursors import Checkpoint
from crossdock.platform.platform_config import Profile
from crossdock.reading.sources.run_context import SourceContext
from crossdock.runs import parts_between_checkpoints, sync_and_replay
from crossdock.runs.open_records import open_record_items_in_states
from crossdock.runs.run_report import Report
from crossdock.runs.stream_trial import Trial
from crossdock.sandbox import SandboxServer, SandboxSettings
from crossdock.state import parse_database_url
from crossdock.state.tables.dead_letters_and_waiting_records import ALL_RECORDS
from crossdock.targets import Target
from crossdock.testing import prerequisite_records, sandbox_effects_comparison
from crossdock.testing.connector_context_and_reading import bind_checked_stream
from crossdock.testing.manual_clock import ManualClock
from crossdock.values.raw_rows_and_records import RawBatch
from crossdock.values.run_progress_and_messages import SilentProgress
from crossdock.values.run_states_and_tally import BY_URGENCY

if TYPE_CHECKING:
    import httpx

RATE, BURST = 600_000, 100_000  # pacing must not take time
_BETWEEN_SYNCS_S = 60.0
_SHOWN = 3
STOPPED = "stopped by the test"

Network = Callable[[str | None], "httpx.BaseTransport | None"]
"""Returns the replacement of a stream's network from a cursor on, or from the beginning for None."""


def write_private_file(path: Path, text: str) -> str:
    """Write *text* to a new file that only this user can read. Return a reference to it, as in a config file."""
    path.touch(mode=0o600, exist_ok=False)
    path.write_text(text, encoding="utf-8")
    return f"file:{path}"


class SandboxSyncs(AbstractContextManager["SandboxSyncs"]):
    """A sandbox, and tenants in it: a `Tenant` has a state of its own.

    Args:
        folder: The folder for the files of the sandbox and of the states.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._tenants, self._opened = folder, 0, ExitStack()

    def __enter__(self) -> Self:
        self._server = self._start_sandbox("sandbox")
        return self

    def __exit__(self, *exception: object) -> None:
        self._opened.close()

    def _start_sandbox(self, name: str) -> SandboxServer:
        settings = SandboxSettings(rate_per_min=RATE, burst=BURST)
        return self._opened.enter_context(SandboxServer(self._folder / name, settings))

    def create_tenant(self, connector: Connector[Any], context: Context[Any], trial: Trial) -> Tenant:
        """Create a tenant that has the records to which the drafts of *trial* refer and contribute."""
        self._tenants += 1
        absent = prerequisite_records.referenced_records_no_trial_creates([trial])
        if self._tenants > 1 and any(absent.values()):  # an id belongs to one tenant of a sandbox
            self._opened.close()
            self._server = self._start_sandbox(f"sandbox-{self._tenants}")
        name = f"tenant-{self._tenants}"
        folder = self._folder / name
        folder.mkdir()
        key = write_private_file(folder / "api-key", self._server.sandbox.new_key(name))
        platform = {
            "base_url": self._server.base_url,
            "tenant": name,
            "auth": {"kind": "api_key", "token": key},
            "rate": {"per_minute": RATE, "burst": BURST},
        }
        stream = bind_checked_stream(connector, context, trial.bound.stream.name).stream
        project = _TestProject(
            folder / "crossdock.yaml",
            Profile.model_validate(platform, context={"folder": folder}),
            parse_database_url("sqlite:///state.db", folder),
            folder / "spool",
            (Connection(context.connection, connector, context.settings, (stream,)),),
        )
        project.create_or_upgrade_state()
        made = Tenant(folder, project, context.run.clock.now())
        prerequisite_records.create_and_bind_prerequisites(
            project, absent, folder / "bindings.csv", at=made.clock.now()
        )
        return made


class Tenant:
    """The state of one stream's syncs, and what they delivered.

    Attributes:
        folder: The folder with the state's files.
        pulled: The number of batches and checkpoints that the last sync read.
        with_rows: Which of them are batches with rows or deleted keys, from 1 on.
    """

    def __init__(self, folder: Path, project: _TestProject, begins: datetime) -> None:
        self.folder, self._project = folder, project
        self.clock = ManualClock(begins)
        self.pulled, self.with_rows = 0, list[int]()

    def sync(self, network: Network, *, most: int | None = None) -> Report:
        """Run a sync that stores its cursor at every checkpoint.

        Args:
            most: Stop reading after this many batches and checkpoints, so that the stream ends with an error.
        """
        pull = _ObservedPull(network, most)
        self.clock.advance(_BETWEEN_SYNCS_S)
        with mock.patch.object(parts_between_checkpoints, "PART_ROWS", 1):
            project = structs.replace(self._project, pull=pull)
            report = sync_and_replay.sync(
                project, [], clock=self.clock, progress=SilentProgress(), interrupt=threading.Event()
            )  # fmt: skip
        self.pulled, self.with_rows = pull.number, pull.with_rows
        return report

    def reasons_of_open_records(self) -> list[str]:
        """Return why the first records are not delivered: each with its key, and where in the record the reason is."""
        with self._project.read_state() as tx:
            items = open_record_items_in_states(tx, ALL_RECORDS, [each.option_value for each in BY_URGENCY], _SHOWN)
        places = [f" at {item['pointer']}" if item.get("pointer") else "" for item in items]
        return [f"{item['key']}: {item['why']}{place}" for item, place in zip(items, places, strict=True)][:_SHOWN]

    def count_stored_records_by_body(self) -> Counter[str]:
        """Return the contents of the platform; see `sandbox_effects_comparison.count_stored_records_by_body`."""
        return sandbox_effects_comparison.count_stored_records_by_body(
            sandbox_effects_comparison.list_effects_of_tenant(self._project.platform)
        )


class _ObservedPull:
    """Observes `pull` of a stream in one run."""

    def __init__(self, network: Network, most: int | None) -> None:
        self._network, self._most = network, most
        self.number, self.with_rows = 0, list[int]()
        self._since: str | None = None

    def observed_stream(self, stream: Stream[Any]) -> Stream[Any]:
        """Return a copy of *stream* that stops after the given number of batches and checkpoints."""
        read = stream.pull

        def pull(ctx: Context[Any], since: str | None) -> Iterator[RawBatch | Checkpoint]:
            self._since = since
            for item in read(ctx, since):
                yield item
                self.number += 1
                if isinstance(item, RawBatch) and (item.deleted or item.load().height):
                    self.with_rows.append(self.number)
                if self.number == self._most:
                    raise UnavailableError(STOPPED, code="target_unavailable")

        watched = copy(stream)
        watched.pull = pull  # type: ignore[method-assign]  # of this copy alone
        return watched

    def transport_chosen_by_cursor(self) -> httpx.BaseTransport | None:
        """Return the network, chosen when the first request is sent: the cursor is known then."""
        import httpx  # noqa: PLC0415  not every connector uses it

        from crossdock.testing.httpx_test_transports import AuthorsTransport  # noqa: PLC0415

        if self._network(None) is None:
            return None
        chosen: list[httpx.BaseTransport] = []

        def answer(request: httpx.Request) -> httpx.Response:
            if not chosen and (transport := self._network(self._since)) is not None:
                chosen.append(AuthorsTransport(transport))
            return chosen[0].handle_request(request)

        return httpx.MockTransport(answer)


class _TestProject(Project, frozen=True):
    """A project whose streams are read over a transport and observed."""

    pull: _ObservedPull | None = None

    def bind_streams(self, wanted: set[str], *, targets: Mapping[str, Target], run: SourceContext) -> list[BoundStream]:
        if self.pull is None:
            return Project.bind_streams(self, wanted, targets=targets, run=run)
        run = replace(run, transport=self.pull.transport_chosen_by_cursor())
        bound = Project.bind_streams(self, wanted, targets=targets, run=run)
        return [structs.replace(each, stream=self.pull.observed_stream(each.stream)) for each in bound]
