"""Signing in and out in a real browser, with its rules for cookies, forms and policies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests import browser
from tests.browser import Tab
from tests.consoles import PASSWORD, ServedConsole, make_fleet, served
from tests.servers import served as serving

from crossdock.config.project import project
from crossdock.console.sign_in.accounts import AccountFile
from crossdock.console.tls_proxy_and_sign_in import Protection
from crossdock.console.visitors_and_roles import Role


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


def test_what_was_shown_is_gone_after_the_sign_out(tmp_path: Path, accounts: AccountFile) -> None:
    """Neither the back button nor the cache brings it back, of a page with personal data or of any other."""
    make_fleet(tmp_path / "tenants")
    with (
        served(tmp_path / "tenants", Protection(accounts=accounts.path)) as console,
        browser.opened(tmp_path / "profile") as tab,
    ):
        signed_in(tab, console)
        for page in ("/t/a", "/t/a/settings", "/t/a/audit"):
            tab.open(f"{console.url}{page}")
        tab.click("document.querySelector('.person button')")
        for _ in range(4):
            tab.events.clear()
            tab.run("history.back()")
            tab.wait_for("Page.loadEventFired")
            assert tab.run("location.pathname") == "/sign-in"
            assert tab.run("document.querySelectorAll('nav, .person').length") == 0


class OtherSite(BaseHTTPRequestHandler):
    """Serves one page."""

    page = b""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(self.page)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def other_site(page: str) -> Iterator[str]:
    """A site at another port of the same host, to which browsers send the cookies of the console."""
    handler = type("Site", (OtherSite,), {"page": page.encode()})
    with serving(ThreadingHTTPServer(("127.0.0.1", 0), handler)) as server:
        yield f"http://127.0.0.1:{server.server_port}/"


def test_a_page_of_another_port_sees_and_does_nothing(tmp_path: Path, accounts: AccountFile) -> None:
    """Although it is of the same site and the browser sends the session: no frame, no script, no answer, no form."""
    make_fleet(tmp_path / "tenants")
    with closing(project.load(tmp_path / "tenants" / "a.yaml").open_state()) as state, state.begin() as tx:
        tx.runs.start(business_date="2026-03-29", at=datetime.now(UTC))
    with (
        served(tmp_path / "tenants", Protection(accounts=accounts.path)) as console,
        browser.opened(tmp_path / "profile") as tab,
    ):
        signed_in(tab, console)
        page = f"""<iframe src="{console.url}/t/a"></iframe><script src="{console.url}/t/a"></script>
        <img src="{console.url}/t/a/runs/1?show=data"><a href="{console.url}/t/a/runs/1?show=data">run</a>
        <object data="{console.url}/t/a"></object><embed src="{console.url}/t/a"><img src="{console.url}/t/a">
        <form method="post" action="{console.url}/sign-out"></form><script>
        const tries = ["cors", "no-cors"].map(mode => fetch("{console.url}/t/a", {{mode, credentials: "include"}}));
        window.refused = Promise.allSettled(tries).then(all => all.map(each => each.status).join());</script>"""
        with other_site(page) as url:
            tab.open(url)
            answer = tab.call("Runtime.evaluate", expression="refused", awaitPromise=True, returnByValue=True)
            assert answer["result"]["value"] == "rejected,rejected"
            assert tab.run("[...document.querySelectorAll('iframe')].map(each => each.contentDocument)") == [None]
            assert any("frame" in each for each in tab.complaints), tab.complaints
            tab.events.clear()
            tab.run("document.querySelector('form').submit()")
            tab.wait_for("Page.loadEventFired")
            assert "Origin is another site" in str(tab.run("document.body.innerText"))
            tab.open(url)
            tab.click("document.querySelector('a')")
            assert tab.run("document.querySelector('h1').innerText").startswith("Run 1")
        tab.open(f"{console.url}/t/a/audit")
        assert "view personal data" not in str(tab.run("document.body.innerText"))
        tab.open(f"{console.url}/t/a/runs/1?show=data")
        tab.open(f"{console.url}/t/a/audit")
        assert "view personal data" in str(tab.run("document.body.innerText"))
