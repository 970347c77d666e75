"""Every page of the console in a real browser: its width, its policy, and rules for accessibility."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests import browser
from tests.browser import Tab
from tests.consumers.generated_clients import HERE, install_npm_packages, npm_registry_answers
from tests.e2e.test_console_actions import BAD
from tests.e2e.test_folder_warehouse import serve_folder
from tests.e2e.warehouse import FORWARD, Front, Seen, Site
from tests.plain_browser import Browser
from tests.servers import require
from tests.waiting import eventually

from crossdock.console import tenant_configs_and_states, web_server
from crossdock.values.clock import SystemClock

WIDTHS = (1280, 1000, 400)
MOST_PAGES = 120
_NUMBERS = re.compile(r"[0-9]+")
_ORPHANS = "INVNO;CUSTNO;SKU;QTY;PRICE;CURRENCY\n20;C9;P1;1;1.50;EUR\n21;C9;P1;1;1.50;EUR\n"
_WIDER_TABLES = """
[...document.querySelectorAll(".wide")].filter(each => each.scrollWidth > each.clientWidth).map(each => each.innerText)
"""
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture
def base_url(site: Site) -> Iterator[str]:
    """A console about a state with delivered, changed, rejected and waiting records."""
    serve_folder(site)
    job = 'jobs:\n  nightly: {schedule: {cron: "15 2 * * *", time_zone: Europe/Berlin}}\n'
    site.config.write_text(site.config.read_text() + job)
    site.init()
    site.fill()
    assert site.sync().code == 0
    site.export("PROD_2.csv", f'SKU;NAME;PRICE\nP1;"{HOSTILE}";1.60\n')
    site.export("INV_2.csv", BAD)
    site.export(f"INV_3{HOSTILE.replace('/', '')}.csv", _ORPHANS)
    assert site.sync().code == 1
    with web_server.serve_console_in_thread(
        tenant_configs_and_states.single_tenant([site.config]), SystemClock()
    ) as base_url:
        yield base_url


def pages(base_url: str) -> list[str]:
    """The addresses that links lead to from the start page, one of each kind; none is broken."""
    visitor, found, waiting = Browser(base_url), dict[str, str](), ["/"]
    while waiting and len(found) < MOST_PAGES:
        address = waiting.pop(0)
        kind = _NUMBERS.sub("0", urlsplit(address).path) + "?" + "&".join(sorted(_names(address)))
        if kind in found:
            continue
        page = visitor.open(address)
        if page.status == 404 and "It was not read yet" in page.text:
            continue  # a record that others wait for
        assert page.status == 200, (address, page.status, page.text)
        found[kind] = address
        waiting += [each.address for each in page.links if each.address.startswith("/")]
    return list(found.values())


def _names(address: str) -> list[str]:
    return [part.partition("=")[0] for part in urlsplit(address).query.split("&")]


@pytest.mark.nightly
def test_pages_fit_their_window_and_follow_their_policy(base_url: str, tmp_path: Path) -> None:
    """No page or table is wider than its window, breaks the policy for scripts and styles, or asks other hosts."""
    with browser.opened(tmp_path / "profile") as tab:
        for address in pages(base_url):
            tab.resize(WIDTHS[0])
            tab.open(base_url + address)
            for width in WIDTHS:
                tab.resize(width)
                wide = tab.run("document.documentElement.scrollWidth")
                assert wide <= width, (address, width, wide)
                assert tab.run(_WIDER_TABLES) == [], (address, width)
            assert tab.run("document.querySelectorAll('h1').length") == 1, address
            assert tab.run("document.querySelectorAll('img, b, main script').length") == 0, address
            assert tab.complaints == [], address
            assert all(each.startswith((base_url, "data:")) for each in tab.requested), address


@pytest.mark.nightly
def test_axe_finds_nothing_serious(base_url: str, tmp_path: Path) -> None:
    """axe-core finds no serious or critical violation of WCAG AA on any page, light or dark."""
    require(npm_registry_answers(), "access to the npm registry", optional_by="CROSSDOCK_NPM_OPTIONAL")
    install_npm_packages(HERE / "axe", tmp_path / "npm")
    axe = (tmp_path / "npm" / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")
    found = list[str]()
    with browser.opened(tmp_path / "profile") as tab:
        for address in pages(base_url):
            for dark in (False, True):
                found += _axe(tab, base_url + address, axe, dark=dark)
    assert found == []


def _axe(tab: Tab, address: str, axe: str, *, dark: bool) -> list[str]:
    tab.resize(1280, dark=dark)
    tab.open(address)
    tab.call("Runtime.evaluate", expression=axe)
    tags = "{runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice']}"
    shown = "each => `${each.impact} ${each.id}: ${each.nodes[0].html}`"
    script = f"axe.run(document, {tags}).then(result => result.violations.map({shown}))"
    answer = tab.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
    violations: list[str] = answer["result"]["value"]
    return [f"{address}: {each}" for each in violations if each.startswith(("serious", "critical"))]


def test_long_tables_are_filtered_as_one_types(site: Site, base_url: str, tmp_path: Path) -> None:
    """Rows without the text are hidden. Without the script there is no field for it, and the page is complete."""
    site.export("INV_4.csv", BAD.splitlines()[0] + "\n" + "".join(f"{n};C1;P1;x;1.50;EUR\n" for n in range(100, 120)))
    assert site.sync().code == 1
    with browser.opened(tmp_path / "profile") as tab:
        tab.open(f"{base_url}/t/{site.tenant}/records/rejected")
        shown = "[...document.querySelectorAll('table.records tbody tr')].filter(row => !row.hidden).length"
        assert tab.run(shown) == 22
        tab.run(
            "document.querySelector('table.records').parentElement.previousElementSibling.firstElementChild.focus()"
        )
        tab.call("Input.insertText", text="INV_4.csv:7")
        assert tab.run(shown) == 1
    assert "Filter these" not in Browser(base_url).open(f"/t/{site.tenant}/records/rejected").text


def test_the_page_of_a_running_command_renews_itself(site: Site, front: Front, tmp_path: Path) -> None:
    """It shows the end without being loaded again. Without the script the browser loads it again."""
    serve_folder(site)
    site.init()
    site.fill()
    goes_on = threading.Event()

    def waits(_: Seen) -> str:
        goes_on.wait(60)
        return FORWARD

    front.fate = waits
    with (
        web_server.serve_console_in_thread(
            tenant_configs_and_states.single_tenant([site.config]), SystemClock()
        ) as base_url,
        browser.opened(tmp_path / "p") as tab,
    ):
        visitor = Browser(base_url)
        started = visitor.send(visitor.open(f"/t/{site.tenant}/do/sync"))
        assert '<noscript><meta http-equiv="refresh" content="3"></noscript>' in started.html
        tab.open(started.url)
        text = "document.querySelector('main').textContent"
        assert "It is running" in tab.run(text)
        tab.run("window.wasNotLoadedAgain = true")
        goes_on.set()
        eventually(lambda: "done (exit code 0)" in tab.run(text))
        assert tab.run("window.wasNotLoadedAgain") is True
        assert tab.complaints == []
