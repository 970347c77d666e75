"""The operations on webhook subscriptions and deliveries, each with the scope that it needs."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping

from starlette.responses import Response

from crossdock.sandbox import access_control, webhook_deliveries, webhook_subscriptions
from crossdock.sandbox.api_call import ApiCall
from crossdock.sandbox.api_routes import WebhookRoute
from crossdock.sandbox.problem_errors import ProblemError
from crossdock.sandbox.query_parameters import raise_if_unknown_parameter
from crossdock.sandbox.write_operations import execute_once_per_idempotency_key


def required_webhook_scope(method: str) -> str:
    return f"webhooks:{'read' if method == 'GET' else 'write'}"


def raise_unless_webhooks_permitted(call: ApiCall) -> None:
    """Raise 403 without the scope, or for a credential that is narrowed: events concern all records of a tenant."""
    access_control.raise_unless_scope_granted(call.caller, required_webhook_scope(call.method))
    narrowed: tuple[str, ...] = ("warehouse_bin", "ledger_account")
    if any(call.caller.permitted_single_record_names(resource, "read") is not None for resource in narrowed):
        raise ProblemError(403, "A credential that is narrowed to single records cannot use webhooks.")


def execute_read(
    connection: sqlite3.Connection, call: ApiCall, route: WebhookRoute, query: Mapping[str, str]
) -> Response:
    match route.operation:
        case "list":
            return webhook_subscriptions.list_subscriptions(connection, call, query)
        case "list_deliveries":
            return webhook_deliveries.list_deliveries_of_subscription(connection, call, route.subscription_id, query)
        case "get_delivery":
            return webhook_deliveries.get_delivery_with_attempts(
                connection, call, route.subscription_id, route.delivery_id, query
            )
    raise_if_unknown_parameter(query)
    return webhook_subscriptions.get_subscription(connection, call, route.subscription_id)


def execute_write(connection: sqlite3.Connection, call: ApiCall, route: WebhookRoute) -> Response:
    def operation() -> Response:
        match route.operation:
            case "create":
                return webhook_subscriptions.create_subscription(connection, call)
            case "redeliver":
                return webhook_deliveries.schedule_redelivery(
                    connection, call, route.subscription_id, route.delivery_id
                )
        return _CHANGES[route.operation](connection, call, route.subscription_id)

    return execute_once_per_idempotency_key(connection, call, operation)


_CHANGES: Mapping[str, Callable[[sqlite3.Connection, ApiCall, str], Response]] = {
    "update": webhook_subscriptions.update_subscription,
    "delete": webhook_subscriptions.delete_subscription,
    "rotate": webhook_subscriptions.rotate_secret,
}
