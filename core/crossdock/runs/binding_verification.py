"""Compares unverified bindings with what a target holds, before decisions use them.

A restored state has the facts of the time of its backup. The targets are read and the bindings corrected, so that the
streams deliver what differs from their sources. Records of the platform are read in lists, which also show those that
the state has forgotten. Records of other targets are looked up one by one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import closing
from datetime import datetime
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, cast

from msgspec import structs

from crossdock.config.project.connections_and_bound_streams import BoundStream
from crossdock.config.project.project import Project
from crossdock.errors import StoppedError, UnauthorizedError
from crossdock.mapping.stream_declaration import PLATFORM
from crossdock.pacing.request_allowance import RequestAllowance
from crossdock.reading.sources.run_context import SourceContext
from crossdock.resources import ResourceName
from crossdock.runs import still_referenced_records
from crossdock.runs.adoptable_record_reading import may_replace_lost_state
from crossdock.runs.doubtful_operation_look_ups import TargetLookUps
from crossdock.runs.platform_and_state_comparison import (
    BindingCorrection,
    ComparedResource,
    TargetRecordComparison,
    customer_and_items_hash,
)
from crossdock.runs.session_shared_by_runs import Session
from crossdock.state import Binding, Intent, Scope, Transaction
from crossdock.writing.delivery import in_doubt_and_refusal_rules
from crossdock.writing.delivery.operations_and_intents import payload_after_intent
from crossdock.writing.targets.target import Target

if TYPE_CHECKING:
    from crossdock.runs.platform_source.live_records_for_comparisons import LiveRecords

AT_ONCE = 500  # bindings that are read and written together


def verifiable_resources(targets: Iterable[Target]) -> list[tuple[str, str]]:
    """Return the resources that are compared with their targets, as target and resource: those that can be read."""
    return [
        (target.name, name)
        for target in targets
        for name, kind in target.resources.items()
        if kind.holds_records and kind.endpoint.reads
    ]


def newest_platform_change_known_to_state(tx: Transaction) -> datetime | None:
    """Return until when the state knows what the platform has; None if it knows no invoices.

    A state in place of a lost one has also sent some itself, while those that the lost one may have sent are in doubt.
    """
    if "invoice" not in tx.bindings.counts_by_resource() or in_doubt_and_refusal_rules.count_in_doubt_since_backup(tx):
        return None
    return tx.bindings.newest_change_time_at_target(PLATFORM)


def resources_written_by_streams(project: Project, target: Target) -> set[str]:
    return {scope.resource for scope in project.scope_by_stream.values() if scope.target == target.name}


class RecordsForgottenByState:
    """Sent records of the platform that a restored state may have forgotten.

    Once a list was compared, the state has a binding for each record with an external id, unless an operation on it is
    unsettled. Records without an external id are recognized by their content, if the list shows it.
    """

    def __init__(self) -> None:
        self._named: dict[str, Mapping[tuple[Scope, int], str]] = {}
        self._unnamed: dict[str, Mapping[str, list[str]]] = {}
        self._compared_before: AbstractSet[str] = frozenset()
        self._last_restored = 0

    def add_from_comparison(self, resource: str, comparison: TargetRecordComparison) -> None:
        if not comparison.shows_contents:
            return
        self._named[resource], self._unnamed[resource] = (
            comparison.target_id_by_unsettled_record,
            comparison.unbound_ids_by_content,
        )

    def add_resources_compared_earlier(self, compared: AbstractSet[str], last_restored: int) -> None:
        """Add the resources whose lists earlier runs have compared, and the id of the last operation of the backup."""
        self._compared_before, self._last_restored = compared, last_restored

    def can_tell_if_created(self, intent: Intent) -> bool:
        """Return whether the platform's list shows whether the create *intent* was executed."""
        is_of_backup = 0 < intent.id <= self._last_restored
        return intent.resource in self._named or (intent.resource in self._compared_before and not is_of_backup)

    def take_id_of_created_record(self, intent: Intent) -> str | None:
        """Return the id of the record that the create *intent* has made already, once per record; otherwise None."""
        if intent.resource not in self._named:
            return None
        named = self._named[intent.resource].get((intent.scope, intent.identity.key_hash))
        ids = self._unnamed[intent.resource].get(customer_and_items_hash(payload_after_intent(intent)))
        return named or (ids.pop() if ids else None)


