"""Sessions of people: how they begin and end, and that nobody else can use them."""

from __future__ import annotations

import pytest
from tests.consoles import PASSWORD, ServedConsole

from crossdock.console.sign_in.accounts import AccountFile
from crossdock.console.visitors_and_roles import Role
from crossdock.console.web_server import COOKIE


def test_without_a_session_pages_lead_to_the_sign_in_and_from_there_back(console: ServedConsole) -> None:
    """Also those with a query; nothing else is shown."""
    browser = console.browser()
    answer = browser.get("/t/a/runs?job=orders&status=failed")
    assert (answer.status_code, answer.text) == (303, "")
    assert answer.headers["location"] == "/sign-in?next=%2Ft%2Fa%2Fruns%3Fjob%3Dorders%26status%3Dfailed"
    page = browser.get(answer.headers["location"]).text
    assert 'name="next" value="/t/a/runs?job=orders&amp;status=failed"' in page
    signed = browser.sign_in("anna", next="/t/a/runs?job=orders&status=failed")
    assert (signed.status_code, signed.headers["location"]) == (303, "/t/a/runs?job=orders&status=failed")
    assert "anna" in browser.get("/t/a").text
    assert browser.get("/sign-in?next=/t/b").headers["location"] == "/t/b"


def test_a_session_that_was_there_before_is_of_no_use_after_the_sign_in(console: ServedConsole) -> None:
    """Whoever has set or read the cookie before has no session."""
    victim, attacker = console.browser(), console.browser()
    for each in (victim, attacker):
        each.client.cookies.set(COOKIE, "f" * 64, domain="127.0.0.1")
    assert victim.sign_in("anna").status_code == 303
    assert victim.is_signed_in
    assert not attacker.is_signed_in


def test_the_cookie_is_kept_from_scripts_and_other_sites(console: ServedConsole) -> None:
    """A link in a ticket brings it along, a form of another site does not."""
    cookie = console.browser().get("/sign-in").headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert "path=/" in cookie


def test_a_session_ends_an_hour_after_the_last_request(console: ServedConsole) -> None:
    """Requests extend it, for 12 hours at most."""
    browser = console.browser()
    browser.sign_in("anna")
    for _ in range(14):
        console.clock.advance(50 * 60)
        assert browser.is_signed_in
    console.clock.advance(20 * 60)  # 12 hours
    assert not browser.is_signed_in
    browser.sign_in("anna")
    console.clock.advance(60 * 60)
    assert not browser.is_signed_in


def test_a_form_that_comes_after_the_end_of_its_session_leads_back_to_its_page(console: ServedConsole) -> None:
    """By the sign-in; nothing of it is done. A form without a page of its own leads to the start page."""
    browser = console.browser()
    browser.sign_in("anna")
    token = browser.token("/t/a/do/pause-job?job=nightly")
    console.clock.advance(60 * 60)
    late = browser.send("/t/a/do/pause-job?job=nightly", {"csrf_token": token})
    assert (late.status_code, "nothing was done" in late.text) == (401, True)
    assert 'href="/sign-in?next=%2Ft%2Fa%2Fdo%2Fpause-job%3Fjob%3Dnightly"' in late.text
    assert 'href="/sign-in"' in browser.send("/t/a/connections/check", {"csrf_token": token}).text


def test_signing_out_ends_the_session(console: ServedConsole) -> None:
    """Also for somebody who has a copy of the cookie; without the form's token, nothing happens."""
    browser, copy = console.browser(), console.browser()
    browser.sign_in("anna")
    copy.client.cookies.update(browser.client.cookies)
    assert browser.send("/sign-out", {"csrf_token": ""}).status_code == 403
    assert copy.is_signed_in
    assert browser.send("/sign-out", {"csrf_token": browser.token("/")}).headers["location"] == "/sign-in"
    assert not copy.is_signed_in
    assert not browser.is_signed_in


def test_changes_of_accounts_take_effect_at_once(console: ServedConsole, accounts: AccountFile) -> None:
    """Another role counts for the next request; a removed account and one with another password have no sessions."""
    anna, ben = console.browser(), console.browser()
    anna.sign_in("anna")
    ben.sign_in("ben")
    accounts.set_roles("anna", {"b": Role.VIEWER})
    assert [anna.get(each).status_code for each in ("/t/a", "/t/b")] == [403, 200]
    accounts.set_password("anna", f"{PASSWORD} staple")
    accounts.remove("ben")
    assert not anna.is_signed_in
    assert not ben.is_signed_in
    assert anna.sign_in("anna").status_code == 401
    assert anna.sign_in("anna", f"{PASSWORD} staple").status_code == 303


def test_nobody_has_a_session_while_the_accounts_cannot_be_read(console: ServedConsole, accounts: AccountFile) -> None:
    """The sign-in says why; sessions go on once they can be read again."""
    browser = console.browser()
    browser.sign_in("anna")
    accounts.path.chmod(0o644)
    with accounts.path.open("ab") as file:
        file.write(b"\n")
    assert not browser.is_signed_in
    assert "others may read the accounts" in browser.sign_in("anna").text
    accounts.path.chmod(0o600)
    assert browser.is_signed_in


@pytest.mark.parametrize(
    "wanted",
    [
        "//evil.example", "https://evil.example/", "/\\evil.example", "\\\\evil.example", "/\t/evil.example",
        "evil.example", "javascript:alert(1)", "/\n/evil.example", " //evil.example", "/a\\..\\..//evil.example", "",
        "/" + "a" * 3_000,
    ],
)  # fmt: skip
def test_the_sign_in_leads_to_no_other_site(console: ServedConsole, wanted: str) -> None:
    """What is no address of this server leads to the start page, for the form and for who has signed in already."""
    browser = console.browser()
    assert browser.sign_in("anna", next=wanted).headers["location"] == "/"
    assert browser.client.get("/sign-in", params={"next": wanted}).headers["location"] == "/"
