"""People sign in at an OpenID Connect provider, which is a real one in a process of its own."""

from __future__ import annotations

import json
import re
import socket
import sys
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import pytest
from msgspec import structs
from tests.consoles import PASSWORD, Browser, ServedConsole, make_fleet, served

from crossdock.console.sign_in import id_token_verification
from crossdock.console.sign_in.accounts import AccountFile
from crossdock.console.sign_in.id_token_verification import ExpectedClaims, InvalidIdTokenError
from crossdock.console.sign_in.openid_provider import OpenIdProvider, load_openid_settings
from crossdock.console.tls_proxy_and_sign_in import Protection
from crossdock.console.visitors_and_roles import Role
from crossdock.reading.transport.http_answers_and_errors import Answer
from crossdock.reading.transport.httpcore_client import HttpClient
from crossdock.testing.manual_clock import ManualClock
from crossdock.testing.server_process import ServerProcess

PEOPLE: Mapping[str, dict[str, Any]] = {
    "1": {"email": "anna@example.com", "groups": ["staff", "console-admins"]},
    "2": {"email": "ben@example.com", "realm_access": {"roles": ["ops-a"]}},
    "3": {"email": "eve@example.com", "groups": ["staff"]},
    "4": {"email": "anna@example.com", "email_verified": False, "groups": ["console-admins"]},
    "5": {"email": "local", "groups": ["console-admins"]},
}
SETTINGS = """\
issuer: {issuer}
client_id: crossdock
client_secret: env:CONSOLE_SECRET
name: Company login
roles:
  - {{claim: groups, value: console-admins, role: administrator}}
  - {{claim: realm_access.roles, value: ops-a, role: operator, tenants: [a]}}
"""


class Provider(ServerProcess):
    name = "openid-provider"

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def prepare(self) -> None:
        """It has no files."""

    def command(self) -> list[str]:
        people = [f"--user-claims={json.dumps({'sub': sub, **claims})}" for sub, claims in PEOPLE.items()]
        return [sys.executable, "-m", "oidc_provider_mock", "--require-nonce", "-p", str(self.port), *people]

    def accepts_connections(self) -> bool:
        with socket.socket() as tried:
            return tried.connect_ex((self.host, self.port)) == 0


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with Provider() as made:
        yield made


@pytest.fixture
def protection(tmp_path: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch) -> Protection:
    monkeypatch.setenv("CONSOLE_SECRET", "secret")
    (tmp_path / "oidc.yaml").write_text(SETTINGS.format(issuer=provider.issuer))
    return Protection(oidc=tmp_path / "oidc.yaml")


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    make_fleet(tmp_path / "tenants")
    return tmp_path / "tenants"


@contextmanager
def at(now: datetime, fleet: Path, protection: Protection) -> Iterator[ServedConsole]:
    with served(fleet, protection, ManualClock(now)) as console:
        yield console


@pytest.fixture
def console(fleet: Path, protection: Protection) -> Iterator[ServedConsole]:
    with at(datetime.now(UTC), fleet, protection) as made:
        yield made


def agreed(address: str, sub: str, **changed: str) -> str:
    """Where the provider sends the browser of a person who agrees at *address*, of which parts were *changed*."""
    parts = urlsplit(address)
    query = {name: values[0] for name, values in parse_qs(parts.query).items()} | changed
    answer = httpx.post(parts._replace(query=urlencode(query)).geturl(), data={"sub": sub})
    assert answer.status_code == 302, answer.text
    return str(answer.headers["location"])


def begun(browser: Browser, wanted: str = "/") -> str:
    """The address of the provider, to which the link of the page at which one signs in leads."""
    page = browser.client.get("/sign-in", params={"next": wanted}).text
    found = re.search(r'href="(/sign-in/openid\?[^"]*)">Sign in with Company login<', page)
    assert found
    return str(browser.get(found[1]).headers["location"])


def test_a_person_signs_in_at_the_provider(console: ServedConsole, provider: Provider) -> None:
    """With PKCE, and back to the page that was wanted; the roles are those that the claims give."""
    browser = console.browser()
    address = begun(browser, "/t/a?x=1")
    assert address.startswith(f"{provider.issuer}/oauth2/authorize?")
    query = parse_qs(urlsplit(address).query)
    assert query["code_challenge_method"] == ["S256"]
    assert query["redirect_uri"] == [f"{console.url}/sign-in/openid/answer"]
    signed = browser.get(agreed(address, "1"))
    assert (signed.status_code, signed.headers["location"]) == (303, "/t/a?x=1")
    assert "anna@example.com" in browser.get("/t/b").text


