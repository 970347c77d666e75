from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.sandbox.raw import CUSTOMERS, INVOICES, ManualTime, Raw, assert_problem

from crossdock.sandbox import Sandbox, SandboxSettings

CLOCK = "/_sandbox/clock"


START = "2027-01-15T08:00:00.000000Z"


def advance(raw: Raw, seconds: float) -> None:
    assert raw("POST", CLOCK, f'{{"advance_s": {seconds}}}').status_code == 200


def test_the_clock_can_be_advanced(raw: Raw, clock: ManualTime) -> None:
    """The clock shows its time and offset; new resources and both logs use it, and real time still passes."""
    assert raw("GET", CLOCK).json() == {"now": START, "offset_s": 0.0}
    advance(raw, 3600.5)
    clock.now += 1
    advance(raw, 60)
    assert raw("GET", CLOCK).json() == {"now": "2027-01-15T09:01:01.500000Z", "offset_s": 3660.5}
    made = raw("POST", CUSTOMERS, '{"externalId":"c","name":"n"}').json()
    assert made["createdAt"] == "2027-01-15T09:01:01.500000Z" == raw.effects()[0]["at"]
    assert raw("GET", "/_sandbox/requests").json()["data"][0]["at"] == made["createdAt"]


def test_a_bucket_refills(tmp_path: Path, clock: ManualTime) -> None:
    """After the time in Retry-After there is one more token, a moment earlier none."""
    with Sandbox(tmp_path, SandboxSettings(rate_per_min=6, burst=1), clock) as sandbox:
        raw = Raw(sandbox)
        assert raw("GET", CUSTOMERS).status_code == 200
        wait_s = int(raw("GET", CUSTOMERS).headers["retry-after"])
        advance(raw, wait_s - 0.01)
        assert_problem(raw("GET", CUSTOMERS), 429)
        advance(raw, 0.01)
        assert raw("GET", CUSTOMERS).status_code == 200


def test_an_idempotency_key_expires(raw: Raw) -> None:
    """A day later the same key is a new request."""
    body = raw.invoice()
    first = raw("POST", INVOICES, body, idempotency_key="k")
    advance(raw, 24 * 3600)
    assert raw("POST", INVOICES, body, idempotency_key="k").content == first.content
    advance(raw, 0.001)
    assert raw("POST", INVOICES, body, idempotency_key="k").json()["id"] != first.json()["id"]


def test_the_offset_survives_a_restart(tmp_path: Path, clock: ManualTime) -> None:
    """The clock never goes back: resources created after a restart are newer than those before."""
    with Sandbox(tmp_path, clock=clock) as sandbox:
        advance(Raw(sandbox), 60)
        advance(Raw(sandbox), 60)
    with Sandbox(tmp_path, clock=clock) as sandbox:
        assert Raw(sandbox)("GET", CLOCK).json() == {"now": "2027-01-15T08:02:00.000000Z", "offset_s": 120.0}


@pytest.mark.parametrize(
    ("body", "status", "pointer"),
    [
        ('{"advance_s": -0.1}', 422, "#/advance_s"),
        ('{"advance_s": "60"}', 422, "#/advance_s"),
        ('{"advance_s": true}', 422, "#/advance_s"),
        ('{"advance_s": NaN}', 422, "#/advance_s"),
        ('{"advance_s": 252000000000}', 422, "#/advance_s"),
        ("{}", 422, "#/advance_s"),
        ('{"advance_s": 1, "to": 2}', 422, "#/to"),
        ("[]", 422, "#"),
        ("", 400, None),
    ],
)
def test_an_invalid_advance_is_refused(raw: Raw, body: str, status: int, pointer: str | None) -> None:
    """Negative, too large or malformed advances are refused, and the time stays."""
    problem = assert_problem(raw("POST", CLOCK, body), status)
    assert [each["pointer"] for each in problem.get("errors", [])] == ([pointer] if pointer else [])
    assert raw("GET", CLOCK).json() == {"now": START, "offset_s": 0.0}


def test_the_clock_supports_get_and_post(raw: Raw) -> None:
    """Another method is 405 with the Allow header."""
    refused = raw("DELETE", CLOCK)
    assert_problem(refused, 405)
    assert refused.headers["allow"] == "GET, POST"
