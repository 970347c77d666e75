"""Webhook subscriptions: the addresses, the events, and the secrets that sign them (Standard Webhooks 1.0, symmetric).

A subscription begins at the present. One that is disabled keeps its place: later it gets every event since.
"""

from __future__ import annotations

import base64
import hmac
import secrets
import sqlite3
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, get_args

from pydantic import AfterValidator, BeforeValidator, Field
from starlette.responses import Response

from crossdock.resources import ResourceModel
from crossdock.sandbox import access_control, resource_store, strict_json, webhook_events
from crossdock.sandbox.api_call import ApiCall
from crossdock.sandbox.api_routes import SUBSCRIPTIONS
from crossdock.sandbox.body_validation import EmptyBody, validated_body
from crossdock.sandbox.permitted_webhook_addresses import url_refusal_reason
from crossdock.sandbox.problem_errors import ProblemError
from crossdock.sandbox.read_operations import read_page_newest_first
from crossdock.sandbox.rfc3339 import instant_text
from crossdock.sandbox.webhook_events import EventType

_PREFIX = "whsec_"
_SECRET_BYTES = 32


def new_signing_secret() -> str:
    return _PREFIX + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()


def signed_headers(event_id: str, timestamp: int, body: bytes, signing_secrets: Iterable[str]) -> dict[str, str]:
    """Return the headers of a delivery, with a signature for each secret. *timestamp* is in seconds since the epoch."""
    content = f"{event_id}.{timestamp}.".encode() + body
    signatures = (
        base64.b64encode(hmac.digest(base64.b64decode(each.removeprefix(_PREFIX)), content, "sha256")).decode()
        for each in signing_secrets
    )
    return {
        "webhook-id": event_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(f"v1,{each}" for each in signatures),
    }


MAX_SUBSCRIPTIONS = 50  # of a tenant
MAX_CONCURRENCY = 10
PREVIOUS_SECRET_LIFE_S = 24 * 3600
_ON_REQUEST = "Disabled by a request."


def _raise_if_url_refused(url: str) -> str:
    if wrong := url_refusal_reason(url):
        raise ValueError(wrong)
    return url


def _whole_decimal_as_int(number: object) -> object:
    """Convert: 4.0 is an integer in JSON Schema."""
    return int(number) if isinstance(number, Decimal) and number % 1 == 0 else number


class SubscriptionBody(ResourceModel):
    """Webhook subscription input (assumed)."""

    url: Annotated[str, AfterValidator(_raise_if_url_refused)]
    events: Annotated[list[EventType], Field(min_length=1, max_length=len(get_args(EventType)))]
    concurrency: Annotated[
        int, Field(strict=True, ge=1, le=MAX_CONCURRENCY), BeforeValidator(_whole_decimal_as_int)
    ] = 4
    status: Literal["enabled", "disabled"] = "enabled"


class StoredSubscription(NamedTuple):
    """A subscription as it is stored. Times are in seconds since the epoch unless they are text."""

    seq: int
    id: str
    tenant: str
    url: str
    events: str  # separated by spaces
    concurrency: int
    status: str
    disabled_reason: str | None
    created_at: str
    updated_at: str
    secret: str
    previous_secret: str | None
    previous_until: float
    cursor: int  # the number of the last event that was taken
    healthy_at: float  # when an attempt succeeded or it was enabled, the later of both

    def valid_secrets(self, now: float) -> list[str]:
        previous = [self.previous_secret] if self.previous_secret and now < self.previous_until else []
        return [self.secret, *previous]

    def as_json(self, now: float) -> dict[str, Any]:
        rotating = len(self.valid_secrets(now)) > 1
        return {
            "id": self.id,
            "url": self.url,
            "events": self.events.split(),
            "concurrency": self.concurrency,
            "status": self.status,
            **({"disabledReason": self.disabled_reason} if self.disabled_reason else {}),
            **({"previousSecretExpiresAt": instant_text(self.previous_until)} if rotating else {}),
            "createdAt": self.created_at,
            "updatedAt": self.updated_at,
        }


def load_subscription_or_raise_404(
    connection: sqlite3.Connection, tenant: str, subscription_id: str
) -> StoredSubscription:
    query = "SELECT * FROM subscriptions WHERE id = ? AND tenant = ?"
    row = connection.execute(query, (subscription_id, tenant)).fetchone()
    if row is None:
        raise ProblemError(404, "There is no such subscription.")
    return StoredSubscription(*row)


def load_enabled_subscriptions(connection: sqlite3.Connection) -> list[StoredSubscription]:
    rows = connection.execute("SELECT * FROM subscriptions WHERE status = 'enabled' ORDER BY seq")
    return [StoredSubscription(*row) for row in rows]


def list_subscriptions(connection: sqlite3.Connection, call: ApiCall, query: Mapping[str, str]) -> Response:
    select = "SELECT * FROM subscriptions WHERE tenant = ?"
    rows, cursor = read_page_newest_first(connection, select, (call.caller.tenant,), query)
    return _json_response({"data": [StoredSubscription(*row).as_json(call.now) for row in rows], "nextCursor": cursor})


