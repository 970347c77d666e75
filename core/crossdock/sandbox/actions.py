"""The two actions: an invoice is approved, a quantity of a lot is moved to another bin. All of it is assumed.

Approving has an empty body, or ``{}``. It can be repeated: an approved invoice is answered as it is, 200, without a
second effect, as someone expects who retries after a lost answer. It may be approved whether it is posted or not.

A movement takes at most what the lot holds. It goes to the lot of the same product and lot number in the other bin,
the oldest if there are several. If there is none, one is made: all the source says of itself is said of it, and its
externalId is the source's, "@" and the bin's code, or the bin's externalId where the code gives one that is taken.
The source stays, even with nothing left in it. The effects of a movement are ``move`` on the source, with the
movement as its body, then the ``update`` of the source, then the ``update`` or ``create`` of the other lot.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from crossdock.sandbox import json_codec
from crossdock.sandbox.collections import COLLECTIONS, Collection, Movement, Nothing, check, fits
from crossdock.sandbox.problem_answers import Finding, ProblemError
from crossdock.sandbox.read_requests import JSON, stored
from crossdock.sandbox.write_requests import Call, check_surroundings, holder, keep, new_id, present, read_json, witness

_BINS = COLLECTIONS["/api/v1/warehouse/bins"]
_LONGEST = 500  # characters of an externalId


def approve(connection: sqlite3.Connection, call: Call, collection: Collection, target: str) -> Response:
    if call.body:
        check(Nothing, read_json(call))
    text, tag = present(connection, call, collection, target)
    invoice = json_codec.read(text.encode())
    if invoice.get("status") != "approved":
        text, tag = keep(connection, call, "approve", collection, {**invoice, "status": "approved"})
    return Response(text, 200, {"etag": tag}, JSON)


def move(connection: sqlite3.Connection, call: Call, collection: Collection, target: str) -> Response:
    asked = check(Movement, read_json(call))
    lot = json_codec.read(present(connection, call, collection, target)[0].encode())
    check_surroundings(connection, call.caller.tenant, collection, asked, target)
    there = _lot_there(connection, call, lot, asked["toBinId"])
    to_lot = there or _new_lot(connection, call, collection, lot, asked["toBinId"])
    _check_amount(lot, to_lot, asked)
    own = {"id": new_id("mov", call.now), "lotId": target, "toLotId": to_lot["id"], "createdAt": call.at}
    left = {"fromBinId": lot["binId"]} if "binId" in lot else {}
    text = json_codec.write({**asked, **own, **left})
    witness(connection, call, "move", collection.kind.name, target, text)
    lot["quantity"] -= asked["quantity"]
    to_lot["quantity"] += asked["quantity"]
    keep(connection, call, "update", collection, lot)
    keep(connection, call, "update" if there else "create", collection, to_lot)
    return Response(text, 201, media_type=JSON)


def _lot_there(
    connection: sqlite3.Connection, call: Call, lot: Mapping[str, Any], bin_id: str
) -> dict[str, Any] | None:
    """What the bin already has of the same product and lot number, the oldest first."""
    rows = connection.execute(
        "SELECT body FROM stored WHERE tenant = ? AND resource = 'inventory_lot'"
        " AND json_extract(body, '$.binId') = ? AND json_extract(body, '$.productId') = ? ORDER BY rowid",
        (call.caller.tenant, bin_id, lot["productId"]),
    )
    bodies = (json_codec.read(text.encode()) for (text,) in rows)
    return next((body for body in bodies if body["lotNumber"] == lot["lotNumber"]), None)


def _new_lot(
    connection: sqlite3.Connection, call: Call, collection: Collection, lot: Mapping[str, Any], bin_id: str
) -> dict[str, Any]:
    tenant = call.caller.tenant
    place = json_codec.read(stored(connection, _BINS, tenant, bin_id)[0].encode())
    for end in (place["code"], place["externalId"]):
        name = f"{lot['externalId']}@{end}"
        if len(name) <= _LONGEST and not holder(connection, tenant, collection, name):
            own = {"id": new_id(collection.prefix, call.now), "createdAt": call.at, "externalId": name}
            return {**lot, **own, "binId": bin_id, "quantity": 0}
    wrong = "the lot to be made there would have an externalId that is taken or too long"
    raise ProblemError(409, "The movement needs a lot that cannot be made.", findings=[("#/toBinId", wrong)])


def _check_amount(lot: Mapping[str, Any], to_lot: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    """Refuse to move what is not there, to where it is, or beyond what a number may hold."""
    findings: list[Finding] = []
    if asked["toBinId"] == lot.get("binId"):
        findings.append(("#/toBinId", "is where the lot is"))
    if asked["quantity"] > lot["quantity"]:
        findings.append(("#/quantity", "is more than the lot holds"))
    elif not fits(to_lot["quantity"] + asked["quantity"]):
        findings.append(("#/quantity", "is more than the other lot can take"))
    if findings:
        raise ProblemError(422, "The movement does not fit the lot.", findings=findings)
