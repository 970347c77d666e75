"""The paths of webhook subscriptions and their deliveries, assumed like everything about webhooks but their purpose."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from crossdock.sandbox.problem_errors import ProblemError, method_not_allowed

PREFIX = "/api/v1/webhooks/"
SUBSCRIPTIONS = f"{PREFIX}subscriptions"

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


def find_route(method: str, path: str) -> WebhookRoute:
    for pattern, operations in _PATHS:
        if found := pattern.fullmatch(path):
            if method not in operations:
                raise method_not_allowed(", ".join(operations))
            return WebhookRoute(operations[method], *found.groups())
    raise ProblemError(404, "There is nothing at this path.")
