"""A console that shows text of others as it is: no control characters, no markup."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from crossdock.printable import printable


class PlainConsole(Console):
    """A console whose texts, also in tables, are made `printable`: one line each, without markup or emoji codes."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, markup=False, emoji=False, highlight=False)

    def render_str(self, text: str, **options: Any) -> Text:
        """Rich calls this for every `str`."""
        return super().render_str(printable(text), **options)
