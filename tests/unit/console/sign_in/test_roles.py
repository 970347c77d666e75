"""What each role may reach, by the table of all addresses."""

from __future__ import annotations

import re
from http.client import HTTPConnection
from itertools import product

import httpx
import pytest
from tests.consoles import PASSWORD, Browser, ServedConsole
from tests.waiting import eventually

from crossdock.console.action_definitions import ACTIONS
from crossdock.console.sign_in.accounts import AccountFile
from crossdock.console.visitors_and_roles import Role
from crossdock.console.web_server import PAGE_ROUTES, PageRoute

PROTECTED = [page for page in PAGE_ROUTES if page.role is not None]
OPEN = {"/sign-in", "/sign-in/openid", "/sign-in/openid/answer"}


def asked(browser: Browser, page: PageRoute, tenant: str = "a") -> httpx.Response:
    address = re.sub(r"\{[^}]*\}", "1", page.path.replace("{tenant}", tenant))
    return browser.send(address, {}) if page.is_form else browser.get(address)


def signed_in(console: ServedConsole, name: str) -> Browser:
    browser = console.browser()
    assert browser.sign_in(name).status_code == 303
    return browser


def test_only_the_sign_in_is_open() -> None:
    """Every other address has a role."""
    assert {page.path for page in PAGE_ROUTES if page.role is None} == OPEN


def test_nobody_reaches_a_page_without_a_session(console: ServedConsole) -> None:
    """Pages lead to the sign-in; forms are answered 401, whatever their fields."""
    for page in PROTECTED:
        answer = asked(console.browser(), page)
        if page.is_form:
            assert answer.status_code == 401, page.path
        else:
            assert (answer.status_code, answer.text) == (303, ""), page.path
            assert answer.headers["location"].startswith("/sign-in"), page.path


@pytest.mark.parametrize("role", [None, Role.VIEWER, Role.OPERATOR])
def test_no_lower_role_reaches_a_page(console: ServedConsole, accounts: AccountFile, role: Role | None) -> None:
    """Every address that needs a higher role is answered 403, before it is looked at."""
    accounts.add("eve", PASSWORD, {} if role is None else {"*": role})
    browser = signed_in(console, "eve")
    for page in PROTECTED:
        if page.role is not None and (role is None or role < page.role):
            answer = asked(browser, page)
            assert answer.status_code == 403, page.path
            assert page.role.display_name in answer.text, page.path


def test_no_lower_role_reaches_an_action(console: ServedConsole, accounts: AccountFile) -> None:
    """An operator neither sees nor does, with a valid token, what only administrators may do."""
    accounts.add("eve", PASSWORD, {"a": Role.OPERATOR, "b": Role.ADMINISTRATOR})
    browser = signed_in(console, "eve")
    for action in ACTIONS.values():
        if action.role > Role.OPERATOR:
            address = f"/t/a/do/{action.name}"
            fields = {"csrf_token": browser.token("/"), **dict.fromkeys(action.fields, "1")}
            for answer in (browser.client.get(address, params=fields), browser.send(address, fields)):
                assert answer.status_code == 403, action.name
                assert f"it needs the role {action.role.display_name}" in answer.text, action.name


def test_a_role_at_one_tenant_is_none_at_another(console: ServedConsole, accounts: AccountFile) -> None:
    """An administrator of "b" reaches no page of "a", nor of a tenant that does not exist."""
    accounts.add("eve", PASSWORD, {"b": Role.ADMINISTRATOR})
    browser = signed_in(console, "eve")
    for page in PROTECTED:
        if "{tenant}" in page.path:
            assert asked(browser, page).status_code == 403, page.path
            assert asked(browser, page, tenant="none").status_code == 403, page.path
    assert browser.get("/t/b").status_code == 200


def test_the_start_page_shows_the_tenants_of_the_person(console: ServedConsole, accounts: AccountFile) -> None:
    """Others are neither named nor counted."""
    accounts.add("eve", PASSWORD, {"b": Role.VIEWER})
    anna, eve = signed_in(console, "anna"), signed_in(console, "eve")
    eventually(lambda: all(f'"/t/{name}"' in anna.get("/").text for name in "ab"))
    page = eve.get("/").text
    assert '"/t/b"' in page
    assert '"/t/a"' not in page
    assert "Today: 1 tenant<" in page


METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "GET_")
OVERRIDING = {
    "x-http-method-override": "GET",
    "x-method-override": "POST",
    "x-original-url": "/t/b",
    "forwarded": "for=::1",
}


