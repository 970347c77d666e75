from __future__ import annotations

import pytest
from tests.unit.sandbox.raw import BINS, CUSTOMERS, Raw, assert_problem


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("PUT", CUSTOMERS, "GET, POST"),
        ("DELETE", CUSTOMERS, "GET, POST"),
        ("POST", f"{CUSTOMERS}/x", "GET, PATCH, DELETE"),
        ("DELETE", "/_sandbox/effects", "GET"),
        ("PUT", "/_sandbox/keys", "GET, POST"),
        ("GET", "/_sandbox/keys/0123456789ab", "DELETE"),
    ],
)
def test_a_wrong_method_is_405(raw: Raw, method: str, path: str, allow: str) -> None:
    """The Allow header lists the supported methods."""
    answer = raw(method, path)
    assert_problem(answer, 405)
    assert answer.headers["allow"] == allow


@pytest.mark.parametrize(
    "path", ["/api", "/api/v1/finance", "/api/v1/sales/customers/", "/api/v2/sales/customers", f"{BINS}/a/b"]
)
def test_an_unknown_path_is_404(raw: Raw, path: str) -> None:
    """Paths outside the API are 404."""
    assert_problem(raw("GET", path), 404)
