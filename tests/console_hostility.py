"""Shows the pages of a state with hostile texts in a real browser, and compares them with those of harmless texts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html.parser import HTMLParser
from itertools import cycle
from pathlib import Path

from tests import browser, hostile_state
from tests.console_crawl import crawl, kind_of, route_of
from tests.plain_browser import Browser

from crossdock.console import tenant_configs_and_states, web_server
from crossdock.console.web_server import PAGE_ROUTES
from crossdock.values.clock import SystemClock

_INVISIBLE = "[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u200b\\u200e\\u200f\\u202a-\\u202e\\u2060-\\u206f\\ufeff]"
_LOOK = """(() => {
  const parts = new Set(), away = [];
  for (const element of document.querySelectorAll("*")) {
    const name = element.tagName.toLowerCase();
    parts.add(name);
    for (const each of element.attributes) parts.add(name + " " + each.name.toLowerCase());
    for (const address of [element.href, element.src, element.action].filter(each => typeof each === "string")) {
      const found = new URL(address, location);
      if (found.origin !== location.origin && address !== "data:,") away.push(address);
    }
  }
  const shown = document.body.innerText.match(/INVISIBLE/gu) || [];
  return {parts: [...parts], away, ran: window.ran || 0, shown: shown.map(each => each.codePointAt(0))};
})()""".replace("INVISIBLE", _INVISIBLE)


_OF_SCRIPTS = {"label", "label class", "input", "input type"}
"""What the console's own script adds to long tables."""


class _Parts(HTMLParser):
    """The names of elements, and of their attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found |= {tag, *(f"{tag} {name}" for name, _ in attrs)}


def show_hostile_texts(folder: Path, payloads: Sequence[str], *, of_each: int = 1) -> None:
    """Open the pages of each kind. No script runs, and pages have the parts that they have with harmless texts."""
    texts = cycle(payloads)
    harmless = _parts(folder / "harmless", [re.sub("[^A-Za-z0-9]", "x", each) for each in payloads])
    config = hostile_state.make(folder / "hostile", lambda: next(texts))
    with (
        web_server.serve_console_in_thread(
            tenant_configs_and_states.single_tenant([config]), SystemClock()
        ) as base_url,
        browser.opened(folder / "profile") as tab,
    ):
        opened = set[str]()
        for address, page in crawl(Browser(base_url), "/t/acme", of_each=of_each):
            assert page.status in {200, 404}, (address, page.text)
            tab.open(base_url + address)
            found, path = tab.run(_LOOK), _path(address)
            complaints = [each for each in tab.complaints if page.status == 200 or "status of 404" not in each]
            assert (found["ran"], found["away"], found["shown"], complaints) == (0, [], [], []), address
            if page.status == 200:
                opened.add(route_of(address))
                assert set(found["parts"]) <= harmless[path] | _OF_SCRIPTS, (
                    address,
                    set(found["parts"]) - harmless[path],
                )
            assert all(each.startswith((base_url, "data:")) for each in tab.requested), (address, tab.requested)
    assert {page.path for page in PAGE_ROUTES if "{tenant}" in page.path and not page.is_form} - opened == set()


def _path(address: str) -> str:
    return kind_of(address).partition("?")[0]


def _parts(folder: Path, texts: Sequence[str]) -> dict[str, set[str]]:
    """What the pages of each path consist of."""
    found: dict[str, set[str]] = {}
    next_text = cycle(texts)
    config = hostile_state.make(folder, lambda: next(next_text))
    with web_server.serve_console_in_thread(
        tenant_configs_and_states.single_tenant([config]), SystemClock()
    ) as base_url:
        for address, page in crawl(Browser(base_url), "/t/acme", of_each=8):
            assert page.status in {200, 404}, (address, page.text)
            if page.status == 200:
                found.setdefault(_path(address), set()).update(_Parts(page.html).found)
    return found
