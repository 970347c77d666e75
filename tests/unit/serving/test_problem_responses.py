"""Problem documents."""

from __future__ import annotations

import json

from crossdock.values.serving.http_server import problem_response


def test_a_problem_document() -> None:
    """RFC 9457 members, extensions and headers."""
    response = problem_response(409, "It exists.", kind="urn:taken", headers={"retry-after": "1"}, pointer="/sku")
    assert response.status_code == 409
    assert (response.media_type, response.headers["retry-after"]) == ("application/problem+json", "1")
    assert json.loads(bytes(response.body)) == {
        "type": "urn:taken",
        "title": "Conflict",
        "status": 409,
        "detail": "It exists.",
        "pointer": "/sku",
    }