def test_the_code_is_redeemed_by_who_asked_for_it(console: ServedConsole, monkeypatch: pytest.MonkeyPatch) -> None:
    """The verifier that the provider gets is that of the challenge which the browser brought to it (RFC 7636)."""
    sent, send = list[dict[str, list[str]]](), HttpClient.send

    def remembering(self: HttpClient, method: str, path: str, **given: Any) -> Answer:
        sent.append(parse_qs((given["body"] or b"").decode()))
        return send(self, method, path, **given)

    monkeypatch.setattr(HttpClient, "send", remembering)
    browser = console.browser()
    address = begun(browser)
    browser.get(agreed(address, "1"))
    (verifier,) = [each["code_verifier"][0] for each in sent if each]
    digest = urlsafe_b64encode(sha256(verifier.encode()).digest()).decode().rstrip("=")
    assert parse_qs(urlsplit(address).query)["code_challenge"] == [digest]
    assert len(verifier) >= 43
    assert verifier not in address


def test_roles_are_per_tenant(console: ServedConsole) -> None:
    """A claim in a list at a path gives a role at one tenant; who has none is told so."""
    ben, eve = console.browser(), console.browser()
    ben.get(agreed(begun(ben), "2"))
    assert [ben.get(f"/t/{name}").status_code for name in "ab"] == [200, 403]
    refused = eve.get(agreed(begun(eve), "3"))
    assert refused.status_code == 403
    assert "eve@example.com has no role here." in refused.text
    assert not eve.is_signed_in


def test_an_address_that_is_not_verified_names_nobody(console: ServedConsole) -> None:
    """Anybody can enter that of somebody else."""
    browser = console.browser()
    browser.get(agreed(begun(browser), "4"))
    page = browser.get("/t/a").text
    assert "anna@example.com" not in page
    assert 'class="person">4' in page


def test_a_session_before_is_of_no_use_after(console: ServedConsole) -> None:
    """The id of the session is another."""
    browser, copy = console.browser(), console.browser()
    answer = agreed(begun(browser), "1")
    copy.client.cookies.update(browser.client.cookies)
    browser.get(answer)
    assert browser.is_signed_in
    assert not copy.is_signed_in


@pytest.mark.parametrize(
    "changed",
    [
        {"state": "1.2.3.4"},
        {"state": ""},
        {"nonce": "0" * 64},
        {"client_id": "another"},
        {"iss": "https://another.example"},
    ],
)
def test_a_changed_flow_signs_nobody_in(console: ServedConsole, changed: dict[str, str]) -> None:
    """Another state, nonce, client or provider is refused."""
    browser = console.browser()
    answer = agreed(begun(browser), "1", **changed)
    if "iss" in changed:
        answer += f"&{urlencode(changed)}"
    assert browser.get(answer).status_code in {403, 503}
    assert not browser.is_signed_in


def test_an_answer_is_of_no_use_to_others(console: ServedConsole) -> None:
    """Nor to the same browser a second time, or too late; an attacker's answer signs no victim in as the attacker."""
    attacker, victim, late = console.browser(), console.browser(), console.browser()
    answer = agreed(begun(attacker), "1")
    assert victim.get(answer).status_code == 403
    begun(victim)
    assert victim.get(answer).status_code == 403
    assert attacker.get(answer).status_code == 303
    assert attacker.get(answer).status_code == 403
    answer = agreed(begun(late), "1")
    console.clock.advance(601)
    assert late.get(answer).status_code == 403
    assert not late.is_signed_in


def test_what_the_provider_refuses_is_told(console: ServedConsole) -> None:
    """By its code; what else stands in the answer is not shown."""
    browser = console.browser()
    state = parse_qs(urlsplit(begun(browser)).query)["state"][0]
    for given, shown in (("access_denied", "access_denied"), ("<b>Call 555", "it sent no code")):
        query = urlencode({"state": state, "error": given, "error_description": "Call 555"})
        page = browser.get(f"/sign-in/openid/answer?{query}")
        assert page.status_code == 403
        assert f"The provider refused: {shown}." in page.text
        assert "555" not in page.text


@pytest.mark.parametrize(("passed", "refused"), [(timedelta(minutes=59), False), (timedelta(minutes=62), True)])
def test_an_expired_token_signs_nobody_in(
    fleet: Path, protection: Protection, passed: timedelta, *, refused: bool
) -> None:
    """The provider's are valid for an hour."""
    with at(datetime.now(UTC) + passed, fleet, protection) as console:
        browser = console.browser()
        answer = browser.get(agreed(begun(browser), "1"))
        assert browser.is_signed_in is not refused
        assert ("ExpiredTokenError" in answer.text) is refused


