from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from tests.unit.sandbox.raw import (
    BASE_URL,
    CUSTOMERS,
    INVOICES,
    OPTIONAL_HEADERS,
    ManualTime,
    Raw,
    assert_problem,
)

from crossdock.errors import ConfigError
from crossdock.sandbox import Sandbox, SandboxSettings
from crossdock.sandbox.app import Profile

KEYS, FAULTS, CLOCK = "/_sandbox/keys", "/_sandbox/faults", "/_sandbox/clock"


HOST = BASE_URL.removeprefix("http://")


CHANGES = [
    ("POST", KEYS, '{"tenant":"acme"}'),
    ("POST", FAULTS, '{"faults":[{"name":"slow","probability":1}]}'),
    ("POST", CLOCK, '{"advance_s":60}'),
]


ENDPOINTS = [
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
    ("GET", "/", None),
    ("GET", "/docs", None),
    ("GET", "/openapi.json", None),
    ("GET", "/schemas/Customer.json", None),
]


def facts(raw: Raw) -> list[object]:
    """Everything that can be changed through the own endpoints."""
    return [raw("GET", path, authorization=None).json() for path in (KEYS, FAULTS, CLOCK)]


@pytest.mark.nightly(but=["rebound"])
@pytest.mark.parametrize(("method", "path", "body"), ENDPOINTS)
@pytest.mark.parametrize(
    "foreign",
    [{"host": "rebound.example:8080"}, {"origin": "http://evil.example"}, {"origin": "null"}],
    ids=["rebound", "cross-site", "opaque"],
)
def test_requests_from_other_sites_are_refused(
    raw: Raw, method: str, path: str, body: str | None, foreign: dict[str, str]
) -> None:
    """At every own endpoint a foreign Host or Origin is 403 with a hint, and nothing changes."""
    before = facts(raw)
    problem = assert_problem(raw(method, path, body, authorization=None, **foreign), 403)
    hints = ("--allow-host NAME", "Send the request from a page of this server")
    assert any(hint in problem["detail"] for hint in hints)
    assert facts(raw) == before


@pytest.mark.parametrize(("method", "path", "body"), CHANGES)
@pytest.mark.parametrize(
    "media_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "", None]
)
def test_own_endpoints_require_the_json_media_type(
    raw: Raw, method: str, path: str, body: str, media_type: str | None
) -> None:
    """The media types that a page of another site can send are 415 and change nothing; JSON may have parameters."""
    before = facts(raw)
    refused = raw(method, path, body, authorization=None, content_type=media_type)
    assert assert_problem(refused, 415)["detail"] == "Send the body as Content-Type: application/json."
    assert refused.headers["accept"] == "application/json"
    assert facts(raw) == before
    assert raw(method, path, body, content_type="Application/JSON; charset=utf-8").is_success


def test_an_empty_form_creates_no_key(raw: Raw) -> None:
    """A form without fields has no body but a media type."""
    assert_problem(raw("POST", KEYS, authorization=None, content_type="text/plain"), 415)
    assert raw("POST", KEYS, authorization=None).status_code == 201


@pytest.mark.parametrize(("method", "path", "body"), CHANGES)
def test_own_endpoints_limit_the_body(raw: Raw, method: str, path: str, body: str) -> None:
    """64 KiB are accepted, one byte more is 413 with the limit, and nothing changes."""
    before = facts(raw)
    problem = assert_problem(raw(method, path, body.ljust(65_537)), 413)
    assert problem["detail"] == "The body is longer than 65536 bytes. Send a shorter one."
    assert facts(raw) == before
    assert raw(method, path, body.ljust(65_536)).is_success


def test_the_own_origin_is_accepted(raw: Raw) -> None:
    """A page of the sandbox itself may send requests."""
    assert raw("POST", KEYS, authorization=None, origin=BASE_URL).status_code == 201


def test_an_allowed_host_is_answered(tmp_path: Path, clock: ManualTime) -> None:
    """An allowed name is accepted in Host, and in Origin only together with it."""
    with Sandbox(tmp_path, SandboxSettings(allowed_hosts=("sandbox.example",)), clock) as sandbox:
        raw = Raw(sandbox)
        assert raw("GET", "/docs", host="sandbox.example").status_code == 200
        assert raw("POST", KEYS, host="sandbox.example:80", origin="http://sandbox.example:80").status_code == 201
        assert_problem(raw("POST", KEYS, host="sandbox.example", origin=BASE_URL), 403)


