"""The planned creates that the platform has already. The platform is read, and nothing is written."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from itertools import islice
from typing import Any, cast

import polars as pl
from msgspec import Struct

from crossdock.config.project.project import Project
from crossdock.delta.fingerprint import key_hashes
from crossdock.mapping.resource_types import RESOURCES
from crossdock.mapping.stream_declaration import PLATFORM
from crossdock.reading.sources.run_context import PLATFORM_READS_NAME, SourceContext, create_run_folder
from crossdock.resources import ResourceName
from crossdock.runs.adoptable_record_reading import AdoptableRecordReader
from crossdock.runs.imported_file_log import EmptyIntakeLog
from crossdock.runs.planning.adoptable_records import AdoptionCounts, TargetMemberValueIndex, count_adoption_decisions
from crossdock.runs.platform_source.live_records_for_comparisons import LiveRecords
from crossdock.state import Scope, State
from crossdock.values.clock import Clock
from crossdock.values.run_progress_and_messages import Progress
from crossdock.writing.delivery.operations_and_intents import Operation

EXAMPLES = 1_000  # at most, of each stream and kind
_HALF = (1 << 64) - 1  # half of a key hash: enough to compare, and 8 bytes in memory


class PlannedCreates:
    """The keys of the records that a plan creates on the platform, 8 bytes for each.

    For streams that take over records with other names, also the texts of the keys and the values of *members*.
    """

    def __init__(self, members: Mapping[str, str]) -> None:
        self.members = members
        self._keys: dict[str, array[int]] = defaultdict(lambda: array("Q"))
        self._values: dict[str, list[str | None]] = defaultdict(list)
        self._texts: dict[str, list[str]] = defaultdict(list)

    def add(self, operation: Operation) -> None:
        stream = operation.identity.stream
        if operation.kind != "create" or operation.scope.target != PLATFORM:
            return
        self._keys[stream].append(operation.identity.key_hash & _HALF)
        if (member := self.members.get(stream)) is not None:
            self._values[stream].append(operation.after.get(member))
            self._texts[stream].append(operation.identity.key)

    def member_values(self, stream: str) -> Sequence[str | None]:
        return self._values[stream]

    def key_texts(self, stream: str) -> Sequence[str]:
        return self._texts[stream]

    def truncated_key_hashes(self, stream: str) -> pl.Series:
        return pl.Series(self._keys[stream], dtype=pl.UInt64)


class MatchOnPlatform(Struct, frozen=True):
    """A record that would be created, and the id of its match on the platform; None if it is ambiguous."""

    key: str
    target_id: str | None
    why: str = ""


_ByKey = dict[int, MatchOnPlatform]  # by half a key hash


class SameExternalIds(Struct, frozen=True):
    """Creates whose external ids the platform has: their number, and the first `EXAMPLES` of them."""

    number: int
    examples: Sequence[MatchOnPlatform]


class MatchedByMember(Struct, frozen=True):
    """The decisions about creates of a stream that takes over records, with the first `EXAMPLES` of each kind."""

    counts: AdoptionCounts
    taken_over: Sequence[MatchOnPlatform]
    ambiguous: Sequence[MatchOnPlatform]


class AlreadyOnPlatform(Struct, frozen=True):
    """The planned creates that the platform has already, by stream.

    Attributes:
        with_same_external_id: Without streams whose resource has none, such as invoices.
        conflicts: The keys of those that would be rejected, because another record has the external id.
    """

    with_same_external_id: Mapping[str, SameExternalIds]
    matched: Mapping[str, MatchedByMember]
    conflicts: Mapping[str, Sequence[str]]


def find_already_on_platform(
    project: Project, streams: Iterable[str], creates: PlannedCreates, *, clock: Clock, progress: Progress
) -> AlreadyOnPlatform:
    """Compare the planned *creates* with the platform, which lists all records of their resources for that."""
    with ExitStack() as stack:
        state = stack.enter_context(closing(project.open_state(read_only=True)))
        with state.begin_read_only() as tx:
            bucket_state = tx.buckets.get(PLATFORM)
        work, limits = (
            create_run_folder(stack, None),
            {} if bucket_state is None else {PLATFORM_READS_NAME: bucket_state},
        )
        run = SourceContext(clock, progress, EmptyIntakeLog(), work, work, work, limits=limits)
        names = list(streams)
        named = _match_by_external_id(project, names, creates, run)
        matched = {
            name: _match_by_member(project, state, name, creates, run, named.get(name, {}))
            for name in names
            if name in creates.members
        }
    conflicts = {
        name: _keys_of_external_id_conflicts(project, name, creates, found, matched) for name, found in named.items()
    }
    shown = {name: SameExternalIds(len(found), list(islice(found.values(), EXAMPLES))) for name, found in named.items()}
    return AlreadyOnPlatform(shown, matched, conflicts)


def _match_by_member(
    project: Project, state: State, name: str, creates: PlannedCreates, run: SourceContext, named: _ByKey
) -> MatchedByMember:
    index, texts, keys = TargetMemberValueIndex(), creates.key_texts(name), creates.truncated_key_hashes(name)
    taken_over, ambiguous = list[MatchOnPlatform](), list[MatchOnPlatform]()

    def decided(number: int, target_id: str | None, why: str) -> None:
        examples = ambiguous if target_id is None else taken_over
        if len(examples) < EXAMPLES:
            examples.append(MatchOnPlatform(texts[number], target_id, why))

    def holder(number: int) -> str | None:
        found = named.get(keys[number])
        return None if found is None else found.target_id

    AdoptableRecordReader(
        project.platform, run, state, project.scope_by_stream[name], creates.members[name]
    ).read_changes_into_index(index)
    index.sort()
    counts = count_adoption_decisions(index, creates.member_values(name), creates.members[name], decided, holder)
    return MatchedByMember(counts, taken_over, ambiguous)


def _keys_of_external_id_conflicts(
    project: Project, name: str, creates: PlannedCreates, named: _ByKey, matched: Mapping[str, MatchedByMember]
) -> list[str]:
    if name in project.streams_adopting_by_external_id:
        return []
    if name not in matched:
        return sorted(each.key for each in named.values())
    keys = creates.truncated_key_hashes(name)
    return sorted(named[keys[place]].key for place in matched[name].counts.conflicts)


def _match_by_external_id(
    project: Project, streams: Iterable[str], creates: PlannedCreates, run: SourceContext
) -> dict[str, _ByKey]:
    found: dict[str, _ByKey] = defaultdict(dict)  # a record that changes meanwhile is listed twice
    scopes = {name: scope for name in streams if _is_matchable_by_external_id(scope := project.scope_by_stream[name])}
    with LiveRecords(project.platform, run) as live:
        for resource in dict.fromkeys(scope.resource for scope in scopes.values()):
            run.progress.begin(f"listing {resource} records of the platform", None)
            planned = {
                name: creates.truncated_key_hashes(name) for name, scope in scopes.items() if scope.resource == resource
            }
            for page in live.pages(cast("ResourceName", resource)):
                run.progress.advance(len(page))
                holders = _matches_by_namespace_and_key_hash(page)
                for name, hashes in planned.items():
                    own = holders[scopes[name].namespace]
                    listed = pl.Series(list(own), dtype=pl.UInt64)
                    found[name].update((each, own[each]) for each in listed.filter(listed.is_in(hashes.implode())))
    return {name: found[name] for name in scopes}


def _matches_by_namespace_and_key_hash(page: list[dict[str, Any]]) -> dict[str, _ByKey]:
    ids: dict[str, dict[str, str]] = defaultdict(dict)
    for record in page:
        namespace, colon, key = str(record.get("externalId") or "").partition(":")
        if colon:
            ids[namespace][key] = str(record.get("id"))
    found: dict[str, _ByKey] = defaultdict(dict)
    for namespace, own in ids.items():
        for key, key_hash in key_hashes(list(own)).items():
            found[namespace][key_hash & _HALF] = MatchOnPlatform(key, own[key])
    return found


def _is_matchable_by_external_id(scope: Scope) -> bool:
    kind = RESOURCES.get(scope.resource)
    return scope.target == PLATFORM and kind is not None and kind.has_external_id and not scope.is_contribution
