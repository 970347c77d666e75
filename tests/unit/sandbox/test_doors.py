"""The sandbox's own pages ask for no credential, so pages of other sites must not reach them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.sandbox.raw import BASE_URL, CUSTOMERS, ManualTime, Raw, assert_problem

from crossdock.sandbox import Sandbox, SandboxSettings

KEYS, FAULTS, CLOCK = "/_sandbox/keys", "/_sandbox/faults", "/_sandbox/clock"
HOST = BASE_URL.removeprefix("http://")
CHANGES = [
    ("POST", KEYS, '{"tenant":"acme"}'),
    ("POST", FAULTS, '{"faults":[{"name":"slow","probability":1}]}'),
    ("POST", CLOCK, '{"advance_s":60}'),
]
DOORS = [
    *CHANGES,
    ("POST", KEYS, None),
    ("GET", KEYS, None),
    ("DELETE", f"{KEYS}/0123456789ab", None),
    ("GET", FAULTS, None),
    ("DELETE", FAULTS, None),
    ("GET", CLOCK, None),
    ("GET", "/_sandbox/effects", None),
    ("GET", "/_sandbox/requests", None),
    ("GET", "/_sandbox/health", None),
    ("GET", "/%5Fsandbox/effects", None),
    ("GET", "/docs", None),
    ("GET", "/openapi.json", None),
    ("GET", "/schemas/Customer.json", None),
]


def facts(raw: Raw) -> list[object]:
    """Everything that can be changed at the doors."""
    return [raw("GET", path, authorization=None).json() for path in (KEYS, FAULTS, CLOCK)]


@pytest.mark.parametrize(("method", "path", "body"), DOORS)
@pytest.mark.parametrize(
    "foreign",
    [{"host": "rebound.example:8080"}, {"origin": "http://evil.example"}, {"origin": "null"}],
    ids=["rebound", "cross-site", "opaque"],
)
def test_pages_of_other_sites_learn_and_change_nothing(
    raw: Raw, method: str, path: str, body: str | None, foreign: dict[str, str]
) -> None:
    """At every door a foreign Host or Origin is 403 with what to do, and nothing happens."""
    before = facts(raw)
    problem = assert_problem(raw(method, path, body, authorization=None, **foreign), 403)
    assert (
        "--allow-host NAME" in problem["detail"] or "Send the request from a page of this server" in problem["detail"]
    )
    assert facts(raw) == before


@pytest.mark.parametrize(("method", "path", "body"), CHANGES)
@pytest.mark.parametrize(
    "media_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "", None]
)
def test_a_body_is_json_by_name(raw: Raw, method: str, path: str, body: str, media_type: str | None) -> None:
    """What a form or a page without permission can send is 415, and nothing happens; JSON may have parameters."""
    before = facts(raw)
    refused = raw(method, path, body, authorization=None, content_type=media_type)
    assert assert_problem(refused, 415)["detail"] == "Send the body as Content-Type: application/json."
    assert refused.headers["accept"] == "application/json"
    assert facts(raw) == before
    assert raw(method, path, body, content_type="Application/JSON; charset=utf-8").is_success


def test_an_empty_form_makes_no_key(raw: Raw) -> None:
    """A form without fields has no body, but a media type."""
    assert_problem(raw("POST", KEYS, authorization=None, content_type="text/plain"), 415)
    assert raw("POST", KEYS, authorization=None).status_code == 201


@pytest.mark.parametrize(("method", "path", "body"), CHANGES)
def test_a_body_at_a_door_has_a_limit(raw: Raw, method: str, path: str, body: str) -> None:
    """64 KiB are read, one byte more is 413 with the limit, and nothing happens."""
    before = facts(raw)
    problem = assert_problem(raw(method, path, body.ljust(65_537)), 413)
    assert problem["detail"] == "The body is longer than 65536 bytes. Send a shorter one."
    assert facts(raw) == before
    assert raw(method, path, body.ljust(65_536)).is_success


def test_a_page_of_the_sandbox_may_ask(raw: Raw) -> None:
    """Its own origin is let in."""
    assert raw("POST", KEYS, authorization=None, origin=BASE_URL).status_code == 201


def test_an_allowed_host_is_answered(tmp_path: Path, clock: ManualTime) -> None:
    """A name that was allowed opens the doors, with its own origin only."""
    with Sandbox(tmp_path, SandboxSettings(allowed_hosts=("sandbox.example",)), clock) as sandbox:
        raw = Raw(sandbox)
        assert raw("GET", "/docs", host="sandbox.example").status_code == 200
        assert raw("POST", KEYS, host="sandbox.example:80", origin="http://sandbox.example:80").status_code == 201
        assert_problem(raw("POST", KEYS, host="sandbox.example", origin=BASE_URL), 403)


def test_the_api_is_asked_by_any_name(raw: Raw) -> None:
    """Its credential is what a page of another site lacks, so clients may use whatever name leads to it."""
    answer = raw("POST", CUSTOMERS, '{"externalId":"c","name":"n"}', host="api.example.com", origin="http://a.example")
    assert answer.status_code == 201
    assert not [name for name in answer.headers if name.startswith("access-control-")]
