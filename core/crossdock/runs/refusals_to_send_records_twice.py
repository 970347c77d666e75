"""Refusals of records that would be sent or created a second time.

They were sent to another address of their target, or the state knows them under other names: their connection or target
was renamed, their key was changed in the config, or it is written in another notation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime

import polars as pl
from msgspec import structs

from crossdock.config.project.connections_and_bound_streams import BoundStream
from crossdock.delta import fingerprint
from crossdock.delta.latest_records import LatestRecords
from crossdock.delta.row_preparation import KEY, KEY_HASH, rows_with_given_keys
from crossdock.errors import CrossdockError, RefusedError
from crossdock.mapping.stream_declaration import PLATFORM
from crossdock.state import PendingApproval, Scope, State, Transaction
from crossdock.state.tables.pending_approvals_and_begun_undos import packed_key_hashes
from crossdock.values.record_keys import key_parts_of, key_text
from crossdock.writing.targets.target import Target

_COMPARED = 1_000  # records
_FEWEST, _WITH_NOTATIONS, _MOST_DIGITS = 10, 100, 20  # records that are compared in other notations
_NUMBER = re.compile(r"([0-9]+)(\.0)?")


def raise_if_records_known_under_other_names(
    bound: BoundStream, state: State, scan: LatestRecords, changed: pl.Series
) -> None:
    """Refuse the input if most of some of its records, or of those *changed*, are known under other names.

    Args:
        changed: The key hashes of new and changed records.
    """
    latest = scan.latest
    if bound.scope.is_contribution or latest.is_empty():
        return
    with state.begin_read_only() as tx:
        has_bindings = tx.bindings.has_any(bound.scope)
    if has_bindings:
        _raise_if_keys_of_reread_file_unknown(bound, state, latest)
        _raise_if_keys_known_in_other_notation(bound, state, scan, changed)
    else:
        _raise_if_known_in_former_namespace(bound, state, latest)
        _raise_if_known_at_former_target(bound, state, latest)


def _sample_of_key_hashes(latest: pl.DataFrame) -> list[int]:
    """Return some key hashes, evenly from all files: those of the first one may be new."""
    return latest[KEY_HASH].gather_every(latest.height // _COMPARED + 1).to_list()


def _raise_if_known_in_former_namespace(bound: BoundStream, state: State, latest: pl.DataFrame) -> None:
    """Refuse the input if at least half of some keys belong to a former namespace.

    A namespace that the config declares is meant so.
    """
    if bound.namespaces_of_config is None:
        return
    scope = bound.scope
    with state.begin_read_only() as tx:
        found = tx.bindings.namespaces_of_resource(scope)
    former = sorted(found - bound.namespaces_of_config()) if found else []
    keys = _sample_of_key_hashes(latest) if former else []
    for namespace in former:
        known = state.key_index_frame_of_keys(structs.replace(scope, namespace=namespace), keys).height
        if 2 * known >= len(keys):
            connection = bound.context.connection
            raise RefusedError(
                f"{known:,} of {len(keys):,} records that were compared are known under the namespace {namespace!r},"
                " which the config no longer has, and would be created again",
                where=bound.name,
                hint=f"if the connection was renamed, set connections.{connection}.namespace: {namespace}; if these are"
                f" other records, set it to {bound.namespace}",
                code="namespace_changed",
            )


def _raise_if_known_at_former_target(bound: BoundStream, state: State, latest: pl.DataFrame) -> None:
    """Refuse the input if a target or resource that the config no longer has knows at least half of some keys."""
    scope = bound.scope
    with state.begin_read_only() as tx:
        found = tx.bindings.targets_and_resources_of_namespace(scope.namespace)
    former = sorted(each for each in found if each not in bound.targets_and_resources_of_config)
    keys = _sample_of_key_hashes(latest) if former else []
    for target, resource in former:
        known = state.key_index_frame_of_keys(structs.replace(scope, target=target, resource=resource), keys).height
        if 2 * known >= len(keys):
            raise RefusedError(
                f"{known:,} of {len(keys):,} records that were compared were sent to {target}.{resource}, which the"
                f" config no longer has, and would be sent again to {scope.target}.{scope.resource}",
                where=bound.name,
                hint=f"if it was renamed, give it the name {target}.{resource} again; if {scope.target} shall have them"
                " too, or these are other records, set another namespace for the stream",
                code="target_changed",
            )


def _raise_if_keys_of_reread_file_unknown(bound: BoundStream, state: State, latest: pl.DataFrame) -> None:
    """Refuse files that are read again, if the state knows none of some keys that their records have now.

    An earlier run has finished them. What was rejected, dropped or deleted since is known, too.
    """
    found = bound.context.run.inputs.get(bound.name)
    if found is None or not found.is_read_again:
        return
    keys = _sample_of_key_hashes(latest)
    with state.begin_read_only() as tx:
        known = (
            tx.bindings.idempotency_counters(bound.scope, keys),
            tx.intents.idempotency_counters(bound.scope, keys),
            tx.dead_letters.key_hashes_among(bound.name, keys),
            tx.waiting_records.awaited_references(bound.name, keys),
        )
    if not any(known):
        raise RefusedError(
            f"none of {len(keys):,} records that were compared is known under its key, although an earlier run has read"
            " their file: they would be created again",
            where=bound.name,
            hint=f"restore the key of {bound.name}, or bring its values back to their old form with columns; if these"
            " are other records, set another namespace for the stream",
            code="key_changed",
        )


def _raise_if_keys_known_in_other_notation(
    bound: BoundStream, state: State, scan: LatestRecords, changed: pl.Series
) -> None:
    """Refuse the input if most of its new keys are known in another notation.

    A key that the input has in both notations is that of two records.
    """
    if len(changed) < _FEWEST:
        return
    sampled = rows_with_given_keys(scan.sampled_keys, changed)
    compared = sampled.gather_every(sampled.height // _WITH_NOTATIONS + 1)
    if compared.height < _FEWEST:
        return
    new = compared.join(
        state.key_index_frame_of_keys(bound.scope, compared[KEY_HASH].to_list()), on=KEY_HASH, how="anti"
    )
    if new.height < _FEWEST:
        return
    others = {key: set(_keys_in_other_notations(key)) - {key} for key in new[KEY]}
    hashes = fingerprint.key_hashes(sorted(set().union(*others.values())))
    listed = set(rows_with_given_keys(scan.latest, pl.Series(hashes.values(), dtype=fingerprint.HASH))[KEY_HASH])
    known = set(state.key_index_frame_of_keys(bound.scope, list(hashes.values()))[KEY_HASH]) - listed
    found = [key for key, variants in others.items() if any(hashes[each] in known for each in variants)]
    if len(found) < _FEWEST or 2 * len(found) <= new.height:
        return
    raise RefusedError(
        f"{len(found):,} of {new.height:,} new records that were compared have the key of a known one but for zeros at"
        " its beginning, '.0' at its end, or the case of its letters, and would be created again",
        where=bound.name,
        hint="ask the sender for the keys as they were, or bring them back to that form with columns: zfill,"
        " strip_suffix or table",
        code="key_notation_changed",
    )


def _keys_in_other_notations(key: str) -> Iterator[str]:
    """Yield *key* with one of its parts in each notation that programs change it to."""
    parts = key_parts_of(key)
    for number, part in enumerate(parts):
        for other in _other_notations(part):
            yield key_text([*parts[:number], other, *parts[number + 1 :]])


def _other_notations(text: str) -> Iterator[str]:
    if found := _NUMBER.fullmatch(text):
        digits = found[1].lstrip("0") or "0"
        for length in range(len(digits), _MOST_DIGITS + 1):
            yield digits.zfill(length)
            yield f"{digits.zfill(length)}.0"
    else:
        yield text.upper()
        yield text.lower()


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
        moved = both_addresses_if_target_moved(tx, targets, scope)
        if moved is None:
            continue
        known, address = moved
        wanted, approved = _new_pending_approval(tx, name, scope, address, at), tx.pending_approvals.get(name)
        is_approved = approved is not None and approved.approved_at is not None and approved.covers_same_changes(wanted)
        if wanted.keys and not is_approved:
            found[name] = wanted, _moved_target_error(name, scope, wanted, known, address)
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


def store_target_addresses_and_return_refusals(
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
            address, approved = current_address_of_target(targets, scope), tx.pending_approvals.get(name)
            if address is not None and tx.written_addresses.get(scope) != address:
                tx.written_addresses.put(scope, address)
                if approved is not None and approved.what == _permission(scope, address):
                    tx.pending_approvals.forget(name)
        return {name: refusal for name, (_, refusal) in refused.items()}

    return state.run_transaction(store) if others else {}


def both_addresses_if_target_moved(
    tx: Transaction, targets: Mapping[str, Target], scope: Scope
) -> tuple[str, str] | None:
    """Return where records of *scope* were sent, and where its target is now; None if it is there still or unknown."""
    known, address = tx.written_addresses.get(scope), current_address_of_target(targets, scope)
    if known is None or address is None or known == address:
        return None
    without_folder = address.partition(_FOLDER)[0]  # as earlier development builds stored it
    return None if known == without_folder else (known, address)


def current_address_of_target(targets: Mapping[str, Target], scope: Scope) -> str | None:
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


def _moved_target_error(name: str, scope: Scope, wanted: PendingApproval, known: str, address: str) -> RefusedError:
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
