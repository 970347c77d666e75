"""The records of the platform that the streams of a run may take over."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, cast

from crossdock.config.project.connections_and_bound_streams import BoundStream
from crossdock.config.project.project import Project
from crossdock.delta.fingerprint import key_hashes
from crossdock.errors import RefusedError, StoppedError
from crossdock.mapping.resource_types import CHANGED, make_platform_external_id
from crossdock.mapping.row_order_and_cursors import OVERLAP_S, latest_time_of_change
from crossdock.mapping.stream_declaration import PLATFORM, AdoptBy
from crossdock.platform.platform_config import Profile
from crossdock.reading.sources.run_context import SourceContext
from crossdock.resources import ResourceName
from crossdock.runs.planning.adoptable_records import AdoptionMatcher, TargetMemberValue, TargetMemberValueIndex
from crossdock.state import Scope, State, Transaction
from crossdock.writing.targets.answer_outcomes import STANDARD


@dataclass(slots=True)
class AdoptableRecordReader:
    """Reads the records of a resource into an index, and later only changes. `check` is called for each page."""

    profile: Profile
    run: SourceContext
    state: State
    scope: Scope
    member: str
    check: Callable[[], None] = lambda: None
    _newest: datetime | None = field(default=None, init=False)

    def read_changes_into_index(self, index: TargetMemberValueIndex) -> None:
        from crossdock.runs.platform_source.live_records_for_comparisons import LiveRecords  # noqa: PLC0415  few runs take over

        resource = cast("ResourceName", self.scope.resource)
        since = None if self._newest is None else self._newest - timedelta(seconds=OVERLAP_S)
        self.run.progress.begin(f"reading each {resource.replace('_', ' ')} of the platform", 1, "requests")
        newest, latest = self._newest, latest_time_of_change(self.run.clock.now())
        with LiveRecords(self.profile, self.run) as live:
            for page in live.pages(resource, since):
                self.check()
                records = {self._valid_id(record): record for record in page}
                with self.state.begin_read_only() as tx:
                    owners = _RecordOwners(tx, self.scope, records)
                index.add([self._live_value(*each, owners.owning_namespace(*each)) for each in records.items()])
                times = [at for at in map(_change_time_of_record, page) if at is not None and at <= latest]
                newest = max((newest, *times) if newest else times, default=None)
        self._newest = newest
        self.run.progress.advance()

    def _valid_id(self, record: dict[str, Any]) -> str:
        record_id = STANDARD.id_of(record)
        if record_id is None:
            raise RefusedError(
                "lists a record without a valid id",
                where=self.profile.resource_path(self.scope.resource),
                code="answer_misplaced",
            )
        return record_id

    def _live_value(self, record_id: str, record: dict[str, Any], namespace: str | None) -> TargetMemberValue:
        value = record.get(self.member)
        if not isinstance(value, str) or namespace not in {None, self.scope.namespace}:
            return TargetMemberValue(record_id, None)
        return TargetMemberValue(record_id, value, taken=namespace is not None)


def _change_time_of_record(record: dict[str, Any]) -> datetime | None:
    text = record.get(CHANGED)
    try:
        at = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return None if at is None or at.tzinfo is None else at


class _RecordOwners:
    """The namespaces of listed records that crossdock has delivered, or is about to deliver.

    A record belongs to its binding or to an unsettled operation on it. Otherwise it belongs to the record with its
    external id, if that is bound or being created.
    """

    def __init__(self, tx: Transaction, scope: Scope, page: Mapping[str, dict[str, Any]]) -> None:
        self._tx, self._scope = tx, scope
        self._by_id: dict[str, str] = {}
        self._by_name: dict[str, str] = {}
        for intent in tx.intents.unsettled():
            if (intent.scope.target, intent.resource) == (scope.target, scope.resource):
                namespace = intent.scope.whole_record_scope.namespace
                self._by_name[make_platform_external_id(namespace, intent.identity.key)] = namespace
                if intent.target_id is not None:
                    self._by_id[intent.target_id] = namespace
        owners = tx.bindings.records_of_target_ids(scope.target, scope.resource, list(page))
        self._by_id.update((target_id, namespace) for target_id, namespace, *_ in owners)
        self._by_name.update(
            self._bound_external_ids([name for record in page.values() if (name := _external_id(record)) is not None])
        )

    def owning_namespace(self, record_id: str, record: dict[str, Any]) -> str | None:
        return self._by_id.get(record_id) or self._by_name.get(_external_id(record) or "")

    def _bound_external_ids(self, names: Sequence[str]) -> Iterator[tuple[str, str]]:
        """Yield those of *names* that are external ids of bound records, each with its namespace."""
        keys: dict[str, list[str]] = defaultdict(list)
        for namespace, _, key in (name.partition(":") for name in names):
            keys[namespace].append(key)
        for namespace, own in keys.items():
            hashes = key_hashes(own)
            scope = Scope(self._scope.target, self._scope.resource, namespace)
            bound = self._tx.bindings.target_id_by_key_hash(scope, list(hashes.values()))
            yield from ((make_platform_external_id(namespace, key), namespace) for key in own if hashes[key] in bound)


def _external_id(record: dict[str, Any]) -> str | None:
    name = record.get("externalId")
    return name if isinstance(name, str) and ":" in name else None


class AdoptionMatchersOfRun:
    """The matches of the streams of one run. Each list is read once, and later only what has changed."""

    def __init__(self, profile: Profile, state: State, interrupt: threading.Event) -> None:
        self._profile, self._state, self._interrupt = profile, state, interrupt
        self._made: dict[str, AdoptionMatcher] = {}

    def adoption_matches_of_stream(self, bound: BoundStream) -> AdoptionMatcher | None:
        adopt = bound.stream.adopt
        if not isinstance(adopt, AdoptBy):
            return None
        if bound.name not in self._made:
            run = bound.context.run
            reader = AdoptableRecordReader(
                self._profile, run, self._state, bound.scope, adopt.by, self._raise_if_interrupted
            )
            self._made[bound.name] = AdoptionMatcher(adopt.by, TargetMemberValueIndex(), reader.read_changes_into_index)
        return self._made[bound.name]

    def _raise_if_interrupted(self) -> None:
        if self._interrupt.is_set():
            raise StoppedError("stopped while reading what the platform has", hint="run again to continue")

    def mark_outdated(self) -> None:
        """Have changes read before the next decision."""
        for each in self._made.values():
            each.mark_outdated()


def note_possible_adoptions(bound: BoundStream, new: int) -> None:
    """Note in a plan, which calls no platform, that some of the *new* records may be taken over instead."""
    adopt = bound.stream.adopt
    if isinstance(adopt, AdoptBy) and new:
        records = "1 new record" if new == 1 else f"{new:,} new records"
        text = f"adopt: {{by: {adopt.by}}}: the platform is asked about {records} at delivery, and may have them"
        hint = "'crossdock migrate rehearse --against-platform' shows which ones"
        bound.context.run.note(bound.name, f"{text}; {hint}")


def may_replace_lost_state(tx: Transaction, project: Project, target: str) -> bool:
    """Return whether a state without records takes those of *target* over, as one in place of a lost state does."""
    scopes = {each.whole_record_scope for each in project.scope_by_stream.values() if each.target == target}
    return bool(project.streams_adopting_by_external_id) and not any(map(tx.bindings.has_any, scopes))


def note_creates_that_may_be_in_doubt(bound: BoundStream, project: Project, state: State, new: int) -> None:
    """Note in a plan, which calls no platform, that some of the *new* records may be in doubt: a lost state may have
    sent them.
    """
    scope = bound.scope
    if not new or scope.target != PLATFORM or not bound.resource_type.write_once:
        return
    with state.begin_read_only() as tx:
        is_compared = scope.resource in tx.unverified.marked_resources(scope.target)
        if not is_compared and not may_replace_lost_state(tx, project, scope.target):
            return
    records = "1 new record" if new == 1 else f"{new:,} new records"
    text = (
        f"a sync compares {records} with those that the platform has: one of the same content is in doubt, or not sent"
    )
    bound.context.run.note(bound.name, text)
