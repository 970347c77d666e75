"""Access to single records, if the scopes of a credential are narrowed to ledger accounts or warehouse bins.

A record that may not be read is answered like one that does not exist. A lot is reached through its bin. Narrowed
credentials cannot create accounts and bins, and cannot change the members that scopes name them by: otherwise "is
taken" would reveal others. A code that several accounts have names none of them.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from crossdock.sandbox.access_control import Caller, insufficient_scope_error
from crossdock.sandbox.api_routes import Collection
from crossdock.sandbox.body_validation import references_in_body
from crossdock.sandbox.problem_errors import ProblemError
from crossdock.sandbox.scopes import SCOPE_NAME_BY_RESOURCE

_ID = re.compile("[a-z]{3}_[0-9a-f]{25}")
_NAMED_BY: Mapping[str, str] = {
    "ledger_account": "json_extract(body, '$.code')",
    "warehouse_bin": "external_id",
}
_IDENTIFYING: Mapping[str, Sequence[str]] = {
    "ledger_account": ("externalId", "code"),
    "warehouse_bin": ("externalId",),
}
_NARROWED_BY: Mapping[str, tuple[str, str]] = {  # and the member that holds the id
    "ledger_account": ("ledger_account", "id"),
    "warehouse_bin": ("warehouse_bin", "id"),
    "inventory_lot": ("warehouse_bin", "binId"),
}
_REFERENCE_ACCESS: Mapping[str, str] = {"warehouse_bin": "write", "ledger_account": "read"}


def permitted_account_or_bin_ids(
    connection: sqlite3.Connection, caller: Caller, resource: str, access: str
) -> frozenset[str] | None:
    """Return the ids of the accounts or bins that *caller* may touch; None for all."""
    names = caller.permitted_single_record_names(resource, access)
    if names is None:
        return None
    named = _NAMED_BY[resource]
    query = (
        f"SELECT min(id) FROM stored WHERE tenant = ? AND resource = '{resource}'"  # noqa: S608  none is from a request
        f" AND {named} IN (SELECT value FROM json_each(?)) GROUP BY {named} HAVING count(*) = 1"
    )
    others = [each for each in names if not _ID.fullmatch(each)]  # a name in the form of an id is nothing else
    found = connection.execute(query, (caller.tenant, json.dumps(others))) if others else ()
    return (names - {*others}) | {row[0] for row in found}


def can_access_record(
    connection: sqlite3.Connection, caller: Caller, resource: str, access: str, body: Mapping[str, Any]
) -> bool:
    if resource not in _NARROWED_BY:
        return True
    owner, member = _NARROWED_BY[resource]
    ids = permitted_account_or_bin_ids(connection, caller, owner, access)
    return ids is None or body.get(member) in ids


def sql_condition_for_readable_records(
    connection: sqlite3.Connection, caller: Caller, resource: str
) -> tuple[str, Sequence[str]]:
    if resource not in _NARROWED_BY:
        return "", ()
    owner, member = _NARROWED_BY[resource]
    ids = permitted_account_or_bin_ids(connection, caller, owner, "read")
    if ids is None:
        return "", ()
    column = "id" if member == "id" else f"json_extract(body, '$.{member}')"
    return f" AND {column} IN (SELECT value FROM json_each(?))", (json.dumps(sorted(ids)),)  # noqa: S608  our names


def raise_if_record_forbidden(
    connection: sqlite3.Connection, caller: Caller, collection: Collection, body: Mapping[str, Any], access: str
) -> None:
    """Refuse a stored record: 404 if *caller* may not read it, 403 if it may be read but not changed."""
    resource = collection.kind.name
    if not can_access_record(connection, caller, resource, "read", body):
        raise ProblemError(404, f"There is no such {resource}.")
    if access == "write" and not can_access_record(connection, caller, resource, "write", body):
        raise _record_outside_narrowing_error(resource)


def raise_if_save_leaves_narrowing(
    connection: sqlite3.Connection,
    caller: Caller,
    collection: Collection,
    before: Mapping[str, Any] | None,
    body: Mapping[str, Any],
) -> None:
    """Raise 403 for a record that would leave or enter the narrowing of *caller*."""
    resource = collection.kind.name
    if resource in _NAMED_BY:
        is_narrowed = caller.permitted_single_record_names(resource, "write") is not None
        named = _IDENTIFYING[resource]
        refused = is_narrowed and (before is None or any(before[each] != body[each] for each in named))
    else:  # a lot with a bin is refused for its reference to the bin
        refused = "binId" not in body and not can_access_record(connection, caller, resource, "write", body)
    if refused:
        raise _record_outside_narrowing_error(resource)


def references_caller_may_not_use(
    connection: sqlite3.Connection, caller: Caller, before: Mapping[str, Any], body: Mapping[str, Any]
) -> set[tuple[str, str]]:
    """Return the new references in *body* that *caller* may not use: a bin to write, an account to read."""
    kept = {(resource, target) for _, resource, target in references_in_body(before)}
    named = {(resource, target) for _, resource, target in references_in_body(body)} - kept
    hidden = set()
    for resource, access in _REFERENCE_ACCESS.items():
        ids = permitted_account_or_bin_ids(connection, caller, resource, access)
        hidden |= {each for each in named if each[0] == resource and ids is not None and each[1] not in ids}
    return hidden


def _record_outside_narrowing_error(resource: str) -> ProblemError:
    narrowed = SCOPE_NAME_BY_RESOURCE[_NARROWED_BY[resource][0]]
    return insufficient_scope_error(f"{narrowed}:write")
