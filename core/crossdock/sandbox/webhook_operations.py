"""The operations on webhook subscriptions and deliveries, each with the scope that it needs."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping

from starlette.responses import Response

from crossdock.sandbox import access_control, webhook_deliveries, webhook_subscription_storage
from crossdock.sandbox.api_call import ApiCall
from crossdock.sandbox.problem_errors import ProblemError
from crossdock.sandbox.query_parameters import refuse_unknown
from crossdock.sandbox.webhook_paths import WebhookRoute
from crossdock.sandbox.write_operations import execute_once_per_idempotency_key


def required_scope(method: str) -> str:
    return f"webhooks:{'read' if method == 'GET' else 'write'}"


def authorize(call: ApiCall) -> None:
    """Raise 403 without the scope, or for a credential that is narrowed: events concern all records of a tenant."""
    access_control.require_scope(call.caller, required_scope(call.method))
    narrowed: tuple[str, ...] = ("warehouse_bin", "ledger_account")
    if any(call.caller.permitted_single_record_names(resource, "read") is not None for resource in narrowed):
        raise ProblemError(403, "A credential that is narrowed to single records cannot use webhooks.")


def execute_read(
    connection: sqlite3.Connection, call: ApiCall, route: WebhookRoute, query: Mapping[str, str]
) -> Response:
    match route.operation:
        case "list":
            return webhook_subscription_storage.list_page(connection, call, query)
        case "list_deliveries":
            return webhook_deliveries.list_page(connection, call, route.subscription_id, query)
        case "get_delivery":
            return webhook_deliveries.get(connection, call, route.subscription_id, route.delivery_id, query)
    refuse_unknown(query)
    return webhook_subscription_storage.get(connection, call, route.subscription_id)


def execute_write(connection: sqlite3.Connection, call: ApiCall, route: WebhookRoute) -> Response:
    def operation() -> Response:
        match route.operation:
            case "create":
                return webhook_subscription_storage.create(connection, call)
            case "redeliver":
                return webhook_deliveries.redeliver(connection, call, route.subscription_id, route.delivery_id)
        return _CHANGES[route.operation](connection, call, route.subscription_id)

    return execute_once_per_idempotency_key(connection, call, operation)


_CHANGES: Mapping[str, Callable[[sqlite3.Connection, ApiCall, str], Response]] = {
    "update": webhook_subscription_storage.update,
    "delete": webhook_subscription_storage.delete,
    "rotate": webhook_subscription_storage.rotate_secret,
}
