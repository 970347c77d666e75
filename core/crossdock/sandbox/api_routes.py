"""The paths of the API, of the seven collections and of webhooks, and the operation that a method and a path stand for.

Those of webhook subscriptions and their deliveries are assumed, like everything about webhooks but their purpose.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from crossdock.mapping.resource_types import RESOURCES, PlatformResource
from crossdock.sandbox.problem_errors import ProblemError, method_not_allowed_error

WEBHOOK_PATH_PREFIX = "/api/v1/webhooks/"
SUBSCRIPTIONS = f"{WEBHOOK_PATH_PREFIX}subscriptions"

_PATHS: tuple[tuple[re.Pattern[str], Mapping[str, str]], ...] = tuple(
    (re.compile(SUBSCRIPTIONS + path), operations)
    for path, operations in (
        ("", {"GET": "list", "POST": "create"}),
        ("/([^/]+)", {"GET": "get", "PATCH": "update", "DELETE": "delete"}),
        ("/([^/]+)/rotate-secret", {"POST": "rotate"}),
        ("/([^/]+)/deliveries", {"GET": "list_deliveries"}),
        ("/([^/]+)/deliveries/([^/]+)", {"GET": "get_delivery"}),
        ("/([^/]+)/deliveries/([^/]+)/redeliver", {"POST": "redeliver"}),
    )
)


class WebhookRoute(NamedTuple):
    operation: str
    subscription_id: str = ""
    delivery_id: str = ""

    @property
    def has_input(self) -> bool:
        """Whether a request has a body of its own. That of an action is empty or ``{}``."""
        return self.operation in {"create", "update"}


def find_webhook_route(method: str, path: str) -> WebhookRoute:
    for pattern, operations in _PATHS:
        if found := pattern.fullmatch(path):
            if method not in operations:
                raise method_not_allowed_error(", ".join(operations))
            return WebhookRoute(operations[method], *found.groups())
    raise ProblemError(404, "There is nothing at this path.")


class Collection(Struct, frozen=True):
    """The collection of one resource type. Its ids begin with *prefix*. Clients cannot write *read_only* members."""

    kind: PlatformResource
    path: str
    prefix: str
    read_only: Sequence[str] = ("id", "createdAt", "updatedAt")


_READ_ONLY_IN_INVOICES = ("id", "createdAt", "updatedAt", "status", "total")
COLLECTIONS: Mapping[str, Collection] = {
    each.path: each
    for each in (
        Collection(RESOURCES["invoice"], "/api/v1/finance/invoices", "inv", _READ_ONLY_IN_INVOICES),
        Collection(RESOURCES["ledger_account"], "/api/v1/finance/ledger-accounts", "acc"),
        Collection(RESOURCES["customer"], "/api/v1/sales/customers", "cus"),
        Collection(RESOURCES["order"], "/api/v1/sales/orders", "ord"),
        Collection(RESOURCES["product"], "/api/v1/catalog/products", "prd"),
        Collection(RESOURCES["inventory_lot"], "/api/v1/inventory/lots", "lot"),
        Collection(RESOURCES["warehouse_bin"], "/api/v1/warehouse/bins", "bin"),
    )
}
_ON_COLLECTION = {"GET": "list", "POST": "create"}
_ON_RESOURCE = {"GET": "get", "PATCH": "update", "DELETE": "delete"}
_BELOW_RESOURCE: Mapping[tuple[str, str], Mapping[str, str]] = {
    ("invoice", "approve"): {"POST": "approve"},
    ("inventory_lot", "movements"): {"POST": "move"},
    ("ledger_account", "entries"): {"GET": "entries"},
}


class ResourceRoute(NamedTuple):
    operation: str
    collection: Collection
    resource_id: str


def find_resource_route(method: str, path: str) -> ResourceRoute:
    for depth in range(3):
        above, *below = path.rsplit("/", depth)
        collection = COLLECTIONS.get(above)
        if collection is None or not all(below):
            continue
        below_resource = _BELOW_RESOURCE.get((collection.kind.name, below[-1] if below else ""), {})
        if operations := (_ON_COLLECTION, _ON_RESOURCE, below_resource)[depth]:
            if method not in operations:
                raise method_not_allowed_error(", ".join(operations))
            return ResourceRoute(operations[method], collection, below[0] if below else "")
    raise ProblemError(404, "There is nothing at this path.")
