"""A console that shows text of others as it is: no control characters, no markup."""

from __future__ import annotations

import os
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from crossdock.printable import printable

_UNBOUNDED = 100_000  # characters


class PlainConsole(Console):
    """A console whose texts, also in tables, are made `printable`: one line each, without markup or emoji codes."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, markup=False, emoji=False, highlight=False)
        self._piped = not self.is_terminal and "COLUMNS" not in os.environ

    def print(self, *objects: Any, **options: Any) -> None:
        """Print; when the output is piped, no line and no cell is wrapped, so that scripts find whole keys."""
        width = self.width
        if self._piped and all(isinstance(each, str | Table) for each in objects):
            self.width = _UNBOUNDED
        try:
            super().print(*objects, **options)
        finally:
            self.width = width

    def render_str(self, text: str, **options: Any) -> Text:
        """Rich calls this for every `str`."""
        return super().render_str(printable(text), **options)
