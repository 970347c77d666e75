from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.sandbox.people import FORM, Person, assert_accessible
from tests.unit.sandbox.raw import BASE_URL, CUSTOMERS, Raw, assert_problem, exact

from crossdock.sandbox import Sandbox, SandboxSettings

KEYS = "/page/keys"
PATHS = ("/", KEYS, f"{KEYS}/0123456789ab", "/page/style.css", "/docs")


@pytest.fixture
def person(sandbox: Sandbox) -> Person:
    return Person(sandbox)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "foreign", [{"host": "evil.example"}, {"host": "evil.example:8080"}, {"origin": "http://evil.example"}]
)
def test_other_sites_cannot_read_the_page(raw: Raw, path: str, foreign: dict[str, str]) -> None:
    """A name that was rebound to this machine, or a foreign Origin, is 403 without a cookie or a token."""
    answer = raw("GET", path, authorization=None, **foreign)
    assert_problem(answer, 403)
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize(
    "foreign",
    [{"host": "evil.example"}, {"origin": "http://evil.example"}, {"origin": "null"}, {"origin": f"{BASE_URL}1"}],
)
def test_other_sites_cannot_send_forms(sandbox: Sandbox, person: Person, foreign: dict[str, str]) -> None:
    """Even with the cookie and a valid token, a form from another site is 403 and creates nothing."""
    fields = ("csrf_token", person.token()), ("tenant", "sandbox"), ("scope", "*:write")
    before = set(sandbox.callers_by_key_id)
    assert_problem(person.post(KEYS, *fields, **foreign), 403)
    assert set(sandbox.callers_by_key_id) == before
    assert person.post(KEYS, *fields).status_code == 201


@pytest.mark.parametrize("kind", ["missing", "empty", "another session", "no cookie", "another cookie"])
def test_a_form_needs_a_token_of_its_session(sandbox: Sandbox, person: Person, kind: str) -> None:
    """Otherwise it is 403 with the reason, and creates nothing; the page that says so has a new form that works."""
    other = Person(sandbox)
    token = {"missing": None, "empty": "", "another session": other.token()}.get(kind, person.token())
    person.get()
    cookies = {"no cookie": None, "another cookie": "crossdock_sandbox_session=" + "0" * 64}
    headers = {"cookie": cookies[kind]} if kind in cookies else {}
    fields = [("tenant", "sandbox"), ("scope", "*:write"), *([("csrf_token", token)] if token is not None else [])]
    before = set(sandbox.callers_by_key_id)
    answer = person.post(KEYS, *fields, **headers)
    assert answer.status_code == 403
    assert set(sandbox.callers_by_key_id) == before
    assert 'role="alert"' in answer.text
    assert_accessible(answer.text)
    assert person.create("*:read")


@pytest.mark.parametrize("action", [KEYS, f"{KEYS}/ID/narrow", f"{KEYS}/ID/revoke"])
def test_every_form_is_checked(sandbox: Sandbox, person: Person, action: str) -> None:
    """Without a token no form has an effect."""
    key_id = sandbox.new_key().split("_")[1]
    before = dict(sandbox.callers_by_key_id)
    person.get()
    answer = person.post(action.replace("ID", key_id), ("tenant", "sandbox"), ("scope", "*:read"))
    assert answer.status_code == 403
    assert dict(sandbox.callers_by_key_id) == before


@pytest.mark.parametrize("media_type", ["application/json", "multipart/form-data; boundary=x", "text/plain", None])
def test_only_forms_are_accepted(person: Person, media_type: str | None) -> None:
    """Another kind of body is 415."""
    person.get()
    assert person.post(KEYS, content_type=media_type).status_code == 415


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"a=" + b"x" * 65_536, 413), (b"\xff=1", 400), (b"a=%ff", 400), (b"&".join([b"a=1"] * 1_001), 400)],
)
def test_a_body_that_is_no_form_is_refused(raw: Raw, body: bytes, status: int) -> None:
    """Too long, not UTF-8, or with too many fields: it is refused with a page."""
    answer = raw("POST", KEYS, body, authorization=None, content_type=FORM)
    assert answer.status_code == status
    assert_accessible(answer.text)


def test_every_page_has_the_protecting_headers(person: Person) -> None:
    """No scripts, no frames, no copy in a cache, no referrer for other sites; the style comes from a file."""
    for path in PATHS:
        headers = person.get(path).headers
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; style-src 'self';")
        assert "script" not in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert (headers["x-frame-options"], headers["cache-control"]) == ("DENY", "no-store")
        assert (headers["referrer-policy"], headers["x-content-type-options"]) == ("same-origin", "nosniff")


def test_the_cookie_is_for_this_page_only(raw: Raw) -> None:
    """HttpOnly and SameSite=Strict, for the session; a browser that has one keeps it, another value is replaced."""
    cookie = raw("GET", "/", authorization=None).headers["set-cookie"]
    value, *attributes = cookie.split("; ")
    assert sorted(attributes) == ["HttpOnly", "Path=/", "SameSite=strict"]
    assert "set-cookie" not in raw("GET", "/", authorization=None, cookie=value).headers
    assert "set-cookie" in raw("GET", "/", authorization=None, cookie="crossdock_sandbox_session=chosen").headers


def test_the_page_answers_only_this_machine(sandbox: Sandbox) -> None:
    """From another address it is 403; the documentation, which shows nothing secret, is not."""
    stranger = Raw(sandbox, peer="192.0.2.7")
    for path in ("/", KEYS, "/page/style.css"):
        assert_problem(stranger("GET", path), 403)
    assert stranger("GET", "/docs").status_code == 200


def test_an_allowed_host_can_use_the_page(tmp_path: Path) -> None:
    """The form is accepted from the origin of that name."""
    with Sandbox(tmp_path, SandboxSettings(allowed_hosts=("sandbox.example",))) as sandbox:
        person = Person(sandbox)
        fields = ("csrf_token", person.token()), ("tenant", "sandbox"), ("scope", "*:write")
        names = {"host": "sandbox.example", "origin": "https://sandbox.example"}
        assert person.post(KEYS, *fields, **names).status_code == 201


def test_other_methods_are_405(raw: Raw) -> None:
    """With the methods that are supported."""
    refused = raw("DELETE", "/", authorization=None)
    assert_problem(refused, 405)
    assert refused.headers["allow"] == "GET, POST"
    assert_problem(raw("POST", "/docs", "", authorization=None), 405)


def test_the_page_costs_no_token_and_is_not_logged(raw: Raw) -> None:
    """The bucket stays full, and the request log has only the request to the API."""
    for path in PATHS:
        raw("GET", path, authorization=None)
    assert raw("GET", CUSTOMERS).headers["ratelimit"].startswith('"default";r=1999')
    assert exact(raw("GET", "/_sandbox/requests"))["total"] == 1
