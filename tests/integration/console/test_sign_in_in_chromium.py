"""Signing in and out in a real browser, with its rules for cookies, forms and policies."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests import browser
from tests.browser import Tab
from tests.consoles import PASSWORD, ServedConsole, make_fleet, served

from crossdock.console.people import Role
from crossdock.console.protection import Protection
from crossdock.console.sign_in.accounts import AccountFile


@pytest.fixture
def accounts(tmp_path: Path) -> AccountFile:
    made = AccountFile(tmp_path / "people")
    made.add("anna", PASSWORD, {"*": Role.ADMINISTRATOR})
    return made


def entered(tab: Tab, name: str, password: str) -> str:
    """The address after the form was sent by the Enter key."""
    tab.run(f"document.querySelector('[name=name]').value = '{name}'")
    tab.run(f"document.querySelector('[name=password]').value = '{password}'")
    tab.run("document.querySelector('[name=password]').focus()")
    tab.events.clear()
    tab.press("Enter", 13)
    tab.wait_for("Page.loadEventFired")
    return str(tab.run("location.pathname + location.search"))


def signed_in(tab: Tab, console: ServedConsole) -> None:
    tab.open(f"{console.url}/t/b/runs?status=failed")
    assert entered(tab, "anna", "wrong horse battery") == "/sign-in"
    assert tab.run("document.querySelector('[role=alert]').innerText") == "The name or the password is wrong."
    assert tab.run("document.querySelector('[name=name]').value") == "anna"
    assert entered(tab, "anna", PASSWORD) == "/t/b/runs?status=failed"


@pytest.mark.parametrize("width", [1280, 400])
def test_a_person_signs_in_and_out(tmp_path: Path, accounts: AccountFile, width: int) -> None:
    """After a wrong password, too; nothing is wider than the window, and nothing breaks the policy."""
    make_fleet(tmp_path / "tenants")
    with (
        served(tmp_path / "tenants", Protection(accounts=accounts.path)) as console,
        browser.opened(tmp_path / "profile") as tab,
    ):
        tab.resize(width)
        signed_in(tab, console)
        assert tab.run("document.cookie") == ""
        assert tab.run("document.documentElement.scrollWidth") <= width
        tab.click("document.querySelector('.person button')")
        assert tab.run("location.pathname") == "/sign-in"
        assert tab.run("document.documentElement.scrollWidth") <= width
        assert tab.complaints == []
        tab.open(f"{console.url}/t/b")
        assert tab.run("location.pathname") == "/sign-in"


def test_a_link_on_another_site_finds_the_session(tmp_path: Path, accounts: AccountFile) -> None:
    """As in a ticket; a form there is refused."""
    make_fleet(tmp_path / "tenants")
    protection = Protection(accounts=accounts.path)
    with (
        served(tmp_path / "tenants", protection) as console,
        browser.opened(tmp_path / "profile") as tab,
    ):
        signed_in(tab, console)
        page = f'<a href="{console.url}/t/a">ticket</a><form method="post" action="{console.url}/sign-out"></form>'
        tab.open(f"data:text/html,{page}")
        tab.click("document.querySelector('a')")
        assert tab.run("location.pathname") == "/t/a"
        tab.open(f"data:text/html,{page}")
        tab.events.clear()
        tab.run("document.querySelector('form').submit()")
        tab.wait_for("Page.loadEventFired")
        assert "Origin is another site" in str(tab.run("document.body.innerText"))
        tab.open(f"{console.url}/t/a")
        assert tab.run("location.pathname") == "/t/a"
