"""The style sheets and the script of the console; their addresses change with their content."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from importlib.resources import files

KINDS = {"style.css": "text/css", "console.css": "text/css", "console.js": "text/javascript"}


@cache
def content(name: str) -> bytes:
    return files("crossdock.console").joinpath("page_templates", name).read_bytes()


@cache
def content_digest(name: str) -> str:
    return sha256(content(name)).hexdigest()[:16]


def addresses() -> dict[str, str]:
    """Return the address of each by name. A browser may keep what it has got there."""
    return {name: f"/{name}?v={content_digest(name)}" for name in KINDS}