def test_the_api_can_be_used_under_any_host_name(raw: Raw) -> None:
    """The API needs a credential, so Host and Origin are not checked."""
    answer = raw("POST", CUSTOMERS, '{"externalId":"c","name":"n"}', host="api.example.com", origin="http://a.example")
    assert answer.status_code == 201
    assert not [name for name in answer.headers if name.startswith("access-control-")]


@pytest.mark.parametrize("bad", [{"burst": 0}, {"rate_per_min": -1}, {"max_body_bytes": 0}, {"delay_s": -0.1}])
def test_impossible_settings_are_refused(bad: dict[str, int]) -> None:
    """The error names the setting."""
    with pytest.raises(ConfigError, match=next(iter(bad))):
        SandboxSettings(**bad)  # type: ignore[arg-type]  # numbers only


def test_own_endpoints_answer_only_this_machine(sandbox: Sandbox) -> None:
    """A request from another address is 403, whatever the credential."""
    stranger = Raw(sandbox, peer="192.0.2.7")
    for method, name in [("GET", "effects"), ("GET", "requests"), ("GET", "health"), ("POST", "keys")]:
        assert_problem(stranger(method, f"/_sandbox/{name}"), 403)
    assert stranger("GET", CUSTOMERS).status_code == 200


CUSTOMER = '{"externalId":"c","name":"n"}'


@pytest.mark.parametrize("profile", ["no-idempotency", "bare"])
def test_without_idempotency_a_resend_happens_again(tmp_path: Path, profile: Profile) -> None:
    """The key is ignored, even an invalid one: the same request twice is two invoices, and other bytes are accepted."""
    with Sandbox(tmp_path, SandboxSettings(profile=profile)) as sandbox:
        raw = Raw(sandbox)
        body = raw.invoice()
        answers = [raw("POST", INVOICES, sent, idempotency_key="k") for sent in (body, body, body + " ")]
        answers += [raw("POST", INVOICES, body, idempotency_key="")]
        together = raw.together([raw.request("POST", INVOICES, body, idempotency_key="k") for _ in range(3)])
        assert [each.status_code for each in answers + together] == [201] * 7
        assert not any("idempotent-replayed" in each.headers for each in answers)
        effects = raw.effects("?resource=invoice")
        assert len({each["id"] for each in effects}) == 7
        assert {each["idempotencyKey"] for each in effects} == {None}


def test_no_idempotency_keeps_all_other_features(tmp_path: Path, clock: ManualTime) -> None:
    """Look-up, rate limit headers and problem documents are as in the full profile."""
    with Sandbox(tmp_path, SandboxSettings(profile="no-idempotency"), clock) as sandbox:
        raw = Raw(sandbox)
        raw.make(CUSTOMERS, CUSTOMER)
        found = raw("GET", f"{CUSTOMERS}?externalId=c")
        assert [each["externalId"] for each in found.json()["data"]] == ["c"]
        assert found.headers["ratelimit"] == '"default";r=1998;t=1'
        assert assert_problem(raw("POST", CUSTOMERS, "{}"), 422)["errors"]


@pytest.fixture
def bare(tmp_path: Path, clock: ManualTime) -> Raw:
    settings = SandboxSettings(profile="bare", rate_headers="triple", rate_per_min=1, burst=20, max_body_bytes=200)
    return Raw(Sandbox(tmp_path, settings, clock))


Ask = Callable[[Raw], httpx.Response]


REFUSALS: list[tuple[int, Ask]] = [
    (400, lambda raw: raw("POST", CUSTOMERS, "{")),
    (400, lambda raw: raw("GET", f"{CUSTOMERS}?externalId=c")),
    (401, lambda raw: raw("GET", CUSTOMERS, authorization=None)),
    (403, lambda raw: raw("GET", CUSTOMERS, x_tenant_slug="x")),
    (404, lambda raw: raw("GET", f"{CUSTOMERS}/x")),
    (404, lambda raw: raw("GET", "/api/v1/x")),
    (405, lambda raw: raw("PUT", CUSTOMERS)),
    (413, lambda raw: raw("POST", CUSTOMERS, CUSTOMER.ljust(201))),
    (415, lambda raw: raw("POST", CUSTOMERS, CUSTOMER, content_type="text/plain")),
    (422, lambda raw: raw("POST", CUSTOMERS, "{}")),
    (429, lambda raw: [raw("GET", CUSTOMERS) for _ in range(21)][-1]),
]


