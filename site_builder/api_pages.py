"""Pages about the public Python modules, which mkdocstrings fills when the site is built."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from site_builder.markdown_text import code, table

FOLDER = "reference/api"
_STABILITY = Path(__file__).parents[1] / "docs" / "reference" / "stability.md"


@cache
def modules() -> Mapping[str, str]:
    """Return what each public module is for, from the page that says which modules are public."""
    rows: list[tuple[str, str]] = re.findall(
        r"^\| `(crossdock[\w.]*)` \| (.*) \|$", _STABILITY.read_text(encoding="utf-8"), re.MULTILINE
    )
    return {"crossdock.convert": "convert text in mappings in Python", **dict(rows)}


def file_of(module: str) -> str:
    return f"{module.rpartition('.')[2]}.md"


def pages() -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each page."""
    rows = [(f"[{code(module)}]({file_of(module)})", what) for module, what in modules().items()]
    about = "The [public modules](../stability.md#python-api), and the conversions of `crossdock`.\n"
    yield f"{FOLDER}/index.md", f"# Python API\n\n{about}\n" + table(("module", "what it is for"), rows)
    for module in modules():
        yield f"{FOLDER}/{file_of(module)}", f"# {module}\n\n::: {module}\n"
