"""What the platform does to its resources, in one table: each with its witness, and once under one key."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Mapping
from typing import Any

from starlette.responses import Response

from crossdock.sandbox import actions, general_ledger, json_codec
from crossdock.sandbox.collections import Collection, check
from crossdock.sandbox.problem_answers import ProblemError
from crossdock.sandbox.read_requests import JSON
from crossdock.sandbox.url_routes import Route
from crossdock.sandbox.write_requests import Call, check_surroundings, keep, new_id, present, read_json, witness

Work = Callable[[sqlite3.Connection, Call, Collection, str], Response]


def execute(connection: sqlite3.Connection, call: Call, route: Route) -> Response:
    """Do what is asked, or answer what was answered under this key before; refusals are answers too, and are kept."""
    operation, collection, target = route
    work = _WORK[operation]
    if call.key is None:
        return work(connection, call, collection, target)
    connection.execute("DELETE FROM answers WHERE at < ?", (call.now - 24 * 3600,))
    scope = (call.caller.tenant, call.caller.id, call.key)
    fingerprint = hashlib.sha256(f"{call.method} {call.path}\n".encode() + call.body).digest()
    kept = connection.execute(
        "SELECT fingerprint, status, headers, body FROM answers WHERE tenant = ? AND credential = ? AND key = ?", scope
    ).fetchone()
    if kept is not None:
        if kept[0] != fingerprint:
            raise ProblemError(422, "This Idempotency-Key was used for another request.")
        return Response(kept[3], kept[1], {**json.loads(kept[2]), "idempotent-replayed": "true"})
    try:
        response = work(connection, call, collection, target)
    except ProblemError as problem:  # raised before anything is written
        response = problem.response
    answer = (response.status_code, json.dumps(dict(response.headers)), response.body)
    connection.execute("INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (*scope, call.now, fingerprint, *answer))
    return response


def _create(connection: sqlite3.Connection, call: Call, collection: Collection, _: str) -> Response:
    body = check(collection.kind.wire, read_json(call))
    given = {"id": new_id(collection.prefix, call.now), "createdAt": call.at}
    text, tag = _store(connection, call, "create", collection, {**body, **given})
    return Response(text, 201, {"location": f"{collection.path}/{given['id']}", "etag": tag}, JSON)


def _update(connection: sqlite3.Connection, call: Call, collection: Collection, target: str) -> Response:
    patch = read_json(call)
    before = json_codec.read(present(connection, call, collection, target)[0].encode())
    general_ledger.refuse_change(collection, before)
    given = {name: before.pop(name) for name in collection.given if name in before}
    body = check(collection.kind.wire, _merge(before, patch))
    text, tag = _store(connection, call, "update", collection, {**body, **given})
    return Response(text, 200, {"etag": tag}, JSON)


def _delete(connection: sqlite3.Connection, call: Call, collection: Collection, target: str) -> Response:
    text, _ = present(connection, call, collection, target)
    general_ledger.refuse_change(collection, json_codec.read(text.encode()))
    connection.execute("DELETE FROM stored WHERE id = ?", (target,))
    witness(connection, call, "delete", collection.kind.name, target, text)
    return Response(status_code=204)


_WORK: Mapping[str, Work] = {
    "create": _create,
    "update": _update,
    "delete": _delete,
    "approve": actions.approve,
    "move": actions.move,
}


def _merge(target: Any, patch: Any) -> Any:
    """Apply a JSON merge patch (RFC 7396), but keep its nulls: `check` takes them out once it knows their names."""
    if not isinstance(patch, dict):
        return patch
    before = target if isinstance(target, dict) else {}
    return {**before, **{name: _merge(before.get(name), value) for name, value in patch.items()}}


def _store(
    connection: sqlite3.Connection, call: Call, operation: str, collection: Collection, body: dict[str, Any]
) -> tuple[str, str]:
    """Keep a body that fits its surroundings; an invoice gets its total, and is posted if it says so."""
    check_surroundings(connection, call.caller.tenant, collection, body, body["id"])
    if collection.kind.name != "invoice":
        return keep(connection, call, operation, collection, body)
    invoice = {"status": "draft", **body, "total": general_ledger.total(body["items"])}
    told = keep(connection, call, operation, collection, invoice)
    if invoice.get("autoPostLedger"):
        general_ledger.post(connection, call, invoice)
    return told
