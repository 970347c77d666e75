"""Records that were sent to another address: the target that is there now may have none of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime

from crossdock.errors import CrossdockError, RefusedError
from crossdock.mapping.stream_declaration import PLATFORM
from crossdock.state import PendingApproval, Scope, State, Transaction
from crossdock.state.tables.pending_approvals_and_begun_undos import packed_key_hashes
from crossdock.writing.targets.target import Target

_VERSION = re.compile(r"v\d+(\.\d+)*|\d+(\.\d+)+|20\d\d-\d\d(-\d\d)?")  # in the path of an API, such as v2 or 2026-01

_FOLDER = " (folder "


def moved_target_refusals(
    tx: Transaction, scopes: Mapping[str, Scope], targets: Mapping[str, Target], *, at: datetime
) -> dict[str, tuple[PendingApproval, RefusedError]]:
    """Return what to approve of streams whose target has moved, and why they are refused until then, by stream.

    A state is pinned to one platform. Other targets are known by their names, and by the address to which the records
    of each scope were sent.
    """
    found = {}
    for name, scope in sorted(scopes.items()):
        moved = former_and_current_address(tx, targets, scope)
        if moved is None:
            continue
        known, address = moved
        wanted, approved = _new_pending_approval(tx, name, scope, address, at), tx.pending_approvals.get(name)
        is_approved = approved is not None and approved.approved_at is not None and approved.covers_same_changes(wanted)
        if wanted.keys and not is_approved:
            found[name] = wanted, _refusal(name, scope, wanted, known, address)
    return found | _refusals_of_acknowledgements(found, scopes, targets)


def _refusals_of_acknowledgements(
    found: Mapping[str, tuple[PendingApproval, RefusedError]],
    scopes: Mapping[str, Scope],
    targets: Mapping[str, Target],
) -> dict[str, tuple[PendingApproval, RefusedError]]:
    """Refuse acknowledgements from a moved target, too: they are not about what the former one was given."""
    moved = {scopes[name].target: each for name, each in found.items()}
    return {
        name: moved[scope.target]
        for name, scope in scopes.items()
        if scope.target in moved and (kind := targets[scope.target].resources.get(scope.resource)) and kind.acknowledges
    }


def store_addresses(
    state: State, scopes: Mapping[str, Scope], targets: Mapping[str, Target], *, at: datetime
) -> dict[str, RefusedError]:
    """Store to where streams send records from now on. Return why others are refused, as `moved_target_refusals`."""
    others = {name: scope for name, scope in scopes.items() if scope.target != PLATFORM}

    def store(tx: Transaction) -> dict[str, RefusedError]:
        refused = moved_target_refusals(tx, others, targets, at=at)
        for pending, _ in refused.values():
            tx.pending_approvals.request_approval(pending)
        for name in others.keys() - refused.keys():
            scope = others[name]
            address, approved = current_address(targets, scope), tx.pending_approvals.get(name)
            if address is not None and tx.written_addresses.get(scope) != address:
                tx.written_addresses.put(scope, address)
                if approved is not None and approved.what == _permission(scope, address):
                    tx.pending_approvals.forget(name)
        return {name: refusal for name, (_, refusal) in refused.items()}

    return state.run_transaction(store) if others else {}


def former_and_current_address(tx: Transaction, targets: Mapping[str, Target], scope: Scope) -> tuple[str, str] | None:
    """Return where records of *scope* were sent, and where its target is now; None if it is there still or unknown."""
    known, address = tx.written_addresses.get(scope), current_address(targets, scope)
    if known is None or address is None or known == address:
        return None
    without_folder = address.partition(_FOLDER)[0]  # as earlier development builds stored it
    return None if known == without_folder else (known, address)


def current_address(targets: Mapping[str, Target], scope: Scope) -> str | None:
    """Return where the config has the target of *scope*: `Target.address`, with the account and the folder at it.

    The version of an API does not count: its next one has the records. None for the platform, and if it cannot be told.
    """
    if scope.target == PLATFORM or scope.target not in targets:
        return None
    try:
        target = targets[scope.target]
        address, account = target.address, target.account_at_address
        if address.startswith(("http://", "https://")):
            scheme, _, host, *path = address.split("/")
            address = "/".join([scheme, "", host, *(part for part in path if part and not _VERSION.fullmatch(part))])
        folder = target.folder_at_address(scope.resource) if scope.resource in target.resources else ""
        return "".join((address, f", {account}" if account else "", f"{_FOLDER}{folder})" if folder else ""))
    except CrossdockError:  # the run reports it where it uses the target
        return None


def _new_pending_approval(tx: Transaction, name: str, scope: Scope, address: str, at: datetime) -> PendingApproval:
    unsettled = {intent.identity.key_hash for intent in tx.intents.unsettled_in_scope(scope)}
    keys = packed_key_hashes(unsettled.union(tx.bindings.live_key_hashes(scope)))
    return PendingApproval(name, _permission(scope, address), keys, at)


def _permission(scope: Scope, address: str) -> str:
    return f"{scope.resource} that {scope.target} has at {address}, too"


def _refusal(name: str, scope: Scope, wanted: PendingApproval, known: str, address: str) -> RefusedError:
    number = wanted.record_count
    records = f"1 record of {name} was" if number == 1 else f"{number:,} records of {name} were"
    return RefusedError(
        f"{records} sent to {scope.target} at {known}, and the config has it at {address} now, where they would count"
        " as sent, too",
        hint="correct the address if it is wrong. If another system is there, such as the live one after a test, set"
        f" another namespace for {name}, and all records are sent to it. If the same system has moved, and has these"
        f" records, run, after a sync that ended with this message: crossdock approve {name} {number}",
        code="target_changed",
    )
