"""Renders the templates in `page_templates/`, and writes a page to a file."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from crossdock.errors import ConfigError
from crossdock.printable import printable
from crossdock.values.safe_local_files import replace_file

if TYPE_CHECKING:
    from crossdock.values.html_templates import PageTemplates

MAX_TEXT = 500  # characters: most that a page shows of one text


def render(template: str, /, **values: object) -> str:
    """Return the page of *template*. Texts in *values* are shown as `printable` text, cut off if they are too long."""
    return _templates().render(template, **values)


def macro_function(template: str, name: str) -> Callable[..., str]:
    return _templates().macro(template, name)


def write_page_file(path: Path, page: str) -> None:
    try:
        replace_file(path, page.encode())
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
