"""Renders the templates in `page_templates/`, their style sheets and script, and writes and seals files of pages."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from crossdock.errors import ConfigError, RefusedError
from crossdock.printable import printable
from crossdock.values.safe_local_files import replace_file_atomically

if TYPE_CHECKING:
    from crossdock.values.html_templates import PageTemplates

ASSET_MEDIA_TYPES = {"style.css": "text/css", "console.css": "text/css", "console.js": "text/javascript"}


@cache
def asset_content(name: str) -> bytes:
    return files("crossdock.console").joinpath("page_templates", name).read_bytes()


@cache
def asset_content_digest(name: str) -> str:
    return sha256(asset_content(name)).hexdigest()[:16]


def asset_addresses() -> dict[str, str]:
    """Return the address of each by name. A browser may keep what it has got there."""
    return {name: f"/{name}?v={asset_content_digest(name)}" for name in ASSET_MEDIA_TYPES}


MAX_TEXT = 500  # characters: most that a page shows of one text


def render(template: str, /, **values: object) -> str:
    """Return the page of *template*. Texts in *values* are shown as `printable` text, cut off if they are too long."""
    return _templates().render(template, **values)


def macro_function(template: str, name: str) -> Callable[..., str]:
    return _templates().macro(template, name)


def write_page_file(path: Path, page: str) -> None:
    try:
        replace_file_atomically(path, page.encode())
    except OSError as error:
        raise ConfigError(
            f"the report cannot be written: {error.strerror}", where=str(path), code="file_unwritable"
        ) from error


@cache
def _templates() -> PageTemplates:
    """Load the templates with the first page, because few commands make one."""
    from crossdock.values.html_templates import PageTemplates  # noqa: PLC0415  it imports jinja2

    return PageTemplates("crossdock.console", shown=_printable_and_cut)


def _printable_and_cut(text: str) -> str:
    return printable(text[:MAX_TEXT]) + "…" * (len(text) > MAX_TEXT)


def append_checksum_line(page: str) -> tuple[bytes, str]:
    """Return *page* with its last line, and the hash of what is above that line."""
    above = page.encode()
    digest = sha256(above).hexdigest()
    return above + _checksum_line(digest), digest


def verified_digest(content: bytes) -> str:
    """Return the hash of *content*, or raise RefusedError if the last line does not name it."""
    above = content[: content.rfind(b"\n", 0, -1) + 1]
    digest = sha256(above).hexdigest()
    if content != above + _checksum_line(digest):
        hint = "it was changed, or cut off, or it is not a sign-off report; take a copy from the archive"
        raise RefusedError(
            f"the last line does not name the SHA-256 of the lines above it, {digest}",
            hint=hint,
            code="sign_off_invalid",
        )
    return digest


def _checksum_line(digest: str) -> bytes:
    return render("seal.html", digest=digest).encode()
