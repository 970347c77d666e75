"""The sandbox's page in a real browser: by keyboard, without scripts, at two widths, with nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.browser import Tab, opened

from crossdock.sandbox.server import SandboxServer

CUSTOMERS = "/api/v1/sales/customers"
WIDTHS = (1280, 400)
KEY = "document.getElementById('key').value"
SPILT = """[...document.querySelectorAll("body *")].filter(each => !each.closest(".wide, pre, .skip, .hidden, thead") &&
  each.getBoundingClientRect().right > document.documentElement.clientWidth + 1).map(each => each.outerHTML)"""
# The contrast of every text with what is behind it (WCAG 2.2, success criterion 1.4.3).
LOW_CONTRAST = """(() => {
  const parts = colour => colour.match(/[\\d.]+/g).map(Number);
  const light = colour => parts(colour).slice(0, 3).map(each => each / 255)
    .map(each => each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4)
    .reduce((sum, each, at) => sum + each * [0.2126, 0.7152, 0.0722][at], 0);
  const behind = each => {
    for (; each; each = each.parentElement) {
      const colour = getComputedStyle(each).backgroundColor;
      if ((parts(colour)[3] ?? 1) > 0) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  return [...document.querySelectorAll("body *")].filter(each =>
    [...each.childNodes].some(node => node.nodeType === 3 && node.textContent.trim())).filter(each => {
      const [low, high] = [light(getComputedStyle(each).color), light(behind(each))].sort((a, b) => a - b);
      return (high + 0.05) / (low + 0.05) < 4.5;
    }).map(each => each.outerHTML.slice(0, 200));
})()"""


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with opened(tmp_path_factory.mktemp("browser")) as tab:
        yield tab


@pytest.fixture
def served(tmp_path: Path) -> Iterator[SandboxServer]:
    with SandboxServer(tmp_path) as served:
        yield served


def status(served: SandboxServer, key: str) -> int:
    headers = {"authorization": f"Bearer {key}", "x-tenant-slug": served.tenant}
    return httpx.get(served.base_url + CUSTOMERS, headers=headers, trust_env=False).status_code


def focused(tab: Tab) -> str:
    """What has the focus, by its visible or its accessible name."""
    found: str = tab.run("document.activeElement.ariaLabel || document.activeElement.textContent.trim()")
    return found


def tab_to(tab: Tab, name: str) -> None:
    for _ in range(100):
        if focused(tab) == name:
            return
        tab.press("Tab", 9)
    pytest.fail(f"{name!r} cannot be reached with the Tab key")


def test_keys_are_managed_with_the_keyboard(tab: Tab, served: SandboxServer) -> None:
    """Create, narrow and revoke without a mouse; a key works, and is gone from the page after it is loaded again."""
    tab.open(f"{served.base_url}/")
    tab.press("Tab", 9)
    assert focused(tab) == "Skip to content"
    tab_to(tab, "Write customers")
    tab.press(" ", 32)
    tab_to(tab, "Create key")
    tab.events.clear()
    tab.press("Enter", 13)
    tab.wait_for("Page.loadEventFired")
    key = tab.run(KEY)
    key_id = key.split("_")[1]
    assert status(served, key) == 200
    assert key not in tab.run("location.href")
    tab.click(f"document.querySelector('a[href=\"/page/keys/{key_id}\"]')")
    assert key not in tab.run("document.documentElement.outerHTML")
    tab_to(tab, "Revoke key")
    tab.events.clear()
    tab.press("Enter", 13)
    tab.wait_for("Page.loadEventFired")
    assert f"Key {key_id} was revoked." in tab.run("document.body.innerText")
    assert status(served, key) == 401


def test_a_page_that_is_loaded_again_creates_no_second_key(tab: Tab, served: SandboxServer) -> None:
    """The browser sends the form again, and the page says that it was already sent."""
    tab.open(f"{served.base_url}/")
    tab.run("document.querySelector('[value=\"*:write\"]').checked = true")
    tab.click("document.querySelector('button.main')")
    assert tab.run(KEY)
    before = set(served.sandbox.callers_by_key_id)
    tab.events.clear()
    tab.call("Page.reload")
    tab.wait_for("Page.loadEventFired")
    assert "This form was already sent." in tab.run("document.body.innerText")
    assert set(served.sandbox.callers_by_key_id) == before


@pytest.mark.nightly(but=["/", "/page/keys/ID"])
@pytest.mark.parametrize("path", ["/", "/page/keys/ID", "/page/clients", "/page/webhooks", "/docs"])
def test_pages_fit_their_window(tab: Tab, served: SandboxServer, path: str) -> None:
    """Wide and narrow, light and dark: nothing is cut off, text has contrast, and only the style is loaded."""
    key_id = served.api_key.split("_")[1]
    for width in WIDTHS:
        for dark in (False, True):
            tab.resize(width, dark=dark)
            tab.open(served.base_url + path.replace("ID", key_id))
            assert tab.run("document.documentElement.scrollWidth <= innerWidth")
            assert tab.run(SPILT) == []
            assert tab.run(LOW_CONTRAST) == []
            assert {each.removeprefix(served.base_url) for each in tab.requested} <= {
                path.replace("ID", key_id),
                "/page/style.css",
                "data:,",
            }
            assert tab.complaints == []
    dark_paper = tab.run("getComputedStyle(document.body).backgroundColor")
    tab.resize(WIDTHS[0])
    assert tab.run("getComputedStyle(document.body).backgroundColor") != dark_paper


def test_the_policy_holds_where_escaping_would_fail(tab: Tab, served: SandboxServer) -> None:
    """A script that was added to the page does not run, and an image from elsewhere is not loaded."""
    tab.open(f"{served.base_url}/")
    add = "document.createElement('script'), {textContent: 'document.title = \"it ran\"'}"
    tab.run(f"document.body.append(Object.assign({add}))")
    tab.run("document.body.append(Object.assign(document.createElement('img'), {src: '/evil.png'}))")
    assert tab.run("document.title") == "API keys - crossdock sandbox"
    assert sum("Content Security Policy" in each for each in tab.complaints) == 2
