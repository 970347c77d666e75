"""Acceptance test of a connector: ``crossdock sync`` as a process, disturbed and killed, judged by the actual effects.

The sandbox's effects log is compared with that of a sync that nothing disturbed, never with crossdock's own report.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from unittest import mock

from crossdock.testing.connector_under_test import MOST_RUNS, DisturbedCommands
from crossdock.testing.httpx_test_transports import SelectedMembersTransport
from crossdock.testing.httpx_transport_server import RESET, Fault, TransportServer, web_origins_in
from crossdock.testing.sandbox_effects_comparison import describe_count_differences
from crossdock.testing.sandbox_with_project import (
    Connections,
    SandboxWithProject,
    connections_section_from_settings,
    read_connections,
)
from crossdock.values import exact_json

__all__ = ["SyncAcceptance"]

_REFUSALS = ("throttle", "error_before", "reset_before")  # 429, 503, a reset connection: nothing has happened
_LOST = "lost_answer"  # it has happened, and the answer is lost
_MIXED = {"lost_answer": 0.2, "error_after_commit": 0.2, "cut_body": 0.2}
_SOURCE_FAULTS: tuple[Fault, ...] = (429, 503, RESET)


class SyncAcceptance(DisturbedCommands):
    """A test of all streams of a connection, or of a config, in real processes.

    The sandbox contains the records that the example refers to and does not contain. Web addresses in the settings,
    and in the headers and bodies of answers, are replaced by addresses of this machine that serve `network`.

    Attributes:
        config: A config file, in place of *connector* and *settings*. Its sections ``platform`` and ``state`` are
            replaced; files that it refers to are created by `prepare`.
    """

    config: Path | None = None

    def test_each_record_is_delivered_once_in_spite_of_faults_and_kills(self) -> None:
        """Disturbed and killed syncs do what one undisturbed sync does, and the next one sends nothing."""
        with self._platform_factory_and_source() as (make, served):
            calm = make("calm")
            before = served.requests if served else 0
            self.ends_well("a sync that nothing disturbs", calm.run_command("sync"), calm.state_folder)
            requests = served.requests - before if served else 0
            assert not calm.without_records, (
                f"{', '.join(calm.without_records)}: pull yields no record today, so its syncs prove nothing; give "
                "records in network or prepare that are not later than today, or leave the stream out of the settings"
            )
            expected = calm.count_sync_effects()
            assert expected, "the example delivers nothing"

            disturbed, random = make("disturbed"), Random(self.seed)  # noqa: S311  reproducible on purpose
            self.no_secret_shown("crossdock plan", disturbed.run_command("plan"))
            self._kill_while_reading(disturbed, served, random, requests)
            self._kill_sync_after_faults(random.sample(_REFUSALS, len(_REFUSALS)), 1, disturbed)
            self._kill_sync_after_faults([_LOST], random.randint(1, 3), disturbed)
            self._sync_until_delivered(disturbed, served)
            wrong = describe_count_differences(expected, disturbed.count_sync_effects())
            assert not wrong, f"effects of disturbed syncs differ from those of an undisturbed one:{wrong}"
            again = disturbed.run_command("sync", "--json")
            self.ends_well("a sync after the last one", again, disturbed.state_folder)
            sent = json.loads(again.output)["requests"]
            assert not sent, f"a sync of records that have not changed sends {sent} requests"

    # ---- disturbances

    def _kill_while_reading(
        self, platform: SandboxWithProject, served: TransportServer | None, random: Random, requests: int
    ) -> None:
        """Kill a sync when the source has received one of its requests and not answered it."""
        if served is None or not requests:
            return
        last = served.requests + random.randint(1, requests)
        with served.hold_request(last):
            self._run_and_kill_sync(f"request {last} to the source", platform, lambda: served.requests >= last)

    def _kill_sync_after_faults(
        self, faults: Sequence[str], occurrences_of_each: int, platform: SandboxWithProject
    ) -> None:
        """Kill a sync once each of *faults* happened *occurrences_of_each* times; each request has one of them."""
        left = [*faults]
        platform.inject_faults({left[0]: 1.0}, self.seed)

        def have_happened() -> bool:
            if platform.count_injected_faults_by_name()[left[0]] < occurrences_of_each:
                return False
            if len(left) > 1:
                platform.inject_faults({left[1]: 1.0}, self.seed)
            left.pop(0)
            return not left

        self._run_and_kill_sync(f"the faults {', '.join(faults)}", platform, have_happened)
        platform.inject_faults({}, self.seed)

    def _run_and_kill_sync(self, moment: str, platform: SandboxWithProject, is_time: Callable[[], bool]) -> None:
        self.was_killed(moment, platform.run_command_and_kill(is_time, "sync"))

    def _sync_until_delivered(self, platform: SandboxWithProject, served: TransportServer | None) -> None:
        """Sync until everything is delivered, at first with faults of the source and of the platform."""
        if served:
            served.faults = list(_SOURCE_FAULTS)
        for number in range(MOST_RUNS):
            platform.inject_faults(_MIXED if number == 0 else {}, self.seed)
            ended = platform.run_command("sync")
            self.no_secret_shown("crossdock sync", ended)
            if ended.exit_code == 0:
                break
        self.ends_well(f"the sync after {number} others", ended, platform.state_folder)
        left = served.faults if served else []
        assert not left, f"these faults of the source were not injected, because nothing was read: {left}"

    # ---- the platforms

    def _connections(self) -> Connections:
        return (
            read_connections(self.config)
            if self.config
            else connections_section_from_settings(self.connector, self.settings)
        )

    @contextmanager
    def _platform_factory_and_source(
        self,
    ) -> Iterator[tuple[Callable[[str], SandboxWithProject], TransportServer | None]]:
        """Yield a function that makes a platform with its own state, and the served source."""
        with ExitStack() as stack, mock.patch.dict(os.environ, self.environment):
            folder = Path(tempfile.mkdtemp(prefix="crossdock-acceptance-"))
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            connections = self._connections()
            network, served = self.network(), None
            if network is not None:
                served = stack.enter_context(
                    TransportServer(SelectedMembersTransport(network), web_origins_in(connections))
                )
                connections = exact_json.loads(served.text_with_local_addresses(exact_json.dumps(connections).decode()))

            def make(name: str) -> SandboxWithProject:
                place = folder / name
                place.mkdir()
                self.prepare(place)
                connector = None if self.config else self.connector
                made = SandboxWithProject(place, connections, connector, self.environment, type(self).__module__)
                return stack.enter_context(made)

            yield make, served
