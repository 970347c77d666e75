"""Deliveries of events to subscriptions, and their attempts, as they are stored and as the API shows them."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from random import uniform
from typing import Any, NamedTuple

from starlette.responses import Response

from crossdock.sandbox import resource_store, strict_json, webhook_subscriptions
from crossdock.sandbox.api_call import ApiCall
from crossdock.sandbox.api_routes import SUBSCRIPTIONS
from crossdock.sandbox.fault_injection import FaultInjector
from crossdock.sandbox.problem_errors import ProblemError
from crossdock.sandbox.query_parameters import raise_if_unknown_parameter
from crossdock.sandbox.read_operations import read_page_newest_first
from crossdock.sandbox.rfc3339 import instant_text
from crossdock.sandbox.webhook_subscriptions import StoredSubscription
from crossdock.sandbox.webhook_transport import AttemptOutcome

MAX_SHOWN_ATTEMPTS = 100  # the latest ones; a delivery can be repeated without end
_TAKEN_AT_ONCE = 256  # events for one subscription in one transaction
_SHOWN = (
    "SELECT seq, id, (SELECT id FROM events WHERE seq = deliveries.event),"
    " (SELECT type FROM events WHERE seq = deliveries.event), status, due, created_at,"
    " (SELECT count(*) FROM attempts WHERE delivery = deliveries.id) FROM deliveries WHERE subscription = ?"
)


class PendingDelivery(NamedTuple):
    """A delivery that waits for its next attempt at *due*, in seconds since the epoch."""

    id: str
    due: float
    event_id: str
    body: str


def add_deliveries_of_new_events(connection: sqlite3.Connection, now: float, faults: FaultInjector) -> None:
    """Make the deliveries of new events, and move the cursors of their subscriptions, in one transaction."""
    for each in webhook_subscriptions.load_enabled_subscriptions(connection):
        query = "SELECT seq, type FROM events WHERE tenant = ? AND seq > ? ORDER BY seq LIMIT ?"
        events = connection.execute(query, (each.tenant, each.cursor, _TAKEN_AT_ONCE)).fetchall()
        for seq, kind in events:
            if kind in each.events.split():
                _add_delivery(connection, each, seq, now, faults)
        if events:
            connection.execute("UPDATE subscriptions SET cursor = ? WHERE seq = ?", (events[-1][0], each.seq))


def _add_delivery(
    connection: sqlite3.Connection, to: StoredSubscription, event: int, now: float, faults: FaultInjector
) -> None:
    drawn = faults.faults_for_request("POST", f"{SUBSCRIPTIONS}/{to.id}")
    late_s, reordered_s = drawn.delivery_delay_s("webhook_late"), drawn.delivery_delay_s("webhook_reorder")
    due = now + max(late_s or 0.0, reordered_s or 0.0)
    values = (resource_store.new_id("dlv", now), to.id, event, now, due, reordered_s is not None, instant_text(now))
    connection.execute(
        "INSERT INTO deliveries (id, subscription, event, status, since, due, reordered, created_at)"
        " VALUES (?, ?, ?, 'pending', ?, ?, ?, ?)",
        values,
    )


def pending_deliveries_by_due_time(
    connection: sqlite3.Connection, subscription_id: str, limit: int
) -> list[PendingDelivery]:
    rows = connection.execute(
        "SELECT deliveries.id, due, events.id, body FROM deliveries JOIN events ON events.seq = event"
        " WHERE subscription = ? AND status = 'pending' ORDER BY due, deliveries.seq LIMIT ?",
        (subscription_id, limit),
    )
    return [PendingDelivery(*row) for row in rows]


def record_attempt_and_reschedule_delivery(
    connection: sqlite3.Connection, delivery_id: str, now: float, took_s: float, answer: AttemptOutcome
) -> None:
    """Store an attempt and its consequence: the delivery is done, due again or failed.

    A subscription is disabled after 410, and after a delivery has failed for good while no other one succeeded.
    """
    query = "SELECT seq, subscription, tries, since, status FROM deliveries WHERE id = ?"
    row = connection.execute(query, (delivery_id,)).fetchone()
    if row is None:  # deleted with its subscription
        return
    seq, subscription_id, tries, since, status = row
    attempt = (delivery_id, instant_text(now - took_s), round(took_s * 1000), *answer)
    connection.execute("INSERT INTO attempts VALUES (NULL, ?, ?, ?, ?, ?)", attempt)
    after_s = None if answer.status == 410 else seconds_to_next_attempt(tries + 1)
    if answer.problem is None:
        connection.execute("UPDATE subscriptions SET healthy_at = ? WHERE id = ?", (now, subscription_id))
        status = "delivered"
    elif after_s is None:
        status = "failed" if status == "pending" else status  # not for a duplicate
        _disable_subscription_if_failing(connection, subscription_id, now, since, answer)
    due = now + (after_s or 0.0)
    values = (tries + 1, status, due, delivery_id)
    connection.execute("UPDATE deliveries SET tries = ?, status = ?, due = ?, reordered = 0 WHERE id = ?", values)
    connection.execute(
        "UPDATE deliveries SET due = min(due, ?), reordered = 0 WHERE subscription = ? AND reordered = 1 AND seq < ?",
        (now, subscription_id, seq),
    )


def _disable_subscription_if_failing(
    connection: sqlite3.Connection, subscription_id: str, now: float, since: float, answer: AttemptOutcome
) -> None:
    reason = f"Every attempt has failed since {instant_text(since)}; the last one: {answer.problem}."
    if answer.status == 410:
        reason, since = "The receiver answered 410 Gone.", now
    connection.execute(
        "UPDATE subscriptions SET status = 'disabled', disabled_reason = ?, updated_at = ?"
        " WHERE id = ? AND status = 'enabled' AND healthy_at <= ?",
        (reason, instant_text(now), subscription_id, since),
    )


def list_deliveries_of_subscription(
    connection: sqlite3.Connection, call: ApiCall, subscription_id: str, query: Mapping[str, str]
) -> Response:
    webhook_subscriptions.load_subscription_or_raise_404(connection, call.caller.tenant, subscription_id)
    rows, cursor = read_page_newest_first(connection, _SHOWN, (subscription_id,), query)
    return _json_response({"data": [_delivery_members(row) for row in rows], "nextCursor": cursor})


def get_delivery_with_attempts(
    connection: sqlite3.Connection, call: ApiCall, subscription_id: str, delivery_id: str, query: Mapping[str, str]
) -> Response:
    raise_if_unknown_parameter(query)
    return _json_response(_delivery_with_attempts(connection, call, subscription_id, delivery_id))


def schedule_redelivery(
    connection: sqlite3.Connection, call: ApiCall, subscription_id: str, delivery_id: str
) -> Response:
    """Answer 202: the event is sent again under its id, at once and on the whole schedule."""
    webhook_subscriptions.raise_unless_body_empty(call)
    _delivery_with_attempts(connection, call, subscription_id, delivery_id)  # 404 if it does not exist
    if (
        webhook_subscriptions.load_subscription_or_raise_404(connection, call.caller.tenant, subscription_id).status
        == "disabled"
    ):
        raise ProblemError(409, "The subscription is disabled. Enable it first.")
    connection.execute(
        "UPDATE deliveries SET status = 'pending', tries = 0, since = ?, due = ? WHERE id = ?",
        (call.now, call.now, delivery_id),
    )
    return _json_response(_delivery_with_attempts(connection, call, subscription_id, delivery_id), 202)


def _delivery_with_attempts(
    connection: sqlite3.Connection, call: ApiCall, subscription_id: str, delivery_id: str
) -> dict[str, Any]:
    webhook_subscriptions.load_subscription_or_raise_404(connection, call.caller.tenant, subscription_id)
    row = connection.execute(f"{_SHOWN} AND id = ?", (subscription_id, delivery_id)).fetchone()
    if row is None:
        raise ProblemError(404, "There is no such delivery.")
    attempts = connection.execute(
        "SELECT at, duration_ms, status, problem FROM attempts WHERE delivery = ? ORDER BY seq DESC LIMIT ?",
        (delivery_id, MAX_SHOWN_ATTEMPTS),
    )
    names = ("at", "durationMs", "status", "problem")
    return {**_delivery_members(row), "attempts": [dict(zip(names, each, strict=True)) for each in attempts][::-1]}


def _delivery_members(row: tuple[Any, ...]) -> dict[str, Any]:
    _, name, event_id, kind, status, due, created_at, attempts = row
    pending = {"nextAttemptAt": instant_text(due)} if status == "pending" else {}
    facts = {"id": name, "eventId": event_id, "type": kind, "status": status, "attemptCount": attempts}
    return {**facts, **pending, "createdAt": created_at}


def _json_response(body: Mapping[str, Any], status: int = 200) -> Response:
    return Response(strict_json.write_canonical(body), status, media_type=strict_json.MEDIA_TYPE)


RETRY_DELAYS_S: Sequence[int] = (0, 5, 5 * 60, 30 * 60, *(hours * 3600 for hours in (2, 5, 10, 14, 20, 24)))
JITTER = 0.1  # a delay is at most this share longer, never shorter


def seconds_to_next_attempt(made: int) -> float | None:
    """Return the seconds until the next attempt after *made* failed ones; None if there is none."""
    if made >= len(RETRY_DELAYS_S):
        return None
    return RETRY_DELAYS_S[made] * uniform(1, 1 + JITTER)  # noqa: S311  spreads load, protects nothing
