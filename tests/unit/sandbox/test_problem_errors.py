from __future__ import annotations

import json
import sys

from starlette.responses import JSONResponse
from tests.unit.sandbox.raw import CUSTOMERS, Raw

from crossdock.sandbox.problem_errors import ProblemError, convert_problem_to_plain_text


def test_no_refusal_repeats_a_value(raw: Raw) -> None:
    """Personal data in a request is in no problem document."""
    secret = "Erika Mustermann"
    bodies = [
        f'{{"externalId":"c","name":["{secret}"],"email":{{"a":"{secret}"}}}}',
        f'{{"externalId":"c","name":"n","currency":"{secret}"}}',
        f'{{"externalId":"c","name":"n","billingAddress":{{"country":"{secret}"}}}}',
        f'{{"externalId":"c","name":"n","shippingAddress":"{secret}"}}',
        f'{{"externalId":"c","name":"{secret}',
    ]
    for body in bodies:
        assert secret not in raw("POST", CUSTOMERS, body).text


def test_a_problem_document_has_findings_only_if_there_are_some() -> None:
    """``errors`` has pointer and detail of each finding; 429 has its registered type."""
    found = json.loads(bytes(ProblemError(422, "Wrong.", findings=[("#/a", "is wrong")]).response.body))
    assert found == {
        "type": "about:blank",
        "title": "Unprocessable Content" if sys.version_info >= (3, 13) else "Unprocessable Entity",
        "status": 422,
        "detail": "Wrong.",
        "errors": [{"pointer": "#/a", "detail": "is wrong"}],
    }
    limited = json.loads(bytes(ProblemError(429, "Wait.").response.body))
    assert "errors" not in limited
    assert limited["type"].endswith("#quota-exceeded")


def test_only_problem_documents_are_made_plain() -> None:
    """A problem document becomes its detail and loses Retry-After; another response stays as it is."""
    refused = ProblemError(503, "Later.", headers={"retry-after": "1"}).response
    convert_problem_to_plain_text(refused)
    assert (refused.body, refused.headers["content-length"]) == (b"Later.\n", "7")
    assert "retry-after" not in refused.headers
    other = JSONResponse({"detail": "x"}, headers={"retry-after": "1"})
    convert_problem_to_plain_text(other)
    assert (other.body, other.headers["retry-after"]) == (b'{"detail":"x"}', "1")
