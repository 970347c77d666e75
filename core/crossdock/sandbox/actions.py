"""The two actions, both assumed: approve an invoice, and move a quantity of a lot to another bin.

An approved invoice is returned with 200 and without a second effect, so that a retry after a lost response succeeds. A
movement goes to the oldest lot of the same product and lot number in the other bin, or to a new lot with the members of
the source and its externalId, "@" and the code of the bin. The source stays, even with a quantity of 0. The effects are
``move`` on the source with the movement as the body, ``update`` of the source, and ``update`` or ``create`` of the
other lot.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from crossdock.sandbox import json_codec, resource_store
from crossdock.sandbox.api_call import ApiCall
from crossdock.sandbox.body_validation import EmptyBody, Movement, has_allowed_digits, validated
from crossdock.sandbox.effects_log import record_effect
from crossdock.sandbox.problem_errors import Finding, ProblemError
from crossdock.sandbox.resource_paths import COLLECTIONS, Collection
from crossdock.sandbox.webhook_events import record_event

_BINS = COLLECTIONS["/api/v1/warehouse/bins"]
_MAX_EXTERNAL_ID = 500  # characters


def approve_invoice(connection: sqlite3.Connection, call: ApiCall, collection: Collection, invoice_id: str) -> Response:
    if call.body:
        validated(EmptyBody, call.json())
    invoice, tag = resource_store.load_for_change(connection, call, collection, invoice_id)
    text = json_codec.write(invoice)
    if invoice.get("status") != "approved":
        approved = {**invoice, "status": "approved"}
        text, tag = resource_store.save(connection, call, "approve", collection, approved)
        record_event(connection, call, "invoice.approved", text)
    return Response(text, 200, {"etag": tag}, json_codec.MEDIA_TYPE)


def move_lot(connection: sqlite3.Connection, call: ApiCall, collection: Collection, lot_id: str) -> Response:
    request = validated(Movement, call.json())
    lot, _ = resource_store.load_for_change(connection, call, collection, lot_id)
    resource_store.check_against_stored(connection, call.caller, collection, {}, request, lot_id)
    existing = _matching_lot(connection, call.caller.tenant, lot, request["toBinId"])
    to_lot = existing or _new_lot(connection, call, collection, lot, request["toBinId"])
    _check_quantity(lot, to_lot, request)
    movement = {
        **request,
        "id": resource_store.new_id("mov", call.now),
        "lotId": lot_id,
        "toLotId": to_lot["id"],
        "createdAt": call.at,
        **({"fromBinId": lot["binId"]} if "binId" in lot else {}),
    }
    text = json_codec.write(movement)
    record_effect(connection, call, "move", collection.kind.name, lot_id, text)
    record_event(connection, call, "inventory.lot_moved", text)
    lot["quantity"] -= request["quantity"]
    to_lot["quantity"] += request["quantity"]
    resource_store.save(connection, call, "update", collection, lot)
    resource_store.save(connection, call, "update" if existing else "create", collection, to_lot)
    return Response(text, 201, media_type=json_codec.MEDIA_TYPE)


def _matching_lot(
    connection: sqlite3.Connection, tenant: str, lot: Mapping[str, Any], bin_id: str
) -> dict[str, Any] | None:
    rows = connection.execute(
        "SELECT body FROM stored WHERE tenant = ? AND resource = 'inventory_lot'"
        " AND json_extract(body, '$.binId') = ? AND json_extract(body, '$.productId') = ? ORDER BY rowid",
        (tenant, bin_id, lot["productId"]),
    )
    bodies = (json_codec.read(text.encode()) for (text,) in rows)
    return next((body for body in bodies if body["lotNumber"] == lot["lotNumber"]), None)


def _new_lot(
    connection: sqlite3.Connection, call: ApiCall, collection: Collection, lot: Mapping[str, Any], bin_id: str
) -> dict[str, Any]:
    tenant = call.caller.tenant
    to_bin = json_codec.read(resource_store.load(connection, _BINS, tenant, bin_id)[0].encode())
    for suffix in (to_bin["code"], to_bin["externalId"]):
        name = f"{lot['externalId']}@{suffix}"
        taken = resource_store.find_external_id(connection, tenant, collection, name)
        if len(name) <= _MAX_EXTERNAL_ID and not taken:
            own = {"id": resource_store.new_id(collection.prefix, call.now), "createdAt": call.at, "externalId": name}
            return {**lot, **own, "binId": bin_id, "quantity": 0}
    wrong = "needs a new lot whose externalId would be taken or too long"
    raise ProblemError(409, "The lot at the destination cannot be created.", findings=[("#/toBinId", wrong)])


def _check_quantity(lot: Mapping[str, Any], to_lot: Mapping[str, Any], request: Mapping[str, Any]) -> None:
    findings: list[Finding] = []
    if request["toBinId"] == lot.get("binId"):
        findings.append(("#/toBinId", "is the bin that the lot is in"))
    if request["quantity"] > lot["quantity"]:
        findings.append(("#/quantity", "is more than the lot holds"))
    elif not has_allowed_digits(to_lot["quantity"] + request["quantity"]):
        findings.append(("#/quantity", "would exceed the largest quantity of the other lot"))
    if findings:
        raise ProblemError(422, "The lot does not allow this movement.", findings=findings)
