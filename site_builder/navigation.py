"""The navigation of the site, from the links of each folder's index.md."""

from __future__ import annotations

import json
import re
from pathlib import Path

INDEX = "index.md"
_LINK = re.compile(r"\]\(([^)\s#]+\.md)(?:#[^)\s]*)?\)")


class NavigationError(Exception):
    """A page that the index of its folder does not list, or a page without a title."""


def navigation(docs: Path) -> str:
    """Return the value of ``nav`` in TOML for the pages below *docs*.

    Raises NavigationError.
    """
    return _entries(docs, docs)


def title(page: Path) -> str:
    """Return the first heading of *page*."""
    found = re.search(r"^# (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    if found is None:
        raise NavigationError(f"{page}: the page has no title; begin it with a line such as '# Title'")
    return found[1].replace("`", "")


def listed(folder: Path) -> list[Path]:
    """Return the pages and folders in *folder* in the order in which its index.md links to them.

    Raises NavigationError if the index does not link to one of them.
    """
    links = _LINK.findall((folder / INDEX).read_text(encoding="utf-8"))
    targets = dict.fromkeys((folder / link).resolve() for link in links)
    inside = [each for each in targets if _place(folder, each) is not None]
    pages = {each.resolve() for each in folder.glob("*.md")} | {each.resolve() for each in folder.glob(f"*/{INDEX}")}
    if missing := pages - {*inside, (folder / INDEX).resolve()}:
        names = ", ".join(sorted(str(each.relative_to(folder.resolve())) for each in missing))
        raise NavigationError(f"{folder / INDEX}: the page does not link to {names}; add the links in reading order")
    return [each for each in inside if each in pages and each != (folder / INDEX).resolve()]


def _place(folder: Path, page: Path) -> Path | None:
    """Return where *page* is in *folder*, unless it is elsewhere or deeper than the index of a folder in it."""
    if page.parent == folder.resolve() or (page.name == INDEX and page.parent.parent == folder.resolve()):
        return page
    return None


def _entries(folder: Path, docs: Path) -> str:
    entries = [json.dumps(str((folder / INDEX).relative_to(docs)))]
    for page in listed(folder):
        if page.name == INDEX:
            entries.append(f"{{ {json.dumps(title(page))} = {_entries(page.parent, docs.resolve())} }}")
        else:
            entries.append(f"{{ {json.dumps(title(page))} = {json.dumps(str(page.relative_to(docs.resolve())))} }}")
    return f"[{', '.join(entries)}]"
