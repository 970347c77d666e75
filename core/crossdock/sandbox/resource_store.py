"""Loading and saving resources, and the checks against what is stored."""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Mapping
from typing import Any

from crossdock.sandbox import record_level_access, strict_json
from crossdock.sandbox.access_control import Caller
from crossdock.sandbox.api_call import ApiCall
from crossdock.sandbox.api_routes import Collection
from crossdock.sandbox.body_validation import references_in_body
from crossdock.sandbox.effects_log import record_effect
from crossdock.sandbox.problem_errors import ProblemError
from crossdock.values.field_types import is_valid_target_id


def new_id(prefix: str, now: float) -> str:
    """Return an unguessable id. Ids of later milliseconds sort behind it."""
    return f"{prefix}_{int(now * 1000):011x}{secrets.token_hex(7)}"


def load_body_and_etag(
    connection: sqlite3.Connection, collection: Collection, tenant: str, resource_id: str
) -> tuple[str, str]:
    """Return body and entity tag (the number of the last effect) of one resource, or raise 404."""
    row = connection.execute(
        "SELECT body, changed FROM stored WHERE id = ? AND tenant = ? AND resource = ?",
        (resource_id, tenant, collection.kind.name),
    ).fetchone()
    if row is None:
        raise ProblemError(404, f"There is no such {collection.kind.name}.")
    return row[0], f'"{row[1]}"'


def load_record_if_change_allowed(
    connection: sqlite3.Connection, call: ApiCall, collection: Collection, resource_id: str
) -> tuple[dict[str, Any], str]:
    text, tag = load_body_and_etag(connection, collection, call.caller.tenant, resource_id)
    body = strict_json.read(text.encode())
    record_level_access.raise_if_record_forbidden(connection, call.caller, collection, body, "write")
    wanted = [each.strip() for each in call.headers.get("if-match", "*").split(",")]
    if "*" not in wanted and tag not in wanted:
        raise ProblemError(412, "The resource has changed: If-Match names another version.")
    return body, tag


def raise_if_reference_missing_or_external_id_taken(
    connection: sqlite3.Connection,
    caller: Caller,
    collection: Collection,
    before: Mapping[str, Any],
    body: Mapping[str, Any],
    own_id: str,
) -> None:
    """Refuse references to missing resources (422), and an externalId that another resource than *own_id* has (409)."""
    tenant = caller.tenant
    named = list(references_in_body(body))
    query = "SELECT 1 FROM stored WHERE resource = ? AND id = ? AND tenant = ?"
    distinct = {(resource, target) for _, resource, target in named}  # the lines of an invoice often name one product
    missing = {each for each in distinct if connection.execute(query, (*each, tenant)).fetchone() is None}
    missing |= record_level_access.references_caller_may_not_use(connection, caller, before, body)
    if missing:
        findings = [(pointer, f"names no {each[0]}") for pointer, *each in named if tuple(each) in missing]
        raise ProblemError(422, "The body refers to a resource that does not exist.", findings=findings)
    if find_id_by_external_id(connection, tenant, collection, body.get("externalId")) not in {None, own_id}:
        findings = [("#/externalId", "is taken")]
        raise ProblemError(409, f"Another {collection.kind.name} has this externalId.", findings=findings)


def raise_if_id_invalid_or_used(connection: sqlite3.Connection, resource_id: str) -> None:
    """Refuse an id that the caller gives and that a resource of any tenant has, or that is not an id."""
    if not is_valid_target_id(resource_id):
        raise ProblemError(400, "The id must be 1 to 64 printable characters.")
    if connection.execute("SELECT 1 FROM stored WHERE id = ?", (resource_id,)).fetchone() is not None:
        raise ProblemError(409, "Another resource has this id.")


def find_id_by_external_id(
    connection: sqlite3.Connection, tenant: str, collection: Collection, external_id: str | None
) -> str | None:
    query = "SELECT id FROM stored WHERE tenant = ? AND resource = ? AND external_id = ?"
    row = connection.execute(query, (tenant, collection.kind.name, external_id)).fetchone()
    return None if row is None else str(row[0])


def save_and_record_effect(
    connection: sqlite3.Connection, call: ApiCall, operation: str, collection: Collection, body: Mapping[str, Any]
) -> tuple[str, str]:
    tenant, name = call.caller.tenant, collection.kind.name
    text = strict_json.write_canonical({**body, "updatedAt": call.at})
    seq = record_effect(connection, call, operation, name, body["id"], text)
    connection.execute(
        "INSERT INTO stored VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET (external_id, updated_at,"
        " changed, body) = (excluded.external_id, excluded.updated_at, excluded.changed, excluded.body)",
        (body["id"], tenant, name, body.get("externalId"), call.at, seq, text),
    )
    return text, f'"{seq}"'
