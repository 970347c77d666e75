"""Changes by others on the platform since the runs that are undone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any, cast

from crossdock.config.project.connections_and_bound_streams import BoundStream
from crossdock.mapping.resource_types import CHANGED, RESOURCES
from crossdock.mapping.stream_declaration import PLATFORM
from crossdock.reading.sources.compact_id_set import IdSet
from crossdock.resources import ResourceName
from crossdock.runs.bindings_by_target_id import Bound, load_bindings_by_target_id
from crossdock.runs.platform_source.live_records_for_comparisons import LiveRecords
from crossdock.runs.reconciliation.platform_comparison import PlatformComparison
from crossdock.runs.reconciliation.reconcile import new_platform_source_context, store_bucket
from crossdock.runs.reconciliation.reconciliation_result import Reconciliation
from crossdock.runs.records_still_referenced_after_undo import ListedReferences, in_pages
from crossdock.runs.undo.streams_with_records_to_undo import UndoneStreams, undo_operations_of_records
from crossdock.state import Binding, Scope, State
from crossdock.values.run_progress_and_messages import Progress
from crossdock.writing.delivery.operations_and_intents import Operation
from crossdock.writing.targets.answer_outcomes import tag_without_compression_marks


class ChangesByOthers:
    """The records that others have changed, and the references of their own records to records that must stay."""

    def __init__(self, undone: UndoneStreams) -> None:
        self._undone, self._state = undone, undone.session.state
        self._differing: set[tuple[str, str]] = set()
        self._edited, self.references = EditedRecords(self._state), ListedReferences()

    def changed_ids(self, scope: Scope, ids: Sequence[str]) -> set[str]:
        if scope.target != PLATFORM:
            return set()
        differing = {each for each in ids if (scope.resource, each) in self._differing}
        return differing | self._edited.edited_ids(scope.resource, ids)

    def undo_operations_ignoring_references(self, bound: BoundStream) -> Iterator[Operation]:
        """Yield the operations that would undo the unchanged records of *bound* if nothing referred to them."""
        return undo_operations_of_records(self._undone.decide_about_records(bound, self.changed_ids))

    def read(self, progress: Progress) -> None:
        session = self._undone.session
        wanted = {each for each in self._undone.record_scopes if each.target == PLATFORM and each.resource in RESOURCES}
        found = Reconciliation(session.clock.now(), None)
        run = new_platform_source_context(session, progress)
        with run.at_end, LiveRecords(session.project.platform, run) as live:
            try:
                PlatformComparison(self._state, wanted, run, found).compare_all_records(
                    live, self._compare_page_and_add_references
                )
                self._differing = {
                    (each.scope.resource, each.target_id)
                    for each in found.differences.values()
                    if each.difference in {"diverged", "duplicate"} and each.target_id is not None
                }
                self._look_up_versions(live)
                self._read_referring(live, progress, {each.resource for each in wanted})
            finally:
                store_bucket(session, live)

    def _compare_page_and_add_references(self, resource: str, page: Sequence[dict[str, Any]], bound: Bound) -> None:
        self._edited.compare_page(resource, page, bound)
        self.references.add_unrecorded_references(resource, page, bound)

    def _look_up_versions(self, live: LiveRecords) -> None:
        """Look up the versions of records that would be written, as far as the lists do not show them."""
        if not self._edited.has_unsure_records:
            return
        with self._undone.bind() as streams:
            for bound in streams:
                if bound.scope.target != PLATFORM or bound.scope.resource not in RESOURCES:
                    continue
                resource = cast("ResourceName", bound.scope.resource)
                for page in in_pages(self.undo_operations_ignoring_references(bound)):
                    ids = [each.binding.target_id for each in page if each.binding is not None]
                    self._edited.look_up_versions(resource, ids, partial(live.entity_tag, resource))

    def _read_referring(self, live: LiveRecords, progress: Progress, read: AbstractSet[str]) -> None:
        unread = [name for name, kind in RESOURCES.items() if kind.parents and name not in read]
        parents = frozenset[str]().union(*(RESOURCES[name].parents for name in unread))
        with self._undone.bind() as streams:
            deleted = {
                bound.scope.resource
                for bound in streams
                if bound.scope.target == PLATFORM
                and bound.scope.resource in parents
                and self._undo_would_delete_records(bound)
            }
        for name in unread:
            if RESOURCES[name].parents & deleted:
                resource = cast("ResourceName", name)
                progress.begin(f"reading {resource} of the platform", None)
                for page in live.pages(resource):
                    ids = [each["id"] for each in page if isinstance(each.get("id"), str)]
                    self.references.add_unrecorded_references(
                        resource, page, load_bindings_by_target_id(self._state, resource, ids)
                    )
                    progress.advance(len(page))

    def _undo_would_delete_records(self, bound: BoundStream) -> bool:
        return any(each.kind == "delete" for each in self.undo_operations_ignoring_references(bound))


Version = Callable[[str], str | None]
"""Returns the entity tag of the platform's record of an id, or None."""


class EditedRecords:
    """Compares when the platform's records were changed with what it answered when they were written.

    A list states when a record was changed. If it does not, or if the answer to the write did not, the entity tag is
    looked up, with one request for each record. Each id takes about 20 bytes.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        self._edited, self._unsure = IdSet(), IdSet()
        self.has_unsure_records = False  # whether some records must be looked up

    def compare_page(self, resource: str, page: Sequence[dict[str, Any]], bound: Bound) -> None:
        held = {each["id"]: each.get(CHANGED) for each in page if isinstance(each.get("id"), str)}
        edited, unsure = list[str](), list[str]()
        for target_id, binding in _bindings_preferring_whole_records(bound).items():
            if binding.changed_at is not None and isinstance(held[target_id], str):
                edited += [target_id] * (held[target_id] != binding.changed_at)
            elif binding.etag is not None:
                unsure.append(target_id)
        self._edited.add([_id_with_resource(resource, each) for each in edited])
        self._unsure.add([_id_with_resource(resource, each) for each in unsure])
        self.has_unsure_records |= bool(unsure)

    def look_up_versions(self, resource: str, ids: Sequence[str], version: Version) -> None:
        unsure = self._unsure.known_ids_among([_id_with_resource(resource, each) for each in ids])
        bound = load_bindings_by_target_id(
            self._state, resource, [each for each in ids if _id_with_resource(resource, each) in unsure]
        )
        for target_id, binding in _bindings_preferring_whole_records(bound).items():
            found = version(target_id)
            own = tag_without_compression_marks(binding.etag or "")
            if found is not None and tag_without_compression_marks(found) != own:
                self._edited.add([_id_with_resource(resource, target_id)])

    def edited_ids(self, resource: str, ids: Sequence[str]) -> set[str]:
        found = self._edited.known_ids_among([_id_with_resource(resource, each) for each in ids])
        return {each for each in ids if _id_with_resource(resource, each) in found}


def _bindings_preferring_whole_records(bound: Bound) -> dict[str, Binding]:
    """Return the binding of each record. Each write of a contribution also renews the version of the whole record."""
    return {name: min(each, key=lambda one: one[0].is_contribution)[1] for name, each in bound.items() if each}


def _id_with_resource(resource: str, target_id: str) -> str:
    return f"{resource} {target_id}"
