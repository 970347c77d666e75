"""Acceptance test of a target: ``crossdock sync`` as a process, disturbed and killed, judged by what the partner
holds.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any
from unittest import SkipTest, mock

from crossdock.connector import Connector
from crossdock.testing.connector_under_test import MOST_RUNS, DisturbedCommands
from crossdock.testing.crossdock_process import (
    CrossdockCommands,
    EndedCommand,
    find_connector_module_and_constant,
    write_connector_entry_points,
)
from crossdock.testing.example_partner import ExamplePartner
from crossdock.testing.httpx_test_transports import SelectedMembersTransport
from crossdock.testing.httpx_transport_server import RESET, Fault, TransportServer, web_origins_in
from crossdock.testing.record_source_for_target_tests import (
    SOURCE,
    connector_whose_target_never_waits,
    example_record_as_json,
    reference_as_json,
)
from crossdock.testing.sandbox_effects_comparison import describe_count_differences
from crossdock.testing.sandbox_syncs import write_private_file
from crossdock.testing.sandbox_with_project import connections_section_from_settings
from crossdock.testing.target_under_test import TargetUnderTest, convert_to_json_value
from crossdock.values import exact_json
from crossdock.values.record_keys import key_text
from crossdock.values.run_states_and_tally import RecordState

if TYPE_CHECKING:
    import httpx

__all__ = ["TargetAcceptance"]

_FAULTS: tuple[Fault, ...] = (429, 503, RESET, "lost", "cut")
_ROUNDS = 2
_TARGET = "target"
_MODULE = "connector_without_waits"
_EXAMPLES = "examples"
_SYNC = ("sync", _EXAMPLES)  # and not the streams that the connector itself may have

_Changed = dict[str, dict[int, int]]

Held = Callable[[], Iterable[Any]]
"""Lists what a partner holds: a JSON value for each record, without ids and times that it assigned."""


class TargetAcceptance(TargetUnderTest, DisturbedCommands):
    """Tests of all resources of a target, in real processes.

    Attributes:
        records: The number of records of each resource; at least 6.
        left_to_a_person: The resources of which the API neither makes a repeated create harmless nor finds a record by
            its name. A create of them whose answer is lost must be in doubt, and must not be sent again.
    """

    records: int = 12
    left_to_a_person: Collection[str] = ()

    def partner(self) -> tuple[httpx.BaseTransport, Held]:
        """Return a new partner without records: the transport that answers its requests, and a function that lists its
        records.

        By default one that keeps what it is sent, gives the answers of `stored`, `answered`, `listing`, `removed`,
        `missing` and `repeated`, and grants tokens. An API whose requests have another form than the record, such as
        GraphQL, or whose own checks matter, needs one of your own.
        """
        import httpx  # noqa: PLC0415  most tests need none

        made = ExamplePartner(self)
        return httpx.MockTransport(made.answer), made.stored_records

    def test_each_record_is_there_once_in_spite_of_faults_and_kills(self) -> None:
        """Disturbed and killed syncs do what one undisturbed sync does, and the next one sends nothing.

        The same is true of a state that was restored from a backup, if forgotten records can be looked up.
        """
        self._assert_rules_for_lost_creates_stated()
        if left_out := [name for name in self.new_target().resources if name not in self.resources_with_creates]:
            warnings.warn(f"not tested in syncs, since no stream creates them: {', '.join(left_out)}", stacklevel=2)
        with self._new_partner_syncs() as calm:
            self.ends_well("a sync that nothing disturbs", calm.sync(), calm.state_folder)
            expected, requests = calm.count_partner_records(), calm.served.requests
            total = self.records * len(calm.resources)
            assert expected.total() == total, f"the partner holds {expected.total()} of {total} records"
            if self.left_to_a_person:  # in disturbed syncs, the record that is changed may be in doubt
                changed, held = self._sync_changed_last_records(calm), calm.count_partner_records_without_nulls()
        random = Random(self.seed)  # noqa: S311  reproducible on purpose
        faults = random.sample(_FAULTS * _ROUNDS, len(_FAULTS) * _ROUNDS)
        if self.left_to_a_person:
            self._assert_disturbed_creates_in_doubt(random.randint(1, requests // 3), faults, expected)
        else:
            with self._new_partner_syncs() as disturbed:
                self._kill_sync_at_request(random.randint(1, requests // 3), disturbed, answered=False)
                self._kill_sync_at_request(1, disturbed, answered=True)
                self._sync_until_delivered(disturbed, faults, expected)
                self._check_sends_nothing(disturbed)
                changed, held = (
                    self._sync_changed_last_records(disturbed),
                    disturbed.count_partner_records_without_nulls(),
                )
        if changed:
            self._assert_updated_as_created(changed, held)
        if self._can_look_up_all_created():
            with self._new_partner_syncs() as restored:
                self._sync_after_restored_backup(restored, expected)

    def test_a_record_that_is_gone_is_removed_once(self) -> None:
        """A record that its source lists no more is deleted, or cancelled, also if the answer is lost; the others stay,
        and the next sync sends nothing.
        """
        target = self.new_target()
        deleted = [name for name in self.resources_with_creates if "delete" in self.operations(name)]
        if not deleted:
            raise SkipTest("no stream deletes records of this target")
        with self._new_partner_syncs() as delivery:
            delivery.allow_deletes_of_resources(deleted)
            self.ends_well("a sync that nothing disturbs", delivery.sync(), delivery.state_folder)
            for resource in reversed(deleted):  # first those that refer to others
                before = delivery.count_partner_records()
                delivery.left_out.append(resource)
                delivery.write_examples_file({})
                is_looked_up = target.resources[resource].endpoint.rule("delete") != "park"
                self._sync_until_delivered(delivery, ["lost"] if is_looked_up else [])
                counts = (
                    (before - delivery.count_partner_records()).total(),
                    (delivery.count_partner_records() - before).total(),
                )
                assert counts in {(1, 0), (1, 1)}, (  # it is away, or shown as cancelled
                    f"{resource}: when one record is gone, {counts[0]} of those that the partner held are there no "
                    f"more, and {counts[1]} are new; held must list what deletions change"
                )
                self._check_sends_nothing(delivery)

    @property
    def resources_with_creates(self) -> list[str]:
        """The resources whose records streams create."""
        return [name for name in self.new_target().resources if "create" in self.operations(name)]

    def _assert_rules_for_lost_creates_stated(self) -> None:
        target = self.new_target()
        if not self.resources_with_creates:
            raise SkipTest("no stream creates records of this target; test completing them with a partner of your own")
        for resource in self.resources_with_creates:
            rule = target.resources[resource].endpoint.rule("create")
            is_stated = resource in self.left_to_a_person
            text = f"{resource}: a create whose answer is lost is left to a person, so no sync can deliver all records"
            hint = (
                "declare header, key_member, idempotent or look_up in its EndpointProfile or, if the API has none of "
                "these, state left_to_a_person in the test"
            )
            assert rule != "park" or is_stated, f"{text}; {hint}"
            text = f"{resource}: left_to_a_person names it, and a create whose answer is lost is no doubt for ever"
            assert rule == "park" or not is_stated, f"{text}: leave it out"

    def _can_look_up_all_created(self) -> bool:
        target = self.new_target()
        return all(target.resources[name].endpoint.can_verify("create") for name in self.resources_with_creates)

    # ---- disturbances

    def _sync_after_restored_backup(self, delivery: _PartnerSyncs, expected: Counter[str]) -> None:
        """Sync with a backup that lacks everything, to a partner without records and to one that has all."""
        for what in ("a sync to a partner without records", "a sync to a partner that has all records"):
            shutil.rmtree(delivery.state_folder)
            delivery.state_folder.mkdir()
            for command in (("init",), ("state", "restored")):
                self.ends_well(f"crossdock {' '.join(command)}", delivery.run_command(*command), delivery.state_folder)
            self.ends_well(f"after a restored backup, {what}", delivery.sync(), delivery.state_folder)
            wrong = describe_count_differences(expected, delivery.count_partner_records())
            assert not wrong, f"after a restored backup the partner holds something else than after a calm sync:{wrong}"

    def _kill_sync_at_request(self, number: int, delivery: _PartnerSyncs, *, answered: bool) -> None:
        """Kill a sync when the partner has its next request *number*, or has executed a write if *answered*."""
        with delivery.served.hold_request(delivery.served.requests + number, answered=answered):
            ended = delivery.sync_and_kill(lambda: delivery.served.is_holding)
        self.was_killed(f"request {number} to the partner", ended)

    def _sync_until_delivered(
        self, delivery: _PartnerSyncs, faults: list[Fault], expected: Counter[str] | None = None
    ) -> None:
        """Sync until everything is delivered, at first with faults. The partner must then hold what is *expected*."""
        delivery.served.faults = faults
        runs = 1
        while (ended := delivery.sync()).exit_code != 0 and runs < MOST_RUNS:
            self.no_secret_shown("crossdock sync", ended)
            runs += 1
        # First, because it says more: records that are there twice also end syncs badly.
        wrong = "" if expected is None else describe_count_differences(expected, delivery.count_partner_records())
        assert not wrong, f"after disturbed syncs the partner holds something else than after a calm one:{wrong}"
        if ended.exit_code != 0:  # the output of a sync counts what is open, without the reasons
            listed = delivery.run_command("records", "list")
            ended = ended._replace(output=f"{ended.output}\n{listed.output}")
        self.ends_well(f"the last of {runs} disturbed syncs", ended, delivery.state_folder)
        left = delivery.served.faults
        assert not left, f"these faults were not injected, because nothing was sent: {left}"

    def _assert_disturbed_creates_in_doubt(self, number: int, faults: list[Fault], expected: Counter[str]) -> None:
        """Sync to new partners, with a kill or with faults, until nothing is sent. They must hold each record at most
        once, and each that they lack must be in doubt.
        """
        for answered in (False, True):  # a kill leaves all requests that were in flight in doubt
            with self._new_partner_syncs() as killed:
                self._kill_sync_at_request(number, killed, answered=answered)
                self._sync_until_only_doubt_is_left(killed, expected)
        with self._new_partner_syncs() as disturbed:
            disturbed.served.faults = faults
            self._sync_until_only_doubt_is_left(disturbed, expected)
            left = disturbed.served.faults
            assert not left, f"these faults were not injected, because nothing was sent: {left}"

    def _sync_until_only_doubt_is_left(self, delivery: _PartnerSyncs, expected: Counter[str]) -> None:
        sent, runs = True, 0
        while sent and runs < MOST_RUNS:
            before, runs = delivery.served.requests, runs + 1
            self.no_secret_shown("crossdock sync", delivery.sync())
            sent = delivery.served.requests > before
        assert not sent, f"after {runs} syncs, requests are still sent"
        wrong = describe_count_differences(Counter(), delivery.count_partner_records() - expected)
        assert not wrong, f"after disturbed syncs the partner holds what a calm one does not make:{wrong}"
        streams = {f"{_EXAMPLES}.{resource}" for resource in self.left_to_a_person}
        listed = json.loads(delivery.run_command("records", "list", "--json").output)
        others = [
            f"{each['stream']} {each['key']}: {each['why']}"
            for each in listed
            if each["stream"] not in streams or each["state"] != RecordState.IN_DOUBT.option_value
        ]
        assert not others, f"records are open that are not left to a person: {'; '.join(others)}"
        lacking = (expected - delivery.count_partner_records()).total()
        assert 0 < len(listed) >= lacking, f"the partner lacks {lacking} records, of which {len(listed)} are in doubt"

    def _check_sends_nothing(self, delivery: _PartnerSyncs) -> None:
        before, held = delivery.served.requests, delivery.count_partner_records()
        self.ends_well("a sync after the last one", delivery.sync(), delivery.state_folder)
        sent = delivery.served.requests - before
        assert not sent, f"a sync of records that have not changed sends {sent} requests"
        assert delivery.count_partner_records() == held, "a sync that sends nothing changes what the partner holds"

    def _assert_updated_as_created(self, changed: _Changed, held: Counter[str]) -> None:
        """Compare what the partner holds of updated records with what it holds of records that were created so."""
        with self._new_partner_syncs() as created:
            created.write_examples_file(changed)
            self.ends_well("a sync of records with the changed members", created.sync(), created.state_folder)
            wrong = describe_count_differences(created.count_partner_records_without_nulls(), held)
        names = ", ".join(changed)
        assert not wrong, (
            f"{names}: after a change the partner holds something else than if it had been created so; send all "
            f"of update.changes or update.after, and let held list no counters of changes:{wrong}"
        )

    def _sync_changed_last_records(self, delivery: _PartnerSyncs) -> _Changed:
        """Change the last record of each resource: one update each, or a dead letter if it is written once. Return the
        changes that were made, by resource and number of the record.
        """
        changed: _Changed = {}  # what an earlier resource was changed to stays
        for resource in delivery.resources:
            before, last = delivery.count_partner_records(), {self.records - 1: self.records}
            delivery.write_examples_file({**changed, resource: last})
            if "update" not in self.operations(resource):
                self.ends_well("a sync of a changed record", delivery.sync(), delivery.state_folder, exit_code=1)
                assert delivery.count_partner_records() == before, (
                    f"{resource}: a record that is written once was changed"
                )
                choice = ("--stream", f"{_EXAMPLES}.{resource}", "--reason", "changed_after_delivery")
                listed = json.loads(delivery.run_command("records", "list", "--json", *choice).output)
                keys = [each["key"] for each in listed]
                assert keys == [key_text(self.key(resource, self.records - 1))], (
                    f"{resource}: a changed record is not a dead letter"
                )
                delivery.write_examples_file(changed)
                continue
            changed[resource] = last
            self._sync_until_delivered(delivery, ["lost"])
            gone, new = before - delivery.count_partner_records(), delivery.count_partner_records() - before
            counts = gone.total(), new.total()
            assert counts == (1, 1), f"{resource}: a change of one record removes {counts[0]} and adds {counts[1]}"
            self._check_sends_nothing(delivery)
        return changed

    # ---- the delivery

    @contextmanager
    def _new_partner_syncs(self) -> Iterator[_PartnerSyncs]:
        """Yield a new partner, and a config file for sending records to it."""
        transport, held = self.partner()
        folder = Path(tempfile.mkdtemp(prefix="crossdock-acceptance-"))
        section = connections_section_from_settings(self.connector, self.settings)[self.connector.name]
        try:
            with (
                mock.patch.dict(os.environ, self.environment),
                TransportServer(SelectedMembersTransport(transport), web_origins_in(section)) as served,
            ):
                self.prepare(folder)
                local = exact_json.loads(served.text_with_local_addresses(exact_json.dumps(section).decode()))
                yield _PartnerSyncs(self, folder, local, served, held)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


class _PartnerSyncs:
    """Records that are sent to a partner.

    Attributes:
        served: The partner, as the processes see it.
        left_out: The resources whose last record is gone.
    """

    def __init__(
        self, case: TargetAcceptance, folder: Path, section: Mapping[str, Any], served: TransportServer, held: Held
    ) -> None:
        self._case, self.served, self._held = case, served, held
        self.resources = case.resources_with_creates
        self.state_folder, packages = folder / "state", folder / "packages"
        self._examples, self._config = folder / "examples.json", folder / "crossdock.yaml"
        self.left_out = list[str]()
        self.state_folder.mkdir()
        _write_connector_packages(case.connector, packages, type(case).__module__)
        self._sections: dict[str, Any] = {
            "platform": {
                "base_url": "http://127.0.0.1:9",  # no stream writes to it
                "tenant": "acceptance",
                "auth": {"kind": "api_key", "token": write_private_file(folder / "api-key", "unused")},
            },
            "state": f"sqlite:///{self.state_folder / 'state.db'}",
            "connections": {
                _TARGET: dict(section),
                _EXAMPLES: {
                    "kind": SOURCE.name,
                    "path": self._examples.name,
                    "target": _TARGET,
                    "resources": {name: len(case.key(name, 0)) for name in self.resources},
                },
            },
        }
        self.allow_deletes_of_resources(())
        self._commands = CrossdockCommands(self._config, case.environment, packages)
        self.write_examples_file({})
        case.ends_well("crossdock init", self.run_command("init"), self.state_folder)

    def allow_deletes_of_resources(self, resources: Sequence[str]) -> None:
        """Let syncs delete what the example lacks of *resources*."""
        self._sections["connections"][_EXAMPLES]["deletes"] = [*resources]
        self._config.write_bytes(exact_json.dumps(self._sections))

    def write_examples_file(self, changed: Mapping[str, Mapping[int, int]]) -> None:
        """Write the example, without the last record of `left_out`. Some records have the members of another number."""
        target = self._case.new_target()
        examples: dict[str, list[dict[str, Any]]] = {}
        for resource in self.resources:
            draft, other = target.resources[resource].draft, changed.get(resource, {})
            examples[resource] = []
            for number in range(self._case.records - self.left_out.count(resource)):
                members = self._case.members(resource, other.get(number, number))
                payload = draft.model_validate(dict(members)).payload()
                key = self._case.key(resource, number)
                examples[resource].append(
                    example_record_as_json(key, convert_to_json_value(payload, reference_as_json))
                )
        self._examples.write_bytes(exact_json.dumps(examples))

    def count_partner_records(self) -> Counter[str]:
        """Return what the partner holds, one text for equal records."""
        return Counter(json.dumps(each, sort_keys=True, default=str) for each in self._held())

    def count_partner_records_without_nulls(self) -> Counter[str]:
        """Return what the partner holds, where null is the same as no member."""
        return Counter(map(_without_nulls, self.count_partner_records().elements()))

    def run_command(self, *arguments: str) -> EndedCommand:
        return self._commands.run(*arguments)

    def sync(self) -> EndedCommand:
        return self.run_command(*_SYNC)

    def sync_and_kill(self, is_time: Callable[[], bool]) -> EndedCommand:
        """Run a sync and send it SIGKILL as soon as *is_time* returns True."""
        return self._commands.run_and_kill(is_time, *_SYNC)


def _without_nulls(text: str) -> str:
    def kept(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        return {name: value for name, value in pairs if value is not None}

    return json.dumps(json.loads(text, object_pairs_hook=kept), sort_keys=True)


def _write_connector_packages(connector: Connector[Any], packages: Path, author: str) -> None:
    """Install the source of examples and the connector without waits in *packages*."""
    module, name = find_connector_module_and_constant(connector, least_preferred_module=author)
    home = connector_whose_target_never_waits.__module__
    write_connector_entry_points(packages, {connector.name: f"{_MODULE}:CONNECTOR", SOURCE.name: f"{home}:SOURCE"})
    imports = f"from {home} import connector_whose_target_never_waits\nfrom {module} import {name} as connector\n"
    text = f"{imports}\nCONNECTOR = connector_whose_target_never_waits(connector)\n"
    (packages / f"{_MODULE}.py").write_text(text, encoding="utf-8")