def test_a_name_of_a_local_account_is_refused(fleet: Path, protection: Protection, tmp_path: Path) -> None:
    """In what people did, it would be taken for the other."""
    accounts = AccountFile(tmp_path / "people")
    accounts.add("local", PASSWORD, {"*": Role.VIEWER})
    both = Protection(accounts=accounts.path, oidc=protection.oidc)
    with at(datetime.now(UTC), fleet, both) as console:
        browser = console.browser()
        assert "name of a local account" in browser.get(agreed(begun(browser), "5")).text
        assert not browser.is_signed_in
        assert browser.sign_in("local").status_code == 303


def test_a_provider_that_does_not_answer_is_told(fleet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The console starts without it, and the page says what is wrong."""
    monkeypatch.setenv("CONSOLE_SECRET", "secret")
    (tmp_path / "oidc.yaml").write_text(SETTINGS.format(issuer="http://127.0.0.1:9"))
    with at(datetime.now(UTC), fleet, Protection(oidc=tmp_path / "oidc.yaml")) as console:
        page = console.browser().get("/sign-in/openid")
        assert page.status_code == 503
        assert "127.0.0.1:9" in page.text


def id_token(provider: Provider, client: str, nonce: str) -> str:
    """An ID token of the provider for a client."""
    back = "http://127.0.0.1/back"
    asked = {"response_type": "code", "client_id": client, "redirect_uri": back, "scope": "openid", "nonce": nonce}
    answer = agreed(f"{provider.issuer}/oauth2/authorize?{urlencode(asked)}", "1")
    form = {"grant_type": "authorization_code", "code": parse_qs(urlsplit(answer).query)["code"][0]}
    found = httpx.post(f"{provider.issuer}/oauth2/token", data={**form, "redirect_uri": back}, auth=(client, "secret"))
    return str(found.json()["id_token"])


def test_a_token_proves_nothing_to_another_client(provider: Provider) -> None:
    """Each of issuer, audience and nonce must be the expected one, and the signature that of a key of the provider."""
    keys, nonce, now = httpx.get(f"{provider.issuer}/jwks").json()["keys"], "a-nonce-of-the-test", 0
    token = id_token(provider, "crossdock", nonce)
    now = int(datetime.now(UTC).timestamp())
    right = ExpectedClaims(provider.issuer, "crossdock", nonce)
    assert id_token_verification.verified_claims(token, keys, right, now)["sub"] == "1"
    head, body, signature = token.split(".")
    changed = [
        (token, keys, ExpectedClaims("https://another.example", "crossdock", nonce)),
        (token, keys, ExpectedClaims(provider.issuer, "another", nonce)),
        (id_token(provider, "another", nonce), keys, right),
        (token, keys, ExpectedClaims(provider.issuer, "crossdock", "another")),
        (token, [], right),
        (token, [{**keys[0], "kid": "another"}, {**keys[0], "kid": "one more"}], right),
        (token, [{"kty": "oct", "k": "c2VjcmV0", "kid": keys[0]["kid"]}], right),
        (f"{head}.{body}.{signature[:-8]}AAAAAAAA", keys, right),
        (f"{head}.{body[:-4]}AAAA.{signature}", keys, right),
        (f"eyJhbGciOiJub25lIn0.{body}.", keys, right),
        (f"eyJhbGciOiJIUzI1NiJ9.{body}.{signature}", keys, right),
        ("", keys, right),
    ]
    for given in changed:
        with pytest.raises(InvalidIdTokenError):
            id_token_verification.verified_claims(*given, now)


def test_a_new_key_of_the_provider_is_fetched(fleet: Path, protection: Protection, provider: Provider) -> None:
    """A provider that has changed its key is asked again."""
    assert protection.oidc is not None
    clock = ManualClock(datetime.now(UTC))
    made = OpenIdProvider(load_openid_settings(protection.oidc), clock)
    address = made.authorization_address("session", "http://127.0.0.1:1", "/")
    assert made._metadata is not None
    made._metadata = structs.replace(made._metadata, keys=[])
    query = {name: values[0] for name, values in parse_qs(urlsplit(agreed(address, "1")).query).items()}
    person, wanted = made.identify_person_from_answer("session", "http://127.0.0.1:1", query)
    assert (person.name, wanted) == ("anna@example.com", "/")
    assert made._metadata.keys
