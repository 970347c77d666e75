"""The fenced blocks of the documentation, in the order of the pages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
READ = [*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md"]

_OPTION = re.compile(r"<!--\s*([a-z ]+):\s*(.+?)\s*-->")


@dataclass(frozen=True, slots=True)
class Fence:
    """A block of code on a page.

    Attributes:
        number: Of the blocks of this language on the page, from 1.
        options: What comments directly before the block say: ``<!-- exit: 4 -->`` is ``{"exit": "4"}``.
        before: The block before it on the page.
    """

    page: Path
    line: int
    language: str
    number: int
    text: str
    options: dict[str, str] = field(default_factory=dict)
    before: Fence | None = None

    @property
    def place(self) -> str:
        """``page:line``, relative to the project."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def name(self) -> str:
        """The page, its folders separated by dots, and the number of the block."""
        return f"{page_name(self.page)}-{self.number}"

    @property
    def title(self) -> str:
        """The name of a file in a comment on the first line, such as ``# warehouse.yaml``; else empty."""
        found = re.match(r"[#*; ]+([\w./-]+\.[a-z]+)\n", self.text)
        return found[1] if found else ""


def page_name(page: Path) -> str:
    """Such as ``how_to.fix.records_in_doubt``, or ``README``."""
    return ".".join(
        (page.relative_to(DOCS) if page.is_relative_to(DOCS) else page.relative_to(ROOT)).with_suffix("").parts
    )


@cache
def fences_of(page: Path) -> tuple[Fence, ...]:
    """Those of one page."""
    found: list[Fence] = []
    options: dict[str, str] = {}
    for token in MarkdownIt().parse(page.read_text(encoding="utf-8")):
        if token.type == "html_block":
            options |= dict(_OPTION.findall(token.content))
        elif token.type in {"fence", "code_block"}:
            language = token.info.strip() if token.type == "fence" else "indented"
            number = 1 + sum(each.language == language for each in found)
            line = (token.map or [0])[0] + 1
            before = found[-1] if found else None
            found.append(Fence(page, line, language, number, token.content, options, before))
            options = {}
        elif token.type.endswith("_open"):
            options = {}
    return tuple(found)


def fences(*languages: str) -> Iterator[Fence]:
    """All blocks in one of *languages*, or all blocks without one."""
    for page in READ:
        yield from (each for each in fences_of(page) if not languages or each.language in languages)


def the_fence(language: str, part: str) -> Fence:
    """The only block with *part* in it."""
    found = [each for each in fences(language) if part in each.text]
    assert len(found) == 1, f"{len(found)} blocks in {language} have {part!r}: {[each.place for each in found]}"
    return found[0]
