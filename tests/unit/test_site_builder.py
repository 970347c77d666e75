"""The navigation follows the index pages, and broken links of built pages are found."""

from __future__ import annotations

from pathlib import Path

import pytest
from site_builder import command_pages
from site_builder.link_check import problems
from site_builder.navigation import NavigationError, navigation

from crossdock.values.json_documents.document_types_by_command import DOCUMENTS


def write(folder: Path, pages: dict[str, str]) -> None:
    for name, text in pages.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


PAGES = {
    "index.md": "# Docs\n\n[Second](run/index.md), [first](start.md), [deeper](run/plan.md)\n",
    "start.md": "# Start\n",
    "run/index.md": "# Run\n\n- [Sync](sync.md)\n- [Plan](plan.md#what)\n",
    "run/plan.md": "# Plan a `run`\n",
    "run/sync.md": "# Sync\n",
}


def test_pages_have_the_order_of_the_links(tmp_path: Path) -> None:
    """A folder is where its index is linked; its pages are in the order of its own links, with their titles."""
    write(tmp_path, PAGES)
    assert navigation(tmp_path) == (
        '["index.md", { "Run" = ["run/index.md", { "Sync" = "run/sync.md" }, { "Plan a run" = "run/plan.md" }] },'
        ' { "Start" = "start.md" }]'
    )


def test_a_page_without_a_link_is_an_error(tmp_path: Path) -> None:
    """The message names the index and the page."""
    write(tmp_path, {**PAGES, "run/apply.md": "# Apply\n"})
    with pytest.raises(NavigationError, match=r"run/index\.md: the page does not link to apply\.md"):
        navigation(tmp_path)


def test_broken_links_and_other_hosts_are_found(tmp_path: Path) -> None:
    """Missing files and anchors, and what is loaded from elsewhere; a link to elsewhere is none."""
    write(
        tmp_path,
        {
            "index.html": '<h2 id="one"></h2><a href="sub/#two">x</a><a href="#one">x</a><a href="https://example.com">x</a>',
            "sub/index.html": '<h2 id="two"></h2><a href="../index.html#three">x</a><a href="gone.html">x</a>'
            '<script src="https://cdn.example.com/a.js"></script><img src="//cdn.example.com/b.png">'
            '<link rel="stylesheet" href="https://cdn.example.com/c.css">',
        },
    )
    assert problems(tmp_path) == [
        "sub/index.html: loads https://cdn.example.com/a.js from another host",
        "sub/index.html: loads //cdn.example.com/b.png from another host",
        "sub/index.html: loads https://cdn.example.com/c.css from another host",
        "sub/index.html: ../index.html#three names an anchor that the page has not",
        "sub/index.html: gone.html leads to no file",
    ]


def test_the_page_of_a_command_has_the_members_of_its_json() -> None:
    """Each document once, with those of the objects in it."""
    pages = dict(command_pages.pages())
    assert "| `findings[].ok` | `true` or `false` |" in pages["reference/commands/check.md"]
    text = "".join(pages.values())
    assert {usage: text.count(f" of `crossdock {usage}`: ") for usage in DOCUMENTS} == dict.fromkeys(DOCUMENTS, 1)
