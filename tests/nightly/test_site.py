"""The documentation site is built without a warning, and is read in a browser without another host."""

from __future__ import annotations

import functools
import json
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest
import yaml
from site_builder import api_pages
from site_builder.build import build
from site_builder.reference_pages import generated
from tests import browser
from tests.servers import require
from tests.waiting import eventually

SCROLLS = """[...document.querySelectorAll('.md-typeset__scrollwrap')].some(e => e.scrollWidth > e.clientWidth + 1)
    || document.documentElement.scrollWidth > window.innerWidth"""
SEARCH = "document.querySelector('div.focus-visible')?.shadowRoot"
FOUND = f"[...{SEARCH}.querySelectorAll('a')].map(each => each.href)"
QUESTIONS = yaml.safe_load((Path(__file__).parents[1] / "documentation/search_questions.yaml").read_text("utf-8"))


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the base's name
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as `python -m site_builder` makes it: a warning of zensical or a broken link is an error."""
    require(find_spec("zensical") is not None, "zensical")
    return build(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    handler = functools.partial(QuietHandler, directory=site.parent)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/{site.name}"
        server.shutdown()
        thread.join()


def test_each_public_name_is_in_the_reference(site: Path) -> None:
    """A name without a docstring would be missing."""
    for module in api_pages.modules():
        text = (site / api_pages.FOLDER / api_pages.file_of(module)).with_suffix(".html").read_text(encoding="utf-8")
        names = getattr(resolve_name(module), "__all__", [])
        found = {name for name in names if f'id="{module}.{name}"' in text or f"{module}.{name}" in api_pages.modules()}
        assert set(names) == found, module


def test_each_generated_page_is_in_the_site(site: Path) -> None:
    """And the list of versions has this one."""
    assert [path for path in generated() if not (site / path).with_suffix(".html").exists()] == []
    assert [each["version"] for each in json.loads((site.parent / "versions.json").read_text())] == [site.name]


@pytest.mark.parametrize(
    "part", ["reference/commands", "reference/config", "reference/api", "reference", "concepts", "how_to/shops"]
)
def test_no_page_scrolls_sideways(site: Path, address: str, tmp_path: Path, part: str) -> None:
    """At 400 and at 1280 pixels; and nothing is loaded from another host."""
    with browser.opened(tmp_path) as tab:
        for page in sorted((site / part).glob("*.html")):
            tab.open(f"{address}/{page.relative_to(site)}")
            for width in (400, 1280):
                tab.resize(width)
                assert not tab.run(SCROLLS), f"{page.name} at {width} pixels"
            others = [each for each in tab.requested if not each.startswith((f"{address}/", "data:"))]
            assert [each for each in others if not each.endswith("/versions.json")] == []


def found_by(tab: browser.Tab, address: str, text: str) -> list[str]:
    """The addresses of what the search of the site shows for *text*, best first and relative to the site."""
    tab.open(f"{address}/index.html")
    tab.run("document.querySelector('.md-search__button').click()")
    eventually(lambda: tab.run(f"!!{SEARCH}?.activeElement"))
    tab.call("Input.insertText", text=text)
    eventually(lambda: tab.run(FOUND))
    found: list[str] = tab.run(FOUND)
    return [each.removeprefix(f"{address}/").partition("?")[0] for each in found]


def test_the_search_works_without_another_host(address: str, tmp_path: Path) -> None:
    """It finds the page about an error and the section about the key."""
    with browser.opened(tmp_path) as tab:
        found = found_by(tab, address, "host key")
    assert "reference/errors/host_key_missing.html" in found
    assert "reference/config/connections_sftp_warehouse.html" in found


@pytest.mark.parametrize("asked", QUESTIONS, ids=lambda asked: asked["source"])
def test_a_newcomers_question_is_answered_within_two_searches(
    site: Path, address: str, tmp_path: Path, asked: dict[str, Any]
) -> None:
    """The page that answers it is among the first five results of one of them."""
    page, _, section = asked["page"].partition("#")
    page = page.replace(".md", ".html")
    assert not section or f'id="{section}"' in (site / page).read_text(encoding="utf-8")
    with browser.opened(tmp_path) as tab:
        found = {text: found_by(tab, address, text)[:5] for text in asked["searches"]}
    assert len(found) <= 2
    assert any(page in each for each in found.values()), found
