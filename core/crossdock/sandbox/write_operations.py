"""The operations that change something, each executed once under one Idempotency-Key.

The two actions are assumed: approve an invoice, and move a quantity of a lot to another bin. An approved invoice is
returned with 200 and without a second effect, so that a retry after a lost response succeeds. A movement goes to the
oldest lot of the same product and lot number in the other bin, or to a new lot with the members of the source and its
externalId, "@" and the code of the bin. The source stays, even with a quantity of 0. The effects are ``move`` on the
source with the movement as the body, ``update`` of the source, and ``update`` or ``create`` of the other lot.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Mapping
from typing import Any

from starlette.responses import Response

from crossdock.sandbox import general_ledger, record_level_access, resource_store, strict_json
from crossdock.sandbox.api_call import ApiCall
from crossdock.sandbox.api_routes import COLLECTIONS, Collection, ResourceRoute
from crossdock.sandbox.body_validation import EmptyBody, Movement, has_allowed_digits, validated_body
from crossdock.sandbox.effects_log import record_effect
from crossdock.sandbox.problem_errors import Finding, ProblemError
from crossdock.sandbox.webhook_events import record_event

_BINS = COLLECTIONS["/api/v1/warehouse/bins"]
_MAX_EXTERNAL_ID = 500  # characters


def approve_invoice(connection: sqlite3.Connection, call: ApiCall, collection: Collection, invoice_id: str) -> Response:
    if call.body:
        validated_body(EmptyBody, call.read_json_body())
    invoice, tag = resource_store.load_record_if_change_allowed(connection, call, collection, invoice_id)
    text = strict_json.write_canonical(invoice)
    if invoice.get("status") != "approved":
        approved = {**invoice, "status": "approved"}
        text, tag = resource_store.save_and_record_effect(connection, call, "approve", collection, approved)
        record_event(connection, call, "invoice.approved", text)
    return Response(text, 200, {"etag": tag}, strict_json.MEDIA_TYPE)


def move_lot(connection: sqlite3.Connection, call: ApiCall, collection: Collection, lot_id: str) -> Response:
    request = validated_body(Movement, call.read_json_body())
    lot, _ = resource_store.load_record_if_change_allowed(connection, call, collection, lot_id)
    resource_store.raise_if_reference_missing_or_external_id_taken(
        connection, call.caller, collection, {}, request, lot_id
    )
    existing = _matching_lot_in_bin(connection, call.caller.tenant, lot, request["toBinId"])
    to_lot = existing or _unsaved_lot_for_bin(connection, call, collection, lot, request["toBinId"])
    _raise_if_movement_impossible(lot, to_lot, request)
    movement = {
        **request,
        "id": resource_store.new_id("mov", call.now),
        "lotId": lot_id,
        "toLotId": to_lot["id"],
        "createdAt": call.at,
        **({"fromBinId": lot["binId"]} if "binId" in lot else {}),
    }
    text = strict_json.write_canonical(movement)
    record_effect(connection, call, "move", collection.kind.name, lot_id, text)
    record_event(connection, call, "inventory.lot_moved", text)
    lot["quantity"] -= request["quantity"]
    to_lot["quantity"] += request["quantity"]
    resource_store.save_and_record_effect(connection, call, "update", collection, lot)
    resource_store.save_and_record_effect(connection, call, "update" if existing else "create", collection, to_lot)
    return Response(text, 201, media_type=strict_json.MEDIA_TYPE)


def _matching_lot_in_bin(
    connection: sqlite3.Connection, tenant: str, lot: Mapping[str, Any], bin_id: str
) -> dict[str, Any] | None:
    rows = connection.execute(
        "SELECT body FROM stored WHERE tenant = ? AND resource = 'inventory_lot'"
        " AND json_extract(body, '$.binId') = ? AND json_extract(body, '$.productId') = ? ORDER BY rowid",
        (tenant, bin_id, lot["productId"]),
    )
    bodies = (strict_json.read(text.encode()) for (text,) in rows)
    return next((body for body in bodies if body["lotNumber"] == lot["lotNumber"]), None)


def _unsaved_lot_for_bin(
    connection: sqlite3.Connection, call: ApiCall, collection: Collection, lot: Mapping[str, Any], bin_id: str
) -> dict[str, Any]:
    tenant = call.caller.tenant
    to_bin = strict_json.read(resource_store.load_body_and_etag(connection, _BINS, tenant, bin_id)[0].encode())
    for suffix in (to_bin["code"], to_bin["externalId"]):
        name = f"{lot['externalId']}@{suffix}"
        taken = resource_store.find_id_by_external_id(connection, tenant, collection, name)
        if len(name) <= _MAX_EXTERNAL_ID and not taken:
            own = {"id": resource_store.new_id(collection.prefix, call.now), "createdAt": call.at, "externalId": name}
            return {**lot, **own, "binId": bin_id, "quantity": 0}
    wrong = "needs a new lot whose externalId would be taken or too long"
    raise ProblemError(409, "The lot at the destination cannot be created.", findings=[("#/toBinId", wrong)])


def _raise_if_movement_impossible(
    lot: Mapping[str, Any], to_lot: Mapping[str, Any], request: Mapping[str, Any]
) -> None:
    findings: list[Finding] = []
    if request["toBinId"] == lot.get("binId"):
        findings.append(("#/toBinId", "is the bin that the lot is in"))
    if request["quantity"] > lot["quantity"]:
        findings.append(("#/quantity", "is more than the lot holds"))
    elif not has_allowed_digits(to_lot["quantity"] + request["quantity"]):
        findings.append(("#/quantity", "would exceed the largest quantity of the other lot"))
    if findings:
        raise ProblemError(422, "The lot does not allow this movement.", findings=findings)


_KEY_LIFE_S = 24 * 3600
GIVEN_ID_HEADER = "x-sandbox-id"
"""The header of a create with the id of the new record, for tests whose sources know ids of the platform."""


def execute_write(connection: sqlite3.Connection, call: ApiCall, route: ResourceRoute) -> Response:
    operation = _OPERATIONS[route.operation]
    return execute_once_per_idempotency_key(
        connection, call, lambda: operation(connection, call, route.collection, route.resource_id)
    )


def execute_once_per_idempotency_key(
    connection: sqlite3.Connection, call: ApiCall, operation: Callable[[], Response]
) -> Response:
    """Execute a request, or replay the response that its key got before. Refusals are responses too, and are kept."""
    if call.key is None:
        return operation()
    connection.execute("DELETE FROM answers WHERE at < ?", (call.now - _KEY_LIFE_S,))
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
        response = operation()
    except ProblemError as problem:  # raised before anything is written
        response = problem.response
        if response.status_code == 403:  # the next token of the client may have the scope
            raise
    answer = (response.status_code, json.dumps(dict(response.headers)), response.body)
    connection.execute("INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (*scope, call.now, fingerprint, *answer))
    return response


def _create(connection: sqlite3.Connection, call: ApiCall, collection: Collection, _: str) -> Response:
    body = validated_body(collection.kind.wire, call.read_json_body())
    given = call.headers.get(GIVEN_ID_HEADER)
    if given is not None:
        resource_store.raise_if_id_invalid_or_used(connection, given)
    own = {"id": given or resource_store.new_id(collection.prefix, call.now), "createdAt": call.at}
    text, tag = _save_record_and_post_invoice(connection, call, "create", collection, None, {**body, **own})
    if collection.kind.name == "order":
        record_event(connection, call, "order.created", text)
    headers = {"location": f"{collection.path}/{own['id']}", "etag": tag}
    return Response(text, 201, headers, strict_json.MEDIA_TYPE)


def _update(connection: sqlite3.Connection, call: ApiCall, collection: Collection, resource_id: str) -> Response:
    patch = call.read_json_body()
    before, _ = resource_store.load_record_if_change_allowed(connection, call, collection, resource_id)
    general_ledger.raise_if_invoice_or_account_unchangeable(collection, before)
    old = dict(before)
    read_only = {name: before.pop(name) for name in collection.read_only if name in before}
    body = validated_body(collection.kind.wire, _merge_keeping_nulls(before, patch))
    text, tag = _save_record_and_post_invoice(connection, call, "update", collection, old, {**body, **read_only})
    return Response(text, 200, {"etag": tag}, strict_json.MEDIA_TYPE)


def _delete(connection: sqlite3.Connection, call: ApiCall, collection: Collection, resource_id: str) -> Response:
    before, _ = resource_store.load_record_if_change_allowed(connection, call, collection, resource_id)
    general_ledger.raise_if_invoice_or_account_unchangeable(collection, before)
    connection.execute("DELETE FROM stored WHERE id = ?", (resource_id,))
    record_effect(connection, call, "delete", collection.kind.name, resource_id, strict_json.write_canonical(before))
    return Response(status_code=204)


_OPERATIONS: Mapping[str, Callable[[sqlite3.Connection, ApiCall, Collection, str], Response]] = {
    "create": _create,
    "update": _update,
    "delete": _delete,
    "approve": approve_invoice,
    "move": move_lot,
}


def _merge_keeping_nulls(target: Any, patch: Any) -> Any:
    """Apply a JSON merge patch (RFC 7396), but keep its nulls: `validated_body` removes them once it knows their
    names.
    """
    if not isinstance(patch, dict):
        return patch
    before = target if isinstance(target, dict) else {}
    return {**before, **{name: _merge_keeping_nulls(before.get(name), value) for name, value in patch.items()}}


def _save_record_and_post_invoice(
    connection: sqlite3.Connection,
    call: ApiCall,
    operation: str,
    collection: Collection,
    before: Mapping[str, Any] | None,
    body: dict[str, Any],
) -> tuple[str, str]:
    record_level_access.raise_if_save_leaves_narrowing(connection, call.caller, collection, before, body)
    resource_store.raise_if_reference_missing_or_external_id_taken(
        connection, call.caller, collection, before or {}, body, body["id"]
    )
    if collection.kind.name != "invoice":
        return resource_store.save_and_record_effect(connection, call, operation, collection, body)
    invoice = {"status": "draft", **body, "total": general_ledger.invoice_total(body["items"])}
    if invoice.get("autoPostLedger"):
        general_ledger.raise_if_caller_may_not_post(connection, call)
    saved = resource_store.save_and_record_effect(connection, call, operation, collection, invoice)
    if invoice.get("autoPostLedger"):
        general_ledger.post_invoice(connection, call, invoice)
    return saved
