from __future__ import annotations

import pytest
from tests.unit.sandbox.raw import Raw, assert_problem
from tests.unit.sandbox.webhook_receiver import SUBSCRIPTIONS


@pytest.mark.parametrize(
    "path", ["/api/v1/webhooks/", f"{SUBSCRIPTIONS}/", f"{SUBSCRIPTIONS}/a/b", f"{SUBSCRIPTIONS}x"]
)
def test_unknown_paths_are_not_found(raw: Raw, path: str) -> None:
    """404 for every method."""
    for method in ("GET", "POST", "DELETE"):
        assert_problem(raw(method, path), 404)


@pytest.mark.parametrize(
    ("method", "below", "allowed"),
    [
        ("PUT", "", "GET, POST"),
        ("POST", "/whs_1", "GET, PATCH, DELETE"),
        ("GET", "/whs_1/rotate-secret", "POST"),
        ("POST", "/whs_1/deliveries", "GET"),
        ("DELETE", "/whs_1/deliveries/dlv_1", "GET"),
        ("GET", "/whs_1/deliveries/dlv_1/redeliver", "POST"),
    ],
)
def test_other_methods_are_not_allowed(raw: Raw, method: str, below: str, allowed: str) -> None:
    """405 with the methods of the path."""
    response = raw(method, SUBSCRIPTIONS + below)
    assert_problem(response, 405)
    assert response.headers["allow"] == allowed
