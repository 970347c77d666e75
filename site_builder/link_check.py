"""Checks the built pages: each link has a target, and nothing is loaded from another host."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "object": "data"}
_LOADED_RELATIONS = {"stylesheet", "icon", "preload", "prefetch", "preconnect", "manifest", "modulepreload"}


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value for name, value in attrs if value is not None}
        self.anchors.update(values[name] for name in ("id", "name") if name in values)
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        elif tag == "link" and _LOADED_RELATIONS & set(values.get("rel", "").split()):
            self.loaded.append(values["href"])
        elif _LOADED.get(tag) in values:
            self.loaded.append(values[_LOADED[tag]])


def problems(site: Path) -> list[str]:
    """Return what is wrong with the links of the HTML files below *site*, a sentence for each."""
    pages = {path.resolve(): _parsed(path) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        name = path.relative_to(site.resolve())
        found += [f"{name}: loads {each} from another host" for each in page.loaded if urlsplit(each).netloc]
        for link in (*page.links, *page.loaded):
            if (problem := _problem(path, link, pages)) is not None:
                found.append(f"{name}: {link} {problem}")
    return found


def _parsed(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def _problem(path: Path, link: str, pages: dict[Path, _Page]) -> str | None:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return None
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if target.is_dir():
        target /= "index.html"
    if not target.exists():
        return "leads to no file"
    anchor = unquote(parts.fragment)
    if anchor and target in pages and anchor not in pages[target].anchors:
        return "names an anchor that the page has not"
    return None
