"""The change log of the events that webhooks report, written in the transaction of each change."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Literal

from crossdock.sandbox import resource_store, strict_json
from crossdock.sandbox.api_call import ApiCall

EventType = Literal["order.created", "inventory.lot_moved", "invoice.approved"]
RESOURCE_OF: Mapping[EventType, str] = {
    "order.created": "order",
    "inventory.lot_moved": "inventory_lot",
    "invoice.approved": "invoice",
}


def record_event(connection: sqlite3.Connection, call: ApiCall, event: EventType, data: str) -> None:
    """Add an event. *data* is the JSON text of the resource, which the body repeats byte for byte."""
    kind, moment = strict_json.write_canonical(event), strict_json.write_canonical(call.at)
    body = f'{{"type":{kind},"timestamp":{moment},"data":{data}}}'
    values = (resource_store.new_id("evt", call.now), call.caller.tenant, event, body)
    connection.execute("INSERT INTO events VALUES (NULL, ?, ?, ?, ?)", values)


def last_event_number(connection: sqlite3.Connection, tenant: str) -> int:
    (seq,) = connection.execute("SELECT max(seq) FROM events WHERE tenant = ?", (tenant,)).fetchone()
    return seq or 0