def get_subscription(connection: sqlite3.Connection, call: ApiCall, subscription_id: str) -> Response:
    return _json_response(
        load_subscription_or_raise_404(connection, call.caller.tenant, subscription_id).as_json(call.now)
    )


def create_subscription(connection: sqlite3.Connection, call: ApiCall) -> Response:
    """Answer 201 with the secret, which no other response shows."""
    body = _validated_subscription_body(call, call.read_json_body())
    tenant = call.caller.tenant
    (count,) = connection.execute("SELECT count(*) FROM subscriptions WHERE tenant = ?", (tenant,)).fetchone()
    if count >= MAX_SUBSCRIPTIONS:
        raise ProblemError(409, f"A tenant has at most {MAX_SUBSCRIPTIONS} subscriptions. Delete one first.")
    name, secret = resource_store.new_id("whs", call.now), new_signing_secret()
    members = {
        **_columns(body),
        "id": name,
        "tenant": tenant,
        "created_at": call.at,
        "updated_at": call.at,
        "secret": secret,
        "healthy_at": call.now,
        "cursor": webhook_events.last_event_number(connection, tenant),
    }
    marks = ", ".join(f":{each}" for each in members)
    connection.execute(f"INSERT INTO subscriptions ({', '.join(members)}) VALUES ({marks})", members)  # noqa: S608
    shown = {**load_subscription_or_raise_404(connection, tenant, name).as_json(call.now), "secret": secret}
    return _json_response(shown, 201, {"location": f"{SUBSCRIPTIONS}/{name}"})


def update_subscription(connection: sqlite3.Connection, call: ApiCall, subscription_id: str) -> Response:
    """Apply a merge patch. Enabling a subscription removes the reason why it was disabled."""
    before = load_subscription_or_raise_404(connection, call.caller.tenant, subscription_id)
    patch = call.read_json_body()
    writable = {name: before.as_json(call.now)[name] for name in ("url", "events", "concurrency", "status")}
    body = _validated_subscription_body(call, {**writable, **patch} if isinstance(patch, dict) else patch)
    columns = _columns(body)
    if body["status"] != before.status:
        columns["healthy_at"] = call.now
    else:
        columns["disabled_reason"] = before.disabled_reason
    _store_changed_columns(connection, call, subscription_id, columns)
    return get_subscription(connection, call, subscription_id)


def delete_subscription(connection: sqlite3.Connection, call: ApiCall, subscription_id: str) -> Response:
    """Delete a subscription with its deliveries. An attempt that is being sent is not stopped."""
    load_subscription_or_raise_404(connection, call.caller.tenant, subscription_id)
    its_deliveries = "SELECT id FROM deliveries WHERE subscription = ?"
    connection.execute(f"DELETE FROM attempts WHERE delivery IN ({its_deliveries})", (subscription_id,))  # noqa: S608
    connection.execute("DELETE FROM deliveries WHERE subscription = ?", (subscription_id,))
    connection.execute("DELETE FROM subscriptions WHERE id = ?", (subscription_id,))
    return Response(status_code=204)


def rotate_secret(connection: sqlite3.Connection, call: ApiCall, subscription_id: str) -> Response:
    """Answer 200 with a new secret. Until the previous one expires, deliveries carry a signature of each."""
    raise_unless_body_empty(call)
    before, secret = (
        load_subscription_or_raise_404(connection, call.caller.tenant, subscription_id),
        new_signing_secret(),
    )
    until = call.now + PREVIOUS_SECRET_LIFE_S
    rotated = {"secret": secret, "previous_secret": before.secret, "previous_until": until}
    _store_changed_columns(connection, call, subscription_id, rotated)
    return _json_response(
        {
            **load_subscription_or_raise_404(connection, before.tenant, subscription_id).as_json(call.now),
            "secret": secret,
        }
    )


def raise_unless_body_empty(call: ApiCall) -> None:
    if call.body:
        validated_body(EmptyBody, call.read_json_body())


def _validated_subscription_body(call: ApiCall, body: Any) -> dict[str, Any]:
    found = validated_body(SubscriptionBody, body)
    if len(set(found["events"])) < len(found["events"]):
        findings = [("#/events", "must not repeat an event")]
        raise ProblemError(422, "The body does not match the schema of the resource.", findings=findings)
    for event in found["events"]:
        access_control.raise_unless_authorized_for_resource(call.caller, webhook_events.RESOURCE_OF[event], "GET")
    return found


def _columns(body: Mapping[str, Any]) -> dict[str, Any]:
    reason = _ON_REQUEST if body["status"] == "disabled" else None
    own = {"events": " ".join(body["events"]), "concurrency": int(body["concurrency"]), "disabled_reason": reason}
    return {**body, **own}


def _store_changed_columns(
    connection: sqlite3.Connection, call: ApiCall, subscription_id: str, columns: Mapping[str, Any]
) -> None:
    values = {**columns, "updated_at": call.at, "id": subscription_id}
    assignments = ", ".join(f"{each} = :{each}" for each in values if each != "id")
    connection.execute(f"UPDATE subscriptions SET {assignments} WHERE id = :id", values)  # noqa: S608


def _json_response(body: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(strict_json.write_canonical(body), status, headers, strict_json.MEDIA_TYPE)
