"""The terminal: what a text quotes of others is neither obeyed by it nor taken for markup."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from crossdock.printable import printable


class PlainConsole(Console):
    """A console whose texts, also those in tables, are `printable`: each is one line, and shown as it is written."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, markup=False, emoji=False, highlight=False)

    def render_str(self, text: str, **options: Any) -> Text:
        """Called by rich for every text that is no `Text`."""
        return super().render_str(printable(text), **options)