@pytest.mark.parametrize(("status", "ask"), REFUSALS, ids=[f"{n}-{status}" for n, (status, _) in enumerate(REFUSALS)])
def test_a_bare_refusal_is_a_line_of_text(bare: Raw, status: int, ask: Ask) -> None:
    """No problem document, no pointer, no rate limit header, no Retry-After."""
    with bare.sandbox:
        answer = ask(bare)
        assert answer.status_code == status
        assert answer.headers["content-type"] == "text/plain; charset=utf-8"
        assert answer.headers["content-length"] == str(len(answer.content))
        assert answer.text.endswith("\n")
        assert answer.text.count("\n") == 1
        assert not any(mark in answer.text for mark in "{}#")
        assert OPTIONAL_HEADERS.isdisjoint(answer.headers)


def test_a_bare_success_has_no_optional_headers(bare: Raw) -> None:
    """Successes have no rate limit headers; the sandbox's own endpoints keep problem documents."""
    with bare.sandbox:
        made = bare("POST", CUSTOMERS, CUSTOMER)
        assert (made.status_code, made.json()["externalId"]) == (201, "c")
        listed = bare("GET", CUSTOMERS)
        assert (listed.status_code, len(listed.json()["data"])) == (200, 1)
        assert OPTIONAL_HEADERS.isdisjoint({*made.headers, *listed.headers})
        assert_problem(bare("GET", "/_sandbox/effects?x=1"), 400)


def test_bare_faults_are_bare(bare: Raw) -> None:
    """The 503 of a fault has no Retry-After, and lying_headers has no header to change."""
    with bare.sandbox:
        both = '{"name":"error_before","probability":1,"route":"POST"},{"name":"lying_headers","probability":1}'
        assert bare("POST", "/_sandbox/faults", f'{{"faults":[{both}]}}').status_code == 200
        refused = bare("POST", CUSTOMERS, CUSTOMER)
        assert (refused.status_code, refused.headers["content-type"]) == (503, "text/plain; charset=utf-8")
        assert OPTIONAL_HEADERS.isdisjoint({*refused.headers, *bare("GET", CUSTOMERS).headers})
        faults = bare("GET", "/_sandbox/faults").json()["faults"]
        assert [(each["name"], each["struck"]) for each in faults] == [("error_before", 1), ("lying_headers", 0)]


@pytest.mark.parametrize("bad", [{"profile": "kind"}, {"rate_headers": "draft11"}, {"max_items": 0}])
def test_unknown_settings_are_refused(bad: dict[str, str]) -> None:
    """The error names the setting."""
    with pytest.raises(ConfigError, match=next(iter(bad))):
        SandboxSettings(**bad)  # type: ignore[arg-type]  # wrong on purpose


def test_a_wrong_media_type_is_415(raw: Raw) -> None:
    """JSON is accepted with parameters or without; merge patches only for PATCH."""
    body = '{"externalId":"c","name":"n"}'
    for wrong in ("text/plain", "application/merge-patch+json", "application/jsonx", None):
        assert_problem(raw("POST", CUSTOMERS, body, content_type=wrong), 415)
    name = raw("POST", CUSTOMERS, body, content_type="Application/JSON; charset=utf-8").json()["id"]
    refused = raw("PATCH", f"{CUSTOMERS}/{name}", "{}", content_type="text/plain")
    assert_problem(refused, 415)
    assert refused.headers["accept-patch"] == "application/merge-patch+json, application/json"
    assert len(raw.effects()) == 1


def test_a_body_over_the_limit_is_413(tmp_path: Path) -> None:
    """The maximum length is accepted, one byte more is not."""
    with Sandbox(tmp_path, SandboxSettings(max_body_bytes=100)) as small:
        raw = Raw(small)
        body = '{"externalId":"c","name":"n"}'
        assert_problem(raw("POST", CUSTOMERS, body.ljust(101)), 413)
        assert raw("POST", CUSTOMERS, body.ljust(100)).status_code == 201
        assert len(raw.effects()) == 1


def test_an_internal_error_is_a_problem_document(raw: Raw, sandbox: Sandbox) -> None:
    """If the storage fails, requests are answered 500 and do not hang."""
    name = raw.make(CUSTOMERS, '{"externalId":"c","name":"n"}')
    sandbox._writing.close()
    assert_problem(raw("PATCH", f"{CUSTOMERS}/{name}", '{"name":"m"}'), 500)