@pytest.mark.parametrize("role", [None, Role.VIEWER, Role.OPERATOR, Role.ADMINISTRATOR])
def test_every_method_needs_the_role_of_its_address(
    console: ServedConsole, accounts: AccountFile, role: Role | None
) -> None:
    """HEAD is a GET without a body; a method that an address does not have is answered 405, whoever asks."""
    accounts.add("eve", PASSWORD, {"b": Role.ADMINISTRATOR} | ({} if role is None else {"a": role}))
    eve, nobody = signed_in(console, "eve"), console.browser()
    methods: dict[str, dict[str, PageRoute]] = {}
    for page in PROTECTED:
        found = methods.setdefault(page.path.replace("{tenant}", "a"), {})
        found.update({"POST": page} if page.is_form else {"GET": page, "HEAD": page})
    for path, pages in methods.items():
        address = re.sub(r"\{[^}]*\}", "1", path)
        for method in METHODS:
            if method not in pages:
                answers = (each.client.request(method, address, headers=OVERRIDING) for each in (eve, nobody))
                assert {each.status_code for each in answers} == {405}, (method, address)
                continue
            page = pages[method]
            at_a = role if "{tenant}" in page.path else Role.ADMINISTRATOR
            answer = eve.client.request(method, address)
            is_refused = answer.status_code == 403 and (method == "HEAD" or "it needs the role" in answer.text)
            assert is_refused is ((at_a or 0) < (page.role or 0)), (method, address)
            assert nobody.client.request(method, address).status_code == (401 if method == "POST" else 303)
            assert (method == "HEAD") <= (answer.content == b""), address


def test_every_answer_is_protected(console: ServedConsole) -> None:
    """Whoever asks, and whatever is answered: no other site shows or reads it, and no browser keeps it."""
    anna, nobody = signed_in(console, "anna"), console.browser()
    addresses = {re.sub(r"\{[^}]*\}", "1", page.path.replace("{tenant}", "a")) for page in PAGE_ROUTES} | {
        "/none",
        "/t/none",
    }
    for browser, address, method in product((anna, nobody), addresses, ("GET", "POST", "PUT")):
        headers = browser.client.request(method, address).headers
        assert headers["cache-control"] == "no-store", (method, address)
        assert "frame-ancestors 'none'" in headers["content-security-policy"], (method, address)
        assert "unsafe" not in headers["content-security-policy"], (method, address)
        assert headers["x-content-type-options"] == "nosniff", (method, address)
        assert headers["referrer-policy"] == "same-origin", (method, address)


SPELLINGS = (
    "/t/%61{rest}", "//t/a{rest}", "/t//a{rest}", "/t/b/../a{rest}", "/t/b%2f..%2fa{rest}", "/t/b/%2e%2e/a{rest}",
    "/t/b/..;/a{rest}", "/t/b\\..\\a{rest}", "/t/..%2ft%2fa{rest}", "/t/a%00{rest}", "/t/a%20{rest}", "/t/A{rest}",
    "/t/a;b{rest}", "/t/a%2f{rest}", "/t/a%c0%af{rest}", "/t/a.{rest}", "/t/a%0a{rest}", "/t/%2561{rest}", "/T/a{rest}",
    "/t/a{rest}/", "/t/a{rest}%2f", "/t/a{rest}?tenant=b", "/t/a{rest}#/t/b", "http://127.0.0.1/t/a{rest}",
    "/sign-in/../t/a{rest}", "/console.js/../t/a{rest}", "*", "/t/a%2fdo%2fsync", "/t/*{rest}",
)  # fmt: skip


def test_no_spelling_of_an_address_reaches_another_tenant(console: ServedConsole, accounts: AccountFile) -> None:
    """An administrator of "b" is refused, or told that there is no such page; nobody without a session sees more."""
    accounts.add("eve", PASSWORD, {"b": Role.ADMINISTRATOR})
    cookies = "; ".join(f"{name}={value}" for name, value in signed_in(console, "eve").client.cookies.items())
    rests = sorted({page.path.removeprefix("/t/{tenant}") for page in PROTECTED if "{tenant}" in page.path})
    connection = HTTPConnection(console.url.removeprefix("http://"), timeout=60)
    for spelling, rest, signed in product(SPELLINGS, rests, (True, False)):
        path = spelling.format(rest=re.sub(r"\{[^}]*\}", "1", rest))
        connection.request("GET", path, headers={**OVERRIDING, "cookie": cookies if signed else ""})
        answer = connection.getresponse()
        answer.read()
        assert answer.status in {400, 403, 404, 405} | (set() if signed else {303}), (path, answer.status)
    connection.close()


def test_a_form_needs_the_token_of_its_session(console: ServedConsole) -> None:
    """Without one, with one of another session, and with one that was used, it is refused."""
    browser, other = console.browser(), console.browser()
    fields = {"name": "anna", "password": PASSWORD}
    foreign, used = other.token(), browser.token()
    assert browser.send("/sign-in", fields).status_code == 403
    assert browser.send("/sign-in", {**fields, "csrf_token": foreign}).status_code == 403
    assert browser.send("/sign-in", {**fields, "password": "wrong", "csrf_token": used}).status_code == 401
    assert browser.send("/sign-in", {**fields, "csrf_token": used}).status_code == 409
    assert not browser.is_signed_in


@pytest.mark.parametrize("header", [{"host": "evil.example"}, {"origin": "https://evil.example"}, {"origin": "null"}])
def test_requests_for_or_from_another_site_are_refused(console: ServedConsole, header: dict[str, str]) -> None:
    """A form with a valid token of a session is refused if Host or Origin is another."""
    browser = signed_in(console, "anna")
    fields = {"csrf_token": browser.token("/")}
    refused = browser.send("/sign-out", fields, **header)
    assert refused.status_code == 403
    assert browser.is_signed_in
    assert browser.send("/sign-out", fields).status_code == 303