class BindingVerification:
    """Verifies the bindings of one run's targets. Requests to the platform take the tokens of deliveries."""

    def __init__(self, session: Session, run: SourceContext, run_id: int, interrupt: threading.Event) -> None:
        self._session, self._state, self._run, self._run_id = session, session.state, run, run_id
        self._interrupt, self.forgotten = interrupt, RecordsForgottenByState()

    def have_last_snapshots_reread(self, streams: Iterable[BoundStream]) -> None:
        """Have the last snapshots of a restored state read again: later ones may have changed their records."""
        snapshots = [bound.name for bound in streams if bound.stream.mode == "snapshot"]

        def forget(tx: Transaction) -> None:
            for name in tx.unverified.streams().intersection(snapshots):
                tx.unverified.forget_last_snapshot_was_read(name)

        if snapshots:
            self._state.run_transaction(forget)

    def compare_unverified_bindings(self, target: Target) -> None:
        """Compare the unverified bindings of *target*. What the target does not show stays unverified."""
        if target.name == PLATFORM:
            self._require_lists_if_state_may_replace_lost_one(target)
        with self._state.begin_read_only() as tx:
            declared, last_restored = tx.unverified.marked_resources(target.name), tx.runs.last_restored_intent()
            found = tx.unverified.resources_with_unverified_bindings(target.name)
        if target.name == PLATFORM:
            named = {name for name, kind in target.resources.items() if kind.name_member is not None}
            self.forgotten.add_resources_compared_earlier(named - declared, last_restored)
        found |= declared & resources_written_by_streams(self._session.project, target)
        resources = [name for name in target.resources if name in found]
        if not resources:
            return
        if target.name != PLATFORM:
            self._look_up_all(target, resources)
            return
        from crossdock.runs.platform_source.live_records_for_comparisons import LiveRecords  # noqa: PLC0415  few runs compare

        with LiveRecords(self._session.project.platform, self._run) as live:
            self._compare_readable_resources(resources, partial(self._compare_with_platform_list, live, target))

    def _require_lists_if_state_may_replace_lost_one(self, target: Target) -> None:
        """Have lists of records that are written once read for a new state that takes others over."""
        project = self._session.project
        written = resources_written_by_streams(project, target)
        written_once = [
            name for name in written if target.resources[name].write_once and target.resources[name].endpoint.reads
        ]
        with self._state.begin_read_only() as tx:
            is_new = may_replace_lost_state(tx, project, target.name)

        def require(tx: Transaction) -> None:
            for name in written_once:
                tx.unverified.mark_resource(target.name, name)

        if is_new and written_once:
            self._state.run_transaction(require)

    def _compare_readable_resources(self, resources: Sequence[str], compare: Callable[[str], None]) -> None:
        """Compare the resources in order. One that the credential may not read stays unverified, and is sent whole."""
        for resource in resources:
            try:
                compare(resource)
            except UnauthorizedError as error:
                self._run.warn("", f"records stay unverified: {error}", code="records_unverified")

    # ---- lists of the platform

    def _compare_with_platform_list(self, live: LiveRecords, target: Target, resource: str) -> None:
        comparison = self._new_comparison(target, resource)
        self._begin_progress(f"comparing {resource.replace('_', ' ')} records with the platform")
        self._state.run_transaction(lambda tx: tx.unrecorded_references.begin_reading_references(PLATFORM, resource))
        for page in live.pages(cast("ResourceName", resource)):
            self._raise_if_interrupted()
            bound = comparison.compare_page(page)
            self._store_results(comparison, [each for bindings in bound.values() for each in bindings])
            still_referenced_records.store_unrecorded_references(self._state, resource, page, bound)
            self._run.progress.advance(len(page))
        comparison.compare_unlisted_bindings(partial(live.record, cast("ResourceName", resource)))
        missing = 0 if target.resources[resource].write_once else comparison.discard_missing_if_most_are()
        self._store_results(comparison, [])
        self.forgotten.add_from_comparison(resource, comparison)
        if missing:
            self._warn_of_missing_records(resource, missing, comparison.state_totals.records)
            return
        self._state.run_transaction(lambda tx: tx.unrecorded_references.complete_reading_references(PLATFORM, resource))
        self._verify_or_delete_contributions(comparison, resource)
        if not target.resources[resource].write_once:
            self._state.run_transaction(partial(self._end_comparison_unless_operations_unsettled, resource))

    def _warn_of_missing_records(self, resource: str, missing: int, known: int) -> None:
        nouns = f"{resource.replace('_', ' ')}s"
        self._run.warn(
            "",
            f"{missing:,} of {known:,} {nouns} are not in the platform's list, and stay unverified: check that the"
            f" credential may read all {nouns}, and sync again; if the platform has lost them, repair the state:"
            " crossdock reconcile -o PLAN",
            code="records_unverified",
        )

    def _end_comparison_unless_operations_unsettled(self, resource: str, tx: Transaction) -> None:
        """Stop reading *resource*, unless its list may still show the result of an operation of the backup."""
        last = tx.runs.last_restored_intent()
        left = (each for each in tx.intents.unsettled() if each.id <= last)
        if all((each.scope.target, each.resource) != (PLATFORM, resource) for each in left):
            tx.unverified.clear_mark_of_resource(PLATFORM, resource)

    def _verify_or_delete_contributions(self, comparison: TargetRecordComparison, resource: str) -> None:
        """Verify contributions to missing records, and bury those to records that a forgotten run has created again."""
        after: tuple[str, int] | None = None
        while True:
            with self._state.begin_read_only() as tx:
                page = tx.bindings.page_of_unverified_bindings(PLATFORM, resource, after=after, limit=AT_ONCE)
            if not page:
                return
            after = page[-1][0].namespace, page[-1][1].key_hash
            kept = [each for each in page if each[0].is_contribution and not comparison.is_unsettled(*each)]
            self._state.run_transaction(partial(self._mark_contributions_verified_or_deleted, kept))

    def _mark_contributions_verified_or_deleted(self, found: Sequence[tuple[Scope, Binding]], tx: Transaction) -> None:
        for scope, each in groupby(found, key=itemgetter(0)):
            bindings = [binding for _, binding in each]
            again = tx.bindings.target_id_by_key_hash(
                scope.whole_record_scope, [binding.key_hash for binding in bindings]
            )
            tx.bindings.mark_deleted(scope, list(again), at=self._now())
            tx.bindings.mark_verified(scope, [binding for binding in bindings if binding.key_hash not in again])

    # ---- look-ups at other targets

    def _look_up_all(self, target: Target, resources: Sequence[str]) -> None:
        session = self._session
        allowance = RequestAllowance(session.clock, session.bucket(target))
        with closing(target.client()) as client:
            look_ups = TargetLookUps(target, client, allowance, session.clock, self._state)
            self._compare_readable_resources(resources, partial(self._compare_by_look_up, look_ups, target))

    def _compare_by_look_up(self, look_ups: TargetLookUps, target: Target, resource: str) -> None:
        if not target.resources[resource].endpoint.reads:
            self._believe_bindings_without_look_ups(target, resource)
            return
        comparison = self._new_comparison(target, resource)
        self._begin_progress(f"comparing {resource.replace('_', ' ')} records with {target.name}")
        after: tuple[str, int] | None = None
        while True:
            with self._state.begin_read_only() as tx:
                page = tx.bindings.page_of_unverified_bindings(target.name, resource, after=after, limit=AT_ONCE)
            if not page:
                break
            for scope, binding in page:
                self._raise_if_interrupted()
                comparison.compare_looked_up(scope, binding, look_ups.look_up_record(resource, binding.target_id))
                self._run.progress.advance()
            self._store_results(comparison, page)
            after = page[-1][0].namespace, page[-1][1].key_hash

        def compared(tx: Transaction) -> bool:
            tx.unverified.clear_mark_of_resource(target.name, resource)
            return tx.runs.is_state_restored()

        if self._state.run_transaction(compared):
            noun = resource.replace("_", " ")
            self._run.warn(
                target.name,
                f"{noun} that were created after the backup, and that no source lists any more, are not found: "
                f"look for them among all {noun} there",
                code="records_unverified",
            )

    def _believe_bindings_without_look_ups(self, target: Target, resource: str) -> None:
        """Verify the bindings to a target that cannot be asked, as one that takes files. New records are in doubt."""

        def believed(tx: Transaction) -> bool:
            is_any = False
            while page := tx.bindings.page_of_unverified_bindings(target.name, resource, after=None, limit=AT_ONCE):
                is_any = True
                for scope, each in groupby(page, key=itemgetter(0)):
                    tx.bindings.mark_verified(scope, [binding for _, binding in each])
            tx.unverified.clear_mark_of_resource(target.name, resource)
            return is_any and tx.runs.is_state_restored()

        if self._state.run_transaction(believed):
            noun = resource.replace("_", " ")
            text = f"{noun} were not compared: it cannot be asked what came after the backup"
            self._run.warn(target.name, text, code="records_unverified")

    # ---- results

    def _new_comparison(self, target: Target, resource: str) -> TargetRecordComparison:
        kind, scopes = target.resources[resource], self._session.project.scope_by_stream.values()
        with self._state.begin_read_only() as tx:
            unsettled = tx.intents.unsettled()
            restored = tx.runs.is_state_restored()
            remembered = tx.runs.newest_change_in_backup() if restored else None
        members = {field.alias or name for name, field in kind.draft.model_fields.items()} if kind.write_once else set()
        has_names = target.resources[resource].name_member is not None
        return TargetRecordComparison(
            self._state,
            ComparedResource(resource, has_names, kind.write_once, kept=members),
            {
                each.whole_record_scope.namespace
                for each in scopes
                if (each.target, each.resource) == (target.name, resource)
            },
            {(intent.scope, intent.identity.key_hash) for intent in unsettled},
            began=self._now(),
            remembered=remembered,
            until=None if restored else self._now() - in_doubt_and_refusal_rules.max_age_of_repeatable_request(target),
        )

    def _store_results(self, comparison: TargetRecordComparison, compared: Sequence[tuple[Scope, Binding]]) -> None:
        """Store the corrections of *comparison*. Everything else in *compared* is verified."""
        corrections = comparison.pop_corrections()
        right = [
            (scope, binding)
            for scope, binding in compared
            if binding.unverified
            and (scope, binding.key_hash) not in corrections
            and not comparison.is_unsettled(scope, binding)
        ]

        def write(tx: Transaction) -> None:
            for scope, binding in right:
                tx.bindings.mark_verified(scope, [binding])
            for (scope, key_hash), each in corrections.items():
                self._store_correction(tx, scope, key_hash, each)

        if right or corrections:
            self._state.run_transaction(write)

    def _store_correction(self, tx: Transaction, scope: Scope, key_hash: int, correction: BindingCorrection) -> None:
        before, found, at = correction.before, correction.binding, self._now()
        if before is None and not tx.runs.is_state_restored():
            return  # it has the record's external id, but the state has forgotten nothing
        if before is not None and not before.unverified:
            return  # changes by others are not decided here
        if found is None and self._session.targets[scope.target].resources[scope.resource].write_once:
            return  # it may exist under another id and must not be created twice: a person decides
        if found is None and before is not None and before.is_unused_import:
            return  # the id may be mistyped, and the record must not be created twice: a person decides
        if found is None:
            tx.bindings.mark_deleted(scope, [key_hash], at=at)
            return
        if before is None or (found.step == "import" and before.step != "import"):
            found = structs.replace(
                found, step="whole"
            )  # it has the external id that we gave it, so we may also remove it
        tx.bindings.put(scope, [found], run_id=self._run_id, at=at)
        tx.bindings.mark_verified(scope, [found])

    def _begin_progress(self, what: str) -> None:
        self._run.progress.begin(what, None)

    def _now(self) -> datetime:
        return self._session.clock.now()

    def _raise_if_interrupted(self) -> None:
        if self._interrupt.is_set():
            raise StoppedError("stopped while comparing the state with a target", hint="run again to continue")
